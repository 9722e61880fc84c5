package jsonwire

// AppendArray appends a JSON array; one appends an element.
//
//	dst = jsonwire.AppendArray(dst, messages, llm.Message.AppendJSON)
func AppendArray[T any](dst []byte, list []T, one func(T, []byte) []byte) []byte {
	dst = append(dst, '[')
	for i, v := range list {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = one(v, dst)
	}
	return append(dst, ']')
}

// AppendStrings appends a JSON array of strings.
func AppendStrings[S ~string](dst []byte, list []S) []byte {
	return AppendArray(dst, list, func(s S, dst []byte) []byte { return AppendString(dst, s) })
}
