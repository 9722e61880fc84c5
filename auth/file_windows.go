package auth

import "io/fs"

// exposed is 0: permissions are the folder's, in the user's profile.
func exposed(fs.FileInfo) fs.FileMode { return 0 }
