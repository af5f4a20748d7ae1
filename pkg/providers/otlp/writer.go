package otlp

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	"joiner.sh/pkg/model/trace"
)

const (
	pauseBeforeRetry = 200 * time.Millisecond
	mostAnswer       = 4 << 10 // bytes of an answer that are read
)

// Writer sends spans to one endpoint. It may be used by several goroutines.
type Writer struct {
	URL       string            // with its path, as a rule /v1/traces
	Transport http.RoundTripper // authenticates; nil: http.DefaultTransport
	Resource  []trace.Attribute // of who sends
	Version   string            // of the program
}

// RefusedError says that the endpoint answered, and took nothing or not all.
type RefusedError struct {
	Status int // of HTTP; 200 where it took a part
	Text   string
}

// Error is what the endpoint said, and what to do about it.
func (e *RefusedError) Error() string {
	hint := map[int]string{
		http.StatusUnauthorized: "check the setting tracesSecret and what is in it",
		http.StatusForbidden:    "check what the setting tracesSecret allows at the endpoint",
		http.StatusNotFound:     "check the path of the setting tracesURL, as a rule /v1/traces",
		http.StatusUnsupportedMediaType: "the setting tracesURL wants an endpoint of OTLP over HTTP with protobuf, as a rule " +
			"port 4318",
	}[e.Status]
	text := "the endpoint took not all"
	if e.Status != http.StatusOK {
		text = fmt.Sprintf("the endpoint says %d %s", e.Status, http.StatusText(e.Status))
	}
	if e.Text != "" {
		text += ": " + e.Text
	}
	if hint != "" {
		text += ": " + hint
	}
	return text
}

// WriteSpans sends the spans in one request. It returns with the context at the latest. An error means that some or all
// of them were not taken.
func (w *Writer) WriteSpans(ctx context.Context, spans []trace.Span) error {
	if err := w.sendSpans(ctx, spans); err != nil {
		return fmt.Errorf("send traces to %s: %w", w.host(), err)
	}
	return nil
}

// host is the part of the address that is no secret.
func (w *Writer) host() string {
	u, err := url.Parse(w.URL)
	if err != nil {
		return "an address that is none"
	}
	return u.Host
}

func (w *Writer) sendSpans(ctx context.Context, spans []trace.Span) error {
	message, err := encode(w.Resource, w.Version, spans)
	if err != nil {
		return err
	}
	var body bytes.Buffer
	z := gzip.NewWriter(&body)
	if _, err := z.Write(message); err != nil {
		return err
	}
	if err := z.Close(); err != nil {
		return err
	}
	pause, err := w.post(ctx, body.Bytes())
	if end, limited := ctx.Deadline(); pause <= 0 || limited && time.Until(end) <= pause {
		return err
	}
	select {
	case <-ctx.Done():
		return err
	case <-time.After(pause):
	}
	_, err = w.post(ctx, body.Bytes())
	return err
}

// post sends one request. Where it is worth another one, it says after which time.
func (w *Writer) post(ctx context.Context, body []byte) (again time.Duration, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, w.URL, bytes.NewReader(body))
	if err != nil {
		return 0, errors.New("the setting tracesURL is no URL")
	}
	r.Header.Set("Content-Type", "application/x-protobuf")
	r.Header.Set("Content-Encoding", "gzip")
	client := http.Client{Transport: w.Transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := client.Do(r)
	if err != nil {
		if u, ok := errors.AsType[*url.Error](err); ok {
			err = u.Err // without the address, whose path may be a secret
		}
		return 0, err
	}
	defer resp.Body.Close()
	answer, readErr := io.ReadAll(io.LimitReader(resp.Body, mostAnswer))
	if resp.StatusCode != http.StatusOK {
		refused := &RefusedError{Status: resp.StatusCode, Text: plainText(resp.Header, answer)}
		return pauseFor(resp), refused
	}
	if readErr != nil {
		return 0, fmt.Errorf("read its answer: %w", readErr)
	}
	return 0, rejection(answer)
}

// pauseFor is how long to wait before the request is sent again, 0 for an answer that another request would get too.
func pauseFor(r *http.Response) time.Duration {
	again := []int{http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable,
		http.StatusGatewayTimeout}
	if !slices.Contains(again, r.StatusCode) {
		return 0
	}
	if seconds, err := strconv.Atoi(r.Header.Get("Retry-After")); err == nil && seconds > 0 {
		return time.Duration(seconds) * time.Second
	}
	return pauseBeforeRetry
}

// plainText is what an answer says to people, empty where it is for programs.
func plainText(h http.Header, answer []byte) string {
	if !strings.HasPrefix(h.Get("Content-Type"), "text/plain") {
		return ""
	}
	return strings.TrimSpace(validText(string(answer[:min(len(answer), mostError)])))
}

// Fields of an ExportTraceServiceResponse and of the ExportTracePartialSuccess in it.
const (
	fieldPartialSuccess = 1
	fieldRejectedSpans  = 1
	fieldErrorMessage   = 2
)

// rejection is what an answer says about spans that were not taken. Other answers, such as those that are no protobuf,
// say nothing about any.
func rejection(answer []byte) error {
	partial := findField(answer, fieldPartialSuccess)
	rejected, _ := protowire.ConsumeVarint(findField(partial, fieldRejectedSpans))
	if rejected == 0 {
		return nil
	}
	return &RefusedError{Status: http.StatusOK, Text: fmt.Sprintf("%d spans are rejected: %s", rejected,
		validText(string(findField(partial, fieldErrorMessage))))}
}

// findField is the value of the first field of that number in a message: the bytes, or the encoded number. It is empty
// where there is none.
func findField(message []byte, number protowire.Number) []byte {
	for len(message) > 0 {
		n, kind, head := protowire.ConsumeTag(message)
		if head < 0 {
			return nil
		}
		size := protowire.ConsumeFieldValue(n, kind, message[head:])
		if size < 0 {
			return nil
		}
		value := message[head : head+size]
		if n == number {
			if kind == protowire.BytesType {
				value, _ = protowire.ConsumeBytes(value)
			}
			return value
		}
		message = message[head+size:]
	}
	return nil
}
