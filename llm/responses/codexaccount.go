package responses

import (
	"encoding/base64"
	"strings"

	"github.com/pinch-agent/pinch/internal/jsonwire"
)

// accountClaim is the claim of a ChatGPT token that names the account.
const accountClaim = "https://api.openai.com/auth"

// AccountError says that a key is no access token of ChatGPT, or one that names
// no account. Signing in again gives one.
type AccountError struct{}

func (*AccountError) Error() string { return "Failed to extract accountId from token" }

// accountOf is the account that an access token, a JWT, belongs to. The
// signature is the service's business: the token goes to nobody else.
func accountOf(token string) (string, error) {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return "", &AccountError{}
	}
	claims, err := base64.RawURLEncoding.DecodeString(strings.TrimRight(parts[1], "="))
	if err != nil {
		return "", &AccountError{}
	}
	account, _ := jsonwire.StringValue(jsonwire.Get(jsonwire.Get(claims, accountClaim), "chatgpt_account_id"))
	if account == "" {
		return "", &AccountError{}
	}
	return account, nil
}
