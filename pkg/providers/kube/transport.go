package kube

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"
)

const (
	dialTimeout  = 3 * time.Second
	idleTimeout  = 30 * time.Second // of a connection nobody uses
	pingAfter    = 3 * time.Second  // without a frame from the server
	pingTimeout  = 2 * time.Second
	frozenAfter  = 10 * time.Second // between two requests, by the wall clock
	tokenMinLeft = 4 * time.Minute
)

// newTransport makes HTTP connections that survive a function's freeze: a frozen environment wakes with connections
// that are dead without knowing it, so idle ones are dropped by the wall clock, and those in use are pinged.
func newTransport(c Config) (http.RoundTripper, error) {
	var roots *x509.CertPool
	if len(c.CA) > 0 {
		roots = x509.NewCertPool()
		if !roots.AppendCertsFromPEM(c.CA) {
			return nil, errors.New("the certificate authority holds no PEM certificate")
		}
	}
	base := &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           (&net.Dialer{Timeout: dialTimeout, KeepAlive: 15 * time.Second}).DialContext,
		TLSClientConfig:       &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12},
		TLSHandshakeTimeout:   dialTimeout,
		ForceAttemptHTTP2:     true,
		HTTP2:                 &http.HTTP2Config{SendPingTimeout: pingAfter, PingTimeout: pingTimeout},
		IdleConnTimeout:       idleTimeout,
		MaxIdleConnsPerHost:   8,
		ExpectContinueTimeout: time.Second,
	}
	var rt http.RoundTripper = base
	if c.Wrap != nil {
		rt = c.Wrap(rt)
	}
	return &tokenTransport{config: c, base: base, next: rt}, nil
}

// tokenTransport adds the bearer token to requests and drops connections that a freeze may have killed.
type tokenTransport struct {
	config Config
	base   *http.Transport
	next   http.RoundTripper

	mu      sync.Mutex
	token   string
	expires time.Time
	last    time.Time // of the last request
}

// RoundTrip sends the request with a token that is valid for some time yet.
func (s *tokenTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	token, err := s.prepareRequest(r)
	if err != nil {
		return nil, err
	}
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+token)
	resp, err := s.next.RoundTrip(r)
	if err == nil && resp.StatusCode == http.StatusUnauthorized {
		s.forgetToken(token)
	}
	return resp, err
}

func (s *tokenTransport) prepareRequest(r *http.Request) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.config.Now().Round(0) // the wall clock alone: the monotonic one may stand still in a freeze
	if !s.last.IsZero() && now.Sub(s.last) > frozenAfter {
		s.base.CloseIdleConnections()
	}
	s.last = now
	if s.token != "" && now.Before(s.expires.Add(-tokenMinLeft)) {
		return s.token, nil
	}
	token, expires, err := s.config.Token(r.Context())
	if err != nil {
		return "", &tokenError{fmt.Errorf("make token for the cluster: %w", err)}
	}
	s.token, s.expires = token, expires.Round(0)
	return token, nil
}

// forgetToken drops a token that the server refused, so that the next request brings a new one.
func (s *tokenTransport) forgetToken(token string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.token == token {
		s.token = ""
	}
}

// tokenError says that no token could be made; there is no use in asking again at once.
type tokenError struct{ error }

// Unwrap returns the cause.
func (e *tokenError) Unwrap() error { return e.error }
