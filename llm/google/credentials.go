package google

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/go-json-experiment/json"
	"golang.org/x/oauth2"
	"golang.org/x/oauth2/google/externalaccount"
	"golang.org/x/oauth2/jwt"

	"github.com/pinch-agent/pinch/llm"
)

// The variables that say where credentials are.
const (
	envCredentials  = "GOOGLE_APPLICATION_CREDENTIALS"
	envQuotaProject = "GOOGLE_CLOUD_QUOTA_PROJECT"
	envMetadataHost = "GCE_METADATA_HOST"
)

const scope = "https://www.googleapis.com/auth/cloud-platform"

// credentials are Application Default Credentials.
type credentials struct {
	source   string          // what they are, for errors
	file     *credentialFile // nil for the metadata server
	metadata string          // host of the metadata server
	named    bool            // a variable names that host
	key      [sha256.Size]byte
}

// The types of credential files.
const (
	typeServiceAccount  = "service_account"
	typeUser            = "authorized_user"
	typeExternal        = "external_account"
	typeExternalUser    = "external_account_authorized_user"
	typeImpersonated    = "impersonated_service_account"
	defaultTokenURL     = "https://oauth2.googleapis.com/token"
	defaultUserTokenURL = "https://sts.googleapis.com/v1/oauthtoken"
)

// credentialFile is a file of gcloud or of the console.
type credentialFile struct {
	Type         string `json:"type"`
	QuotaProject string `json:"quota_project_id"`
	TokenURI     string `json:"token_uri"`

	// A service account.
	ClientEmail  string `json:"client_email"`
	PrivateKey   string `json:"private_key"`
	PrivateKeyID string `json:"private_key_id"`

	// A user's login.
	ClientID     string `json:"client_id"`
	ClientSecret string `json:"client_secret"`
	RefreshToken string `json:"refresh_token"`

	// An external account.
	Audience                 string                            `json:"audience"`
	SubjectTokenType         string                            `json:"subject_token_type"`
	TokenURL                 string                            `json:"token_url"`
	TokenInfoURL             string                            `json:"token_info_url"`
	CredentialSource         *externalaccount.CredentialSource `json:"credential_source"`
	WorkforcePoolUserProject string                            `json:"workforce_pool_user_project"`

	// Acting as another service account.
	ImpersonationURL string `json:"service_account_impersonation_url"`
	Impersonation    struct {
		Lifetime int `json:"token_lifetime_seconds"`
	} `json:"service_account_impersonation"`
	Delegates []string        `json:"delegates"`
	Source    *credentialFile `json:"source_credentials"`
}

// find looks for the credentials of a request.
func (t *tokens) find(o *llm.Options) (*credentials, error) {
	env := func(name string) string { return strings.TrimSpace(t.host.Env(o, name)) }
	if name := env(envCredentials); name != "" {
		source := fmt.Sprintf("the file %s, which %s names", name, envCredentials)
		text, err := t.readFile(name)
		if err != nil {
			return nil, &CredentialsError{Source: source, Cause: fileError(err), Advice: "correct the variable, or unset it to use the login of gcloud"}
		}
		return readCredentials(source, text)
	}
	if name := gcloudFile(runtime.GOOS, env); name != "" {
		text, err := t.readFile(name)
		switch {
		case err == nil:
			return readCredentials("the file "+name, text)
		case !errors.Is(err, fs.ErrNotExist):
			return nil, &CredentialsError{Source: "the file " + name, Cause: fileError(err), Advice: "make it readable, or name another file in " + envCredentials}
		}
	}
	c := &credentials{source: "the metadata server", metadata: env(envMetadataHost)}
	if c.named = c.metadata != ""; !c.named {
		c.metadata = "169.254.169.254"
	}
	c.key = sha256.Sum256([]byte("metadata " + c.metadata))
	return c, nil
}

// fileError is a file's problem without its name, which the error has already.
func fileError(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}

// gcloudFile is the file that gcloud keeps default credentials in, "" where
// nothing says which.
func gcloudFile(goos string, env func(string) string) string {
	const name = "application_default_credentials.json"
	if dir := env("CLOUDSDK_CONFIG"); dir != "" {
		return filepath.Join(dir, name)
	}
	if goos == "windows" {
		if dir := env("APPDATA"); dir != "" {
			return filepath.Join(dir, "gcloud", name)
		}
		return ""
	}
	if dir := env("HOME"); dir != "" {
		return filepath.Join(dir, ".config", "gcloud", name)
	}
	return ""
}

