package fleet

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/google/go-cmp/cmp"
)

// guarded is EC2 with instances that may not be ended or stopped: it refuses a call that names one of them, with the
// code of the instance. It leaves those out of its answer that it is told to, unless they are named alone.
type guarded struct {
	mu      sync.Mutex
	refuses map[string]string // code by instance
	status  int               // of refusals
	silent  []string
	ended   []string
	calls   []string
}

func (g *guarded) Do(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	form, err := url.ParseQuery(string(body))
	if err != nil {
		return nil, err
	}
	ids := listed(form, "InstanceId.")
	g.mu.Lock()
	defer g.mu.Unlock()
	named := slices.Sorted(slices.Values(ids))
	g.calls = append(g.calls, strings.Join(named, "+"))
	status, text := http.StatusOK, "<Response><instancesSet>"
	for _, id := range ids {
		if code := g.refuses[id]; code != "" {
			status, text = g.status, "<Response><Errors><Error><Code>"+code+"</Code><Message>you may not</Message></Error></Errors></Response>"
			break
		}
		if len(ids) == 1 || !slices.Contains(g.silent, id) {
			text += "<item><instanceId>" + id + "</instanceId></item>"
		}
	}
	if status == http.StatusOK {
		text += "</instancesSet></Response>"
		for _, id := range ids {
			if len(ids) == 1 || !slices.Contains(g.silent, id) {
				g.ended = append(g.ended, id)
			}
		}
	}
	return &http.Response{StatusCode: status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(text)), Request: r}, nil
}

func (g *guarded) fleet() *Fleet {
	if g.status == 0 {
		g.status = http.StatusBadRequest
	}
	return &Fleet{Cluster: "demo", Now: time.Now, EC2: ec2.New(ec2.Options{Region: "us-west-2", HTTPClient: g,
		Retryer: aws.NopRetryer{}, Credentials: aws.AnonymousCredentials{}})}
}

// One that EC2 refuses keeps no other running, whatever the code; halves keep the calls few. After a throttle or a
// failure of EC2 nothing is split.
func TestOneRefusedInstanceKeepsNoOtherRunning(t *testing.T) {
	for _, c := range []struct {
		refuses map[string]string
		status  int
		calls   string
		refused string
	}{
		{map[string]string{"i-3": "OperationNotPermitted"}, 400, "i-1+i-2+i-3+i-4, i-1+i-2, i-3+i-4, i-3, i-4", "i-3"},
		{map[string]string{"i-1": "UnauthorizedOperation"}, 403, "i-1+i-2+i-3+i-4, i-1+i-2, i-3+i-4, i-1, i-2", "i-1"},
		{map[string]string{"i-1": "InvalidInstanceID.NotFound", "i-4": "SomethingNew"}, 400, "i-1+i-2+i-3+i-4, i-1+i-2, i-3+i-4, i-1, i-2, i-3, i-4", "i-4"},
		{map[string]string{"i-3": "RequestLimitExceeded"}, 503, "i-1+i-2+i-3+i-4", ""},
		{map[string]string{"i-3": "InternalError"}, 500, "i-1+i-2+i-3+i-4", ""},
	} {
		for name, end := range map[string]func(f *Fleet) error{
			"terminate": func(f *Fleet) error { return f.TerminateInstances(t.Context(), []string{"i-1", "i-2", "i-3", "i-4"}) },
			"stop":      func(f *Fleet) error { return f.StopInstances(t.Context(), []string{"i-1", "i-2", "i-3", "i-4"}) },
		} {
			g := &guarded{refuses: c.refuses, status: c.status}
			err := end(g.fleet())
			if d := cmp.Diff(c.calls, strings.Join(g.calls, ", ")); d != "" {
				t.Errorf("%s with %v: calls (-want +got):\n%s", name, c.refuses, d)
			}
			refused := ""
			if no, ok := errors.AsType[*RefusedError](err); ok {
				refused = no.ID
			}
			if refused != c.refused || err == nil {
				t.Errorf("%s with %v: refused %q, error %v", name, c.refuses, refused, err)
			}
		}
	}
}

