// Package auth finds the credentials of a request: it keeps the stored ones,
// renews tokens, resolves values that name environment variables or commands, and
// decides which of several sources counts. Package auth/signin signs people in.
//
// # Finding
//
// Find walks the sources of a provider's key in their order: a key given for this
// run, the stored credential, the one that models.json names, the environment. A
// stored credential owns its provider: when it cannot be used that is an error,
// and the environment is not asked. A program calls Find before each request, as
// llm/catalog does, and so a long run picks up renewed tokens and changed files.
// Keys travel as Secret, which no print verb, log handler or encoder shows.
//
//	store := auth.OpenStore(filepath.Join(folder, "auth.json"), auth.StoreOptions{
//		Refresh: signin.Refresher(definitions, signin.Options{}),
//	})
//	found, err := auth.Find(ctx, auth.Query{
//		Provider: "anthropic",
//		Store:    store,
//		EnvNames: []string{"ANTHROPIC_API_KEY"},
//	})
//
// Find fails with an *UnresolvedError, a *RefreshError, a *KeychainError, a
// *FileError, or the error of ctx. Credentials.Warning is what a person should
// hear although the request can be sent. Look tells which source would count and
// runs, renews and opens nothing.
//
// # Values
//
// A value, as auth.json and models.json hold it, is a literal, a template with
// $NAME or ${NAME}, or a command behind an exclamation mark:
//
//	sk-literal
//	$MY_KEY
//	prefix-${MY_KEY}
//	!op read op://vault/item/key
//
// In templates $$ is a dollar sign and $! an exclamation mark. Variables are
// looked up in the env of the stored key, then in the process; an empty one counts
// as missing, and one missing name leaves the value without text. A command runs
// in the system's shell for at most ten seconds; its output without the blanks
// around it is the text. After that, or when the request ends, it is killed with
// everything it started. Commands of stored keys run once for each process, and a
// failure is remembered too, so that a vault asks once; those of models.json run
// at each request, as they may print keys that live shortly.
//
// # The file
//
// auth.json is one JSON object with a member for each provider, and shared with
// other programs that know the form:
//
//	{
//	  "anthropic": {
//	    "type": "api_key",
//	    "key": "$WORK_KEY",
//	    "env": {
//	      "WORK_KEY": "sk-…"
//	    }
//	  },
//	  "openai": {
//	    "type": "api_key",
//	    "keychain": "pinch/openai"
//	  },
//	  "acme": {
//	    "type": "oauth",
//	    "access": "…",
//	    "refresh": "…",
//	    "expires": 1800000000000,
//	    "accountId": "…"
//	  }
//	}
//
// A write changes what it is about and leaves every other byte as it was: entries
// of unknown types, members that a provider or another program added, their order
// and their spelling. It goes through a temporary file in the same folder that is
// synced and renamed; links are followed, the file is readable by its owner alone,
// a new folder too. Nothing is written, or made, by reading.
//
// A file that breaks while a program runs leaves the last good content in use;
// Problem tells. One that is broken from the start is an error that names the
// file, the line and the column. Either is never written over. A file that others
// may read is reported by Exposure, and made private by the next write.
//
// Writers, also of other programs, take turns through the directory
// auth.json.lock beside the file itself: who makes it has the lock, sets its time
// every few seconds, and removes it. A lock that nobody renewed for 30 seconds was
// left behind, also by another user in a folder of one's own, and is taken over by
// exactly one of those who wait. One who lost the lock, because the machine slept,
// notices before writing.
//
// # Keychain
//
// A key may be in the system's keychain: the entry then has "keychain", with the
// item's name as service/account, in the place of "key". Readers that do not know
// the member see a credential without a key, not a wrong key, and leave it there.
// An entry may have both; this package uses the keychain then, and others the key.
// The text of an item is the key as it is, not a template. An item that cannot be
// read is an error, as everything stored is. Programs hand in the keychain with
// StoreOptions.Keychain, so that this package links none. It is read once for each
// item and process. Tokens of sign-ins stay in the file: they change often, and
// have to be shared with programs that know no keychain.
//
// # Tokens
//
// Store.Token, and Find for a stored sign-in, renews a token that is good for less
// than MinLife: under the lock, after another look at the file, so that of all
// processes one asks the issuer and the others use what it stored. A renewal that
// has begun has RefreshTimeout and goes on when the request ends, for most issuers
// honour a refresh token once: its outcome is stored before the lock is given
// back. A program that is told to end waits for that; see Busy. None begins where
// the folder is full or cannot be written. Where the outcome cannot be stored all
// the same the token is used, Warning says so, and the next access to the file
// writes it. A renewal that fails leaves a token in use that is good for some time
// yet, and is tried again after half a minute; without such a token Find fails
// with a *RefreshError, which tells a sign-in that has ended (ErrSignInEnded; it
// is not tried again until the entry changes) from trouble that may pass. A time
// that makes no sense counts as long over, a clock that is set back does not make
// a token last, and a token that was issued just now is used whatever is said
// about its end.
//
// One loss cannot be ruled out: a process that is killed, or a machine that loses
// power, after the issuer took the old refresh token and before the new one is in
// the file, which is a rename away from the answer. The file is whole then, and
// has the old refresh token. An issuer that honours it again within some time
// gives new ones, and nothing is noticed; one that does not ends the sign-in, and
// the next request says to sign in again.
package auth
