// Package invoke makes the texts that call skills and prompt templates.
package invoke

import (
	"strconv"
	"strings"

	"github.com/pinch-agent/pinch/internal/jsonwire"
)

// Skill is the text that calls a skill whose instructions are body: its name,
// its file, the folder that relative paths start from, and what the person
// wrote behind it, "" for nothing.
func Skill(name, file, folder, body, message string) string {
	var b strings.Builder
	b.WriteString(`<skill name="` + name + `" location="` + file + "\">\n")
	b.WriteString("References are relative to " + folder + ".\n\n")
	b.WriteString(jsonwire.Trim(body) + "\n</skill>")
	if message = jsonwire.Trim(message); message != "" {
		b.WriteString("\n\n" + message)
	}
	return b.String()
}

// Template fills the places of a template in one pass; what it puts in is not
// looked at again.
func Template(content string, args []string) string {
	var b strings.Builder
	for {
		before, after, found := strings.Cut(content, "$")
		b.WriteString(before)
		if !found {
			return b.String()
		}
		value, size := place(after, args)
		if size == 0 {
			b.WriteByte('$')
		}
		b.WriteString(value)
		content = after[size:]
	}
}

// place reads what stands behind a dollar sign and how long it is; 0 when it is
// no place.
func place(s string, args []string) (value string, size int) {
	const all = "ARGUMENTS"
	switch {
	case s == "":
		return "", 0
	case s[0] == '@':
		return strings.Join(args, " "), 1
	case strings.HasPrefix(s, all):
		return strings.Join(args, " "), len(all)
	case s[0] == '{':
		end := strings.IndexByte(s, '}')
		if end < 0 {
			return "", 0
		}
		value, ok := bracedPlace(s[1:end], args)
		if !ok {
			return "", 0
		}
		return value, end + 1
	}
	n := digits(s)
	if n == 0 {
		return "", 0
	}
	return argument(args, s[:n]), n
}

func bracedPlace(s string, args []string) (value string, ok bool) {
	name, rest, found := strings.Cut(s, ":")
	if !found {
		return "", false
	}
	fallback, hasFallback := strings.CutPrefix(rest, "-")
	switch {
	case name == "@" || name == "ARGUMENTS":
		value = strings.Join(args, " ")
	case name != "" && digits(name) == len(name):
		value = argument(args, name)
	default:
		return "", false
	}
	if hasFallback {
		if value == "" {
			value = fallback
		}
		return value, true
	}
	if name != "@" {
		return "", false
	}
	from, count, limited := strings.Cut(rest, ":")
	if from == "" || digits(from) != len(from) || limited && (count == "" || digits(count) != len(count)) {
		return "", false
	}
	list := args[min(max(number(from)-1, 0), len(args)):]
	if limited {
		list = list[:min(number(count), len(list))]
	}
	return strings.Join(list, " "), true
}

// argument is argument n, counted from 1; "" when there is none.
func argument(args []string, n string) string {
	if i := number(n); i >= 1 && i <= len(args) {
		return args[i-1]
	}
	return ""
}

func digits(s string) int {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return i
		}
	}
	return len(s)
}

// number reads digits; too many are a number beyond all arguments.
func number(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		return 1 << 30
	}
	return n
}
