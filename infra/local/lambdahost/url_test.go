package lambdahost

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"joiner.sh/infra/local/lambdahost/assembly"
)

// open gives the probe a URL, and anybody the permissions for it.
func open(o *Options) {
	probe := o.Assembly.FindFunction("joiner-demo-probe")
	probe.URL = &assembly.URL{AuthType: "NONE"}
	o.Assembly.Permissions = append(o.Assembly.Permissions,
		assembly.Permission{Action: "lambda:InvokeFunctionUrl", FunctionARN: probe.ARN, Principal: "*", URLAuthType: "NONE"},
		assembly.Permission{Action: "lambda:InvokeFunction", FunctionARN: probe.ARN, Principal: "*", ViaURL: true})
}

// caller believes the authority of the probe's URL and no other.
func caller(t *testing.T, h *Host) (*http.Client, string) {
	t.Helper()
	url, ca := h.URL("joiner-demo-probe")
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(ca) || !strings.HasPrefix(url, "https://127.0.0.1:") || !strings.HasSuffix(url, "/") {
		t.Fatalf("URL %q, authority %q", url, ca)
	}
	return &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}}}, url
}

func post(t *testing.T, c *http.Client, url, kind, body string) (int, http.Header, string) {
	t.Helper()
	res, err := c.Post(url, kind, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, res.Header, string(text)
}

func TestURL(t *testing.T) {
	h, _ := startHost(t, open)
	c, url := caller(t, h)
	status, header, body := post(t, c, url+"a/b", "application/json", `{"x":1}`)
	if status != 418 || header.Get("X-Probe") != "/a/b" || body != `{"x":1} false` {
		t.Errorf("a whole response: %d %v %q", status, header, body)
	}
	if _, _, body := post(t, c, url+"a", "application/octet-stream", "\x00"); body != "AA== true" {
		t.Errorf("a binary body: %q", body)
	}
	if status, header, body := post(t, c, url+"plain", "text/plain", ""); status != 200 || header.Get("Content-Type") != "application/json" || !strings.HasPrefix(body, `{"pid":`) {
		t.Errorf("a response without a status: %d %v %q", status, header, body)
	}
	if status, _, _ := post(t, c, url+"fail", "text/plain", ""); status != 502 {
		t.Errorf("a function that fails: %d, want 502", status)
	}
	if status, _, _ := post(t, c, url, "text/plain", strings.Repeat("x", 6<<20+1)); status != 413 {
		t.Errorf("a body of more than 6 MB: %d, want 413", status)
	}
	if _, err := http.Post(url, "text/plain", bytes.NewReader(nil)); err == nil { //nolint:bodyclose // there is none: the certificate is nobody's whom the system knows
		t.Error("the certificate is believed without its authority")
	}
	if url, _ := h.URL("joiner-demo-single"); url != "" {
		t.Errorf("a function without a URL has %s", url)
	}
}

func TestAURLNeedsBothPermissions(t *testing.T) {
	for _, missing := range []string{"lambda:InvokeFunctionUrl", "lambda:InvokeFunction"} {
		h, _ := startHost(t, func(o *Options) {
			open(o)
			var left []assembly.Permission
			for _, p := range o.Assembly.Permissions {
				if p.Principal != "*" || p.Action != missing {
					left = append(left, p)
				}
			}
			o.Assembly.Permissions = left
		})
		c, url := caller(t, h)
		if status, _, _ := post(t, c, url+"plain", "text/plain", ""); status != 403 || h.CurrentStats().Functions["joiner-demo-probe"].Invocations != 0 {
			t.Errorf("without %s: %d, want 403 and no invocation", missing, status)
		}
	}
}

// TestAFloodIsBounded: ten calls in a second for each reserved concurrent invocation, whoever calls. The second is made
// here, since a busy machine has no ten calls in one.
func TestAFloodIsBounded(t *testing.T) {
	h, _ := startHost(t, func(o *Options) {
		open(o)
		one := 1
		o.Assembly.FindFunction("joiner-demo-probe").Reserved = &one
	})
	c, url := caller(t, h)
	if status, _, _ := post(t, c, url+"plain", "text/plain", ""); status != 200 {
		t.Errorf("a call of its own: %d, want 200", status)
	}
	d, second := h.doors[0], time.Now().Add(time.Hour)
	for i := range 11 {
		if ok := d.hasRoom(second.Add(time.Duration(i) * 50 * time.Millisecond)); ok != (i < 10) {
			t.Errorf("call %d within half a second is let in: %t", i+1, ok)
		}
	}
	// the calls above are not a second old yet
	if status, _, _ := post(t, c, url+"plain", "text/plain", ""); status != 429 {
		t.Errorf("the eleventh call: %d, want 429", status)
	}
	if !d.hasRoom(second.Add(time.Second)) {
		t.Error("a second after the first call there is room for one more")
	}
	stats := h.CurrentStats().Functions["joiner-demo-probe"]
	if stats.Invocations != 1 || stats.Throttles != 1 {
		t.Errorf("%d invocations and %d throttles, want 1 and 1", stats.Invocations, stats.Throttles)
	}
}
