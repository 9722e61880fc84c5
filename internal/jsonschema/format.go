package jsonschema

import (
	"net/mail"
	"net/netip"
	"net/url"
	"regexp"
	"strings"
	"time"
)

// knownFormat reports whether fitsFormat has an opinion on name.
func knownFormat(name string) bool {
	switch name {
	case "date-time", "date", "time", "email", "ipv4", "ipv6", "uri", "url", "uri-reference", "uuid", "regex":
		return true
	}
	return false
}

func fitsFormat(name, s string) bool {
	var err error
	switch name {
	case "date-time":
		_, err = time.Parse(time.RFC3339Nano, strings.ToUpper(s))
	case "date":
		_, err = time.Parse(time.DateOnly, s)
	case "time":
		_, err = time.Parse(time.RFC3339Nano, "2000-01-01T"+strings.ToUpper(s))
	case "email":
		var a *mail.Address
		a, err = mail.ParseAddress(s)
		return err == nil && a.Name == "" && a.Address == s
	case "ipv4":
		a, err := netip.ParseAddr(s)
		return err == nil && a.Is4()
	case "ipv6":
		a, err := netip.ParseAddr(s)
		return err == nil && a.Is6() && a.Zone() == ""
	case "uri", "url":
		u, err := url.Parse(s)
		return err == nil && u.IsAbs()
	case "uri-reference":
		_, err = url.Parse(s)
	case "uuid":
		return isUUID(s)
	case "regex":
		_, err = regexp.Compile(goPattern(s))
		// What only Go cannot do is for the tool to judge.
		return err == nil || strings.Contains(s, "(?") || strings.Contains(s, `\`)
	}
	return err == nil
}

func isUUID(s string) bool {
	if len(s) != 36 {
		return false
	}
	for i := range len(s) {
		c := s[i]
		switch i {
		case 8, 13, 18, 23:
			if c != '-' {
				return false
			}
		default:
			if !(c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F') {
				return false
			}
		}
	}
	return true
}
