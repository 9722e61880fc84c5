package keychain

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/zalando/go-keyring"

	"github.com/pinch-agent/pinch/auth"
)

// The library's keychain in memory stands in for the system's.
func TestItems(t *testing.T) {
	t.Setenv("DBUS_SESSION_BUS_ADDRESS", "unix:path=/nowhere")
	keyring.MockInit()
	var k System
	ctx := t.Context()
	if _, err := k.Get(ctx, "pinch", "p"); !errors.Is(err, auth.ErrNoItem) {
		t.Errorf("got %v", err)
	}
	if err := k.Set(ctx, "pinch", "p", "secret"); err != nil {
		t.Fatal(err)
	}
	if got, err := k.Get(ctx, "pinch", "p"); got != "secret" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	if err := k.Delete(ctx, "pinch", "p"); err != nil {
		t.Error(err)
	}
	if err := k.Delete(ctx, "pinch", "p"); !errors.Is(err, auth.ErrNoItem) {
		t.Errorf("got %v", err)
	}
	if err := k.Set(ctx, "pinch", "p", strings.Repeat("x", maxSecret+1)); !errors.Is(err, errTooLong) {
		t.Errorf("got %v", err)
	}
}

func TestContextEndsTheWait(t *testing.T) {
	t.Setenv("DBUS_SESSION_BUS_ADDRESS", "unix:path=/nowhere")
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	answer := make(chan bool)
	defer close(answer)
	_, err := call(ctx, func() (string, error) { <-answer; return "late", nil })
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
	if _, err := call(ctx, func() (string, error) { t.Error("asked after the end"); return "", nil }); err == nil {
		t.Error("an ended context is ignored")
	}
}
