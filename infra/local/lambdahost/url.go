package lambdahost

import (
	"context"
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"joiner.sh/infra/local/lambdahost/assembly"
	"joiner.sh/infra/local/loopback"
)

// callsPerSecond is how many calls of a function's URL Lambda takes in a second for each reserved concurrent
// invocation.
const callsPerSecond = 10

// door is the URL of a function: HTTPS on loopback, with a certificate of its own.
type door struct {
	fn     *function
	server *http.Server
	url    string
	ca     []byte // PEM

	mu    sync.Mutex
	taken []time.Time // calls of the last second
}

// openDoors listens for every function that has a URL.
func (h *Host) openDoors() error {
	for _, f := range h.functions {
		if f.URL == nil {
			continue
		}
		d := &door{fn: f}
		certificate, ca, err := loopback.NewCertificate()
		if err != nil {
			return fmt.Errorf("function %s: %w", f.Name, err)
		}
		d.ca = ca
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return fmt.Errorf("listen for the URL of %s: %w", f.Name, err)
		}
		d.url = "https://" + listener.Addr().String() + "/"
		d.server = &http.Server{Handler: d, ReadHeaderTimeout: initLimit,
			TLSConfig: &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{certificate}}}
		go func() { _ = d.server.ServeTLS(listener, "", "") }() // ends with ErrServerClosed
		h.doors = append(h.doors, d)
	}
	return nil
}

// URL is where the function can be called, with a slash at the end, and the authority (PEM) by which its certificate is
// to be believed; empty for a function without.
func (h *Host) URL(name string) (url string, ca []byte) {
	for _, d := range h.doors {
		if d.fn.Name == name {
			return d.url, d.ca
		}
	}
	return "", nil
}

// admitsAnybody weighs the function's policy: anybody must be allowed the URL, and the invocation by it.
func (d *door) admitsAnybody() bool {
	allows := func(action string, by func(assembly.Permission) bool) bool {
		return slices.ContainsFunc(d.fn.host.options.Assembly.Permissions, func(p assembly.Permission) bool {
			return p.FunctionARN == d.fn.ARN && p.Principal == "*" && p.Action == action && by(p)
		})
	}
	return allows("lambda:InvokeFunctionUrl", func(p assembly.Permission) bool { return p.URLAuthType == "NONE" }) &&
		allows("lambda:InvokeFunction", func(p assembly.Permission) bool { return p.ViaURL })
}

// hasRoom reports whether Lambda would take another call in this second.
func (d *door) hasRoom(now time.Time) bool {
	if d.fn.Reserved == nil {
		return true
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.taken = slices.DeleteFunc(d.taken, func(t time.Time) bool { return now.Sub(t) >= time.Second })
	if len(d.taken) >= callsPerSecond**d.fn.Reserved {
		return false
	}
	d.taken = append(d.taken, now)
	return true
}

// request is an event of a function URL, payload format 2.0.
type request struct {
	Version         string            `json:"version"`
	RouteKey        string            `json:"routeKey"`
	RawPath         string            `json:"rawPath"`
	RawQueryString  string            `json:"rawQueryString"`
	Headers         map[string]string `json:"headers"`
	RequestContext  requestOrigin     `json:"requestContext"`
	Body            string            `json:"body,omitempty"`
	IsBase64Encoded bool              `json:"isBase64Encoded"`
}

type requestOrigin struct {
	AccountID  string   `json:"accountId"`
	DomainName string   `json:"domainName"`
	HTTP       httpCall `json:"http"`
	RequestID  string   `json:"requestId"`
	TimeEpoch  int64    `json:"timeEpoch"`
}

type httpCall struct {
	Method    string `json:"method"`
	Path      string `json:"path"`
	Protocol  string `json:"protocol"`
	SourceIP  string `json:"sourceIp"`
	UserAgent string `json:"userAgent"`
}

// ServeHTTP invokes the function with the call as its event.
func (d *door) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	refuse := func(status int, message string) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_, _ = fmt.Fprintf(w, `{"Message":%q}`, message)
	}
	body, err := io.ReadAll(io.LimitReader(r.Body, maxSyncPayload+1))
	switch {
	case err != nil:
		return // the caller went away
	case len(body) > maxSyncPayload:
		refuse(http.StatusRequestEntityTooLarge, "Request Entity Too Large")
		return
	case !d.admitsAnybody():
		refuse(http.StatusForbidden, "Forbidden")
		return
	case !d.hasRoom(time.Now()):
		d.fn.host.updateStats(d.fn, func(s *FunctionStats) { s.Throttles++ })
		refuse(http.StatusTooManyRequests, "Rate Exceeded.")
		return
	}
	event, err := json.Marshal(eventOf(r, body))
	if err != nil {
		refuse(http.StatusInternalServerError, err.Error())
		return
	}
	result, err := d.fn.host.InvokeFunction(context.WithoutCancel(r.Context()), d.fn.Name, RequestResponse, event)
	if failed, ok := errors.AsType[*Error](err); ok {
		refuse(failed.Status, failed.Message)
		return
	}
	if err != nil || result.FunctionError != "" {
		refuse(http.StatusBadGateway, "Internal Server Error")
		return
	}
	writeResponse(w, result.Payload)
}

func eventOf(r *http.Request, body []byte) request {
	e := request{Version: "2.0", RouteKey: "$default", RawPath: r.URL.EscapedPath(), RawQueryString: r.URL.RawQuery,
		Headers: map[string]string{"host": r.Host},
		RequestContext: requestOrigin{AccountID: "anonymous", DomainName: r.Host, RequestID: newID(),
			TimeEpoch: time.Now().UnixMilli(),
			HTTP: httpCall{r.Method, r.URL.EscapedPath(), r.Proto, r.RemoteAddr[:strings.LastIndex(r.RemoteAddr, ":")],
				r.UserAgent()}}}
	for name, values := range r.Header {
		e.Headers[strings.ToLower(name)] = strings.Join(values, ",")
	}
	kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if strings.HasPrefix(kind, "text/") || slices.Contains([]string{"application/json", "application/javascript",
		"application/xml"}, kind) {
		e.Body = string(body)
	} else if len(body) > 0 {
		e.Body, e.IsBase64Encoded = base64.StdEncoding.EncodeToString(body), true
	}
	return e
}

// writeResponse writes what the function answered: a whole response if it has a status code, else its JSON as the body.
func writeResponse(w http.ResponseWriter, payload []byte) {
	var out struct {
		StatusCode      int
		Headers         map[string]string
		Body            string
		IsBase64Encoded bool
	}
	if json.Unmarshal(payload, &out) != nil || out.StatusCode == 0 {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(payload)
		return
	}
	body := []byte(out.Body)
	if out.IsBase64Encoded {
		decoded, err := base64.StdEncoding.DecodeString(out.Body)
		if err != nil {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		body = decoded
	}
	w.Header().Set("Content-Type", "application/json")
	for name, value := range out.Headers {
		w.Header().Set(name, value)
	}
	w.WriteHeader(out.StatusCode)
	_, _ = w.Write(body) // a caller that went away is its own loss
}
