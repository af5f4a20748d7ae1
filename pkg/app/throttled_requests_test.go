package app

import (
	"net/http"
	"testing"
)

func TestThrottledRequestsAreCounted(t *testing.T) {
	var n throttledRequests
	for path, code := range map[string]int{
		"/apis/karpenter.sh/v1/nodeclaims":               http.StatusTooManyRequests,
		"/api/v1/nodes":                                  http.StatusOK,
		"/api/v1/pods":                                   http.StatusTooManyRequests,
		"/api/v1/namespaces/default/pods/web-1/eviction": http.StatusTooManyRequests, // its budget says so
	} {
		next := roundTripper(func(*http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: code, Body: http.NoBody}, nil
		})
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://api"+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := n.count(next).RoundTrip(r)
		if err != nil || answer.StatusCode != code {
			t.Fatal(answer, err)
		}
		_ = answer.Body.Close()
	}
	if n.total() != 2 {
		t.Errorf("%d requests were refused, want 2", n.total())
	}
}
