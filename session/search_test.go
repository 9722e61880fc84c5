package session_test

import (
	"strings"
	"testing"

	"github.com/pinch-agent/pinch/session"
)

func TestSearch(t *testing.T) {
	list := []session.Info{
		{ID: "0192-aa", Name: "", CWD: "/srv/demo", Text: "please fix the flaky login test"},
		{ID: "0192-bb", Name: "Login rework", CWD: "/srv/shop", Text: "nothing\nspecial  here"},
		{ID: "0192-cc", Name: "Parser", CWD: "/srv/login-service", Text: "tokens and trees"},
	}
	tests := []struct {
		query  string
		recent bool
		want   string
	}{
		{"", false, "aa bb cc"},
		{"login", false, "bb aa cc"},
		{"login", true, "aa bb cc"},
		{"LOGIN fix", false, "aa"},
		{`"special here"`, false, "bb"},
		{`"here special"`, false, ""},
		{`"fix the" login`, false, "aa"},
		{`"fix`, false, ""},
		{"0192-c", false, "cc"},
		{"prsr", false, "cc"},    // near the name
		{"srvshop", false, "bb"}, // near the working directory
		{"ftest", false, ""},     // message text is taken exactly
		{"re:log(in|out) t", false, "aa"},
		{"re:^parser$", false, "cc"},
		{"re:", false, "aa bb cc"},
	}
	for _, tt := range tests {
		q, err := session.ParseQuery(tt.query)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, i := range session.Search(list, q, tt.recent) {
			got = append(got, i.ID[5:])
		}
		if strings.Join(got, " ") != tt.want {
			t.Errorf("%q (recent %v): got %v, want %s", tt.query, tt.recent, got, tt.want)
		}
	}
	if _, err := session.ParseQuery("re:("); err == nil {
		t.Error("a bad expression was taken")
	}
}
