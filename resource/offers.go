package resource

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/pinch-agent/pinch/internal/jsonwire"
)

// PackagePlace is where the package of a source is, or will be.
type PackagePlace struct {
	Kind PackageKind
	Dir  string // absolute
	// Root is the folder that all packages of this kind and scope are in; "" for
	// a path.
	Root string
	// Identity is the same for two sources of one package.
	Identity string
}

// PlacePackage says where the package of a source is. folder is where relative
// paths start from. ok is false for a source that is none.
func (f Folders) PlacePackage(source, folder string, scope Scope) (place PackagePlace, ok bool) {
	place.Kind = packageKind(jsonwire.Trim(source))
	place.Dir, place.Identity = locatePackage(source, folder, scope, f)
	switch place.Kind {
	case NPMPackage:
		name := strings.TrimPrefix(place.Identity, "npm:")
		place.Root = above(place.Dir, 1+len(strings.Split(name, "/")))
	case GitPackage:
		repository := strings.TrimPrefix(place.Identity, "git:")
		place.Root = above(place.Dir, len(strings.Split(repository, "/")))
	}
	return place, place.Dir != ""
}

func above(dir string, levels int) string {
	for range levels {
		dir = filepath.Dir(dir)
	}
	return dir
}

// IsExtension reports whether the name of a file is that of an extension, which
// may stand where a package can.
func IsExtension(path string) bool { return extensionKind.names(path) }

// names reports whether a file has a name of this kind.
func (k kind) names(path string) bool {
	switch ext := filepath.Ext(path); k {
	case extensionKind:
		return (ext == ".ts" || ext == ".js") && !strings.HasSuffix(path, ".d.ts")
	case themeKind:
		return ext == ".json"
	default:
		return ext == ".md"
	}
}

// scan lists the extensions or themes in a folder. A folder with extensions that
// its manifest names, or an index file, is an extension of its own; in others the
// same holds for the folders in it.
func (k kind) scan(dir string) []string {
	if k == extensionKind {
		if files := extensionIn(dir); files != nil {
			return files
		}
	}
	entries, _ := os.ReadDir(dir)
	var files []string
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		switch {
		case strings.HasPrefix(e.Name(), ".") || e.Name() == "node_modules":
		case k.names(path) && isFile(path):
			files = append(files, path)
		case k == extensionKind && isDir(path):
			files = append(files, extensionIn(path)...)
		}
	}
	return files
}

func extensionIn(dir string) []string {
	named, _, _ := readManifest(dir, extensionKind)
	var files []string
	for _, name := range named {
		if path := filepath.Join(dir, filepath.FromSlash(name)); isWithin(path, dir) && isFile(path) {
			files = append(files, path)
		}
	}
	for _, name := range []string{"index.ts", "index.js"} {
		if path := filepath.Join(dir, name); files == nil && isFile(path) {
			files = append(files, path)
		}
	}
	return files
}
