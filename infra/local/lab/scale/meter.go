package main

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"log"
	"maps"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/endpoints/request"

	"joiner.sh/infra/local/controlplane/client"
	"joiner.sh/infra/local/loopback"
)

// traffic is requests and the bytes of their answers as they are on the wire, by verb and kind.
type traffic map[string]count

type count struct {
	Requests int   `json:"requests"`
	Bytes    int64 `json:"bytes,omitempty"`
}

// meter stands between the functions and the API server, and counts.
type meter struct {
	server *http.Server
	kinds  request.RequestInfoFactory

	mu   sync.Mutex
	seen traffic
}

// startProxy answers in place of the API server, with a certificate of its own.
func (m *meter) startProxy(p *client.Plane) (server string, ca []byte, err error) {
	target, err := url.Parse(p.ServerURL())
	if err != nil {
		return "", nil, fmt.Errorf("read the address of the API server: %w", err)
	}
	trusted := x509.NewCertPool()
	trusted.AppendCertsFromPEM(p.CA())
	cert, ca, err := loopback.NewCertificate()
	if err != nil {
		return "", nil, err
	}
	m.seen = traffic{}
	m.kinds = request.RequestInfoFactory{APIPrefixes: sets.NewString("api", "apis"),
		GrouplessAPIPrefixes: sets.NewString("api")}
	proxy := &httputil.ReverseProxy{
		Rewrite:        func(r *httputil.ProxyRequest) { r.SetURL(target) },
		FlushInterval:  -1, // of watches each event
		ErrorLog:       log.New(io.Discard, "", 0),
		ModifyResponse: m.countResponse,
		Transport: &http.Transport{ForceAttemptHTTP2: true, DisableCompression: true,
			TLSClientConfig: &tls.Config{RootCAs: trusted, MinVersion: tls.VersionTLS12}},
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, fmt.Errorf("listen for the functions: %w", err)
	}
	m.server = &http.Server{Handler: proxy, ReadHeaderTimeout: time.Minute, ErrorLog: proxy.ErrorLog,
		TLSConfig: &tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS12}}
	go func() { _ = m.server.ServeTLS(listener, "", "") }() // until it is closed
	return "https://" + listener.Addr().String(), ca, nil
}

// countResponse notes a request when it is answered, and its bytes as they pass.
func (m *meter) countResponse(r *http.Response) error {
	kind := "other"
	if i, err := m.kinds.NewRequestInfo(r.Request); err == nil && i.IsResourceRequest {
		kind = i.Verb + " " + i.Resource
		if i.Subresource != "" {
			kind += "/" + i.Subresource
		}
	}
	m.addTraffic(kind, count{Requests: 1})
	r.Body = &counted{ReadCloser: r.Body, add: func(n int) { m.addTraffic(kind, count{Bytes: int64(n)}) }}
	return nil
}

func (m *meter) addTraffic(kind string, c count) {
	m.mu.Lock()
	defer m.mu.Unlock()
	have := m.seen[kind]
	m.seen[kind] = count{have.Requests + c.Requests, have.Bytes + c.Bytes}
}

// takeTraffic gives what was counted since it was asked last.
func (m *meter) takeTraffic() traffic {
	m.mu.Lock()
	defer m.mu.Unlock()
	out := m.seen
	m.seen = traffic{}
	return out
}

func (t traffic) sumTraffic() (c count) {
	for _, one := range t {
		c.Requests += one.Requests
		c.Bytes += one.Bytes
	}
	return c
}

// topKinds names the kinds of most requests.
func (t traffic) topKinds(n int) (out []string) {
	kinds := slices.SortedFunc(maps.Keys(t), func(a, b string) int {
		return cmp.Or(cmp.Compare(t[b].Requests, t[a].Requests), cmp.Compare(a, b))
	})
	for _, k := range kinds[:min(n, len(kinds))] {
		out = append(out, fmt.Sprintf("%d %s", t[k].Requests, k))
	}
	return out
}

// counted tells how much of a body was read.
type counted struct {
	io.ReadCloser
	add func(int)
}

// Read reads and counts.
func (c *counted) Read(b []byte) (int, error) {
	n, err := c.ReadCloser.Read(b)
	c.add(n)
	return n, err
}
