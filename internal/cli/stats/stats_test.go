package stats

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/pinch-agent/pinch/llm"
	"github.com/pinch-agent/pinch/session"
	"github.com/pinch-agent/pinch/session/jsonl"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// write writes session files by name and returns their paths.
func write(t testing.TB, files map[string]string) []string {
	t.Helper()
	dir := t.TempDir()
	var paths []string
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		paths = append(paths, path)
	}
	return paths
}

func header(id, cwd string) string {
	return fmt.Sprintf(`{"type":"session","version":3,"id":%q,"timestamp":"2026-03-01T08:00:00.000Z","cwd":%q}`, id, cwd) + "\n"
}

func usage(in, out int, cost float64) string {
	return fmt.Sprintf(`{"input":%d,"output":%d,"cacheRead":1,"cacheWrite":2,"totalTokens":%d,"cost":{"input":0,"output":0,"cacheRead":0,"cacheWrite":0,"total":%g}}`, in, out, in+out+3, cost)
}

func answer(id, day, model string, u string) string {
	at, err := time.Parse(time.DateOnly, day)
	if err != nil {
		panic(err)
	}
	return fmt.Sprintf(`{"type":"message","id":%q,"parentId":null,"timestamp":"%sT12:00:00.000Z","message":{"role":"assistant","content":[{"type":"text","text":"\"usage\""}],"provider":"acme","model":%q,"usage":%s,"timestamp":%d}}`,
		id, day, model, u, at.Add(12*time.Hour).UnixMilli()) + "\n"
}

// original is a session with every kind of entry that costs.
var original = header("orig", "/home/me/app") +
	`{"type":"model_change","id":"00","parentId":null,"timestamp":"2026-03-01T08:00:00.000Z","provider":"acme","modelId":"start"}` + "\n" +
	`{"type":"session_info","id":"01","parentId":"00","timestamp":"2026-03-01T08:00:00.000Z","name":"first name"}` + "\n" +
	`{"type":"branch_summary","id":"02","parentId":"01","timestamp":"2026-03-01T08:00:01.000Z","summary":"","usage":` + usage(1, 1, 0.01) + "}\n" +
	`{"type":"message","id":"03","parentId":"02","timestamp":"2026-03-01T08:00:02.000Z","message":{"role":"user","content":"what of \"usage\":{\"input\":5}?","usage":` + usage(9, 9, 9) + `}}` + "\n" +
	answer("04", "2026-03-01", "big", usage(100, 10, 1.5)) +
	`no JSON with "usage" in it` + "\n" +
	`{"type":"message","id":"05","parentId":"04","timestamp":"2026-03-02T08:00:00.000Z","message":{"role":"toolResult","toolName":"task","usage":` + usage(20, 2, 0.25) + `}}` + "\n" +
	`{"type":"compaction","id":"06","parentId":"05","timestamp":"2026-03-02T09:00:00.000Z","summary":"s","usage":` + usage(30, 3, 0.5) + "}\n" +
	`{"type":"usage","id":"07","parentId":"06","timestamp":"2026-03-02T09:00:00.000Z","kind":"title","provider":"acme","model":"small","usage":` + usage(40, 4, 0.75) + "}\n" +
	`{"type":"custom","id":"08","parentId":"07","timestamp":"2026-03-02T09:00:00.000Z","usage":` + usage(99, 9, 9) + "}\n" +
	answer("09", "2026-03-03", "local", usage(1000, 100, 0)) +
	`{"type":"session_info","id":"0a","parentId":"09","timestamp":"2026-03-03T13:00:00.000Z","name":"last name"}` + "\n"

// fork is a copy of the session, under its own header, that went on elsewhere.
var fork = header("fork", "/home/me/other") + strings.SplitN(original, "\n", 2)[1] + answer("0b", "2026-03-04", "big", usage(200, 20, 3))

