// Package recording keeps what AWS answered to a program, so that somebody else can play it again: one file a call,
// without what is nobody else's business.
//
// It knows the form of the files and what is taken out. Start with Recorder. It refuses to know what the calls mean. Only
// reads are meant to be recorded, and at most a thousand of them.
package recording

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// mostCalls bounds a recording.
const mostCalls = 1000

// Call is one question with its answer, after redaction.
type Call struct {
	Service     string `json:"service"`               // that it was signed for, such as ec2
	Method      string `json:"method"`                // of HTTP
	Path        string `json:"path"`                  // with the query
	Target      string `json:"target,omitempty"`      // X-Amz-Target
	Body        string `json:"body,omitempty"`        // of the request; empty for none
	Status      int    `json:"status"`                // HTTP status code
	ContentType string `json:"contentType,omitempty"` // of Answer
	ErrorType   string `json:"errorType,omitempty"`   // X-Amzn-ErrorType
	Answer      string `json:"answer,omitempty"`      // body of the response; empty for none
}

// HTTPClient does requests.
type HTTPClient interface {
	Do(*http.Request) (*http.Response, error)
}

// Recorder does requests and writes each into the folder with its answer. A request without an answer is not recorded.
type Recorder struct {
	Next   HTTPClient
	Folder string

	mu     sync.Mutex
	count  int
	redact Redactor
}

// Do does the request.
func (r *Recorder) Do(request *http.Request) (*http.Response, error) {
	body, err := readAll(request.Body)
	if err != nil {
		return nil, fmt.Errorf("read request to record it: %w", err)
	}
	if request.Body != nil {
		request.Body = io.NopCloser(bytes.NewReader(body))
	}
	response, err := r.Next.Do(request)
	if err != nil {
		return response, err
	}
	answer, err := readAll(response.Body)
	response.Body = io.NopCloser(bytes.NewReader(answer))
	if err != nil {
		return response, fmt.Errorf("read answer to record it: %w", err)
	}
	c := Call{Service: signedService(request.Header.Get("Authorization")), Method: request.Method,
		Path: request.URL.RequestURI(), Target: request.Header.Get("X-Amz-Target"), Body: string(body),
		Status: response.StatusCode, ContentType: response.Header.Get("Content-Type"),
		ErrorType: response.Header.Get("X-Amzn-Errortype"), Answer: string(answer)}
	return response, r.writeCall(c)
}

func (r *Recorder) writeCall(c Call) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.count == mostCalls {
		return fmt.Errorf("record calls of AWS: there are more than %d", mostCalls)
	}
	r.count++
	text, err := json.MarshalIndent(r.redact.Call(c), "", "  ")
	if err != nil {
		return fmt.Errorf("record a call of AWS: %w", err)
	}
	name := filepath.Join(r.Folder, fmt.Sprintf("%03d-%s.json", r.count, c.Service))
	if err := os.WriteFile(name, append(text, '\n'), 0o600); err != nil {
		return fmt.Errorf("record a call of AWS: %w", err)
	}
	return nil
}

// readAll reads a body that may be none.
func readAll(body io.ReadCloser) ([]byte, error) {
	if body == nil {
		return nil, nil
	}
	defer body.Close()
	return io.ReadAll(body)
}

// signedService is the service in a signature: Credential=KEY/date/region/service/aws4_request.
func signedService(authorization string) string {
	_, rest, _ := strings.Cut(authorization, "Credential=")
	scope, _, _ := strings.Cut(rest, ",")
	if parts := strings.Split(scope, "/"); len(parts) == 5 {
		return parts[3]
	}
	return "unsigned"
}

// Read reads the calls of a folder, in their order.
func Read(folder string) ([]Call, error) {
	names, err := filepath.Glob(filepath.Join(folder, "*.json"))
	if err != nil {
		return nil, err
	}
	slices.Sort(names)
	var out []Call
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			return nil, fmt.Errorf("read recorded call: %w", err)
		}
		var c Call
		if err := json.Unmarshal(text, &c); err != nil {
			return nil, fmt.Errorf("read recorded call %s: %w", name, err)
		}
		out = append(out, c)
	}
	return out, nil
}

// Answers reports whether the recorded call is the same question as another one.
func (c Call) Answers(q Call) bool {
	return c.Service == q.Service && c.Method == q.Method && c.Target == q.Target && samePath(c.Path, q.Path) && sameForm(c.Body, q.Body)
}

// samePath compares paths whatever is escaped in them.
func samePath(a, b string) bool {
	x, errA := url.PathUnescape(a)
	y, errB := url.PathUnescape(b)
	return a == b || errA == nil && errB == nil && x == y
}

// sameForm compares bodies whatever the order of their parameters.
func sameForm(a, b string) bool {
	if a == b {
		return true
	}
	x, errA := url.ParseQuery(a)
	y, errB := url.ParseQuery(b)
	return errA == nil && errB == nil && x.Encode() == y.Encode()
}

// Redactor takes out of calls what says who somebody is: account numbers, public addresses, certificates, names of
// people, values of tags and of environment variables. One thing is replaced by the same word everywhere.
type Redactor struct{ words map[string]string }

