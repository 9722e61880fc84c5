package tool

import (
	"errors"
	"path/filepath"
	"reflect"
	"runtime"
	"testing"

	"github.com/pinch-agent/pinch/env"
)

func TestPowerShellProgram(t *testing.T) {
	installed := filepath.Join("P", "PowerShell", "7", "pwsh.exe")
	for _, tt := range []struct {
		name     string
		onPath   map[string]string
		files    []string
		programs string
		want     string
		old      bool
	}{
		{"both on PATH", map[string]string{"pwsh.exe": "7", "powershell.exe": "5"}, []string{installed}, "P", "7", false},
		{"installed", map[string]string{"powershell.exe": "5"}, []string{installed}, "P", installed, false},
		{"not installed", map[string]string{"powershell.exe": "5"}, nil, "P", "5", true},
		{"no ProgramFiles", map[string]string{"powershell.exe": "5"}, []string{installed}, "", "5", true},
		{"nothing found", nil, nil, "P", "powershell.exe", true},
	} {
		path, old := powerShellProgram(func(name string) (string, error) {
			if p := tt.onPath[name]; p != "" {
				return p, nil
			}
			return "", errors.New("not found")
		}, func(path string) bool { return len(tt.files) > 0 && tt.files[0] == path }, tt.programs)
		if path != tt.want || old != tt.old {
			t.Errorf("%s: got %s, %v", tt.name, path, old)
		}
	}
}

func TestPowerShellArgv(t *testing.T) {
	flags := []string{"p", "-NoProfile", "-NonInteractive", "-ExecutionPolicy", "Bypass", "-Command"}
	for old, want := range map[bool]string{
		false: powerShellUTF8 + "\nGet-Item 'a \"b\"' # c",
		true:  powerShellUTF8 + "\nGet-Item 'a \"b\"' # c\n" + powerShellExit,
	} {
		if got := powerShellArgv("p", old, `Get-Item 'a "b"' # c`); !reflect.DeepEqual(got, append(flags[:6:6], want)) {
			t.Errorf("got %q", got)
		}
	}
}

func TestPowerShellElsewhere(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("this is Windows")
	}
	_, err := call(t, PowerShell(BashOptions{Env: &env.Local{}}), "1", `{"command":"1"}`, nil)
	if err == nil || err.Error() != "The powershell tool is only available on Windows." {
		t.Errorf("got %v", err)
	}
}
