package settings

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// The tests here run real processes: this test binary, started again with
// childVariable, which makes it write settings until it is done or killed.
const childVariable = "PINCH_SETTINGS_TEST_CHILD"

func TestMain(m *testing.M) {
	if task := os.Getenv(childVariable); task != "" {
		if err := child(task); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// child writes as many settings of its own as the task says, and tells of each.
// The task is: path, name, number.
func child(task string) error {
	words := strings.Split(task, "|")
	n, _ := strconv.Atoi(words[2])
	if err := limitFiles(words[3:]); err != nil {
		return err
	}
	s := OpenStore(words[0], "")
	for i := range n {
		if err := s.Write(context.Background(), User, Set("mine."+words[1]+"."+strconv.Itoa(i), i)); err != nil {
			return err
		}
		fmt.Println(i)
	}
	return nil
}

func start(t *testing.T, task ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), childVariable+"="+strings.Join(task, "|"))
	return cmd
}

const shared = "// of several\n{\n  \"theme\": \"dark\", // kept\n}\n"

// wrote checks that the settings of a child are there, the first n of them at
// least.
func wrote(t *testing.T, f *File, name string, n int) {
	t.Helper()
	for i := range n {
		if v := f.root.at([]string{"mine", name, strconv.Itoa(i)}); string(v) != strconv.Itoa(i) {
			t.Errorf("%s.%d is lost", name, i)
		}
	}
}

func TestProcesses(t *testing.T) {
	path := filepath.Join(t.TempDir(), "settings.json")
	put(t, path, shared)
	const processes, each = 4, 12
	var children []*exec.Cmd
	for i := range processes {
		cmd := start(t, path, "p"+strconv.Itoa(i), strconv.Itoa(each))
		cmd.Stderr = os.Stderr
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		children = append(children, cmd)
	}
	for _, cmd := range children {
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
	}
	f := Read(path)
	for i := range processes {
		wrote(t, f, "p"+strconv.Itoa(i), each)
	}
	if !strings.HasPrefix(content(t, path), "// of several\n{\n  \"theme\": \"dark\", // kept\n") {
		t.Errorf("got %s", content(t, path))
	}
}
