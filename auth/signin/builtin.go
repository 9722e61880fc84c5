package signin

// Builtin lists the definitions that need no file. They hold no client of any
// program: OpenRouter wants none, Hugging Face registers whoever asks, and for
// GitHub Copilot the person names an OAuth app of their own.
func Builtin() []Definition {
	return []Definition{
		{
			Provider:     "openrouter",
			Name:         "OpenRouter",
			AuthorizeURL: "https://openrouter.ai/auth",
			KeyURL:       "https://openrouter.ai/api/v1/auth/keys",
			// The documented host of programs on people's machines.
			Redirect: Redirect{Host: "localhost"},
			Renew:    Never,
		},
		{
			Provider:     "huggingface",
			Name:         "Hugging Face",
			Issuer:       "https://huggingface.co",
			AuthorizeURL: "https://huggingface.co/oauth/authorize",
			TokenURL:     "https://huggingface.co/oauth/token",
			DeviceURL:    "https://huggingface.co/oauth/device",
			RegisterURL:  "https://huggingface.co/oauth/register",
			Scopes:       []string{"openid", "profile", "inference-api"},
			Redirect:     Redirect{Host: "localhost"},
		},
		{
			Provider:     "github-copilot",
			Name:         "GitHub Copilot",
			DeviceURL:    "https://{domain}/login/device/code",
			TokenURL:     "https://{domain}/login/oauth/access_token",
			Scopes:       []string{"read:user"},
			PublicDomain: "github.com",
			Mint:         &Mint{URL: "https://api.{domain}/copilot_internal/v2/token", Scheme: "Bearer"},
			BaseURL:      BaseURL{FromToken: "proxy-ep", Fixed: "https://copilot-api.{domain}"},
			Hint: "It is the id of an OAuth app of your own with the device flow switched on; GitHub decides whether that app may use Copilot. " +
				"A token in COPILOT_GITHUB_TOKEN works without a sign-in",
		},
	}
}
