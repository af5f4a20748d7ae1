package prometheus

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/exp/api/remote"
	"golang.org/x/sync/errgroup"

	"joiner.sh/pkg/model/timeseries"
)

// Limits of one send.
const (
	sendBudget   = 2 * time.Second
	batchSize    = 10_000 // series
	parallelSend = 4
	firstPause   = 100 * time.Millisecond
	longestPause = 300 * time.Millisecond
	furtherTries = 1
)

// Writer sends series to one endpoint. It may be used again and again, one send at a time.
type Writer struct {
	URL    string
	Auth   Authenticator // nil: requests carry nothing
	Labels map[string]string
	Client *http.Client // nil: one of its own; of the client the transport is used

	second atomic.Bool // the endpoint was found to take version 1 only
}

// RefusedError says that the endpoint answered, and took nothing or not all.
type RefusedError struct {
	Status int // of HTTP; 0 where it took the request and wrote nothing
	Text   string
}

// Error returns what the endpoint said, and what to do about it.
func (e *RefusedError) Error() string {
	hint := map[int]string{
		http.StatusUnauthorized: "check the setting remoteWriteSecret and what is in it",
		http.StatusForbidden:    "check what the role of lifecycle may do at the endpoint, and the secret",
		http.StatusNotFound:     "check the path of the setting remoteWriteURL",
		http.StatusTooManyRequests: "it has a limit of series or requests: raise it, or send less with the setting " +
			"remoteWriteDetail",
	}[e.Status]
	if hint == "" {
		return e.Text
	}
	return e.Text + ": " + hint
}

// WriteSeries sends the values of series at a time, and marks those that ended as stale. It ends within 2 seconds. An
// error means that some or all of them were not taken; sending them again later is harmless.
func (w *Writer) WriteSeries(ctx context.Context, series, ended []timeseries.Series, at time.Time) error {
	ctx, cancel := context.WithTimeout(ctx, sendBudget)
	defer cancel()
	var g errgroup.Group
	g.SetLimit(parallelSend)
	for i, part := range batches(series, ended) {
		if i == 0 {
			// alone, so that the version is found out once
			if err := w.writeBatch(ctx, part, at); err != nil {
				return w.explain(ctx, err)
			}
			continue
		}
		g.Go(func() error { return w.writeBatch(ctx, part, at) })
	}
	return w.explain(ctx, g.Wait())
}

func (w *Writer) explain(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		err = fmt.Errorf("no answer within %s: %w", sendBudget, err)
	}
	return fmt.Errorf("send metrics to %s: %w", w.host(), err)
}

// host is the part of the address that is no secret.
func (w *Writer) host() string {
	u, err := url.Parse(w.URL)
	if err != nil {
		return "an address that is none"
	}
	return u.Host
}

// writeBatch sends one request, and once more with version 1 of the protocol to an endpoint that does not take 2.
func (w *Writer) writeBatch(ctx context.Context, b batch, at time.Time) error {
	if !w.second.Load() {
		err := w.sendMessage(ctx, remote.WriteV2MessageType, b.version2(w.Labels, at))
		if !refusesVersion(err) {
			return err
		}
		if err := w.sendMessage(ctx, remote.WriteV1MessageType, b.version1(w.Labels, at)); err != nil {
			return err
		}
		w.second.Store(true)
		return nil
	}
	return w.sendMessage(ctx, remote.WriteV1MessageType, b.version1(w.Labels, at))
}

// refusesVersion reports whether an endpoint that knows version 1 of the protocol alone may answer so: it says that it
// does not take the type, or that the body makes no sense, or takes the request and finds nothing in it.
func refusesVersion(err error) bool {
	refused, ok := errors.AsType[*RefusedError](err)
	return ok && (refused.Status == 0 || refused.Status == http.StatusUnsupportedMediaType ||
		refused.Status == http.StatusBadRequest)
}

func (w *Writer) sendMessage(ctx context.Context, version remote.WriteMessageType, message any) error {
	last := &answer{next: w.transport(), auth: w.Auth}
	api, err := remote.NewAPI(w.URL, remote.WithAPIPath(""), remote.WithAPINoRetryOnRateLimit(),
		remote.WithAPIBackoff(remote.BackoffConfig{Min: firstPause, Max: longestPause, MaxRetries: furtherTries}),
		remote.WithAPIHTTPClient(&http.Client{Transport: last,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}))
	if err != nil {
		return err
	}
	_, err = api.Write(ctx, version, message)
	status := last.status.Load()
	switch {
	case err == nil || status == 0:
		return err
	case status/100 == 2: // nothing was written
		return &RefusedError{0, "the endpoint took the request and wrote nothing"}
	}
	return &RefusedError{int(status), strings.TrimSpace(err.Error())}
}

func (w *Writer) transport() http.RoundTripper {
	if w.Client != nil && w.Client.Transport != nil {
		return w.Client.Transport
	}
	return http.DefaultTransport
}
