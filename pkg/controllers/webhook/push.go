// Package webhook answers the webhook by which the API server announces pods without a node and deletions, and wakes
// whom that concerns.
//
// It knows that a call is a hint of anybody who has the address: the path says who is woken, nothing in the body is
// believed, and the answer always allows what the API server asks about. It refuses to know how a call arrives from the
// network and what the woken do. Limits: one wake-up of each function in a second, bodies of 1 MiB, half a second for a
// wake-up.
package webhook

import (
	"context"
	"crypto/subtle"
	"encoding/base64"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/aws/aws-lambda-go/events"
)

const (
	// Between is the least time between two wake-ups of one function. Who is woken looks for longer than that, so that
	// what comes in between is seen.
	Between = time.Second
	// wakeWithin leaves the rest of the second that the API server waits to the way there and back.
	wakeWithin  = 500 * time.Millisecond
	maxBody     = 1 << 20
	maxUID      = 128
	contentType = "application/json"
)

// The last part of the path, which says what is announced.
const (
	Pods  = "pods"  // that found no node
	Nodes = "nodes" // and NodeClaims that are deleted
)

// Waker runs another function soon. May be repeated.
type Waker interface {
	Wake(ctx context.Context) error
}

// WebhookHandler takes calls, one at a time.
type WebhookHandler struct {
	Secret string           // first part of the path; empty: no path is right
	Wakes  map[string]Waker // by last part of the path
	Now    func() time.Time
	Log    *slog.Logger

	woke map[string]time.Time
}

// HandleRequest answers one call. It never fails: what the API server asks about must not depend on us.
func (d *WebhookHandler) HandleRequest(ctx context.Context,
	r events.LambdaFunctionURLRequest) (events.LambdaFunctionURLResponse, error) {
	what, ok := d.announcedPath(r)
	if !ok {
		return events.LambdaFunctionURLResponse{StatusCode: http.StatusNotFound}, nil
	}
	uid, ok := uidOf(r)
	if !ok {
		return events.LambdaFunctionURLResponse{StatusCode: http.StatusRequestEntityTooLarge}, nil
	}
	d.wakeFunction(ctx, what)
	return events.LambdaFunctionURLResponse{StatusCode: http.StatusOK,
		Headers: map[string]string{"Content-Type": contentType}, Body: allowReview(uid)}, nil
}

// announcedPath is the last part of a right path. The comparison takes as long for a nearly right one.
func (d *WebhookHandler) announcedPath(r events.LambdaFunctionURLRequest) (string, bool) {
	secret, what, _ := strings.Cut(strings.TrimPrefix(r.RawPath, "/"), "/")
	right := subtle.ConstantTimeCompare([]byte(secret), []byte(d.Secret)) == 1
	return what, right && d.Secret != "" && d.Wakes[what] != nil
}

// wakeFunction wakes, at most once in a second: also when it fails, so that nobody can have us make more calls than
// that.
func (d *WebhookHandler) wakeFunction(ctx context.Context, what string) {
	now := d.Now()
	if last, ok := d.woke[what]; ok && now.Sub(last) < Between && !now.Before(last) {
		return
	}
	if d.woke == nil {
		d.woke = map[string]time.Time{}
	}
	d.woke[what] = now
	limit, cancel := context.WithTimeout(ctx, wakeWithin)
	defer cancel()
	if err := d.Wakes[what].Wake(limit); err != nil {
		d.Log.Error("not woken; the schedule runs it within a minute", "announced", what, "error", err)
		return
	}
	d.Log.Info("woken", "announced", what)
}

// uidOf returns what the API server wants back, if the body has it; false for a body that is too large to look for it.
func uidOf(r events.LambdaFunctionURLRequest) (string, bool) {
	var body io.Reader = strings.NewReader(r.Body)
	if r.IsBase64Encoded {
		body = base64.NewDecoder(base64.StdEncoding, body)
	}
	text, err := io.ReadAll(io.LimitReader(body, maxBody+1))
	if len(text) > maxBody {
		return "", false
	}
	var review struct{ Request struct{ UID string } }
	if err != nil || json.Unmarshal(text, &review) != nil || len(review.Request.UID) > maxUID {
		return "", true
	}
	return review.Request.UID, true
}

// allowReview is an AdmissionReview that allows the request.
func allowReview(uid string) string {
	type response struct {
		UID     string `json:"uid"`
		Allowed bool   `json:"allowed"`
	}
	text, err := json.Marshal(struct {
		APIVersion string   `json:"apiVersion"`
		Kind       string   `json:"kind"`
		Response   response `json:"response"`
	}{"admission.k8s.io/v1", "AdmissionReview", response{uid, true}})
	if err != nil {
		panic("encode an answer of two texts: " + err.Error()) // cannot be
	}
	return string(text)
}
