package anthropic

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/pinch-agent/pinch/internal/jsonwire"
	"github.com/pinch-agent/pinch/internal/regular"
	"github.com/pinch-agent/pinch/internal/wire"
	"github.com/pinch-agent/pinch/llm"
)

// Workload identity federation: a machine that has no key exchanges the token of
// its own identity provider for one of a few minutes. Names and shapes are those
// of Anthropic's public reference.

const (
	federationTimeout = 30 * time.Second
	// A token is renewed when this much of its life is left, so that a request
	// does not outlive it on its way.
	federationMargin  = 2 * time.Minute
	federationDefault = 5 * time.Minute // life of a token whose answer names none
	maxTokenAnswer    = 1 << 20         // bytes
)

// betaOAuth is what the service wants to be named with every access token,
// betaFederation with the request for one.
const (
	betaOAuth      = "oauth-2025-04-20"
	betaFederation = "oidc-federation-2026-04-01"
)

// federationVariables are the environment variables of a workload's identity;
// the identity token itself is in a file or in a variable.
var federationVariables = struct{ rule, organization, file, token, account, workspace string }{
	"ANTHROPIC_FEDERATION_RULE_ID", "ANTHROPIC_ORGANIZATION_ID",
	"ANTHROPIC_IDENTITY_TOKEN_FILE", "ANTHROPIC_IDENTITY_TOKEN",
	"ANTHROPIC_SERVICE_ACCOUNT_ID", "ANTHROPIC_WORKSPACE_ID",
}

// identity is who a workload says it is. It is comparable: tokens are kept by it.
type identity struct {
	url                                    string // of the token endpoint
	rule, organization, account, workspace string
	file, token                            string // one of them
}

// workload is the identity in the environment of a request; ok is false when
// there is none, or the model is not Anthropic's own.
func (a *API) workload(m *llm.Model, o *llm.Options) (id identity, ok bool) {
	if m.Provider != "anthropic" {
		return id, false
	}
	env := func(name string) string { return strings.TrimSpace(a.host.Env(o, name)) }
	v := &federationVariables
	id = identity{
		rule: env(v.rule), organization: env(v.organization), account: env(v.account), workspace: env(v.workspace),
		file: env(v.file), token: env(v.token),
	}
	return id, id.rule != "" && id.organization != "" && (id.file != "" || id.token != "")
}

// federation keeps the tokens that workloads have. Requests that need the same
// one wait for a single exchange.
type federation struct {
	turn   chan struct{} // holds a value while somebody exchanges
	tokens map[identity]accessToken
}

type accessToken struct {
	value   string
	expires time.Time
}

func newFederation() *federation {
	return &federation{turn: make(chan struct{}, 1), tokens: map[identity]accessToken{}}
}

// forget drops a token that the service refused.
func (f *federation) forget(id identity, value string) {
	f.turn <- struct{}{}
	defer func() { <-f.turn }()
	if f.tokens[id].value == value {
		delete(f.tokens, id)
	}
}

// token is an access token for a workload.
func (f *federation) token(ctx context.Context, h *wire.Host, o *llm.Options, id identity) (string, error) {
	select {
	case f.turn <- struct{}{}:
	case <-ctx.Done():
		return "", wire.ErrAborted
	}
	defer func() { <-f.turn }()
	now := h.Now()
	if t, ok := f.tokens[id]; ok && now.Before(t.expires) {
		return t.value, nil
	}
	t, err := exchangeIdentity(ctx, h, o, id)
	if ctx.Err() != nil {
		return "", wire.ErrAborted
	}
	if err != nil {
		return "", fmt.Errorf("the identity of this workload was not accepted for a token of Anthropic: %w", err)
	}
	f.tokens[id] = t
	return t.value, nil
}

// exchangeIdentity asks for a token. The file is read each time: it rotates.
func exchangeIdentity(ctx context.Context, h *wire.Host, o *llm.Options, id identity) (accessToken, error) {
	assertion := id.token
	if id.file != "" {
		b, err := regular.ReadFile(id.file)
		if err != nil {
			return accessToken{}, fmt.Errorf("%s: %w", federationVariables.file, err)
		}
		assertion = strings.TrimSpace(string(b))
	}
	if assertion == "" {
		return accessToken{}, fmt.Errorf("%s: the file %s is empty", federationVariables.file, id.file)
	}
	body := jsonwire.Begin(nil)
	body.Text("grant_type", "urn:ietf:params:oauth:grant-type:jwt-bearer")
	body.Text("assertion", assertion)
	body.Text("federation_rule_id", id.rule)
	body.Text("organization_id", id.organization)
	body.OptText("service_account_id", id.account)
	body.OptText("workspace_id", id.workspace)
	inner, cancel := context.WithTimeoutCause(ctx, federationTimeout,
		&wire.TimeoutError{What: "no access token", After: federationTimeout})
	defer cancel()
	req, err := http.NewRequestWithContext(inner, http.MethodPost, id.url, bytes.NewReader(body.End()))
	if err != nil {
		return accessToken{}, errors.New("the base URL of the model cannot be used")
	}
	req.Header = h.Header(&llm.Model{Provider: "anthropic"}, &llm.Options{})
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Anthropic-Version", protocol)
	req.Header.Set("Anthropic-Beta", betaOAuth+","+betaFederation)
	client := o.Client
	if client == nil {
		client = h.Client
	}
	asked := h.Now()
	resp, err := client.Do(req)
	if err != nil {
		return accessToken{}, wire.TransportError(inner, ctx, err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, maxTokenAnswer))
	if err != nil {
		return accessToken{}, wire.TransportError(inner, ctx, err)
	}
	if resp.StatusCode != http.StatusOK {
		e := &wire.StatusError{Status: resp.StatusCode, Header: resp.Header, Body: answer}
		return accessToken{}, errors.New(wire.Redact(wire.PlainError(e), []string{assertion}))
	}
	value, _ := jsonwire.StringValue(jsonwire.Get(answer, "access_token"))
	if value == "" {
		return accessToken{}, errors.New("the answer holds no access token")
	}
	life := federationDefault
	if s, err := strconv.ParseFloat(string(jsonwire.Get(answer, "expires_in")), 64); err == nil && s > 0 {
		life = time.Duration(min(s, 1e6) * float64(time.Second))
	}
	return accessToken{value, asked.Add(life - min(federationMargin, life/4))}, nil
}
