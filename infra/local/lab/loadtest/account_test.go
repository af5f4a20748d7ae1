package loadtest

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/ec2"

	"joiner.sh/infra/local/awsemulator"
	"joiner.sh/infra/local/cloudtest"
	"joiner.sh/pkg/testing/requestlimits"
)

// rate is a token bucket of EC2 for an account in a region.
type rate struct {
	action    string // may hold *
	each      string // parameter of which each value takes a token; empty where a call takes one
	burst     float64
	perSecond float64
}

// documented are the buckets that EC2 publishes.
func documented() []rate {
	var out []rate
	for _, l := range requestlimits.Default() {
		if l.Service == "ec2" {
			out = append(out, rate{l.Action, l.Each, l.Burst, l.PerSecond})
		}
	}
	return out
}

// busy are the buckets as others in the account leave them: next to nothing at once.
func busy() []rate {
	return []rate{{"Describe*", "", 100, 20}, {"CreateTags", "", 4, 10}, {"TerminateInstances", "InstanceId", 20, 20}, {"*", "", 4, 5}}
}

// account is an emulated account with those rates, and the SDK's client as the functions have it, watched.
func account(t *testing.T, rates []rate) (*awsemulator.Cloud, *ec2.Client, *watch) {
	t.Helper()
	c, url := cloudtest.Start(t, awsemulator.Options{ShutdownFor: time.Hour})
	c.PutInstanceProfile("nodes", "KarpenterNodeRole-demo")
	for _, r := range rates {
		c.AddFault(awsemulator.Fault{Service: "ec2", Action: r.action, Kind: awsemulator.Throttle, Burst: r.burst, PerSecond: r.perSecond, Each: r.each})
	}
	keys := c.IssueCredentials("provision", "test", 0)
	w := &watch{pause: map[string]time.Duration{}, refused: map[string]refusal{}}
	t.Cleanup(func() {
		for _, early := range w.early {
			t.Error(early)
		}
	})
	return c, ec2.NewFromConfig(aws.Config{Region: "us-west-2", BaseEndpoint: aws.String(url), HTTPClient: w,
		Retryer: func() aws.Retryer {
			return pausing{retry.AddWithMaxAttempts(retry.NewStandard(), 4).(aws.RetryerV2), w}
		},
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) { return keys, nil })}), w
}

// watch sees to it that nobody calls again before the pause is over that the SDK chose after a refusal. A slow machine
// only makes pauses longer, so it does not matter how fast this one is.
type watch struct {
	mu      sync.Mutex
	pause   map[string]time.Duration // by id of the refused request
	refused map[string]refusal       // by id of the invocation, which the attempts have in common
	retries int
	early   []string
}

type refusal struct {
	request string
	at      time.Time
}

// Do is what the SDK sends requests with.
func (w *watch) Do(r *http.Request) (*http.Response, error) {
	id := r.Header.Get("Amz-Sdk-Invocation-Id")
	w.mu.Lock()
	if last, again := w.refused[id]; again {
		w.retries++
		pause, known := w.pause[last.request]
		switch waited := time.Since(last.at); {
		case !known:
			w.early = append(w.early, "a call was repeated without a pause: "+r.Host)
		case waited < pause:
			w.early = append(w.early, "a call was repeated after "+waited.String()+", its pause was "+pause.String())
		}
		delete(w.refused, id)
	}
	w.mu.Unlock()
	out, err := http.DefaultClient.Do(r)
	if err == nil && out.StatusCode == http.StatusServiceUnavailable {
		w.mu.Lock()
		w.refused[id] = refusal{out.Header.Get("X-Amzn-Requestid"), time.Now()}
		w.mu.Unlock()
	}
	return out, err
}

// pausing is the retryer of the functions, which tells the pauses it chooses.
type pausing struct {
	aws.RetryerV2
	watch *watch
}

// RetryDelay is the pause after a failed attempt.
func (p pausing) RetryDelay(attempt int, err error) (time.Duration, error) {
	d, failed := p.RetryerV2.RetryDelay(attempt, err)
	if refused, ok := errors.AsType[*awshttp.ResponseError](err); ok {
		p.watch.mu.Lock()
		p.watch.pause[refused.ServiceRequestID()] = d
		p.watch.mu.Unlock()
	}
	return d, failed
}
