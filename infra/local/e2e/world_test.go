package e2e_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"joiner.sh/infra/local/awsemulator"
	"joiner.sh/infra/local/cloudtest"
	"joiner.sh/infra/local/env"
	"joiner.sh/infra/local/lambdahost"
)

const (
	patience = 4 * time.Minute // for whatever a test waits for; it costs time only where a test fails
	poll     = 100 * time.Millisecond
)

var measure = flag.Bool("measure", false, "measure how long pods wait: for CreateFleet, for a launched and for a stopped node")

// TestMain lets more tests run at once than there are processors: most of their time is waiting.
func TestMain(m *testing.M) {
	flag.Parse()
	if err := flag.Set("test.parallel", "8"); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

// world is one environment.
type world struct {
	*env.Env
	t    *testing.T
	ctx  context.Context
	logs *logBook
}

// start brings up an environment whose schedules are paused and whose functions leave soon, so that a test fires each
// pass. Events about states are lost unless a test hears them: everything must come right without them, only later.
func start(t *testing.T, change ...func(*env.Options)) *world {
	t.Helper()
	t.Parallel()
	w := &world{t: t, ctx: t.Context(), logs: &logBook{}}
	o := env.Options{Root: root(t), Dir: filepath.Join(t.TempDir(), "plane"), Paused: true, PendingFor: 200 * time.Millisecond,
		BootDelay: 200 * time.Millisecond, FunctionLog: w.logs, CollectPods: true,
		Lose: func(event []byte) bool { return bytes.Contains(event, []byte("State-change")) }, Env: map[string]string{"WATCH_DURATION": "1s", "DISRUPTION": "off"}}
	for _, f := range change {
		f(&o)
	}
	var err error
	w.Env, err = env.StartEnvironment(t.Context(), o)
	t.Cleanup(func() {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			t.Log("the functions' log:\n" + w.logs.said())
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func root(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs("../../..")
	if err == nil {
		_, err = os.Stat(filepath.Join(dir, "cdk.json"))
	}
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// logBook keeps what the functions log.
type logBook struct{ cloudtest.Log }

// first is when a function first logged a message that begins so, not before the time given; zero for never. Lines of
// two processes may be written in another order than they were said.
func (l *logBook) first(after time.Time, message string) (first time.Time) {
	for line := range strings.Lines(l.String()) {
		_, text, _ := strings.Cut(line, " | ")
		var entry struct {
			Time time.Time
			Msg  string
		}
		if json.Unmarshal([]byte(text), &entry) == nil && strings.HasPrefix(entry.Msg, message) && !entry.Time.Before(after) &&
			(first.IsZero() || entry.Time.Before(first)) {
			first = entry.Time
		}
	}
	return first
}

// said is all that was written but Lambda's own lines.
func (l *logBook) said() string {
	var out strings.Builder
	for line := range strings.Lines(l.String()) {
		if !strings.Contains(line, " RequestId: ") {
			out.WriteString(line)
		}
	}
	return out.String()
}

// invoke runs a function and waits for its end. One that runs already is waited for first.
func (w *world) invoke(function string, payload []byte) lambdahost.Result {
	w.t.Helper()
	for end := time.Now().Add(patience); ; {
		res, err := w.Host.InvokeFunction(w.ctx, w.FunctionName(function), lambdahost.RequestResponse, payload)
		if err == nil {
			return res
		}
		if busy, ok := errors.AsType[*lambdahost.Error](err); !ok || busy.Status != 429 || time.Now().After(end) {
			w.t.Fatalf("invoke %s: %v", function, err)
		}
		w.rest()
	}
}

// tick runs functions one after the other, as their schedules would, and wants each to succeed.
func (w *world) tick(functions ...string) {
	w.t.Helper()
	for _, f := range functions {
		if res := w.invoke(f, nil); res.FunctionError != "" {
			w.t.Fatalf("%s ended with %s", f, res.Payload)
		}
	}
}

// fails runs a function and wants it to end with an error that says all of this.
func (w *world) fails(function string, says ...string) {
	w.t.Helper()
	res := w.invoke(function, nil)
	if res.FunctionError == "" {
		w.t.Fatalf("%s succeeded, want an error that says %q", function, says)
	}
	for _, word := range says {
		if !strings.Contains(string(res.Payload), word) {
			w.t.Errorf("%s ended with %s, want an error that says %q", function, res.Payload, word)
		}
	}
}

// rest waits until it is worth looking again.
func (w *world) rest() {
	w.t.Helper()
	timer := time.NewTimer(poll)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-w.ctx.Done():
		w.t.Fatal(w.ctx.Err())
	}
}

// until looks, and ticks the functions in between, until the look is satisfied.
func (w *world) until(what string, look func() (saw string, ok bool), functions ...string) {
	w.t.Helper()
	for end := time.Now().Add(patience); ; {
		saw, ok := look()
		if ok {
			return
		}
		if time.Now().After(end) {
			w.t.Fatalf("%s: not within %s; last seen: %s", what, patience, saw)
		}
		w.tick(functions...)
		w.rest()
	}
}

// settled waits until no event is on its way or being handled, nor a function running that another one woke.
func (w *world) settled() {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.ctx, patience)
	defer cancel()
	if err := w.Host.WaitIdle(ctx); err != nil {
		w.t.Fatal(err)
	}
}

// living are the instances that have not ended.
func (w *world) living() []awsemulator.Instance {
	var out []awsemulator.Instance
	for _, i := range w.Cloud.DescribedInstances() {
		if i.State == "pending" || i.State == "running" {
			out = append(out, i)
		}
	}
	return out
}

// started fails unless so many instances were started since the beginning.
func (w *world) started(want int) {
	w.t.Helper()
	if n := len(w.Cloud.DescribedInstances()); n != want {
		w.t.Errorf("%d instances were started, want %d", n, want)
	}
}

// fault makes calls of EC2 go wrong.
func (w *world) fault(f awsemulator.Fault) {
	f.Service = "ec2"
	w.Cloud.AddFault(f)
}
