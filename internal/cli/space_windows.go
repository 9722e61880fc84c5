package cli

import "golang.org/x/sys/windows"

// freeSpace is how many bytes a user may still write to the volume of path.
func freeSpace(path string) (uint64, bool) {
	name, err := windows.UTF16PtrFromString(path)
	if err != nil {
		return 0, false
	}
	var free uint64
	if err := windows.GetDiskFreeSpaceEx(name, &free, nil, nil); err != nil {
		return 0, false
	}
	return free, true
}