func named() map[string]string {
	return map[string]string{
		"2026-03-01T08-00-00-000Z_orig.jsonl": original,
		"2026-03-04T08-00-00-000Z_fork.jsonl": fork,
		"2026-03-05T08-00-00-000Z_none.jsonl": header("none", "/home/me/app") + `{"type":"message","id":"00","message":{"role":"user","content":"hi"}}` + "\n",
		"2026-03-06T08-00-00-000Z_bad.jsonl":  `{"hello":1}` + "\n" + answer("0c", "2026-03-04", "big", usage(7, 7, 7)),
	}
}

func TestTable(t *testing.T) {
	paths := write(t, named())
	for _, c := range []struct {
		q    Query
		want string
	}{
		{Query{By: []Dimension{Day}}, `
DAY         ANSWERS  INPUT  OUTPUT  CACHE READ  CACHE WRITE    COST
2026-03-01        1    101      11           2            4   $1.51
2026-03-02        0     90       9           3            6   $1.50
2026-03-03        1  1,000     100           1            2       ?
2026-03-04        1    200      20           1            2   $3.00
total             3  1,391     140           7           14  $6.01+

? and +: answers of models without a price; what they cost is not known.
`},
		{Query{By: []Dimension{Model}}, `
MODEL           ANSWERS  INPUT  OUTPUT  CACHE READ  CACHE WRITE    COST
acme/big              2    330      33           3            6   $5.00
acme/small            0     40       4           1            2   $0.75
(not recorded)        0     20       2           1            2   $0.25
acme/start            0      1       1           1            2  $0.0100
acme/local            1  1,000     100           1            2       ?
total                 3  1,391     140           7           14  $6.01+
`},
		{Query{By: []Dimension{Session}, Since: date("2026-03-03")}, `
SESSION  NAME       ANSWERS  INPUT  OUTPUT  CACHE READ  CACHE WRITE    COST
fork     last name        1    200      20           1            2   $3.00
orig     last name        1  1,000     100           1            2       ?
total                     2  1,200     120           2            4  $3.00+
`},
		{Query{By: []Dimension{Project, Model}, Until: date("2026-03-03"), Project: "/home/me/app"}, `
PROJECT  MODEL           ANSWERS  INPUT  OUTPUT  CACHE READ  CACHE WRITE     COST
~/app    acme/big              1    130      13           2            4    $2.00
~/app    acme/small            0     40       4           1            2    $0.75
~/app    (not recorded)        0     20       2           1            2    $0.25
~/app    acme/start            0      1       1           1            2  $0.0100
total                          1    191      20           5           10    $3.01
`},
		// What a fork copied counts where it was said, also when that is not asked for.
		{Query{By: []Dimension{Day}, Project: "/home/me/other"}, `
DAY         ANSWERS  INPUT  OUTPUT  CACHE READ  CACHE WRITE   COST
2026-03-04        1    200      20           1            2  $3.00
total             1    200      20           1            2  $3.00
`},
		{Query{}, `
       ANSWERS  INPUT  OUTPUT  CACHE READ  CACHE WRITE    COST
total        3  1,391     140           7           14  $6.01+
`},
		{Query{By: []Dimension{Day}, Project: "/home/me/ap"}, "\nNothing was used.\n"},
	} {
		c.q.Location = time.UTC
		r, err := Collect(t.Context(), paths, c.q, nil)
		if err != nil || len(r.Unreadable) > 0 {
			t.Fatal(err, r.Unreadable)
		}
		got, want := r.Table(c.q.By, "/home/me"), c.want[1:]
		if !strings.Contains(want, "\n\n") {
			got, _, _ = strings.Cut(got, "\n\n")
			want = strings.TrimSuffix(want, "\n")
			got = strings.TrimSuffix(got, "\n")
		}
		// Blanks between columns follow from the widths.
		if strings.Join(strings.Fields(got), " ") != strings.Join(strings.Fields(want), " ") {
			t.Errorf("%+v\n got\n%s\nwant\n%s", c.q, got, want)
		}
	}
}

