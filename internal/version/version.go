// Package version names this build.
package version

// Version is the release, without a leading v.
const Version = "0.1.0"
