package cli

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestMoveOldKeys(t *testing.T) {
	const (
		oldSettings = "{\n  // mine\n  \"theme\": \"dark\",\n  \"apiKeys\": {\"openai\": \"sk-1\", \"groq\": \"$GROQ\"}\n}\n"
		noKeys      = "{\n  // mine\n  \"theme\": \"dark\"\n}\n"
		oldSignIns  = `{"anthropic": {"refresh": "r", "access": "a", "expires": 1700000000000, "accountId": "me"}}`
		oauthEntry  = "  \"anthropic\": {\n    \"type\": \"oauth\",\n    \"access\": \"a\",\n    \"refresh\": \"r\",\n    \"expires\": 1700000000000,\n    \"accountId\": \"me\"\n  }"
		keyEntries  = "  \"groq\": {\n    \"type\": \"api_key\",\n    \"key\": \"$GROQ\"\n  },\n  \"openai\": {\n    \"type\": \"api_key\",\n    \"key\": \"sk-1\"\n  }"
		all         = "{\n" + oauthEntry + ",\n" + keyEntries + "\n}"
	)
	for _, c := range []struct {
		name         string
		files, after map[string]string // "" for none
		says         string            // what the first run prints has this
	}{
		{"both",
			map[string]string{"settings.json": oldSettings, "oauth.json": oldSignIns},
			map[string]string{"settings.json": noKeys, "oauth.json": "", "oauth.json.migrated": oldSignIns, "auth.json": all}, "Moved the keys of anthropic, groq, openai to "},
		{"ended after storing",
			map[string]string{"settings.json": oldSettings, "oauth.json": oldSignIns, "auth.json": all},
			map[string]string{"settings.json": noKeys, "oauth.json": "", "oauth.json.migrated": oldSignIns, "auth.json": all}, ""},
		{"ended after renaming",
			map[string]string{"settings.json": oldSettings, "oauth.json.migrated": oldSignIns, "auth.json": all},
			map[string]string{"settings.json": noKeys, "auth.json": all}, ""},
		{"ended before the empty object went",
			map[string]string{"settings.json": `{"apiKeys": {}}`, "auth.json": "{}"},
			map[string]string{"settings.json": `{}`, "auth.json": "{}"}, ""},
		{"keys only",
			map[string]string{"settings.json": oldSettings},
			map[string]string{"settings.json": noKeys, "auth.json": "{\n" + keyEntries + "\n}"}, "Moved"},
		{"other keys are stored already",
			map[string]string{"settings.json": oldSettings, "oauth.json": oldSignIns, "auth.json": `{"openai":{"type":"api_key","key":"sk-2"},"groq":{"type":"api_key","key":"$GROQ"}}`},
			map[string]string{"settings.json": strings.Replace(oldSettings, `, "groq": "$GROQ"`, "", 1), "oauth.json": oldSignIns, "auth.json": `{"openai":{"type":"api_key","key":"sk-2"},"groq":{"type":"api_key","key":"$GROQ"}}`}, ""},
		{"a key beside a sign-in",
			map[string]string{"settings.json": `{"apiKeys": {"anthropic": "sk-3"}}`, "oauth.json": oldSignIns},
			map[string]string{"settings.json": `{"apiKeys": {"anthropic": "sk-3"}}`, "oauth.json": "", "auth.json": "{\n" + oauthEntry + "\n}"}, "Moved"},
		{"what is no key",
			map[string]string{"settings.json": `{"apiKeys": {"groq": "$GROQ", "x": 5}}`},
			map[string]string{"settings.json": `{"apiKeys": {"x": 5}}`, "auth.json": "{\n  \"groq\": {\n    \"type\": \"api_key\",\n    \"key\": \"$GROQ\"\n  }\n}"}, "Moved"},
		{"sign-ins that cannot be read",
			map[string]string{"settings.json": oldSettings, "oauth.json": `{"anthropic": {"refresh": "secret`},
			map[string]string{"settings.json": oldSettings, "oauth.json": `{"anthropic": {"refresh": "secret`, "auth.json": ""}, "oauth.json is no object of sign-ins: correct or remove it"},
		{"sign-ins that were emptied",
			map[string]string{"settings.json": `{"apiKeys": {"groq": "$GROQ"}}`, "oauth.json": " \n"},
			map[string]string{"settings.json": `{}`, "oauth.json": " \n", "auth.json": "{\n  \"groq\": {\n    \"type\": \"api_key\",\n    \"key\": \"$GROQ\"\n  }\n}"}, "Moved"},
		{"settings that cannot be read",
			map[string]string{"settings.json": `{"apiKeys": `},
			map[string]string{"settings.json": `{"apiKeys": `, "auth.json": ""}, ""},
		{"nothing old", map[string]string{"settings.json": `{}`}, map[string]string{"settings.json": `{}`, "auth.json": ""}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, out, errs := inHome(t, c.files)
			for i := range 2 { // the second run finds nothing to do
				errs.Reset()
				p.openCredentials()
				if i == 0 && (!strings.Contains(errs.String(), c.says) || c.says == "" && errs.Len() > 0) {
					t.Errorf("says %q, want %q", errs, c.says)
				}
				for name, want := range c.after {
					b, err := os.ReadFile(filepath.Join(p.home, name))
					if want == "" && !errors.Is(err, fs.ErrNotExist) || want != "" && string(b) != want {
						t.Errorf("run %d: %s is %s, want %s", i, name, b, want)
					}
				}
				if out.Len() > 0 || strings.Contains(errs.String(), "secret") {
					t.Errorf("printed %q, %q", out, errs)
				}
			}
		})
	}
}