// Of instances that are ended side by side each gets its own answer. The refused one shares no call for five minutes,
// and then it may again.
func TestARefusedInstanceStaysOutOfSharedCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &guarded{refuses: map[string]string{"i-p": "OperationNotPermitted"}}
		f := g.fleet()
		end := func(ids ...string) map[string]bool {
			g.calls = nil
			var mu sync.Mutex
			failed := map[string]bool{}
			var wg sync.WaitGroup
			for _, id := range ids {
				wg.Go(func() {
					if err := f.TerminateInstances(t.Context(), []string{id}); err != nil {
						mu.Lock()
						defer mu.Unlock()
						failed[id] = true
					}
				})
			}
			wg.Wait()
			return failed
		}
		if d := cmp.Diff(map[string]bool{"i-p": true}, end("i-1", "i-2", "i-p", "i-3")); d != "" {
			t.Errorf("failed (-want +got):\n%s", d)
		}
		if ended := slices.Sorted(slices.Values(g.ended)); !slices.Equal(ended, []string{"i-1", "i-2", "i-3"}) {
			t.Errorf("ended %v", ended)
		}
		end("i-4", "i-p", "i-5")
		if calls := slices.Sorted(slices.Values(g.calls)); !slices.Equal(calls, []string{"i-4+i-5", "i-p"}) {
			t.Errorf("a minute later: calls %v", calls)
		}
		time.Sleep(refusedApart)
		delete(g.refuses, "i-p")
		if failed := end("i-6", "i-p"); len(failed) > 0 || !slices.Equal(g.calls, []string{"i-6+i-p"}) {
			t.Errorf("after five minutes: calls %v, failed %v", g.calls, failed)
		}
	})
}

// What the answer does not name is asked for alone.
func TestAnAnswerThatLeavesInstancesOut(t *testing.T) {
	g := &guarded{silent: []string{"i-2"}}
	if err := g.fleet().TerminateInstances(t.Context(), []string{"i-1", "i-2", "i-3"}); err != nil {
		t.Error(err)
	}
	if d := cmp.Diff([]string{"i-1+i-2+i-3", "i-2"}, g.calls); d != "" {
		t.Errorf("calls (-want +got):\n%s", d)
	}
}

// However many are refused or left out, one shared call is so many calls at most, and all that are not asked for have
// an error.
func TestSplitsHaveALimit(t *testing.T) {
	var ids []string
	refuses := map[string]string{}
	for n := range terminateAt {
		ids = append(ids, fmt.Sprintf("i-%03d", n))
		refuses[ids[n]] = "UnauthorizedOperation"
	}
	for name, g := range map[string]*guarded{"refused": {refuses: refuses}, "left out": {silent: ids}} {
		f := g.fleet()
		errs := f.terminateTogether(t.Context(), ids)
		if len(g.calls) > 64 || len(errs)+len(g.ended) != terminateAt {
			t.Errorf("%s: %d calls, %d errors, %d ended", name, len(g.calls), len(errs), len(g.ended))
		}
	}
}

// A refusal says on which instance, and what to do.
func TestARefusalSaysWhatToDo(t *testing.T) {
	for code, want := range map[string]string{
		"OperationNotPermitted": "InstanceProtected: instance i-1 runs on and costs money until it is ended: it is protected from being ended; turn that off with " +
			`"aws ec2 modify-instance-attribute --instance-id i-1 --no-disable-api-termination" (--no-disable-api-stop for stop protection), or end it by hand. ` +
			"EC2 says: OperationNotPermitted: you may not",
		"UnauthorizedOperation": "Unauthorized: instance i-1 runs on and costs money until it is ended: a policy denies it; give it back its tags kubernetes.io/cluster/<cluster> and " +
			"karpenter.sh/nodepool if it lost them, else let the role of the lifecycle function end it, or end it by hand. EC2 says: UnauthorizedOperation: you may not",
		"SomethingNew": "InstanceNotEnded: instance i-1 runs on and costs money until it is ended: end it by hand. EC2 says: SomethingNew: you may not",
	} {
		g := &guarded{refuses: map[string]string{"i-1": code}}
		err := g.fleet().TerminateInstances(t.Context(), []string{"i-1"})
		no, ok := errors.AsType[interface {
			error
			Refusal() (reason, message string)
		}](err)
		if !ok {
			t.Errorf("%s: %v", code, err)
			continue
		}
		reason, message := no.Refusal()
		if d := cmp.Diff(want, reason+": "+message); d != "" {
			t.Errorf("-want +got:\n%s", d)
		}
	}
}
