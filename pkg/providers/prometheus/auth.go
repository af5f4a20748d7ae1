package prometheus

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"
)

// secretFor is the time until a secret is read again, so that one that was rotated comes into use.
const secretFor = 15 * time.Minute

// Authenticator says who sends a request.
type Authenticator interface {
	// Authenticate adds what the request must carry, and returns what it is to be sent through.
	Authenticate(r *http.Request, next http.RoundTripper) (http.RoundTripper, error)
}

// SigV4 signs requests for Amazon Managed Service for Prometheus.
type SigV4 struct {
	Credentials aws.CredentialsProvider
	Region      string // of the workspace
	Now         func() time.Time
}

// Authenticate signs the request.
func (s SigV4) Authenticate(r *http.Request, next http.RoundTripper) (http.RoundTripper, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	keys, err := s.Credentials.Retrieve(r.Context())
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(body)
	return next, v4.NewSigner().SignHTTP(r.Context(), keys, r, hex.EncodeToString(sum[:]), "aps", s.Region, s.Now())
}

// Secrets reads secrets; an *secretsmanager.Client does. It may be repeated.
type Secrets interface {
	GetSecretValue(context.Context, *secretsmanager.GetSecretValueInput,
		...func(*secretsmanager.Options)) (*secretsmanager.GetSecretValueOutput, error)
}

// Secret authenticates by a secret of AWS Secrets Manager: a bearer token alone, or JSON with token, username and
// password, or certificate and key, and where the endpoint's certificate is not one that everybody trusts, ca. It may
// be used by several goroutines.
type Secret struct {
	Secrets Secrets
	ID      string // ARN or name
	Now     func() time.Time

	mu   sync.Mutex
	have credentials
	tls  *http.Transport
	read time.Time
}

// credentials are the fields of the secret.
type credentials struct {
	Token       string `json:"token"`
	Username    string `json:"username"`
	Password    string `json:"password"`
	Certificate string `json:"certificate"` // PEM
	Key         string `json:"key"`         // PEM
	CA          string `json:"ca"`          // PEM
}

// Authenticate adds the token or the password, and sends with the certificate.
func (s *Secret) Authenticate(r *http.Request, next http.RoundTripper) (http.RoundTripper, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.refresh(r.Context()); err != nil {
		return nil, err
	}
	switch {
	case s.have.Token != "":
		r.Header.Set("Authorization", "Bearer "+s.have.Token)
	case s.have.Username != "":
		r.SetBasicAuth(s.have.Username, s.have.Password)
	}
	if s.tls != nil {
		return s.tls, nil
	}
	return next, nil
}

// refresh reads the secret, unless it was read lately.
func (s *Secret) refresh(ctx context.Context) error {
	if now := s.Now(); !s.read.IsZero() && now.Sub(s.read) < secretFor {
		return nil
	}
	out, err := s.Secrets.GetSecretValue(ctx, &secretsmanager.GetSecretValueInput{SecretId: &s.ID})
	if err != nil {
		return fmt.Errorf("read secret %s: %w", s.ID, err)
	}
	have, err := parseSecret(aws.ToString(out.SecretString))
	if err != nil {
		return fmt.Errorf("read secret %s: %w", s.ID, err)
	}
	if have != s.have || s.read.IsZero() {
		transport, err := have.transport()
		if err != nil {
			return fmt.Errorf("read secret %s: %w", s.ID, err)
		}
		if s.tls != nil {
			s.tls.CloseIdleConnections()
		}
		s.have, s.tls = have, transport
	}
	s.read = s.Now()
	return nil
}

// parseSecret reads the text of a secret. Its errors do not tell what is in it.
func parseSecret(text string) (c credentials, err error) {
	text = strings.TrimSpace(text)
	if !strings.HasPrefix(text, "{") {
		c.Token = text
	} else if json.Unmarshal([]byte(text), &c) != nil {
		return credentials{}, errors.New("it begins like JSON and is none; want a token, or an object of texts")
	}
	switch {
	case strings.ContainsAny(c.Token, " \r\n\t"):
		return credentials{}, errors.New("the token has a space or a line break in it")
	case (c.Certificate == "") != (c.Key == ""):
		return credentials{}, errors.New("certificate and key go together")
	case c.Token+c.Username+c.Certificate == "":
		return credentials{}, errors.New(
			"it is empty; want a token, or an object with token, username and password, or certificate and key")
	}
	return c, nil
}

// transport is one with the certificates of the secret, nil where it has none.
func (c credentials) transport() (*http.Transport, error) {
	if c.Certificate+c.CA == "" {
		return nil, nil
	}
	set := &tls.Config{MinVersion: tls.VersionTLS12}
	if c.Certificate != "" {
		pair, err := tls.X509KeyPair([]byte(c.Certificate), []byte(c.Key))
		if err != nil {
			return nil, fmt.Errorf("certificate and key: %w", err)
		}
		set.Certificates = []tls.Certificate{pair}
	}
	if c.CA != "" {
		set.RootCAs = x509.NewCertPool()
		if !set.RootCAs.AppendCertsFromPEM([]byte(c.CA)) {
			return nil, errors.New("ca holds no certificate in PEM")
		}
	}
	return &http.Transport{TLSClientConfig: set, ForceAttemptHTTP2: true, Proxy: http.ProxyFromEnvironment,
		IdleConnTimeout: 2 * time.Minute}, nil
}
