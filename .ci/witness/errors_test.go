package witness

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	claude "github.com/anthropics/anthropic-sdk-go/v2"
	"github.com/aws/aws-sdk-go-v2/aws/protocol/eventstream"
	"github.com/aws/aws-sdk-go-v2/service/bedrockruntime/types"
	"github.com/aws/smithy-go"
	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/responses"
	"google.golang.org/genai"

	"github.com/pinch-agent/pinch/llm"
)

// class is what a caller has to know of a failed answer.
type class string

const (
	again    class = "retryable"
	overflow class = "context overflow"
	final    class = "final" // neither: a key, a quota or a request that is wrong
)

func classOf(m *llm.Assistant) class {
	switch {
	case m.StopReason != llm.StopError:
		return class("no error but " + string(m.StopReason))
	case llm.IsContextOverflow(m, 0):
		return overflow
	case llm.IsRetryable(m):
		return again
	}
	return final
}

// failure is an error as a service gives it.
type failure struct {
	place    string // status 429, event error
	kind     string // in the vendor's types
	message  string // for people
	response response
	class    class
}

// verdict is a failure that pinch classes otherwise than the vendor means it,
// because a recorded text says so.
type verdict struct {
	failure string // name of the failure; a trailing * stands for any rest
	class   class
	reason  string
}

// service is a format with the errors of its vendor.
type service struct {
	*format
	// typed is kind and message of the library's error, "" when it is none of
	// its types.
	typed    func(error) (kind, message string)
	failures []failure
}

func services() []service {
	return []service{
		{&anthropicFormat, typedAnthropic, anthropicFailures()},
		{&completionsFormat, typedOpenAI, openAIFailures()},
		{&responsesFormat, typedOpenAI, append(openAIFailures(), responseFailures()...)},
		{&azureFormat, typedOpenAI, append(openAIFailures(), responseFailures()...)},
		{&codexFormat, typedOpenAI, append(slices.DeleteFunc(openAIFailures(), func(f failure) bool {
			return f.response.Status == 429 // ChatGPT's limits have a form of their own
		}), responseFailures()...)},
		{&googleFormat, typedGoogle, googleFailures()},
		{&vertexFormat, typedGoogle, googleFailures()},
		{&bedrockFormat, typedBedrock, bedrockFailures()},
	}
}

// TestErrors serves what the vendors' types say of errors to both sides: the
// library has to make its typed error of it, and pinch a readable one of the
// right class.
func TestErrors(t *testing.T) {
	needed := make([]bool, len(verdicts))
	for _, s := range services() {
		srv := newServer(t)
		question := question(t, s.api, srv.URL)
		for _, f := range s.failures {
			name := fmt.Sprintf("%s/%s %s", s.api, f.place, f.kind)
			t.Run(name, func(t *testing.T) {
				want := f.class
				for i, v := range verdicts {
					if covers(v.failure, name) {
						want, needed[i] = v.class, needed[i] || v.class != f.class
					}
				}
				// A format that tries again by itself gets the same each time.
				srv.load(f.response, f.response, f.response, f.response)
				message := question.ask(t, s.format, s.new(), &llm.Memo{})
				sent := srv.taken()
				if len(sent) == 0 {
					t.Fatal("pinch sent nothing")
				}
				if got := classOf(message); got != want {
					t.Errorf("pinch takes it for %s, want %s: %s", got, want, message.ErrorMessage)
				}
				if !strings.Contains(message.ErrorMessage, f.message) {
					t.Errorf("pinch says %q, without the service's words %q", message.ErrorMessage, f.message)
				}
				srv.load(f.response)
				_, err := s.repeat(t.Context(), srv.URL, sent[0].path, sent[0].body)
				kind, text := s.typed(err)
				if kind != f.kind || text != f.message {
					t.Errorf("the library has %q %q, want %q %q: %v", kind, text, f.kind, f.message, err)
				}
				var refused *statusError
				if f.response.Status != 200 && (!errors.As(err, &refused) || refused.status != f.response.Status) {
					t.Errorf("the library does not tell status %d: %v", f.response.Status, err)
				}
			})
		}
	}
	for i, v := range verdicts {
		if !needed[i] {
			t.Errorf("verdicts: %s is not needed", v.failure)
		}
	}
}

// statusFailure is a response of another status than success.
func statusFailure(status int, kind, message string, body any, class class) failure {
	return failure{fmt.Sprintf("status %d", status), kind, message, jsonResponse(status, body), class}
}

func jsonOf(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic(err)
	}
	return bytes.TrimSpace(b.Bytes())
}

func jsonResponse(status int, v any) response {
	return response{Status: status, Headers: map[string]string{"content-type": "application/json"}, ChunksBase64: [][]byte{jsonOf(v)}}
}

func events(chunks ...string) response {
	return response{Status: 200, Headers: map[string]string{"content-type": "text/event-stream"}, Chunks: chunks}
}

type object = map[string]any

