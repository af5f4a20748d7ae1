package webhook_test

import (
	"encoding/base64"
	"encoding/json"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"joiner.sh/pkg/controllers/webhook"
)

// FuzzPush feeds what anybody on the internet may send: a path that is not right wakes nobody, and the answer to any
// other allows, in one line of JSON that holds a short uid of the body and nothing else of it.
func FuzzPush(f *testing.F) {
	f.Add("/"+secret+"/pods", review, false)
	f.Add("/"+secret+"/nodes", base64.StdEncoding.EncodeToString([]byte(review)), true)
	f.Add("/"+secret+"/pods", `{"request":{"uid":"a\",\"status\":{\"code\":500},\"allowed\":false,\"x\":\"\u2028\n"}}`, false)
	f.Add("/"+secret+"/pods", `{"request":{"uid":"`+strings.Repeat("x", 129)+`"}}`, false)
	f.Add("//pods", `{"request":{"UID":7}}`, false)
	f.Add("/"+secret+"/pods", "!", true)
	f.Fuzz(func(t *testing.T, path, body string, encoded bool) {
		to, now := &woken{}, time.Unix(0, 0)
		d := &webhook.WebhookHandler{Secret: secret, Now: func() time.Time { return now }, Log: slog.New(slog.DiscardHandler),
			Wakes: map[string]webhook.Waker{webhook.Pods: waker{"provision", to}, webhook.Nodes: waker{"lifecycle", to}}}
		out, err := d.HandleRequest(t.Context(), events.LambdaFunctionURLRequest{RawPath: path, Body: body, IsBase64Encoded: encoded})
		if err != nil {
			t.Fatal(err)
		}
		right := slices.Contains([]string{"/" + secret + "/pods", secret + "/pods", "/" + secret + "/nodes", secret + "/nodes"}, path)
		if out.StatusCode != 200 {
			if len(to.names) > 0 || out.Body != "" || right && len(body) <= 1<<20 {
				t.Errorf("%q is answered with %d %q, and wakes %s", path, out.StatusCode, out.Body, to.names)
			}
			return
		}
		var answer struct {
			APIVersion, Kind string
			Response         struct {
				UID     string
				Allowed bool
			}
		}
		dec := json.NewDecoder(strings.NewReader(out.Body))
		dec.DisallowUnknownFields()
		if err := dec.Decode(&answer); err != nil || dec.More() || !answer.Response.Allowed || len(answer.Response.UID) > 128+2 ||
			strings.ContainsAny(out.Body, "\r\n") || answer.Kind != "AdmissionReview" {
			t.Errorf("answer %q: %v", out.Body, err)
		}
		if !right || len(to.names) != 1 {
			t.Errorf("%q wakes %s", path, to.names)
		}
	})
}
