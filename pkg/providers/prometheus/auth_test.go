package prometheus_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"math/big"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"

	"joiner.sh/pkg/providers/prometheus"
)

// secrets has one secret.
type secrets struct {
	text  string
	reads int
}

func (s *secrets) GetSecretValue(_ context.Context, in *secretsmanager.GetSecretValueInput,
	_ ...func(*secretsmanager.Options)) (*secretsmanager.GetSecretValueOutput, error) {
	s.reads++
	return &secretsmanager.GetSecretValueOutput{SecretString: &s.text, ARN: in.SecretId}, nil
}

func TestSigV4(t *testing.T) {
	r := &receiver{versions: both()}
	w := r.serve(t)
	w.Auth = prometheus.SigV4{Credentials: credentials.NewStaticCredentialsProvider("AKIDEXAMPLE", "secret", "session"), Region: "us-west-2", Now: noon}
	if err := w.WriteSeries(t.Context(), some(), nil, noon()); err != nil {
		t.Fatal(err)
	}
	got := r.headers[0].Get("Authorization")
	if !strings.HasPrefix(got, "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20260101/us-west-2/aps/aws4_request, SignedHeaders=") || r.headers[0].Get("X-Amz-Security-Token") != "session" {
		t.Errorf("headers %v", r.headers[0])
	}
	if len(r.got) != 2 {
		t.Errorf("series %v: the body was lost while it was signed", r.got)
	}
}

func TestTokenAndPassword(t *testing.T) {
	for text, want := range map[string]string{"abc\n": "Bearer abc", `{"token":"abc"}`: "Bearer abc", `{"username":"u","password":"p"}`: "Basic dTpw"} {
		r := &receiver{versions: both()}
		w := r.serve(t)
		w.Auth = &prometheus.Secret{Secrets: &secrets{text: text}, ID: "s", Now: noon}
		if err := w.WriteSeries(t.Context(), some(), nil, noon()); err != nil {
			t.Fatal(err)
		}
		if got := r.headers[0].Get("Authorization"); got != want {
			t.Errorf("%s: %q", text, got)
		}
	}
}

// TestASecretIsReadAgain after a while, and not before.
func TestASecretIsReadAgain(t *testing.T) {
	r, s, now := &receiver{versions: both()}, &secrets{text: "old"}, noon()
	w := r.serve(t)
	w.Auth = &prometheus.Secret{Secrets: s, ID: "s", Now: func() time.Time { return now }}
	for _, step := range []time.Duration{0, 14 * time.Minute, time.Minute} {
		now = now.Add(step)
		if err := w.WriteSeries(t.Context(), some(), nil, noon()); err != nil {
			t.Fatal(err)
		}
		s.text = "new"
	}
	var got []string
	for _, h := range r.headers {
		got = append(got, h.Get("Authorization"))
	}
	if strings.Join(got, ",") != "Bearer old,Bearer old,Bearer new" || s.reads != 2 {
		t.Errorf("%v with %d reads", got, s.reads)
	}
}

func TestASecretThatIsNone(t *testing.T) {
	for text, want := range map[string]string{"": "empty", "{}": "empty", "{hunter2": "none", "hunter2 hunter3": "space", `{"certificate":"hunter2"}`: "go together",
		`{"certificate":"hunter2","key":"hunter3"}`: "certificate and key", `{"token":"a","ca":"hunter2"}`: "ca holds no certificate"} {
		r := &receiver{versions: both()}
		w := r.serve(t)
		w.Auth = &prometheus.Secret{Secrets: &secrets{text: text}, ID: "arn:s", Now: noon}
		err := w.WriteSeries(t.Context(), some(), nil, noon())
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "arn:s") || strings.Contains(err.Error(), "hunter") || r.requests != 0 {
			t.Errorf("%q: %d requests, %v", text, r.requests, err)
		}
	}
}

// TestACertificateOfTheClient: the endpoint asks for one, and has one that only the secret's ca vouches for.
func TestACertificateOfTheClient(t *testing.T) {
	certificate, key := selfSigned(t)
	r := &receiver{versions: both()}
	server := httptest.NewUnstartedServer(r)
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM([]byte(certificate))
	server.TLS = &tls.Config{ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: pool, MinVersion: tls.VersionTLS12}
	server.StartTLS()
	t.Cleanup(server.Close)
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	for _, c := range []struct {
		secret map[string]string
		taken  bool
	}{
		{map[string]string{"certificate": certificate, "key": key, "ca": string(ca)}, true},
		{map[string]string{"token": "abc", "ca": string(ca)}, false},
		{map[string]string{"certificate": certificate, "key": key}, false},
	} {
		text, err := json.Marshal(c.secret)
		if err != nil {
			t.Fatal(err)
		}
		w := &prometheus.Writer{URL: server.URL, Auth: &prometheus.Secret{Secrets: &secrets{text: string(text)}, ID: "s", Now: noon}}
		if err := w.WriteSeries(t.Context(), some(), nil, noon()); (err == nil) != c.taken {
			t.Errorf("%d fields: %v", len(c.secret), err)
		}
	}
	if len(r.got) != 2 {
		t.Errorf("series %v", r.got)
	}
}

func selfSigned(t *testing.T) (certificate, key string) {
	t.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	about := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "joiner"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}, IsCA: true, BasicConstraintsValid: true}
	raw, err := x509.CreateCertificate(rand.Reader, about, about, &k.PublicKey, k)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(k)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: raw})), string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}))
}
