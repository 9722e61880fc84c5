package opening

import (
	"reflect"
	"testing"

	"github.com/pinch-agent/pinch/llm"
)

func TestPrompts(t *testing.T) {
	img := &llm.Image{Data: "x", MimeType: "image/png"}
	for _, c := range []struct {
		name     string
		stdin    string
		files    []Attachment
		messages []string
		want     []Prompt
	}{
		{"nothing", "", nil, nil, nil},
		{"blank input", " \n", nil, nil, nil},
		{"input and message", "piped\n", nil, []string{"MSG"}, []Prompt{{Text: "pipedMSG"}}},
		{"input with a byte order mark", "\uFEFFpiped\u00A0\r\n", nil, []string{"MSG"}, []Prompt{{Text: "pipedMSG"}}},
		{"nothing but a byte order mark", "\uFEFF\r\n", nil, nil, nil},
		{"all", " in\n", []Attachment{{Text: fileTag("/a", "A\n")}, {Text: imageTag("/i", ""), Image: img}}, []string{"one", "two"}, []Prompt{
			{Text: "in<file name=\"/a\">\nA\n\n</file>\n<file name=\"/i\"></file>\none", Images: []*llm.Image{img}}, {Text: "two"}}},
		{"empty first", "", nil, []string{"", "two"}, []Prompt{{Text: "two"}}},
		{"empty file", "", []Attachment{{}}, nil, nil},
	} {
		if got := Prompts(c.stdin, c.files, c.messages); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
}