// readCredentials reads a file's text. Its errors quote nothing of it, as it
// holds secrets.
func readCredentials(source string, text []byte) (*credentials, error) {
	c := &credentials{source: source, file: &credentialFile{}, key: sha256.Sum256(text)}
	if json.Unmarshal(text, c.file) != nil {
		return nil, &CredentialsError{Source: source, Cause: errors.New("it is not the JSON of a credentials file"), Advice: adviceNewFile}
	}
	if lacks := c.file.lacks(); lacks != "" {
		return nil, &CredentialsError{Source: source, Cause: errors.New(lacks), Advice: adviceNewFile}
	}
	return c, nil
}

// lacks says what a file has no value for, "" when it is complete.
func (f *credentialFile) lacks() string {
	need := func(members ...string) string {
		for i := 0; i < len(members); i += 2 {
			if members[i+1] == "" {
				return "it has no " + members[i]
			}
		}
		return ""
	}
	switch f.Type {
	case typeServiceAccount:
		return need("client_email", f.ClientEmail, "private_key", f.PrivateKey)
	case typeUser, typeExternalUser:
		return need("refresh_token", f.RefreshToken, "client_id", f.ClientID)
	case typeExternal:
		if f.CredentialSource == nil {
			return "it has no credential_source"
		}
		return need("audience", f.Audience, "subject_token_type", f.SubjectTokenType)
	case typeImpersonated:
		if f.Source == nil {
			return "it has no source_credentials"
		}
		if f.Source.Type == typeImpersonated {
			return "its source_credentials act as a service account themselves"
		}
		if lacks := need("service_account_impersonation_url", f.ImpersonationURL); lacks != "" {
			return lacks
		}
		return f.Source.lacks()
	case "":
		return "it has no type"
	default:
		return fmt.Sprintf("its type %q is none that is known", f.Type)
	}
}

// secrets are the values of a file that no text may repeat.
func (f *credentialFile) secrets() []string {
	if f == nil {
		return nil
	}
	return append(f.Source.secrets(), f.PrivateKey, f.ClientSecret, f.RefreshToken)
}

// tokenSource makes a token of a file, but for acting as a service account. It
// sends its requests with the client in ctx.
func (f *credentialFile) tokenSource(ctx context.Context) (oauth2.TokenSource, error) {
	switch f.Type {
	case typeServiceAccount:
		c := &jwt.Config{
			Email: f.ClientEmail, PrivateKey: []byte(f.PrivateKey), PrivateKeyID: f.PrivateKeyID,
			Scopes: []string{scope}, TokenURL: f.TokenURI,
		}
		if c.TokenURL == "" {
			c.TokenURL = defaultTokenURL
		}
		return c.TokenSource(ctx), nil
	case typeUser:
		return f.login(ctx, f.TokenURI, defaultTokenURL, oauth2.AuthStyleInParams), nil
	case typeExternalUser:
		return f.login(ctx, f.TokenURL, defaultUserTokenURL, oauth2.AuthStyleInHeader), nil
	default: // lacks knows no other
		return externalaccount.NewTokenSource(ctx, externalaccount.Config{
			Audience: f.Audience, SubjectTokenType: f.SubjectTokenType, TokenURL: f.TokenURL, TokenInfoURL: f.TokenInfoURL,
			ServiceAccountImpersonationURL:             f.ImpersonationURL,
			ServiceAccountImpersonationLifetimeSeconds: f.Impersonation.Lifetime,
			ClientID: f.ClientID, ClientSecret: f.ClientSecret, CredentialSource: f.CredentialSource,
			Scopes: []string{scope}, WorkforcePoolUserProject: f.WorkforcePoolUserProject,
		})
	}
}

// login is the token source of a user's login.
func (f *credentialFile) login(ctx context.Context, url, otherwise string, style oauth2.AuthStyle) oauth2.TokenSource {
	if url == "" {
		url = otherwise
	}
	c := &oauth2.Config{
		ClientID: f.ClientID, ClientSecret: f.ClientSecret,
		Endpoint: oauth2.Endpoint{TokenURL: url, AuthStyle: style},
	}
	return c.TokenSource(ctx, &oauth2.Token{RefreshToken: f.RefreshToken})
}
