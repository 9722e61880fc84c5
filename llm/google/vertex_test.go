package google

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/pinch-agent/pinch/internal/wire/wiretest"
	"github.com/pinch-agent/pinch/llm"
)

func TestVertexAddresses(t *testing.T) {
	const template = "https://{location}-aiplatform.googleapis.com"
	for _, c := range []struct {
		base, model, key, location string
		want                       string
	}{
		{template, "gemini-x", "k", "", "https://aiplatform.googleapis.com/v1/publishers/google/models/gemini-x"},
		{"", "gemini-x", "k", "", "https://aiplatform.googleapis.com/v1/publishers/google/models/gemini-x"},
		{"http://proxy.test/", "gemini-x", "k", "", "http://proxy.test/v1/publishers/google/models/gemini-x"},
		{"http://proxy.test/v1", "gemini-x", "k", "", "http://proxy.test/v1/publishers/google/models/gemini-x"},
		{"http://proxy.test/a/v1beta1/b", "gemini-x", "k", "", "http://proxy.test/a/v1beta1/b/publishers/google/models/gemini-x"},
		{"http://v1/", "gemini-x", "k", "", "http://v1/v1/publishers/google/models/gemini-x"},
		{"http://proxy.test/vertex", "gemini-x", "k", "", "http://proxy.test/vertex/v1/publishers/google/models/gemini-x"},
		{template, "gemini-x", "", "europe-west4", "https://europe-west4-aiplatform.googleapis.com/v1/projects/p-1/locations/europe-west4/publishers/google/models/gemini-x"},
		{template, "gemini-x", "<key>", "global", "https://aiplatform.googleapis.com/v1/projects/p-1/locations/global/publishers/google/models/gemini-x"},
		{template, "gemini-x", "gcp-vertex-credentials", "eu", "https://aiplatform.eu.rep.googleapis.com/v1/projects/p-1/locations/eu/publishers/google/models/gemini-x"},
		{"http://proxy.test/v1beta1", "gemini-x", "", "us", "http://proxy.test/v1beta1/projects/p-1/locations/us/publishers/google/models/gemini-x"},
		{template, "anthropic/claude-x", "", "us-east5", "https://us-east5-aiplatform.googleapis.com/v1/projects/p-1/locations/us-east5/publishers/anthropic/models/claude-x"},
		{template, "projects/o/locations/global/endpoints/7", "", "us-east5", "https://us-east5-aiplatform.googleapis.com/v1/projects/o/locations/global/endpoints/7"},
		{template, "publishers/a b/models/x", "k", "", "https://aiplatform.googleapis.com/v1/publishers/a%20b/models/x"},
		{template, "models/7", "", "us-east5", "https://us-east5-aiplatform.googleapis.com/v1/projects/p-1/locations/us-east5/models/7"},
	} {
		m := testModel(c.model)
		m.API, m.BaseURL = VertexID, c.base
		req := keyed(llm.UserText("u", 1))
		req.APIKey = c.key
		req.Env = map[string]string{"GCLOUD_PROJECT": "p-1", "GOOGLE_CLOUD_LOCATION": c.location}
		req.Headers = map[string]*string{"authorization": new("Bearer of the host")} // no credentials are looked for
		got := requestOf(t, NewVertex, func(a *API) (*llm.Stream, error) { return a.Stream(context.Background(), m, req) })
		if want := c.want + ":streamGenerateContent?alt=sse"; got.URL != want {
			t.Errorf("%+v:\n got %s\nwant %s", c, got.URL, want)
		}
		key := got.Header.Get("X-Goog-Api-Key")
		if (key == "k") != (c.key == "k") || key != "" && key != "k" {
			t.Errorf("%+v: key %q", c, key)
		}
	}
}

func TestVertexSetup(t *testing.T) {
	for _, c := range []struct {
		env  map[string]string
		own  Options
		want string
	}{
		{nil, Options{}, "Vertex AI requires a project ID. Set GOOGLE_CLOUD_PROJECT/GCLOUD_PROJECT or pass project in options."},
		{map[string]string{"GOOGLE_CLOUD_PROJECT": " "}, Options{}, "Vertex AI requires a project ID. Set GOOGLE_CLOUD_PROJECT/GCLOUD_PROJECT or pass project in options."},
		{map[string]string{"GOOGLE_CLOUD_PROJECT": "p"}, Options{}, "Vertex AI requires a location. Set GOOGLE_CLOUD_LOCATION or pass location in options."},
		{map[string]string{"GOOGLE_CLOUD_LOCATION": "eu"}, Options{Project: "a/b"}, `Vertex AI knows no project ID "a/b". Correct GOOGLE_CLOUD_PROJECT/GCLOUD_PROJECT or the project in options.`},
		{map[string]string{"GCLOUD_PROJECT": "p"}, Options{Location: "evil.test/x#"}, `Vertex AI knows no location "evil.test/x#". Correct GOOGLE_CLOUD_LOCATION or the location in options.`},
	} {
		m := testModel("gemini-x")
		m.API, m.BaseURL = VertexID, "https://{location}-aiplatform.googleapis.com"
		req := &llm.Request{Messages: []llm.Message{llm.UserText("u", 1)}, Options: llm.Options{Env: c.env}}
		got := NewVertex(Config{Client: wiretest.Answers(), Getenv: wiretest.NoEnv}).StreamWith(context.Background(), m, req, c.own).Result()
		if got.StopReason != llm.StopError || got.ErrorMessage != c.want {
			t.Errorf("%v: got %q", c.env, got.ErrorMessage)
		}
	}
	// The options win over the environment, the first variable over the second.
	a := NewVertex(Config{Getenv: func(name string) string { return strings.ToLower(strings.ReplaceAll(name, "_", "-")) }})
	x := a.exchange(context.Background(), testModel("x"), &llm.Request{})
	if p, l, err := x.place(); p != "google-cloud-project" || l != "google-cloud-location" || err != nil {
		t.Error(p, l, err)
	}
	x.own = Options{Project: "example.com:p", Location: "asia-east1"}
	if p, l, err := x.place(); p != "example.com:p" || l != "asia-east1" || err != nil {
		t.Error(p, l, err)
	}
	x.own = Options{Project: "P"}
	var setup *SetupError
	if _, _, err := x.place(); !errors.As(err, &setup) || setup.Value != "P" {
		t.Error(err)
	}
}

func TestVertexNames(t *testing.T) {
	a := NewVertex(Config{Client: wiretest.Answers(strings.NewReader(sse(parts(`{"text":"a"}`)))), Getenv: wiretest.NoEnv})
	if a.ID() != "google-vertex" || New(Config{}).ID() != "google-generative-ai" {
		t.Error("names")
	}
	m := testModel("gemini-x")
	m.API = VertexID
	s, err := a.Stream(context.Background(), m, keyed(llm.UserText("u", 1)))
	if err != nil {
		t.Fatal(err)
	}
	got := s.Result()
	if want := "Google Vertex stream ended without a finish reason"; got.ErrorMessage != want || got.API != VertexID {
		t.Errorf("got %q of %s", got.ErrorMessage, got.API)
	}
}

func TestRealKey(t *testing.T) {
	for in, want := range map[string]string{
		"k": "k", " k ": "k", "": "", "gcp-vertex-credentials": "", "<authenticated>": "", "<>": "<>", "<a>b": "<a>b", "<a>b>": "<a>b>", "<a b>": "",
	} {
		if got := realKey(in); got != want {
			t.Errorf("%q: got %q", in, got)
		}
	}
}
