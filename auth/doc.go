// Package auth finds the credentials of a request: it keeps the stored ones,
// resolves values that name environment variables or commands, and decides
// which of several sources counts.
//
// A value, as auth.json and models.json hold it, is a literal, a template with
// $NAME or ${NAME}, or a command behind an exclamation mark:
//
//	sk-literal
//	$MY_KEY
//	prefix-${MY_KEY}
//	!op read op://vault/item/key
//
// In templates $$ is a dollar sign and $! an exclamation mark. Resolve turns a
// value into text; Find walks the sources of a provider's key in their order:
// a key given for this run, the stored credential, the one that models.json
// names, the environment.
//
// Keys travel as Secret, which no print verb, log handler or encoder shows.
package auth
