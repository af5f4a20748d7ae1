package kube

import (
	"io"
	"net/http"
	"strings"
	"sync"
)

// Traffic counts what was asked of the API server, and how much it answered: after the decompression of gzip.
type Traffic struct {
	Requests int
	Bytes    int64
}

// trafficMeter counts requests and the bytes of their answers by kind.
type trafficMeter struct {
	next http.RoundTripper

	mu     sync.Mutex
	byKind map[string]Traffic // by plural
}

// TakeTraffic is the traffic since it was asked last, by the plural of the kind.
func (c *connection) TakeTraffic() map[string]Traffic {
	if c.traffic == nil {
		return nil
	}
	c.traffic.mu.Lock()
	defer c.traffic.mu.Unlock()
	out := c.traffic.byKind
	c.traffic.byKind = map[string]Traffic{}
	return out
}

// RoundTrip sends the request and counts what is read of its answer, also of one that never ends.
func (t *trafficMeter) RoundTrip(r *http.Request) (*http.Response, error) {
	kind := kindOf(r.URL.Path)
	t.addTraffic(kind, Traffic{Requests: 1})
	resp, err := t.next.RoundTrip(r)
	if err == nil {
		resp.Body = &meteredBody{resp.Body, func(n int) { t.addTraffic(kind, Traffic{Bytes: int64(n)}) }}
	}
	return resp, err
}

func (t *trafficMeter) addTraffic(kind string, more Traffic) {
	t.mu.Lock()
	defer t.mu.Unlock()
	sum := t.byKind[kind]
	t.byKind[kind] = Traffic{sum.Requests + more.Requests, sum.Bytes + more.Bytes}
}

// kindOf is the plural of the kind that a path is about, or the path's last part.
func kindOf(path string) string {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	at := len(parts) - 1
	switch {
	case parts[0] == "api" && len(parts) > 2:
		at = 2 // api/v1/nodes
	case parts[0] == "apis" && len(parts) > 3:
		at = 3 // apis/apps/v1/daemonsets
	}
	if parts[at] == "namespaces" && at+2 < len(parts) {
		at += 2
	}
	return parts[at]
}

type meteredBody struct {
	io.ReadCloser
	count func(int)
}

// Read counts what it reads.
func (b *meteredBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.count(n)
	return n, err
}
