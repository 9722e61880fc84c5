package bedrock

import (
	"fmt"
	"net/url"
	"strings"
)

// fallbackRegion is the region where nothing names one.
const fallbackRegion = "us-east-1"

// site is where a request goes.
type site struct {
	region   string
	endpoint string // without a slash at its end
	profile  string // that was named, "" for none
}

// RegionError says that the name of a region cannot be one.
type RegionError struct{ Region string }

func (e *RegionError) Error() string {
	return fmt.Sprintf("%q is no AWS region: correct AWS_REGION, or the region of the profile or the model", e.Region)
}

// site settles region and endpoint.
func (x *exchange) site() (site, error) {
	base, err := x.api.host.BaseURL(x.model, &x.opts)
	if err != nil {
		return site{}, err
	}
	at := site{profile: first(x.own.Profile, x.env("AWS_PROFILE"))}
	at.region = first(arnRegion(x.model.ID), x.own.Region, x.env("AWS_REGION"), x.env("AWS_DEFAULT_REGION"))
	standard := endpointRegion(base)
	// A catalogue has to write some region's endpoint; it must not win over
	// what the user chose.
	if base != "" && (standard == "" || at.region == "" && at.profile == "") {
		at.endpoint = base
	}
	if at.region == "" && at.profile != "" {
		at.region = x.profiles().region(at.profile)
	}
	at.region = first(at.region, standard, fallbackRegion)
	if !isRegion(at.region) {
		return site{}, &RegionError{Region: at.region}
	}
	if at.endpoint == "" {
		at.endpoint = strings.TrimSuffix(first(x.env("AWS_ENDPOINT_URL_BEDROCK_RUNTIME"), x.env("AWS_ENDPOINT_URL")), "/")
	}
	if at.endpoint == "" {
		host := "bedrock-runtime"
		if x.env("AWS_USE_FIPS_ENDPOINT") == "true" {
			host = "bedrock-runtime-fips"
		}
		at.endpoint = "https://" + host + "." + at.region + "." + domainOf(at.region)
	}
	// What is not escaped in it would undo the escapes of the model's id. A URL
	// that cannot be read is refused when it is used.
	if u, err := url.Parse(at.endpoint); err == nil {
		at.endpoint = u.String()
	}
	return at, nil
}

// first is the first that is not empty.
func first(values ...string) string {
	for _, v := range values {
		if v != "" {
			return v
		}
	}
	return ""
}

// arnRegion is the region of a model's id that is an ARN, "" for other ids.
func arnRegion(id string) string {
	parts := strings.SplitN(id, ":", 5)
	if len(parts) < 5 || parts[0] != "arn" {
		return ""
	}
	return parts[3]
}

// endpointRegion is the region of an endpoint of AWS itself, "" for others.
func endpointRegion(base string) string {
	u, err := url.Parse(base)
	if err != nil {
		return ""
	}
	host := strings.ToLower(u.Hostname())
	rest, ok := strings.CutPrefix(host, "bedrock-runtime.")
	if !ok {
		if rest, ok = strings.CutPrefix(host, "bedrock-runtime-fips."); !ok {
			return ""
		}
	}
	region, domain, _ := strings.Cut(rest, ".")
	if domain != domainOf(region) || !isRegion(region) {
		return ""
	}
	return region
}

// isRegion reports whether a name can be part of a host's.
func isRegion(name string) bool {
	for _, c := range []byte(name) {
		if c != '-' && (c < 'a' || c > 'z') && (c < '0' || c > '9') {
			return false
		}
	}
	return name != ""
}

// domainOf is the domain of the partition that a region belongs to.
func domainOf(region string) string {
	switch {
	case strings.HasPrefix(region, "cn-"):
		return "amazonaws.com.cn"
	case strings.HasPrefix(region, "eusc-"):
		return "amazonaws.eu"
	case strings.HasPrefix(region, "us-iso-"):
		return "c2s.ic.gov"
	case strings.HasPrefix(region, "us-isob-"):
		return "sc2s.sgov.gov"
	case strings.HasPrefix(region, "us-isof-"), strings.HasPrefix(region, "eu-isof-"):
		return "csp.hci.ic.gov"
	case strings.HasPrefix(region, "eu-isoe-"):
		return "cloud.adc-e.uk"
	}
	return "amazonaws.com"
}
