package kube

import (
	"bytes"
	"context"
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
	authorityFor = 10 * time.Second // nobody is asked more often who signs certificates
)

// newTransport makes HTTP connections that survive a function's freeze: a frozen environment wakes with connections
// that are dead without knowing it, so idle ones are dropped by the wall clock, and those in use are pinged.
func newTransport(c Config) (http.RoundTripper, error) {
	s := &tokenTransport{config: c}
	return s, s.trust(c.CA)
}

// trust makes the connections from now on such that the server's certificate is of that authority.
func (s *tokenTransport) trust(authority []byte) error {
	var roots *x509.CertPool
	if len(authority) > 0 {
		roots = x509.NewCertPool()
		if !roots.AppendCertsFromPEM(authority) {
			return errors.New("the certificate authority holds no PEM certificate")
		}
	}
	s.base = newBaseTransport(roots)
	s.next = s.base
	if s.config.Wrap != nil {
		s.next = s.config.Wrap(s.next)
	}
	s.authority = authority
	return nil
}

func newBaseTransport(roots *x509.CertPool) *http.Transport {
	return &http.Transport{
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
}

// tokenTransport adds the bearer token to requests and drops connections that a freeze may have killed.
type tokenTransport struct {
	config Config

	mu        sync.Mutex
	base      *http.Transport
	next      http.RoundTripper
	authority []byte    // PEM, whose certificates are believed
	renewed   time.Time // when somebody was asked for another one
	problem   error     // of that question
	token     string
	expires   time.Time
	last      time.Time // of the last request
}

// RoundTrip sends the request with a token that is valid for some time yet. When the server's certificate is not
// believed it asks for the authority of today, so that the next try may succeed.
func (s *tokenTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	token, next, err := s.prepareRequest(r)
	if err != nil {
		return nil, err
	}
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+token)
	resp, err := next.RoundTrip(r)
	if err == nil && resp.StatusCode == http.StatusUnauthorized {
		s.forgetToken(token)
	}
	if _, refused := errors.AsType[*tls.CertificateVerificationError](err); refused && s.config.Authority != nil {
		err = errors.Join(err, s.renewAuthority(r.Context(), next))
	}
	return resp, err
}

// renewAuthority asks whose certificates to believe, unless that was done since the connections of a failed request
// were made, or just now.
func (s *tokenTransport) renewAuthority(ctx context.Context, failed http.RoundTripper) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.config.Now().Round(0)
	if s.next != failed {
		return nil
	}
	if !s.renewed.IsZero() && now.Sub(s.renewed) < authorityFor {
		return s.problem
	}
	s.renewed = now
	authority, err := s.config.Authority(ctx)
	switch {
	case err != nil:
		s.problem = fmt.Errorf("ask for the certificate authority of the cluster: %w", err)
	case len(authority) == 0 || bytes.Equal(authority, s.authority):
		s.problem = nil
	default:
		s.problem = s.trust(authority)
	}
	return s.problem
}

func (s *tokenTransport) prepareRequest(r *http.Request) (string, http.RoundTripper, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.config.Now().Round(0) // the wall clock alone: the monotonic one may stand still in a freeze
	if !s.last.IsZero() && now.Sub(s.last) > frozenAfter {
		s.base.CloseIdleConnections()
	}
	s.last = now
	if s.token != "" && now.Before(s.expires.Add(-tokenMinLeft)) {
		return s.token, s.next, nil
	}
	token, expires, err := s.config.Token(r.Context())
	if err != nil {
		return "", nil, &tokenError{fmt.Errorf("make token for the cluster: %w", err)}
	}
	s.token, s.expires = token, expires.Round(0)
	return token, s.next, nil
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
