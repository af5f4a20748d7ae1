package webhook_test

import (
	"context"
	"encoding/base64"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/google/go-cmp/cmp"

	"joiner.sh/pkg/controllers/webhook"
)

const (
	secret = "abcdefghijklmnopqrstuvwxyz012345"
	review = `{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{"uid":"705ab4f5","operation":"CREATE"}}`
)

// woken notes whom a desk woke.
type woken struct {
	names []string
	err   error
	left  time.Duration // that the last one was given
}

type waker struct {
	name string
	to   *woken
}

func (w waker) Wake(ctx context.Context) error {
	w.to.names = append(w.to.names, w.name)
	end, _ := ctx.Deadline()
	w.to.left = time.Until(end)
	return w.to.err
}

func desk(now *time.Time) (*webhook.WebhookHandler, *woken) {
	to := &woken{}
	return &webhook.WebhookHandler{Secret: secret, Now: func() time.Time { return *now }, Log: slog.New(slog.DiscardHandler),
		Wakes: map[string]webhook.Waker{webhook.Pods: waker{"provision", to}, webhook.Nodes: waker{"lifecycle", to}}}, to
}

func call(t *testing.T, d *webhook.WebhookHandler, path, body string) events.LambdaFunctionURLResponse {
	t.Helper()
	out, err := d.HandleRequest(t.Context(), events.LambdaFunctionURLRequest{RawPath: path, Body: body})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestTheAnswerAllows(t *testing.T) {
	now := time.Now()
	d, to := desk(&now)
	allows := func(uid string) string {
		return `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","response":{"uid":"` + uid + `","allowed":true}}`
	}
	for name, c := range map[string]struct{ body, want string }{
		"a review":      {review, allows("705ab4f5")},
		"no JSON":       {"hello", allows("")},
		"nothing":       {"", allows("")},
		"another shape": {`{"request":[1,2]}`, allows("")},
		"a long uid":    {`{"request":{"uid":"` + strings.Repeat("x", 129) + `"}}`, allows("")},
		"a quoting uid": {`{"request":{"uid":"a\"b"}}`, allows(`a\"b`)},
		"a denial":      {`{"request":{"uid":"1"},"response":{"allowed":false}}`, allows("1")},
	} {
		t.Run(name, func(t *testing.T) {
			out := call(t, d, "/"+secret+"/pods", c.body)
			if out.StatusCode != 200 || out.Body != c.want || out.Headers["Content-Type"] != "application/json" {
				t.Errorf("answer %+v, want 200 with %s", out, c.want)
			}
		})
	}
	out, err := d.HandleRequest(t.Context(), events.LambdaFunctionURLRequest{RawPath: "/" + secret + "/nodes", IsBase64Encoded: true,
		Body: base64.StdEncoding.EncodeToString([]byte(review))})
	if err != nil || out.Body != allows("705ab4f5") {
		t.Errorf("an encoded body: %+v, %v", out, err)
	}
	if diff := cmp.Diff([]string{"provision", "lifecycle"}, to.names); diff != "" {
		t.Errorf("woken (-want +got):\n%s", diff)
	}
	if to.left <= 0 || to.left > 500*time.Millisecond {
		t.Errorf("a wake-up has %s, want at most half of the second that the API server waits", to.left)
	}
}

func TestAWrongPathWakesNobody(t *testing.T) {
	now := time.Now()
	d, to := desk(&now)
	for _, path := range []string{"", "/", "/" + secret, "/" + secret + "/", "/" + secret + "/pods/", "/" + secret + "/other", "/pods",
		"//" + secret + "/pods", "/" + strings.ToUpper(secret) + "/pods", "/" + secret[:31] + "/pods"} {
		if out := call(t, d, path, review); out.StatusCode != 404 || out.Body != "" {
			t.Errorf("%q: %+v, want 404 without a word", path, out)
		}
	}
	d.Secret = ""
	for _, path := range []string{"/pods", "//pods"} {
		if out := call(t, d, path, review); out.StatusCode != 404 {
			t.Errorf("%q without a secret: %+v, want 404", path, out)
		}
	}
	if to.names != nil {
		t.Errorf("woken: %s", to.names)
	}
}

func TestABodyThatIsTooLargeWakesNobody(t *testing.T) {
	now := time.Now()
	d, to := desk(&now)
	if out := call(t, d, "/"+secret+"/pods", strings.Repeat("x", 1<<20+1)); out.StatusCode != 413 || to.names != nil {
		t.Errorf("%+v and woken %s, want 413 and nobody", out, to.names)
	}
	if out := call(t, d, "/"+secret+"/pods", strings.Repeat("x", 1<<20)); out.StatusCode != 200 {
		t.Errorf("a body of 1 MiB: %+v, want 200", out)
	}
}

func TestOneWakeUpASecond(t *testing.T) {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	d, to := desk(&now)
	var at []string
	for range 50 { // every 100 ms
		before := len(to.names)
		if out := call(t, d, "/"+secret+"/pods", review); out.StatusCode != 200 {
			t.Fatalf("%+v", out)
		}
		if len(to.names) > before {
			at = append(at, now.Format("05.0"))
		}
		now = now.Add(100 * time.Millisecond)
	}
	if diff := cmp.Diff([]string{"00.0", "01.0", "02.0", "03.0", "04.0"}, at); diff != "" {
		t.Errorf("woken at (-want +got):\n%s", diff)
	}
	call(t, d, "/"+secret+"/nodes", review)
	if to.names[len(to.names)-1] != "lifecycle" {
		t.Error("pods kept nodes from being announced")
	}
	now = now.Add(-time.Hour) // a clock that was set back must not silence us
	if call(t, d, "/"+secret+"/pods", review); to.names[len(to.names)-1] != "provision" {
		t.Error("nobody is woken after the clock was set back")
	}
}

func TestAWakeUpThatFailsIsAllowedToo(t *testing.T) {
	now := time.Now()
	d, to := desk(&now)
	to.err = errors.New("no such function")
	for range 3 {
		if out := call(t, d, "/"+secret+"/pods", review); out.StatusCode != 200 || !strings.Contains(out.Body, `"allowed":true`) {
			t.Errorf("%+v, want the request to be allowed", out)
		}
	}
	if len(to.names) != 1 {
		t.Errorf("%d attempts within a second, want 1", len(to.names))
	}
}
