// Package bedrock speaks the Converse protocol of Amazon Bedrock, wire format
// "bedrock-converse-stream", which serves models of many vendors from one API.
//
//	api := bedrock.New(bedrock.Config{Version: "1.2.3"})
//	stream, err := api.Stream(ctx, model, &llm.Request{
//		Messages: llm.Fold("You are terse.", tools, history),
//		Options:  llm.Options{Env: map[string]string{"AWS_PROFILE": "work"}, Reasoning: llm.LevelHigh},
//	})
//
// Stream takes the options that every wire format understands; StreamWith adds
// those that only this one has.
//
// # Sign in
//
// A Bedrock API key goes in Options.APIKey, or AWS_BEARER_TOKEN_BEDROCK, and is
// sent as a bearer token. Without one, requests are signed (SigV4) with the
// first credentials that are found:
//
//  1. those of the profile, when one is named (Options.Profile, AWS_PROFILE)
//  2. AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, with AWS_SESSION_TOKEN
//  3. a role for AWS_WEB_IDENTITY_TOKEN_FILE (AWS_ROLE_ARN, AWS_ROLE_SESSION_NAME)
//  4. those of the profile "default"
//  5. those of the container (AWS_CONTAINER_CREDENTIALS_RELATIVE_URI, …_FULL_URI)
//  6. those of the instance (IMDSv2; AWS_EC2_METADATA_DISABLED switches it off)
//
// A profile is read from AWS_CONFIG_FILE and AWS_SHARED_CREDENTIALS_FILE, else
// ~/.aws/config and ~/.aws/credentials. It may hold keys, a role_arn with a
// source_profile or credential_source, a web_identity_token_file, an IAM
// Identity Center login (sso_session, or sso_start_url) or a credential_process.
// A named profile without any of these goes on with steps 5 and 6. What is found
// is kept until five minutes before it expires. A named profile wins over keys
// in the environment, as in the AWS SDK for JavaScript; in the command line tool
// of AWS it is the other way round.
//
// Profiles that need a code from an MFA device and those of `aws login` cannot
// be asked here; a credential_process of `aws configure export-credentials` can
// stand between. AWS_BEDROCK_SKIP_AUTH=1 signs with keys that mean nothing, for
// proxies that sign themselves.
//
// All variables are read through Options.Env and then Config.Getenv, the home
// folder (HOME, on Windows USERPROFILE) among them: a program that hands in its
// own Getenv decides alone what is read.
//
// # Region and endpoint
//
// The region is that of the ARN that the model's id is, else Options.Region,
// AWS_REGION, AWS_DEFAULT_REGION, the named profile's, that of an AWS endpoint
// in Model.BaseURL, else us-east-1. The requests go to Model.BaseURL; one that is
// an AWS endpoint itself only counts while neither region nor profile is given.
//
// # Clock
//
// Signatures hold the time. When the service refuses one for that, the clock is
// corrected by what the response says, and the request is sent once more.
//
// # Prompt caching
//
// On Claude models that can, and wherever AWS_BEDROCK_FORCE_CACHE=1 says so,
// cache points stand behind the system prompt and the last user message, unless
// Options.CacheRetention is none.
//
// # Retries
//
// A request is tried three times, as the vendor's own clients do, whatever
// Options.MaxRetries says. AWS_BEDROCK_FORCE_HTTP1=1 keeps to HTTP/1.1.
package bedrock
