package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/pinch-agent/pinch/auth"
	"github.com/pinch-agent/pinch/internal/jsonedit"
	"github.com/pinch-agent/pinch/internal/jsonwire"
	"github.com/pinch-agent/pinch/internal/regular"
	"github.com/pinch-agent/pinch/internal/settings"
)

// oldKeys are credentials where former versions kept them.
type oldKeys struct {
	settings string            // path of the settings file
	keys     map[string]string // apiKeys of it

	signIns string // path of oauth.json
	oauth   map[string]*auth.OAuth
}

// moveOldKeys moves the credentials of old files to the store, as long as it has
// no file. What is moved is stored, all of it in one step, before anything is
// taken away, so that a program that ends in the middle has lost nothing, and the
// next one does the rest.
func (p *program) moveOldKeys(folder string, store *auth.Store) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	old, err := readOldKeys(folder)
	if err == nil {
		var moved []string
		if moved, err = old.move(ctx, store); len(moved) > 0 {
			fmt.Fprintf(p.errs, "Moved the keys of %s to %s\n", printable(strings.Join(moved, ", ")), printable(store.Path()))
		}
	}
	if err != nil {
		p.warn("Old keys were not moved to %s: %s", store.Path(), sentence(err))
	}
}

func readOldKeys(folder string) (*oldKeys, error) {
	o := &oldKeys{settings: filepath.Join(folder, "settings.json"), signIns: filepath.Join(folder, "oauth.json")}
	var r jsonwire.Reader
	if keys := settings.Read(o.settings).Raw("apiKeys"); keys.Kind() == '{' {
		r.Reset(keys)
		o.keys = map[string]string{}
	}
	for r.Object(); r.More(); {
		provider := string(r.Key())
		if r.Kind() == '"' {
			o.keys[provider] = r.Text()
		} else {
			r.Skip()
		}
	}
	b, err := regular.ReadFile(o.signIns)
	if errors.Is(err, fs.ErrNotExist) {
		return o, nil
	}
	if err != nil {
		return nil, err
	}
	if jsonedit.Blank(b) {
		return o, nil
	}
	o.oauth = map[string]*auth.OAuth{}
	r.Reset(bytes.TrimPrefix(b, []byte("\xEF\xBB\xBF")))
	isObject := r.Kind() == '{'
	for r.Object(); r.More(); {
		provider := string(r.Key())
		isObject = isObject && r.Kind() == '{'
		o.oauth[provider] = oldSignIn(r.Keep())
	}
	if r.End() != nil || !isObject { // the words of the error could hold a token
		return nil, fmt.Errorf("%s is no object of sign-ins: correct or remove it", o.signIns)
	}
	return o, nil
}

// oldSignIn is an entry of oauth.json, which has the members of an entry of the
// store but for its type.
func oldSignIn(entry []byte) *auth.OAuth {
	o := &auth.OAuth{}
	raw := jsonwire.Begin(nil)
	raw.Text("type", "oauth")
	var r jsonwire.Reader
	r.Reset(entry)
	for r.Object(); r.More(); {
		name := string(r.Key())
		switch value := r.Raw(); name {
		case "type":
			continue
		case "access", "refresh":
			text, _ := jsonwire.StringValue(value)
			if name == "access" {
				o.Access = auth.NewSecret(text)
			} else {
				o.Refresh = auth.NewSecret(text)
			}
			raw.Member(name, value)
		case "expires":
			var n jsonwire.Reader
			n.Reset(value)
			o.Expires = time.UnixMilli(n.Int())
			raw.Member(name, value)
		default:
			raw.Member(name, value)
		}
	}
	o.Raw = raw.End()
	return o
}

// move moves what there is, and tells which providers it was about.
func (o *oldKeys) move(ctx context.Context, store *auth.Store) (moved []string, err error) {
	if o.keys == nil && o.oauth == nil {
		return nil, nil
	}
	all := map[string]auth.Credential{}
	for provider, key := range o.keys {
		all[provider] = &auth.APIKey{Key: auth.NewSecret(key)}
	}
	for provider, signIn := range o.oauth {
		all[provider] = signIn
	}
	if _, err := os.Stat(store.Path()); errors.Is(err, fs.ErrNotExist) && len(all) > 0 {
		created, err := store.Create(ctx, all)
		if err != nil {
			return nil, err
		}
		if created {
			moved = slices.Sorted(maps.Keys(all))
		}
	}
	if err := o.retireSignIns(store); err != nil {
		return moved, err
	}
	return moved, o.removeKeys(ctx, store)
}

// retireSignIns renames oauth.json when the store has a sign-in for each of its
// own; their tokens may have been renewed since.
func (o *oldKeys) retireSignIns(store *auth.Store) error {
	if o.oauth == nil {
		return nil
	}
	for provider := range o.oauth {
		c, err := store.Get(provider)
		if err != nil {
			return err
		}
		if _, ok := c.(*auth.OAuth); !ok {
			return nil
		}
	}
	return os.Rename(o.signIns, o.signIns+".migrated")
}

// removeKeys takes those keys out of the settings that the store has.
func (o *oldKeys) removeKeys(ctx context.Context, store *auth.Store) error {
	if o.keys == nil {
		return nil
	}
	write := settings.OpenStore(o.settings, "").Write
	var changes []settings.Change
	for provider, key := range o.keys {
		c, err := store.Get(provider)
		if err != nil {
			return err
		}
		if stored, ok := c.(*auth.APIKey); ok && stored.Key.Reveal() == key {
			changes = append(changes, settings.Unset("apiKeys."+provider))
		}
	}
	if len(changes) > 0 {
		if err := write(ctx, settings.User, changes...); err != nil {
			return err
		}
	}
	b, err := regular.ReadFile(o.settings)
	if err != nil {
		return err
	}
	var r jsonwire.Reader
	r.Reset(jsonwire.Get(jsonedit.Plain(b), "apiKeys"))
	if r.Object(); r.More() {
		return nil // what is left is nowhere else
	}
	return write(ctx, settings.User, settings.Unset("apiKeys"))
}
