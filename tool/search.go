package tool

import "strings"

// finder looks for a key in a long text by the byte of the key that is rarest
// there: what models quote starts with common bytes, indents above all, which
// strings.Index would stop at each time.
type finder struct {
	key  string
	rare int // index in key
}

func newFinder(text, key string) finder {
	f := finder{key: key}
	if len(key) < 2 || len(text) < 4<<10 {
		return f
	}
	var seen [256]int
	for _, sample := range [...]string{text[:4<<10], text[len(text)/2:][:2<<10], text[len(text)-2<<10:]} {
		for i := range len(sample) {
			seen[sample[i]]++
		}
	}
	for i := range len(key) {
		if seen[key[i]] < seen[key[f.rare]] {
			f.rare = i
		}
	}
	return f
}

// next is the first place of the key in text, -1 for none.
func (f finder) next(text string) int {
	if len(f.key) < 2 {
		return strings.Index(text, f.key)
	}
	for at := f.rare; at < len(text); at++ {
		i := strings.IndexByte(text[at:], f.key[f.rare])
		if i < 0 {
			return -1
		}
		at += i
		if start := at - f.rare; strings.HasPrefix(text[start:], f.key) {
			return start
		}
	}
	return -1
}
