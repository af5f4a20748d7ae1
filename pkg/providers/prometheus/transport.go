package prometheus

import (
	"fmt"
	"io"
	"net/http"
	"sync/atomic"
)

const mostAnswer = 4 << 10 // bytes of an answer that are read

// answer authenticates requests, bounds what is read of their answers, and remembers the last status.
type answer struct {
	next   http.RoundTripper
	auth   Authenticator
	status atomic.Int64
}

// RoundTrip sends one request.
func (a *answer) RoundTrip(r *http.Request) (*http.Response, error) {
	a.status.Store(0)
	next := a.next
	if a.auth != nil {
		r = r.Clone(r.Context())
		through, err := a.auth.Authenticate(r, next)
		if err != nil {
			return nil, fmt.Errorf("authenticate: %w", err)
		}
		next = through
	}
	resp, err := next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	a.status.Store(int64(resp.StatusCode))
	resp.Body = struct {
		io.Reader
		io.Closer
	}{io.LimitReader(resp.Body, mostAnswer), resp.Body}
	return resp, nil
}