func TestColumns(t *testing.T) {
	got := columns([][]string{{"A", "B", "C"}, {"é", "1", "22"}, {"long", "", "3"}}, 1)
	if want := "A     B   C\né     1  22\nlong      3\n"; got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func date(day string) time.Time {
	t, err := time.Parse(time.DateOnly, day)
	if err != nil {
		panic(err)
	}
	return t
}

func TestJSON(t *testing.T) {
	q := Query{By: []Dimension{Session, Day}, Location: time.UTC, Since: date("2026-03-04"), Project: "/home/me/other"}
	paths := write(t, named())
	r, err := Collect(t.Context(), paths, q, nil)
	if err != nil {
		t.Fatal(err)
	}
	const sum = `"answers":1,"input":200,"output":20,"cacheRead":1,"cacheWrite":2,"totalTokens":223,"cost":3,"unpriced":0}`
	want := `{"since":"2026-03-04T00:00:00Z","project":"/home/me/other","by":["session","day"],"sessions":1,"rows":[` +
		`{"day":"2026-03-04","session":"fork","name":"last name","path":` + quoted(r.Rows[0].Session) + `,` + sum + `],"total":{` + sum + `}`
	if got := string(r.JSON(&q)); got != want || !json.Valid([]byte(got)) {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func quoted(s string) string {
	b, err := json.Marshal(s)
	if err != nil {
		panic(err)
	}
	return string(b)
}

// TestOldFormats reads entries without ids and times.
func TestOldFormats(t *testing.T) {
	paths := write(t, map[string]string{
		"a.jsonl": `{"type":"session","id":"old","timestamp":"2025-01-01T00:00:00.000Z","cwd":"/x"}` + "\r\n" +
			`{"type":"message","timestamp":"2025-01-01T10:00:00.000Z","message":{"role":"assistant","provider":"p","model":"m","usage":{"input":3,"output":4}}}` + "\r\n" +
			`{"type":"message","message":{"role":"assistant","provider":"p","model":"m","usage":{"input":5,"output":6,"cost":{"total":1}}}}` + "\n" +
			`{"type":"message","message":{"role":"assistant","provider":"p","model":"m","usage":null}}` + "\n" +
			`{"type":"message","message":{"role":"assistant","usage":{"input":1}}}`,
	})
	r, err := Collect(t.Context(), paths, Query{By: []Dimension{Day, Model}, Location: time.UTC}, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := []Row{
		{Group: Group{Model: "p/m"}, Sum: Sum{Answers: 1, Input: 5, Output: 6, Total: 11, Cost: 1}},
		{Group: Group{}, Sum: Sum{Answers: 1, Input: 1, Total: 1, Unpriced: 1}},
		{Group: Group{Day: "2025-01-01", Model: "p/m"}, Sum: Sum{Answers: 1, Input: 3, Output: 4, Total: 7, Unpriced: 1}},
	}
	if !reflect.DeepEqual(r.Rows, want) {
		t.Errorf("got %+v\nwant %+v", r.Rows, want)
	}
	r, err = Collect(t.Context(), paths, Query{Since: date("2025-01-01")}, nil)
	if err != nil || r.Total.Answers != 1 {
		t.Errorf("%+v, %v: what has no time is in no span of time", r.Total, err)
	}
}

// generate writes n sessions of many entries and forks of some of them.
func generate(t testing.TB, n, turns, padding int) (repo *jsonl.Repository) {
	t.Helper()
	random := rand.New(rand.NewPCG(1, 2))
	repo = &jsonl.Repository{Root: t.TempDir()}
	pad := strings.Repeat("x", padding)
	for i := range n {
		began := time.Date(2026, 1, 1+i%90, i%24, i%60, 0, i*1000, time.UTC)
		now := began
		o := session.Options{CWD: fmt.Sprintf("/project/%d", i%7), Now: func() time.Time { return now }}
		s, err := repo.Create(o)
		if err != nil {
			t.Fatal(err)
		}
		add := func(_ *session.Entry, err error) {
			if err != nil {
				t.Fatal(err)
			}
		}
		for range turns {
			now = now.Add(time.Duration(random.IntN(100)) * time.Minute)
			add(s.AppendMessage(llm.UserText(pad, now.UnixMilli())))
			u := llm.Usage{Input: random.Int64N(1000), Output: random.Int64N(1000), TotalTokens: random.Int64N(9999)}
			u.Cost.Total = float64(random.IntN(100)) / 64
			add(s.AppendMessage(&llm.Assistant{
				Content:  []llm.Block{&llm.Text{Text: pad}},
				Provider: "acme", Model: fmt.Sprint("m", random.IntN(5)), Usage: u, StopReason: llm.StopStop, Timestamp: now.UnixMilli(),
			}))
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return repo
}

// TestSums compares the sums with those that opened sessions give, and adds forks,
// which must change nothing but what is new in them.
func TestSums(t *testing.T) {
	repo := generate(t, 30, 10, 10)
	want := Sum{}
	for _, path := range repo.Files("") {
		o := jsonl.Options{}
		o.ReadOnly = true
		s, err := jsonl.Open(path, o)
		if err != nil {
			t.Fatal(err)
		}
		st := s.Stats()
		want.Answers += int64(st.AssistantMessages)
		want.Input += st.Usage.Input
		want.Output += st.Usage.Output
		want.Total += st.Usage.TotalTokens
		want.Cost += st.Usage.Cost.Total
		s.Close()
	}
	check := func(q Query) *Report {
		t.Helper()
		r, err := Collect(t.Context(), repo.Files(""), q, nil)
		if err != nil || len(r.Unreadable) > 0 {
			t.Fatal(err, r.Unreadable)
		}
		r.Total.Unpriced = 0
		if r.Total != want {
			t.Errorf("%v: %+v, want %+v", q.By, r.Total, want)
		}
		var rows Sum
		for _, row := range r.Rows {
			rows.add(&row.Sum)
		}
		rows.Unpriced = 0
		if len(q.By) > 0 && rows != want {
			t.Errorf("%v: the rows sum up to %+v, want %+v", q.By, rows, want)
		}
		return r
	}
	var before []*Report
	all := [][]Dimension{nil, {Day}, {Model}, {Project}, {Session}, Dimensions()}
	for _, by := range all {
		before = append(before, check(Query{By: by}))
	}
	for i, path := range repo.Files("") {
		if i%3 == 0 {
			s, err := repo.ForkFrom(path, session.Options{CWD: "/elsewhere"})
			if err != nil {
				t.Fatal(err)
			}
			at := s.Entries()[len(s.Entries())/2]
			branch, err := repo.Fork(s, at.ID, session.Options{})
			if err != nil {
				t.Fatal(err)
			}
			s.Close()
			branch.Close()
		}
	}
	for i, by := range all {
		if after := check(Query{By: by}); !reflect.DeepEqual(after.Rows, before[i].Rows) {
			t.Errorf("%v: forks changed the rows", by)
		}
	}
}

func TestCollectEnds(t *testing.T) {
	repo := generate(t, 40, 2, 10)
	ctx, cancel := context.WithCancel(t.Context())
	_, err := Collect(ctx, repo.Files(""), Query{}, func(read, total int) {
		if read == 5 {
			cancel()
		}
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want a cancelled context", err)
	}
}

// TestLongLine passes over a line that no memory should be spent on, and reads
// those around it.
func TestLongLine(t *testing.T) {
	paths := write(t, map[string]string{"a.jsonl": header("a", "/x") +
		answer("1", "2026-03-01", "m", usage(1, 1, 1)) +
		`{"type":"message","usage":"` + strings.Repeat("x", maxLine) + "\"}\n" +
		answer("2", "2026-03-01", "m", usage(1, 1, 1)) +
		strings.TrimSuffix(answer("3", "2026-03-01", strings.Repeat("long", 100_000), usage(1, 1, 1)), "\n")})
	r, err := Collect(t.Context(), paths, Query{}, nil)
	if err != nil || r.Total.Answers != 3 {
		t.Errorf("%+v, %v", r.Total, err)
	}
}

func BenchmarkCollect(b *testing.B) {
	repo := generate(b, 100, 20, 5000)
	var bytes int64
	for _, path := range repo.Files("") {
		st, err := os.Stat(path)
		if err != nil {
			b.Fatal(err)
		}
		bytes += st.Size()
	}
	b.SetBytes(bytes)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Collect(b.Context(), repo.Files(""), Query{By: Dimensions()}, nil); err != nil {
			b.Fatal(err)
		}
	}
}