// Call is the call without them.
func (r *Redactor) Call(c Call) Call {
	c.Path, c.Body, c.Answer = r.redactText(c.Path), r.redactText(c.Body), r.redactText(r.structure(c.Answer))
	return c
}

// replace returns the word that stands for another. A new one is made of the number of those that there are.
func (r *Redactor) replace(word string, name func(n int) string) string {
	if r.words == nil {
		r.words = map[string]string{}
	}
	if r.words[word] == "" {
		r.words[word] = name(len(r.words))
	}
	return r.words[word]
}

const (
	redacted     = "redacted"
	firstAccount = 111122223300 // of those that stand for others
)

// redactText replaces what is recognized wherever it stands.
func (r *Redactor) redactText(s string) string {
	s = regexp.MustCompile(`(\b|%3A|%2F)\d{12}\b`).ReplaceAllStringFunc(s, func(found string) string {
		at := len(found) - len("111122223333") // behind what stands for : or / in a path
		return found[:at] + r.replace(found[at:], func(n int) string { return strconv.Itoa(firstAccount + n) })
	})
	s = regexp.MustCompile(`\b\d{1,3}(\.\d{1,3}){3}\b`).ReplaceAllStringFunc(s, func(address string) string {
		if !isPublic(address) {
			return address
		}
		return r.replace(address, func(n int) string { return fmt.Sprintf("198.51.100.%d", n%256) })
	})
	s = regexp.MustCompile(`\b2[0-9a-f]{3}:[0-9a-f:]+`).ReplaceAllStringFunc(s, func(address string) string {
		return r.replace(address, func(n int) string { return fmt.Sprintf("2001:db8::%x", n) })
	})
	// A session is named after the person that has it.
	s = regexp.MustCompile(`(assumed-role/[\w+=,.@-]+/)[\w+=,.@-]+`).ReplaceAllStringFunc(s, func(session string) string {
		at := strings.LastIndex(session, "/") + 1
		return session[:at] + r.replace(session[at:], func(n int) string { return fmt.Sprintf("session-%d", n) })
	})
	s = regexp.MustCompile(`(user/|user%2F)[\w+=,.@-]+`).ReplaceAllStringFunc(s, func(user string) string {
		at := strings.IndexAny(user, "/%")
		begin := user[:at+1]
		if user[at] == '%' {
			begin = user[:at+3]
		}
		return begin + r.replace(user[len(begin):], func(n int) string { return fmt.Sprintf("user-%d", n) })
	})
	s = regexp.MustCompile(`[\w.+-]+@[\w-]+(\.[\w-]+)+`).ReplaceAllString(s, "somebody@example.com")
	return regexp.MustCompile(`\b[0-9A-F]{32}\b`).ReplaceAllString(s, strings.Repeat("0", 32))
}

// isPublic reports whether an address of IPv4 belongs to somebody.
func isPublic(address string) bool {
	for _, private := range []string{`^10\.`, `^192\.168\.`, `^172\.(1[6-9]|2\d|3[01])\.`, `^127\.`, `^0\.0\.0\.0$`, `^100\.(6[4-9]|[7-9]\d|1[01]\d|12[0-7])\.`, `^169\.254\.`, `^198\.51\.100\.`} {
		if regexp.MustCompile(private).MatchString(address) {
			return false
		}
	}
	return true
}

// structure replaces values by the names under which JSON and XML have them.
func (r *Redactor) structure(s string) string {
	var o any
	if err := json.Unmarshal([]byte(s), &o); err == nil {
		out, err := json.Marshal(redactJSON("", o))
		if err == nil {
			return string(out)
		}
	}
	s = regexp.MustCompile(`(?is)(<key>)([^<]*)(</key>\s*<value>)([^<]*)(</value>)`).ReplaceAllStringFunc(s, func(tag string) string {
		p := regexp.MustCompile(`(?is)(<key>)([^<]*)(</key>\s*<value>)([^<]*)(</value>)`).FindStringSubmatch(tag)
		if isKnownTag(p[2]) {
			return tag
		}
		return p[1] + p[2] + p[3] + redacted + p[5]
	})
	return regexp.MustCompile(`(?is)<(description|groupDescription|assumeRolePolicyDocument|keyName|accessKeyId|secretAccessKey|sessionToken)>[^<]*<`).ReplaceAllString(s, "<$1>"+redacted+"<")
}

// isKnownTag reports whether a tag is one that Joiner, Karpenter or EKS give meaning to.
func isKnownTag(key string) bool {
	return slices.ContainsFunc([]string{"kubernetes.io/", "karpenter.", "joiner.sh/", "eks:", "aws:eks:", "topology.kubernetes.io/"},
		func(prefix string) bool { return strings.HasPrefix(key, prefix) })
}

func redactJSON(under string, v any) any {
	switch v := v.(type) {
	case []any:
		for i := range v {
			v[i] = redactJSON(under, v[i])
		}
	case map[string]any:
		for key := range v {
			_, text := v[key].(string)
			switch name := strings.ToLower(key); {
			case name == "certificateauthority":
				v[key] = map[string]any{"data": ""}
			case text && (under == "tags" && !isKnownTag(key) || under == "variables" && key != "MODE" || name == "description"):
				v[key] = redacted
			default:
				v[key] = redactJSON(name, v[key])
			}
		}
	}
	return v
}
