package kube_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/providers/kube"
)

// waiting runs Wait and tells its outcome.
func waiting(ctx context.Context, k *kube.Client) <-chan error {
	out := make(chan error, 1)
	go func() { out <- k.Wait(ctx) }()
	return out
}

// watching waits until the client has its three watches open.
func watching(t *testing.T, r *recorder) {
	t.Helper()
	eventually(t, "three watches", func(context.Context) (string, bool) {
		r.mu.Lock()
		defer r.mu.Unlock()
		n := 0
		for _, s := range r.seen {
			if strings.HasPrefix(s, "WATCH ") {
				n++
			}
		}
		return strings.Join(r.seen, ", "), n == 3
	})
}

// wakes does something while the client waits and expects it to wake.
func wakes(t *testing.T, k *kube.Client, r *recorder, what string, do func()) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var woken <-chan error
	for still := false; !still; { // what the cluster does about the step before may come late
		if _, err := k.ReadSnapshot(ctx); err != nil {
			t.Fatal(err)
		}
		r.take()
		woken = waiting(ctx, k)
		watching(t, r)
		select {
		case err := <-woken:
			if err != nil {
				t.Fatalf("%s: while nothing happened: %v", what, err)
			}
		case <-time.After(100 * time.Millisecond):
			still = true
		}
	}
	do()
	if err := <-woken; err != nil {
		t.Errorf("%s: %v, want to wake", what, err)
	}
}

func TestWaitWakesOnNews(t *testing.T) {
	c := newEnv(t)
	c.applyText(t, classText)
	c.applyText(t, poolText)
	k, r := c.client(t)
	other, _ := c.client(t)
	var claim cluster.Claim
	wakes(t, k, r, "a pod without a node", func() { c.addPod(t, "web", "", nil) })
	wakes(t, k, r, "a claim of somebody else", func() { claim = c.addClaim(t, other) })
	wakes(t, k, r, "a claim that is deleted", func() {
		if err := other.DeleteClaim(t.Context(), claim); err != nil {
			t.Fatal(err)
		}
	})
	wakes(t, k, r, "a node", func() { c.addNode(t, c.name, unregistered()) })
	n := c.readyNode(t, k, c.name)
	wakes(t, k, r, "a node that is changed", func() {
		if err := other.TaintForTermination(t.Context(), n); err != nil {
			t.Fatal(err)
		}
	})
}

// What came between the last look and the call is news too: a pass takes its time.
func TestWaitSeesWhatHappenedBeforeIt(t *testing.T) {
	c := newEnv(t)
	k, _ := c.client(t)
	if _, err := k.ReadSnapshot(t.Context()); err != nil {
		t.Fatal(err)
	}
	c.addPod(t, "web", "", nil)
	other, _ := c.client(t)
	c.awaitPending(t, other, 1)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := k.Wait(ctx); err != nil {
		t.Errorf("a pod that came before the call: %v, want to wake", err)
	}
}

// Own writes, a node's heartbeat and a pod that was seen already are no news. Two witnesses, to whom the writes are
// news, wake one after the other; by then the client would be awake too.
func TestWaitSleepsThroughWhatIsKnown(t *testing.T) {
	c := newEnv(t)
	c.applyText(t, classText)
	c.applyText(t, poolText)
	k, r := c.client(t)
	c.addNode(t, c.name, unregistered())
	n := c.readyNode(t, k, c.name)
	c.addPod(t, "known", "", nil)
	c.awaitPending(t, k, 1)
	if _, err := k.ReadSnapshot(t.Context()); err != nil {
		t.Fatal(err)
	}
	witnesses := []*kube.Client{nil, nil}
	for i := range witnesses {
		witnesses[i], _ = c.client(t)
		if _, err := witnesses[i].ReadSnapshot(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	claim := c.addClaim(t, k)
	claim, err := k.AnnotateClaim(t.Context(), claim, map[string]string{"joiner.sh/x": "1"})
	if err != nil {
		t.Fatal(err)
	}
	if err := k.RegisterNode(t.Context(), n, claim); err != nil {
		t.Fatal(err)
	}
	r.take()
	woken := waiting(t.Context(), k)
	watching(t, r)
	beat := `{"status":{"conditions":[{"type":"Ready","status":"True","lastHeartbeatTime":"2030-01-01T00:00:00Z"}]}}`
	if _, err := c.CoreV1().Nodes().Patch(t.Context(), c.name, "application/strategic-merge-patch+json", []byte(beat),
		metav1.PatchOptions{}, "status"); err != nil {
		t.Fatal(err)
	}
	if _, err := c.CoreV1().Pods(c.name).Patch(t.Context(), "known", "application/merge-patch+json",
		[]byte(`{"metadata":{"annotations":{"a":"b"}}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, w := range witnesses {
		if err := w.Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	select {
	case err := <-woken:
		t.Fatalf("woke on what is known: %v", err)
	default:
	}
	c.addPod(t, "new", "", nil)
	if err := <-woken; err != nil {
		t.Error(err)
	}
	if got := r.take(); len(got) != 3 {
		t.Errorf("requests of one wait: %v, want the three watches", got)
	}
}

func TestWaitEndsWithItsContext(t *testing.T) {
	c := newEnv(t)
	k, r := c.client(t)
	ctx, cancel := context.WithCancel(t.Context())
	woken := waiting(ctx, k)
	watching(t, r)
	cancel()
	if err := <-woken; !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want the context's", err)
	}
}
