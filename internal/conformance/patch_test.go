package conformance

import (
	"context"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"testing"

	"github.com/pinch-agent/pinch/agent"
	"github.com/pinch-agent/pinch/env"
	"github.com/pinch-agent/pinch/tool"
)

// Patches: files and a patch to the summary and the files after it.
func TestApplyPatch(t *testing.T) {
	g := newGroup("gateway/apply-patch")
	type files map[string]string
	var v struct {
		Cases []struct {
			ID    string
			Input struct {
				Files files
				Patch string
			}
			Output struct {
				Throws  bool
				Summary json.RawMessage
				NoOp    bool
				Files   files
			}
		}
	}
	readVector(t, filepath.Join(vectorRoot(), "gateway", "apply-patch.json"), &v)
	for _, c := range v.Cases {
		t.Run(c.ID, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "work")
			for name, text := range c.Input.Files {
				path := filepath.Join(dir, filepath.FromSlash(name))
				if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if err := os.MkdirAll(dir, 0o755); err != nil {
				t.Fatal(err)
			}
			args, err := json.Marshal(map[string]string{"input": c.Input.Patch})
			if err != nil {
				t.Fatal(err)
			}
			patch := tool.ApplyPatch(tool.ApplyPatchOptions{Env: &env.Local{Dir: dir}})
			r, err := patch.Execute(context.Background(), agent.Call{ID: "1", Args: args, Update: func(agent.Result) {}})
			o := outcome{}
			if (err != nil) != c.Output.Throws {
				o.add("throws", "got %v", err)
			}
			if err == nil && !c.Output.Throws {
				var d struct {
					Summary json.RawMessage
					NoOp    bool
				}
				if err := json.Unmarshal(r.Details, &d); err != nil {
					t.Fatal(err)
				}
				if err := (toolMatch{}).json(c.Output.Summary, d.Summary); err != nil {
					o.add("summary", "%v", err)
				}
				if d.NoOp != c.Output.NoOp {
					o.add("noOp", "got %v", d.NoOp)
				}
			}
			if got := toolFiles(t, dir); !maps.Equal(got, c.Output.Files) {
				o.add("files", "got %q, want %q", got, c.Output.Files)
			}
			g.report(t, c.ID, o, nil)
		})
	}
}
