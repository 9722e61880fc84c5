package wire

import (
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/pinch-agent/pinch/llm"
)

// checkHeader refuses header fields that cannot be sent. The HTTP client would
// call that a failed connection, and nothing would tell it from one that may
// work the next time. Values are not quoted, as they may be keys.
func checkHeader(header http.Header, m *llm.Model) error {
	for name, values := range header {
		if name == "" || strings.ContainsFunc(name, notToken) {
			return fmt.Errorf("the header name %q of provider %s cannot be sent: correct it in models.json", name, m.Provider)
		}
		for _, v := range values {
			if strings.ContainsFunc(v, isControl) {
				return fmt.Errorf("the value of header %s for provider %s holds a line break or another control character: correct the key, or the header in models.json", name, m.Provider)
			}
		}
	}
	return nil
}

func isControl(r rune) bool { return r < ' ' && r != '\t' || r == 0x7F }

func notToken(r rune) bool {
	return r <= ' ' || r >= 0x7F || strings.ContainsRune(`"(),/:;<=>?@[\]{}`, r)
}

// decode unpacks the body of a response that some servers and proxies compress
// although the request does not ask for it.
func decode(resp *http.Response) error {
	switch e := strings.ToLower(strings.TrimSpace(resp.Header.Get("Content-Encoding"))); e {
	case "", "identity":
		return nil
	case "gzip", "x-gzip":
		resp.Body = &unzip{packed: resp.Body}
		return nil
	default:
		return fmt.Errorf("the server answers %d in the encoding %q, which was not asked for: switch compression off there", resp.StatusCode, e)
	}
}

// unzip reads a compressed body. The header of the format is read with the
// first piece, so that the bounds on silence apply to it.
type unzip struct {
	packed io.ReadCloser
	r      *gzip.Reader
}

func (u *unzip) Read(p []byte) (int, error) {
	if u.r == nil {
		r, err := gzip.NewReader(u.packed)
		if err != nil {
			return 0, err
		}
		u.r = r
	}
	return u.r.Read(p)
}

func (u *unzip) Close() error { return u.packed.Close() }
