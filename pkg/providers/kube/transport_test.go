package kube_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"math/big"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"github.com/google/go-cmp/cmp"

	"joiner.sh/pkg/providers/kube"
)

// server answers every request with the next of the codes, the last one for ever, and an empty list or object.
func server(t *testing.T, codes ...int) (*httptest.Server, *[]string) {
	t.Helper()
	var seen []string
	var n atomic.Int32
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen = append(seen, r.Method+" "+r.Header.Get("Authorization"))
		code := codes[min(int(n.Add(1)), len(codes))-1]
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		body := map[string]any{"apiVersion": "karpenter.sh/v1", "kind": "NodeClaimList", "items": []any{}}
		if code != http.StatusOK {
			body = map[string]any{"apiVersion": "v1", "kind": "Status", "status": "Failure", "code": code, "message": "code of the test"}
		}
		_ = json.NewEncoder(w).Encode(body)
	}))
	t.Cleanup(s.Close)
	return s, &seen
}

func client(t *testing.T, endpoint string, change func(*kube.Config)) *kube.Client {
	t.Helper()
	c := kube.Config{Endpoint: endpoint, Token: func(context.Context) (string, time.Time, error) {
		return "t1", time.Now().Add(time.Hour), nil
	}}
	if change != nil {
		change(&c)
	}
	client, err := kube.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func TestBusyServerIsAskedAgain(t *testing.T) {
	for _, code := range []int{429, 500, 503} {
		s, seen := server(t, code, code, 200)
		if _, err := client(t, s.URL, nil).ListClaims(t.Context()); err != nil || len(*seen) != 3 {
			t.Errorf("%d twice: error %v after %d requests, want none after 3", code, err, len(*seen))
		}
	}
	s, seen := server(t, 503)
	_, err := client(t, s.URL, nil).ListClaims(t.Context())
	if err == nil || !strings.Contains(err.Error(), "nodeclaims") || len(*seen) != 4 {
		t.Errorf("503 for ever: error %v after %d requests, want one that names the call after 4", err, len(*seen))
	}
	s, seen = server(t, 403)
	if _, err := client(t, s.URL, nil).ListClaims(t.Context()); err == nil || len(*seen) != 1 {
		t.Errorf("403: error %v after %d requests, want one after 1", err, len(*seen))
	}
}

func TestUnreachableServerIsAnErrorThatNamesTheCall(t *testing.T) {
	s, _ := server(t, 200)
	s.Close()
	_, err := client(t, s.URL, nil).ListClaims(t.Context())
	if err == nil || !strings.Contains(err.Error(), "list nodeclaims") || !strings.Contains(err.Error(), "refused") {
		t.Errorf("error %v, want one that names the call and the cause", err)
	}
}

func TestTokenIsRenewedInTime(t *testing.T) {
	s, seen := server(t, 200)
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	made := 0
	k := client(t, s.URL, func(c *kube.Config) {
		c.Now = func() time.Time { return now }
		c.Token = func(context.Context) (string, time.Time, error) {
			made++
			return "t" + string(rune('0'+made)), now.Add(14 * time.Minute), nil
		}
	})
	for _, after := range []time.Duration{0, 9*time.Minute + 59*time.Second, time.Second, time.Hour} {
		now = now.Add(after)
		if _, err := k.ListClaims(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	want := []string{"GET Bearer t1", "GET Bearer t1", "GET Bearer t2", "GET Bearer t3"}
	if diff := cmp.Diff(want, *seen); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
}

func TestRefusedTokenIsReplaced(t *testing.T) {
	s, seen := server(t, 401, 200)
	made := 0
	k := client(t, s.URL, func(c *kube.Config) {
		c.Token = func(context.Context) (string, time.Time, error) {
			made++
			return "t" + string(rune('0'+made)), time.Now().Add(time.Hour), nil
		}
	})
	if _, err := k.ListClaims(t.Context()); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"GET Bearer t1", "GET Bearer t2"}, *seen); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
}

func TestNoTokenIsAnErrorAtOnce(t *testing.T) {
	s, seen := server(t, 200)
	expired := errors.New("expired credentials")
	tries := 0
	k := client(t, s.URL, func(c *kube.Config) {
		c.Token = func(context.Context) (string, time.Time, error) { tries++; return "", time.Time{}, expired }
	})
	if _, err := k.ListClaims(t.Context()); !errors.Is(err, expired) || tries != 1 || len(*seen) != 0 {
		t.Errorf("error %v after %d tries and %d requests, want the cause after one try", err, tries, len(*seen))
	}
}

// A frozen environment wakes with connections that are dead without knowing it: the next request must open a new one.
func TestIdleConnectionsAreDroppedAfterAFreeze(t *testing.T) {
	addresses := map[string]bool{}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		addresses[r.RemoteAddr] = true
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"apiVersion":"karpenter.sh/v1","kind":"NodeClaimList","items":[]}`))
	}))
	defer s.Close()
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	k := client(t, s.URL, func(c *kube.Config) { c.Now = func() time.Time { return now } })
	for i, want := range []int{1, 1, 2} {
		if i == 2 {
			now = now.Add(11 * time.Second)
		}
		if _, err := k.ListClaims(t.Context()); err != nil {
			t.Fatal(err)
		}
		if len(addresses) != want {
			t.Errorf("request %d: %d connections so far, want %d", i+1, len(addresses), want)
		}
	}
}

func TestConfigIsChecked(t *testing.T) {
	token := func(context.Context) (string, time.Time, error) { return "", time.Time{}, nil }
	for name, c := range map[string]kube.Config{
		"no endpoint": {Token: token}, "no token": {Endpoint: "https://x"}, "no certificate": {Endpoint: "https://x", Token: token, CA: []byte("hello")},
	} {
		if _, err := kube.New(c); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// The rules are those of the server that reads the token.
func TestEKSToken(t *testing.T) {
	client := sts.NewFromConfig(aws.Config{
		Region: "us-west-2", Credentials: credentials.NewStaticCredentialsProvider("AKID", "secret", "session"),
	})
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	token, expires, err := kube.EKSToken(client, "demo", func() time.Time { return now })(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if want := now.Add(14 * time.Minute); !expires.Equal(want) {
		t.Errorf("expires %s, want %s", expires, want)
	}
	encoded, ok := strings.CutPrefix(token, "k8s-aws-v1.")
	raw, err := base64.RawURLEncoding.DecodeString(encoded)
	if !ok || err != nil || len(token) > 4096 {
		t.Fatalf("token %.40s of %d bytes: %v", token, len(token), err)
	}
	u, err := url.Parse(string(raw))
	if err != nil {
		t.Fatal(err)
	}
	if u.Scheme != "https" || u.Host != "sts.us-west-2.amazonaws.com" || u.Path != "/" {
		t.Errorf("the URL is of %s://%s%s", u.Scheme, u.Host, u.Path)
	}
	allowed := []string{"Action", "Version", "X-Amz-Algorithm", "X-Amz-Credential", "X-Amz-Date", "X-Amz-Expires", "X-Amz-Security-Token",
		"X-Amz-Signature", "X-Amz-SignedHeaders"}
	q := u.Query()
	for _, k := range allowed {
		if len(q[k]) != 1 {
			t.Errorf("%s is there %d times, want once", k, len(q[k]))
		}
	}
	if len(q) != len(allowed) {
		t.Errorf("the query has %d keys, want %d: %v", len(q), len(allowed), q)
	}
	if q.Get("Action") != "GetCallerIdentity" || q.Get("X-Amz-Expires") != "60" || !strings.Contains(q.Get("X-Amz-SignedHeaders"), "x-k8s-aws-id") {
		t.Errorf("query: %v", q)
	}
}

// TestAnAuthorityThatChangedIsAskedFor: EKS changes the certificate authority of a cluster from time to time, and what
// the stack wrote down is then the old one.
func TestAnAuthorityThatChangedIsAskedFor(t *testing.T) {
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"apiVersion":"karpenter.sh/v1","kind":"NodeClaimList","items":[]}`))
	}))
	t.Cleanup(s.Close)
	own := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	other := otherAuthority(t)
	for name, c := range map[string]struct {
		today       []byte
		fails       error
		asked       int
		works       bool
		wantInError string
	}{
		"another one":    {today: own, asked: 1, works: true},
		"the same":       {today: other, asked: 1, wantInError: "certificate"},
		"nobody knows":   {asked: 1, wantInError: "certificate"},
		"cannot be read": {fails: errors.New("no bucket"), asked: 1, wantInError: "no bucket"},
	} {
		t.Run(name, func(t *testing.T) {
			asked := 0
			k := client(t, s.URL, func(k *kube.Config) {
				k.CA = other
				k.Authority = func(context.Context) ([]byte, error) { asked++; return c.today, c.fails }
			})
			_, err := k.ListClaims(t.Context())
			if (err == nil) != c.works || asked != c.asked || err != nil && !strings.Contains(err.Error(), c.wantInError) {
				t.Errorf("asked %d times, error %v; want %d, works %t", asked, err, c.asked, c.works)
			}
			if _, err := k.ListClaims(t.Context()); (err == nil) != c.works {
				t.Errorf("the next call: %v", err)
			}
		})
	}
}

// otherAuthority is a certificate authority that signed nothing.
func otherAuthority(t *testing.T) []byte {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), IsCA: true, BasicConstraintsValid: true, NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}
