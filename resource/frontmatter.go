package resource

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"

	"github.com/pinch-agent/pinch/internal/jsonwire"
)

// Frontmatter is the head of a Markdown file: its top-level fields, by the rules
// of the YAML 1.2 core schema. Values are nil, bool, int, float64, string,
// []any and map[string]any.
type Frontmatter map[string]any

// text is a field that is a string.
func (f Frontmatter) text(name string) (string, bool) {
	s, ok := f[name].(string)
	return s, ok
}

// ParseFrontmatter splits a text into its frontmatter and its body. Without
// frontmatter the body is the whole text, with line ends normalised but not
// trimmed.
func ParseFrontmatter(content string) (Frontmatter, string, error) {
	head, body := cutFrontmatter(content)
	if strings.TrimSpace(head) == "" {
		return Frontmatter{}, body, nil
	}
	if len(head) > maxFrontmatter {
		return nil, "", errFrontmatterSize
	}
	var doc yaml.Node
	if err := yaml.Unmarshal([]byte(head), &doc); err != nil {
		return nil, "", err
	}
	if len(doc.Content) == 0 {
		return Frontmatter{}, body, nil
	}
	budget := maxYAMLNodes
	value, err := yamlValue(doc.Content[0], &budget, 0)
	if err != nil {
		return nil, "", err
	}
	fields, _ := value.(map[string]any)
	if fields == nil {
		fields = map[string]any{}
	}
	return fields, body, nil
}

// cutFrontmatter separates the YAML text from the body.
func cutFrontmatter(content string) (head, body string) {
	content = withLF(strings.TrimPrefix(content, "\uFEFF"))
	if !strings.HasPrefix(content, "---") {
		return "", content
	}
	end := strings.Index(content[3:], "\n---")
	if end < 0 {
		return "", content
	}
	end += 3
	// The character behind the opening dashes is dropped whatever it is.
	head = content[3:end]
	if head != "" {
		_, n := utf8.DecodeRuneInString(head)
		head = head[n:]
	}
	if !strings.HasSuffix(head, "\n") {
		head += "\n" // a block scalar at the end needs it
	}
	return head, jsonwire.Trim(content[end+4:])
}

// Bounds of a frontmatter: its bytes, and what aliases may blow it up to.
const (
	maxFrontmatter = 64 << 10
	maxYAMLNodes   = 10_000
	maxYAMLDepth   = 100
)

var (
	errFrontmatterSize = errors.New("frontmatter larger than 64 KiB; move its text to the body")
	errYAMLSize        = errors.New("too many or too deep values in the frontmatter")
)

// yamlValue is the value of a node. The library's own conversion knows types
// beyond the core schema, such as timestamps, so it is not used.
func yamlValue(n *yaml.Node, budget *int, depth int) (any, error) {
	if *budget--; *budget < 0 || depth > maxYAMLDepth {
		return nil, errYAMLSize
	}
	switch n.Kind {
	case yaml.AliasNode:
		return yamlValue(n.Alias, budget, depth+1)
	case yaml.SequenceNode:
		list := []any{}
		for _, c := range n.Content {
			v, err := yamlValue(c, budget, depth+1)
			if err != nil {
				return nil, err
			}
			list = append(list, v)
		}
		return list, nil
	case yaml.MappingNode:
		m := map[string]any{}
		for i := 0; i+1 < len(n.Content); i += 2 {
			key := n.Content[i]
			if key.Kind == yaml.AliasNode {
				key = key.Alias
			}
			if _, dup := m[key.Value]; dup {
				return nil, fmt.Errorf("line %d: key %q occurs twice", key.Line, key.Value)
			}
			v, err := yamlValue(n.Content[i+1], budget, depth+1)
			if err != nil {
				return nil, err
			}
			m[key.Value] = v
		}
		return m, nil
	}
	return yamlScalar(n)
}

func yamlScalar(n *yaml.Node) (any, error) {
	tag := n.ShortTag()
	if (tag == "!!int" || tag == "!!float") && strings.ContainsAny(n.Value, "_bB") && !strings.Contains(n.Value, "x") {
		return n.Value, nil // numbers of YAML 1.1 alone
	}
	switch tag {
	case "!!null":
		return nil, nil
	case "!!bool":
		// Only the words of YAML 1.2 are booleans.
		switch n.Value {
		case "true", "True", "TRUE":
			return true, nil
		case "false", "False", "FALSE":
			return false, nil
		}
		return n.Value, nil
	case "!!int":
		var i int
		if n.Decode(&i) == nil {
			return i, nil
		}
		var f float64
		if err := n.Decode(&f); err != nil {
			return n.Value, nil
		}
		return f, nil
	case "!!float":
		var f float64
		if err := n.Decode(&f); err != nil {
			return nil, err
		}
		return f, nil
	}
	return n.Value, nil
}
