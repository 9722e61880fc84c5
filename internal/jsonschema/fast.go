package jsonschema

import "github.com/pinch-agent/pinch/internal/jsonwire"

// fast reads a value and reports whether it fits the plain schema s. False may
// also mean that it cannot tell. It allocates nothing.
func (s *Schema) fast(r *jsonwire.Reader) bool {
	k := r.Kind()
	if s.kinds != 0 && !s.fastType(k) {
		return false
	}
	if s.enum != nil {
		if k != '"' {
			return false
		}
		text := r.String()
		for _, e := range s.enum {
			if string(text) == e.text {
				return true
			}
		}
		return false
	}
	switch k {
	case '{':
		return s.fastObject(r)
	case '[':
		for r.Array(); r.More(); {
			if s.items == nil {
				r.Skip()
			} else if !s.items.fast(r) {
				return false
			}
		}
	case '0':
		raw := r.Raw()
		if s.kinds&isInteger != 0 && s.kinds&isNumber == 0 && !wholeText(raw) {
			return false
		}
	default:
		r.Skip()
	}
	return r.Err() == nil
}

func (s *Schema) fastType(k byte) bool {
	switch k {
	case '{':
		return s.kinds&isObject != 0
	case '[':
		return s.kinds&isArray != 0
	case '"':
		return s.kinds&isString != 0
	case '0':
		return s.kinds&(isNumber|isInteger) != 0
	case 't', 'f':
		return s.kinds&isTrue != 0
	case 'n':
		return s.kinds&isNull != 0
	}
	return false
}

func (s *Schema) fastObject(r *jsonwire.Reader) bool {
	var seen uint64
	for r.Object(); r.More(); {
		key := r.Key()
		at := -1
		for i := range s.properties {
			if string(key) == s.properties[i].name {
				at = i
				break
			}
		}
		child := s.additional
		if at >= 0 {
			bit := uint64(1) << at
			if seen&bit != 0 {
				return false // twice: the last one counts
			}
			seen |= bit
			if s.properties[at].listed {
				child = s.properties[at].schema
			}
		}
		switch {
		case child == nil:
			r.Skip()
		case child.never || !child.fast(r):
			return false
		}
	}
	return r.Err() == nil && seen&s.requiredBits == s.requiredBits
}
