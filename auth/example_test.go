package auth_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/pinch-agent/pinch/auth"
)

// A stored sign-in is renewed when a request needs it.
func ExampleStore_Token() {
	folder, err := os.MkdirTemp("", "auth")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(folder)
	store := auth.OpenStore(filepath.Join(folder, "auth.json"), auth.StoreOptions{
		Refresh: func(_ context.Context, provider string, c *auth.OAuth) (*auth.OAuth, error) {
			fmt.Println("asking the issuer of", provider)
			next := *c // with what the provider added
			next.Access = auth.NewSecret("second token")
			next.Refresh = auth.NewSecret("second refresh token")
			next.Expires = time.Now().Add(time.Hour)
			return &next, nil
		},
	})
	ctx := context.Background()
	signIn := &auth.OAuth{
		Access:  auth.NewSecret("first token"),
		Refresh: auth.NewSecret("first refresh token"),
		Expires: time.Now().Add(time.Minute),
	}
	signIn.SetExtraText("accountId", "a-1")
	if err := store.Set(ctx, "acme", signIn); err != nil {
		fmt.Println(err)
		return
	}
	for range 2 {
		got, err := store.Token(ctx, "acme", auth.MinLife)
		fmt.Println(got.Key.Reveal(), got.OAuth.Extra("accountId"), got.Key, err)
	}
	// Output:
	// asking the issuer of acme
	// second token a-1 (hidden) <nil>
	// second token a-1 (hidden) <nil>
}

// Modify changes an entry from what it is at that moment.
func ExampleStore_Modify() {
	folder, err := os.MkdirTemp("", "auth")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(folder)
	store := auth.OpenStore(filepath.Join(folder, "auth.json"), auth.StoreOptions{})
	ctx := context.Background()
	if err := store.Set(ctx, "cloudflare-workers-ai", &auth.APIKey{Key: auth.NewSecret("$CLOUDFLARE_KEY")}); err != nil {
		fmt.Println(err)
		return
	}
	err = store.Modify(ctx, "cloudflare-workers-ai", func(_ context.Context, old auth.Credential) (auth.Credential, error) {
		key, ok := old.(*auth.APIKey)
		if !ok {
			return nil, nil // as it is
		}
		key.Env = map[string]string{"CLOUDFLARE_ACCOUNT_ID": "0123"}
		return key, nil
	})
	text, _ := os.ReadFile(store.Path())
	fmt.Println(string(text), err)
	// Output:
	// {
	//   "cloudflare-workers-ai": {
	//     "type": "api_key",
	//     "key": "$CLOUDFLARE_KEY",
	//     "env": {
	//       "CLOUDFLARE_ACCOUNT_ID": "0123"
	//     }
	//   }
	// } <nil>
}