func typedAnthropic(err error) (kind, message string) {
	if e, ok := errors.AsType[*claude.Error](err); ok {
		return string(e.Type()), e.Message
	}
	return "", ""
}

func anthropicFailures() []failure {
	body := func(kind, message string) object {
		return object{"type": "error", "error": object{"type": kind, "message": message}, "request_id": "req_011CSHoEeqs5C35K2UUqR7Fy"}
	}
	var out []failure
	for _, f := range []struct {
		status  int
		kind    claude.ErrorType
		message string
		class   class
	}{
		{400, claude.ErrorTypeInvalidRequestError, "messages: at least one message is required", final},
		{400, claude.ErrorTypeInvalidRequestError, "prompt is too long: 208310 tokens > 200000 maximum", overflow},
		{401, claude.ErrorTypeAuthenticationError, "invalid x-api-key", final},
		{402, claude.ErrorTypeBillingError, "Your credit balance is too low to access the Anthropic API.", final},
		{403, claude.ErrorTypePermissionError, "Your API key does not have permission to use the specified resource", final},
		{404, claude.ErrorTypeNotFoundError, "model: claude-vec-9", final},
		{413, "request_too_large", "Request exceeds the maximum size", overflow},
		{429, claude.ErrorTypeRateLimitError, "This request would exceed your organization's rate limit of 50 requests per minute", again},
		{500, claude.ErrorTypeAPIError, "Internal server error", again},
		{504, claude.ErrorTypeTimeoutError, "Request timed out", again},
		{529, claude.ErrorTypeOverloadedError, "Overloaded", again},
	} {
		out = append(out, statusFailure(f.status, string(f.kind), f.message, body(string(f.kind), f.message), f.class))
	}
	for kind, class := range map[claude.ErrorType]class{claude.ErrorTypeOverloadedError: again, claude.ErrorTypeInvalidRequestError: final} {
		text := "event: error\ndata: " + string(jsonOf(body(string(kind), "Sorry"))) + "\n\n"
		out = append(out, failure{"event error", string(kind), "Sorry", events(text), class})
	}
	return out
}

func typedOpenAI(err error) (kind, message string) {
	if e, ok := errors.AsType[*openai.Error](err); ok {
		return e.Code, e.Message
	}
	if e, ok := errors.AsType[*responseError](err); ok {
		return e.code, e.message
	}
	return "", ""
}

func openAIFailures() []failure {
	var out []failure
	for _, f := range []struct {
		status              int
		kind, code, message string
		class               class
	}{
		{400, "invalid_request_error", "unsupported_value", "Unsupported value: 'messages[0].role' does not support 'system' with this model.", final},
		{400, "invalid_request_error", "context_length_exceeded", "This model's maximum context length is 128000 tokens. However, your messages resulted in 131072 tokens. Please reduce the length of the messages.", overflow},
		{400, "invalid_request_error", "context_length_exceeded", "Your input exceeds the context window of this model. Please adjust your input and try again.", overflow},
		{401, "invalid_request_error", "invalid_api_key", "Incorrect API key provided: sk-****. You can find your API key at https://platform.openai.com/account/api-keys.", final},
		{403, "invalid_request_error", "unsupported_country_region_territory", "Country, region, or territory not supported", final},
		{404, "invalid_request_error", "model_not_found", "The model `vec-9` does not exist or you do not have access to it.", final},
		{429, "tokens", "rate_limit_exceeded", "Rate limit reached for vec-1 in organization org-1 on tokens per min (TPM): Limit 30000, Used 29000. Please try again in 1.2s.", again},
		{429, "insufficient_quota", "insufficient_quota", "You exceeded your current quota, please check your plan and billing details.", final},
		{500, "server_error", "server_error", "The server had an error while processing your request. Sorry about that!", again},
		{503, "server_error", "overloaded", "The engine is currently overloaded, please try again later", again},
	} {
		body := object{"error": object{"message": f.message, "type": f.kind, "param": nil, "code": f.code}}
		out = append(out, statusFailure(f.status, f.code, f.message, body, f.class))
	}
	return out
}

// responseFailures are errors inside of an answer that began well.
func responseFailures() []failure {
	var out []failure
	for _, f := range []struct {
		code    responses.ResponseErrorCode
		message string
		class   class
	}{
		{responses.ResponseErrorCodeServerError, "The model produced an error.", again},
		{responses.ResponseErrorCodeRateLimitExceeded, "Please slow down.", again},
		{responses.ResponseErrorCodeInvalidPrompt, "The prompt was flagged.", final},
		{"context_length_exceeded", "Your input exceeds the context window of this model.", overflow},
	} {
		code := string(f.code)
		failed := object{"type": "response.failed", "sequence_number": 1, "response": object{
			"id": "resp_1", "object": "response", "status": "failed", "output": []any{}, "error": object{"code": code, "message": f.message},
		}}
		event := object{"type": "error", "sequence_number": 1, "code": code, "message": f.message, "param": nil}
		for _, e := range []object{failed, event} {
			text := fmt.Sprintf("event: %s\ndata: %s\n\n", e["type"], jsonOf(e))
			out = append(out, failure{fmt.Sprintf("event %s", e["type"]), code, f.message, events(text), f.class})
		}
	}
	return out
}

