package cli

import (
	"bytes"
	"os"
	"slices"
	"strconv"
	"strings"
)

// forget overwrites the keys that /proc shows of this program to every process of
// its user, the commands of a model among them: the values of the variables names,
// and keys that stand behind --api-key. What os.Getenv returns is a copy, and
// stays. It is a second wall, so a system that shows no /proc is no error.
func forget(names, keys []string) {
	stat, err := os.ReadFile("/proc/self/stat")
	// The numbers come behind the name of the program, which may have spaces.
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	if err != nil || len(fields) < 49 {
		return
	}
	mem, err := os.OpenFile("/proc/self/mem", os.O_RDWR, 0)
	if err != nil {
		return
	}
	defer mem.Close()
	overwrite := func(from, to string, secrets func(words [][]byte) [][]byte) {
		start, err1 := strconv.ParseInt(from, 10, 64)
		end, err2 := strconv.ParseInt(to, 10, 64)
		if err1 != nil || err2 != nil || start == 0 || end <= start {
			return
		}
		text := make([]byte, end-start)
		if _, err := mem.ReadAt(text, start); err != nil {
			return
		}
		var words [][]byte
		for rest := text; len(rest) > 0; {
			word, _, _ := bytes.Cut(rest, []byte{0})
			words = append(words, word)
			rest = rest[min(len(word)+1, len(rest)):]
		}
		for _, secret := range secrets(words) {
			for i := range secret {
				secret[i] = '*'
			}
			// Nothing else: what stands beside it is in use.
			_, _ = mem.WriteAt(secret, end-int64(cap(secret)))
		}
	}
	overwrite(fields[45], fields[46], func(words [][]byte) [][]byte { return argumentSecrets(words, keys) })
	overwrite(fields[47], fields[48], func(words [][]byte) [][]byte { return variableSecrets(words, names) })
}

// argumentSecrets are the arguments that are keys. Elsewhere the word --api-key may
// be a message or a value, and what follows it is what somebody said.
func argumentSecrets(args [][]byte, keys []string) (secrets [][]byte) {
	for i := 1; i < len(args); i++ {
		if string(args[i-1]) == "--api-key" && slices.Contains(keys, string(args[i])) {
			secrets = append(secrets, args[i])
		}
	}
	return secrets
}

// variableSecrets are the values of the variables that are named.
func variableSecrets(variables [][]byte, names []string) (secrets [][]byte) {
	for _, v := range variables {
		if i := bytes.IndexByte(v, '='); i >= 0 && slices.Contains(names, string(v[:i])) {
			secrets = append(secrets, v[i+1:])
		}
	}
	return secrets
}
