package packages

import (
	"context"
	"flag"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/pinch-agent/pinch/resource"
)

// victim names the agent folder for the process that is killed.
const victim = "PINCH_TEST_INSTALL_INTO"

var long = flag.Bool("long", false, "many kills")

// beVictim installs two versions in turn until it is killed.
func beVictim() int {
	folders := resource.Folders{Agent: os.Getenv(victim), Cwd: os.Getenv(victim)}
	in := &Installer{Client: &http.Client{}, Getenv: os.Getenv}
	for i := 0; ; i++ {
		source := []string{"npm:a@1.0.0", "npm:a@2.0.0"}[i%2]
		place, _ := folders.PlacePackage(source, folders.Agent, resource.User)
		if _, err := in.Install(context.Background(), source, place, false); err != nil {
			os.Stderr.WriteString(err.Error())
			return 1
		}
	}
}

// An installer that is killed leaves one version or the other, whole, and the next
// one clears up behind it without waiting.
func TestKilledInstalls(t *testing.T) {
	r := newRegistry(t)
	big := strings.Repeat("line of text\n", 2000)
	for _, v := range []string{"1.0.0", "2.0.0"} {
		files := map[string]string{"version": v}
		for _, name := range []string{"a", "b", "c", "d/e", "d/f"} {
			files[name] = v + big
		}
		r.publish(t, "a", v, files)
	}
	f := newFixture(t, r.URL)
	f.must("npm:a@1.0.0")
	kills := 12
	if *long {
		kills = 400
	}
	random := rand.New(rand.NewPCG(7, 7))
	seen := map[string]int{}
	for range kills {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), victim+"="+f.folders.Agent, "npm_config_registry="+r.URL)
		var said strings.Builder
		cmd.Stderr = &said
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(20*time.Millisecond + time.Duration(random.Int64N(int64(60*time.Millisecond))))
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if said.Len() > 0 {
			t.Fatal(said.String())
		}
		s, err := Inspect(f.place("npm:a").Dir)
		if inOneStep := runtime.GOOS == "linux"; err != nil || s.Status != Intact && (inOneStep || s.Status != Missing) {
			t.Fatalf("%+v %v", s, err)
		}
		w, err := enter(t.Context(), f.place("npm:a").Root)
		if err != nil {
			t.Fatal(err)
		}
		w.leave()
		if s, err = Inspect(f.place("npm:a").Dir); err != nil || s.Status != Intact {
			t.Fatalf("%+v %v", s, err)
		}
		seen[s.Record.Version]++
		f.has("npm:a", "version", s.Record.Version)
		if left, err := os.ReadDir(filepath.Join(f.place("npm:a").Root, tempName)); err != nil || len(left) > 0 {
			t.Fatalf("left behind: %v %v", left, err)
		}
	}
	t.Logf("seed 7, %d kills, versions left in place: %v", kills, seen)
}
