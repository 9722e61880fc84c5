package jsonwire

// Check reports whether b is exactly one JSON value, white space aside.
func Check(b []byte) error {
	var r Reader
	r.Reset(b)
	r.Skip()
	return r.End()
}

// IsObject reports whether b is exactly one JSON object.
func IsObject(b []byte) bool {
	var r Reader
	r.Reset(b)
	if r.Kind() != '{' {
		return false
	}
	r.Skip()
	return r.End() == nil
}

// Get returns the raw value of the last member called name of the object b,
// nil when there is none or b is no object.
func Get(b []byte, name string) []byte {
	var r Reader
	r.Reset(b)
	var found []byte
	for r.Object(); r.More(); {
		if string(r.Key()) == name {
			found = r.Raw()
		} else {
			r.Skip()
		}
	}
	if r.err != nil {
		return nil
	}
	return found
}

// StringValue decodes the JSON string b; ok is false for other kinds.
func StringValue(b []byte) (s string, ok bool) {
	var r Reader
	r.Reset(b)
	if r.Kind() != '"' {
		return "", false
	}
	s = r.Text()
	return s, r.End() == nil
}
