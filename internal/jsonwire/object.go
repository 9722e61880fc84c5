package jsonwire

import "strconv"

// Object appends the members of one JSON object. Names are written as they are:
// plain ASCII without quotes and backslashes, except by Name and Member.
//
//	o := jsonwire.Begin(dst)
//	o.Text("role", "user")
//	o.Key("content")
//	o.B = append(o.B, "[]"...)
//	dst = o.End()
type Object struct {
	B     []byte // what was written so far
	start int
}

// Begin opens an object behind dst.
func Begin(dst []byte) Object { return Object{B: append(dst, '{'), start: len(dst) + 1} }

// Key begins a member; its value is to be appended to B.
func (o *Object) Key(name string) {
	if len(o.B) > o.start {
		o.B = append(o.B, ',')
	}
	o.B = append(o.B, '"')
	o.B = append(o.B, name...)
	o.B = append(o.B, '"', ':')
}

// Text appends a string.
func (o *Object) Text(name, v string) {
	o.Key(name)
	o.B = AppendString(o.B, v)
}

// OptText appends a string that says something.
func (o *Object) OptText(name, v string) {
	if v != "" {
		o.Text(name, v)
	}
}

// TextPtr appends a string that is there.
func (o *Object) TextPtr(name string, v *string) {
	if v != nil {
		o.Text(name, *v)
	}
}

// Int appends a whole number.
func (o *Object) Int(name string, v int64) {
	o.Key(name)
	o.B = strconv.AppendInt(o.B, v, 10)
}

// IntPtr appends a whole number that is there.
func (o *Object) IntPtr(name string, v *int64) {
	if v != nil {
		o.Int(name, *v)
	}
}

// Float appends a number.
func (o *Object) Float(name string, v float64) {
	o.Key(name)
	o.B = AppendFloat(o.B, v)
}

// Bool appends true or false.
func (o *Object) Bool(name string, v bool) {
	o.Key(name)
	o.B = strconv.AppendBool(o.B, v)
}

// Raw appends a JSON value in compact form, nothing for nil. What is no JSON
// becomes null, so that the text around it stays readable.
func (o *Object) Raw(name string, v []byte) {
	if v != nil {
		o.Key(name)
		o.value(v)
	}
}

// Name is Key for any name.
func (o *Object) Name(name string) {
	if len(o.B) > o.start {
		o.B = append(o.B, ',')
	}
	o.B = AppendString(o.B, name)
	o.B = append(o.B, ':')
}

// Member is Raw for any name, and for a value that must be there.
func (o *Object) Member(name string, v []byte) {
	o.Name(name)
	o.value(v)
}

func (o *Object) value(v []byte) {
	n := len(o.B)
	var err error
	if o.B, err = AppendCompact(o.B, v); err != nil {
		o.B = append(o.B[:n], "null"...)
	}
}

// End closes the object and returns all that was written.
func (o *Object) End() []byte { return append(o.B, '}') }
