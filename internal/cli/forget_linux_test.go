package cli

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The keys that a run was started with are its own: a command of the model finds
// them neither in its environment nor in what /proc tells of pinch.
func TestKeysAreNotInProc(t *testing.T) {
	dir := t.TempDir()
	scenario := filepath.Join(dir, "look.json")
	script := `{"turns":[{"toolCalls":[{"name":"bash","args":{"command":"env | grep KEY; for f in environ cmdline; do tr '\\0' '\\n' < /proc/$PPID/$f; done; echo looked"}}]},{"text":"done"}]}`
	if err := os.WriteFile(scenario, []byte(script), 0o600); err != nil {
		t.Fatal(err)
	}
	models := `{"providers":{"mine":{"baseUrl":"http://127.0.0.1:9","api":"openai-completions","apiKey":"$MINE_KEY","models":[{"id":"m"}]}}}`
	if err := os.WriteFile(filepath.Join(dir, "models.json"), []byte(models), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0], "--mode", "json", "--no-session", "--model", "demo/"+scenario,
		"--api-key", "secret-first", "--api-key", "secret-argument", "-p", "look around", "--", "--api-key", "said-behind")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), runMain+"=1", "HOME="+dir, "PINCH_AGENT_DIR="+dir, "PINCH_OFFLINE=1",
		"OPENAI_API_KEY=secret-variable", "MINE_KEY=secret-named", "UNRELATED=still-there")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, want := range []string{"looked", "UNRELATED=still-there", "OPENAI_API_KEY=***************", "look around", `"text":"said-behind"`} {
		if !strings.Contains(string(out), want) {
			t.Errorf("%q is missing", want)
		}
	}
	for _, secret := range []string{"secret-first", "secret-argument", "secret-variable", "secret-named"} {
		if strings.Contains(string(out), secret) {
			t.Errorf("%q is shown", secret)
		}
	}
	if t.Failed() {
		t.Logf("%s", out)
	}
}
