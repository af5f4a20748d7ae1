package app

import (
	"net/http"
	"strings"
	"sync/atomic"
)

// throttledRequests counts the requests that the API server refuses as too many, with status 429. An eviction is
// refused so for its PodDisruptionBudget too, and does not count.
type throttledRequests struct{ n atomic.Int64 }

func (t *throttledRequests) total() int { return int(t.n.Load()) }

// count stands around the transport of the API server.
func (t *throttledRequests) count(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		answer, err := next.RoundTrip(r)
		if err == nil && answer.StatusCode == http.StatusTooManyRequests &&
			!strings.HasSuffix(r.URL.Path, "/eviction") {
			t.n.Add(1)
		}
		return answer, err
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

// RoundTrip is the function.
func (t roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return t(r) }
