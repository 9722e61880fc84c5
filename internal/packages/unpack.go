package packages

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"crypto/sha512"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"
)

// Limits bound what a package may be.
type Limits struct {
	Archive int64 // bytes of the compressed archive
	Content int64 // bytes of all files
	Files   int   // files and folders
	Ratio   int64 // bytes of content for each byte of a compressed archive
}

// DefaultLimits are generous for texts, and small for a disk.
func DefaultLimits() Limits {
	return Limits{Archive: 64 << 20, Content: 256 << 20, Files: 20_000, Ratio: 200}
}

const (
	freeRatio    = 1 << 20 // so much content may come from any archive
	maxName      = 512     // bytes
	maxNameDepth = 32
)

// unpackGzip unpacks a compressed archive: see unpack.
func unpackGzip(ctx context.Context, archive io.Reader, dir string, strip int, l Limits) (map[string]string, error) {
	in := &counted{r: archive}
	z, err := gzip.NewReader(in)
	if err != nil {
		return nil, faultf(Refused, "the archive is not compressed with gzip: %w", err)
	}
	return unpack(ctx, &inflated{z: z, in: in, ratio: l.Ratio}, dir, strip, l)
}

// counted counts what is read.
type counted struct {
	r io.Reader
	n int64
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += int64(n)
	return n, err
}

// inflated is what comes out of a compressed archive, refused when it is far more
// than went in.
type inflated struct {
	z     io.Reader
	in    *counted
	ratio int64
	n     int64
}

func (i *inflated) Read(p []byte) (int, error) {
	n, err := i.z.Read(p)
	if i.n += int64(n); i.n > freeRatio+i.in.n*i.ratio {
		return 0, faultf(Refused, "the archive grows by more than %d times", i.ratio)
	}
	return n, err
}

// unpack puts the files of a tar archive into the empty folder dir and returns
// the hash of each, by its path with slashes. Of each name the first strip parts
// are left out. An archive that has more in it than plain files and folders under
// plain names is refused as a whole.
func unpack(ctx context.Context, archive io.Reader, dir string, strip int, l Limits) (map[string]string, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	u := &unpacking{root: root, left: l.Content, files: map[string]string{}, spelled: map[string]string{}}
	t := tar.NewReader(archive)
	for entries := 0; ; entries++ {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		h, err := t.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, damaged(err)
		}
		if entries >= l.Files {
			return nil, faultf(Refused, "the archive has more than %d files", l.Files)
		}
		if h.Typeflag == tar.TypeXGlobalHeader { // a remark on the archive
			continue
		}
		if err := u.entry(h, t, strip); err != nil {
			return nil, err
		}
	}
	// What follows the end is read too: it counts for the checksum of gzip.
	if n, err := io.Copy(io.Discard, io.LimitReader(archive, 1<<20)); err != nil || n == 1<<20 {
		return nil, damaged(errors.Join(err, errors.New("data behind the end")))
	}
	if len(u.files) == 0 {
		return nil, faultf(Refused, "the archive is empty")
	}
	return u.files, nil
}

func damaged(err error) error {
	if _, ok := errors.AsType[*fault](err); ok {
		return err
	}
	return faultf(Refused, "the archive is damaged: %w", err)
}

type unpacking struct {
	root    *os.Root
	left    int64             // bytes
	files   map[string]string // hashes
	spelled map[string]string // how a path is spelled, by what file systems may take it for
}

func (u *unpacking) entry(h *tar.Header, content io.Reader, strip int) error {
	switch h.Typeflag {
	case tar.TypeReg, tar.TypeDir:
	case tar.TypeSymlink, tar.TypeLink:
		return faultf(Refused, "%q is a link", h.Name)
	default:
		return faultf(Refused, "%q is neither a file nor a folder", h.Name)
	}
	name := h.Name
	if h.Typeflag == tar.TypeDir {
		name = strings.TrimSuffix(name, "/")
	}
	if why := badName(name); why != "" {
		return faultf(Refused, "the name %q %s", clip(h.Name), why)
	}
	for range strip {
		_, rest, ok := strings.Cut(name, "/")
		if !ok {
			if h.Typeflag == tar.TypeDir {
				return nil
			}
			return faultf(Refused, "%q is not in the folder of the package", h.Name)
		}
		name = rest
	}
	if name == File {
		return faultf(Refused, "%q is a name of pinch's own", name)
	}
	for p := name; p != "."; p = path.Dir(p) {
		key := norm.NFC.String(cases.Fold().String(norm.NFC.String(p)))
		if as, ok := u.spelled[key]; ok && as != p {
			return faultf(Refused, "%q and %q are one name to some systems", as, p)
		}
		u.spelled[key] = p
	}
	local := filepath.FromSlash(name)
	if h.Typeflag == tar.TypeDir {
		if err := u.root.MkdirAll(local, 0o755); err != nil {
			return refuse(err)
		}
		return nil
	}
	if h.Size > u.left {
		return tooMuch()
	}
	if err := u.root.MkdirAll(filepath.Dir(local), 0o755); err != nil {
		return refuse(err)
	}
	perm := fs.FileMode(0o644)
	if h.Mode&0o111 != 0 {
		perm = 0o755
	}
	f, err := u.root.OpenFile(local, os.O_WRONLY|os.O_CREATE|os.O_EXCL, perm)
	if err != nil {
		return refuse(err)
	}
	hash := sha512.New()
	n, err := io.Copy(io.MultiWriter(f, hash), io.LimitReader(content, u.left+1))
	if cerr := f.Close(); err == nil && cerr != nil {
		return cerr
	}
	if err != nil {
		if path, ok := errors.AsType[*fs.PathError](err); ok {
			return path
		}
		return damaged(err)
	}
	if u.left -= n; u.left < 0 {
		return tooMuch()
	}
	u.files[name] = sri(hash.Sum(nil))
	return nil
}

func tooMuch() error { return faultf(Refused, "the package is too large") }

// refuse is an error of making a file: names that the archive cannot have, such as
// one twice, or a file as a folder.
func refuse(err error) error {
	if errors.Is(err, fs.ErrExist) || errors.Is(err, errNotDir) {
		return faultf(Refused, "a name stands twice in the archive: %w", err)
	}
	return err
}

// badName says why no file of a package can have a name, "" when it can.
func badName(name string) string {
	switch {
	case name == "" || name == ".":
		return "is empty"
	case path.IsAbs(name) || strings.HasPrefix(name, `\`) || len(name) > 1 && name[1] == ':':
		return "is absolute"
	case len(name) > maxName || strings.Count(name, "/") > maxNameDepth:
		return "is too long"
	case !utf8.ValidString(name):
		return "is not UTF-8"
	case strings.ContainsRune(name, '\\'):
		return "has a backslash"
	case strings.ContainsFunc(name, unseen):
		return "has characters that cannot be seen"
	}
	for part := range strings.SplitSeq(name, "/") {
		switch {
		case part == "..":
			return "leads out of the package"
		case part == "" || part == ".":
			return "is not plain"
		case strings.EqualFold(part, ".git"):
			return "is one of git's own"
		case strings.HasSuffix(part, ".") || strings.HasSuffix(part, " "):
			return "ends in a dot or a blank" // which Windows leaves out
		}
	}
	if !filepath.IsLocal(filepath.FromSlash(name)) {
		return "is reserved by this system"
	}
	return ""
}

// unseen are characters that cannot be seen, a byte order mark among them.
func unseen(r rune) bool { return unicode.IsControl(r) || unicode.Is(unicode.Cf, r) }

func clip(s string) string {
	if len(s) > 100 {
		return s[:100] + "…"
	}
	return s
}