func typedGoogle(err error) (kind, message string) {
	if e, ok := errors.AsType[genai.APIError](err); ok {
		return e.Status, e.Message
	}
	return "", ""
}

func googleFailures() []failure {
	var out []failure
	for _, f := range []struct {
		status        int
		kind, message string
		class         class
	}{
		{400, "INVALID_ARGUMENT", "Unable to submit request because it must have a text parameter.", final},
		{400, "INVALID_ARGUMENT", "API key not valid. Please pass a valid API key.", final},
		{400, "INVALID_ARGUMENT", "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).", overflow},
		{400, "FAILED_PRECONDITION", "User location is not supported for the API use.", final},
		{401, "UNAUTHENTICATED", "Request had invalid authentication credentials.", final},
		{403, "PERMISSION_DENIED", "Permission 'aiplatform.endpoints.predict' denied on resource.", final},
		{404, "NOT_FOUND", "models/gemini-9 is not found for API version v1beta.", final},
		{429, "RESOURCE_EXHAUSTED", "Resource has been exhausted (e.g. check quota).", again},
		{429, "RESOURCE_EXHAUSTED", "You exceeded your current quota, please check your plan and billing details.", final},
		{500, "INTERNAL", "An internal error has occurred. Please retry.", again},
		{503, "UNAVAILABLE", "The model is overloaded. Please try again later.", again},
		{504, "DEADLINE_EXCEEDED", "Deadline expired before operation could complete.", again},
	} {
		body := object{"error": object{"code": f.status, "message": f.message, "status": f.kind}}
		out = append(out, statusFailure(f.status, f.kind, f.message, body, f.class))
	}
	return out
}

func typedBedrock(err error) (kind, message string) {
	if e, ok := errors.AsType[smithy.APIError](err); ok {
		if _, generic := e.(*smithy.GenericAPIError); !generic {
			return e.ErrorCode(), e.ErrorMessage()
		}
	}
	return "", ""
}

func bedrockFailures() []failure {
	var out []failure
	for _, f := range []struct {
		status int
		error  smithy.APIError
		text   string
		class  class
	}{
		{400, &types.ValidationException{}, "The provided model identifier is invalid.", final},
		{400, &types.ValidationException{}, "Input is too long for requested model.", overflow},
		{403, &types.AccessDeniedException{}, "You don't have access to the model with the specified model ID.", final},
		{404, &types.ResourceNotFoundException{}, "Could not resolve the foundation model from the provided model identifier.", final},
		{408, &types.ModelTimeoutException{}, "The request took too long to process.", again},
		{424, &types.ModelErrorException{}, "The request failed due to an error while processing the model.", final},
		{429, &types.ModelNotReadyException{}, "The model specified in the request is not ready to serve inference requests.", again},
		{429, &types.ThrottlingException{}, "Too many tokens, please wait before trying again.", again},
		{500, &types.InternalServerException{}, "An internal server error occurred.", again},
		{503, &types.ServiceUnavailableException{}, "The service isn't currently available.", again},
	} {
		kind := f.error.ErrorCode()
		r := jsonResponse(f.status, object{"message": f.text})
		r.Headers["x-amzn-errortype"] = kind + ":http://internal.amazon.com/coral/com.amazon.bedrock/"
		out = append(out, failure{fmt.Sprintf("status %d", f.status), kind, f.text, r, f.class})
	}
	for _, f := range []struct {
		error smithy.APIError
		text  string
		class class
	}{
		{&types.InternalServerException{}, "An internal server error occurred.", again},
		{&types.ModelStreamErrorException{}, "The stream failed.", final},
		{&types.ServiceUnavailableException{}, "The service isn't currently available.", again},
		{&types.ThrottlingException{}, "Too many requests.", again},
		{&types.ValidationException{}, "The content is not valid.", final},
	} {
		kind := f.error.ErrorCode()
		out = append(out, failure{"exception", kind, f.text, exceptionFrame(kind, f.text), f.class})
	}
	return out
}

// exceptionFrame is a response that is broken off by an exception.
func exceptionFrame(kind, message string) response {
	var m eventstream.Message
	m.Headers.Set(":message-type", eventstream.StringValue("exception"))
	m.Headers.Set(":exception-type", eventstream.StringValue(strings.ToLower(kind[:1])+kind[1:]))
	m.Headers.Set(":content-type", eventstream.StringValue("application/json"))
	m.Payload = jsonOf(object{"message": message})
	var b bytes.Buffer
	if err := eventstream.NewEncoder().Encode(&b, m); err != nil {
		panic(err)
	}
	return response{
		Status: 200, Headers: map[string]string{"content-type": "application/vnd.amazon.eventstream"}, ChunksBase64: [][]byte{b.Bytes()},
	}
}
