package cli

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"joiner.sh/pkg/cli/accept"
)

const (
	fakePodsPerNode = 3
	fakeBoot        = 3 // looks until a claim is in service
	fakeDrain       = 2 // looks until a claim that leaves is gone
	fakeForget      = 3 // further looks until AWS forgets its instance
)

// fakeClaim is a node of the fake cluster, by how many looks it is old or leaving.
type fakeClaim struct {
	name         string
	age, leaving int
}

// fakeWorld is a cluster with Joiner at work and an account, which moves on with every look.
type fakeWorld struct {
	now      time.Time
	made     map[string]bool // namespace, record, class, pool, deployment
	record   []accept.Item
	others   []accept.Item
	strays   []string
	replicas int
	pods     map[string]string // to node, empty: pending
	claims   []*fakeClaim
	left     map[string]int // in AWS, by looks that it stays
	serial   int
	notices  []string
	idle     int
	stuck    func(w *fakeWorld) bool // Joiner does nothing

	calls, stopAt int // the call at which stop is called, before it does anything or after
	after         bool
	stop          func()
	points        []string // what each call was
}

func newFakeWorld() *fakeWorld {
	return &fakeWorld{now: time.Unix(0, 0), made: map[string]bool{}, pods: map[string]string{}, left: map[string]int{},
		others: []accept.Item{{Kind: "NodePool", ID: "default", State: "u/1"}, {Kind: "rule", ID: "spot", State: "on"}, {Kind: "instance", ID: "i-1"}},
		stop:   func() {}, stopAt: -1}
}

// point is one call that an interruption can come before or after.
func (w *fakeWorld) point(ctx context.Context, what string, do func()) error {
	w.calls++
	w.points = append(w.points, what)
	if w.calls == w.stopAt && !w.after {
		w.stop()
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	do()
	if w.calls == w.stopAt {
		w.stop()
	}
	return ctx.Err()
}

func (w *fakeWorld) Do(ctx context.Context, a accept.Action, m accept.Memory) error {
	switch a {
	case accept.DoMake:
		for _, what := range []string{"namespace", "record", "class", "pool"} {
			if err := w.point(ctx, string(a)+": "+what, func() { w.made[what] = true }); err != nil {
				return err
			}
		}
	case accept.DoPods, accept.DoFewer, accept.DoNoPods:
		return w.point(ctx, string(a), func() { w.made["deployment"], w.replicas = true, a.Replicas() })
	case accept.DoNotice:
		return w.point(ctx, string(a), func() {
			w.notices = append(w.notices, m.Victim.Instance)
			for _, c := range w.claims {
				if "i-"+c.name == m.Victim.Instance {
					c.leaving = max(c.leaving, 1)
				}
			}
		})
	case accept.DoRemove:
		for _, what := range []string{"deployment", "pool", "class"} {
			if err := w.point(ctx, string(a)+": "+what, func() { delete(w.made, what) }); err != nil {
				return err
			}
		}
	case accept.DoForget:
		return w.point(ctx, string(a), func() { w.made = map[string]bool{} })
	}
	return nil
}

// move is what Joiner and the controllers of the cluster do until the next look.
func (w *fakeWorld) move() {
	for what, looks := range w.left {
		if w.left[what] = looks - 1; looks == 1 {
			delete(w.left, what)
		}
	}
	w.scale()
	if w.stuck != nil && w.stuck(w) {
		return
	}
	for _, c := range slices.Clone(w.claims) {
		c.age++
		if !w.made["pool"] && c.leaving == 0 {
			c.leaving = 1
		}
		if c.leaving > 0 {
			for pod, node := range w.pods {
				if node == c.name {
					w.pods[pod] = ""
				}
			}
			if c.leaving++; c.leaving > fakeDrain {
				w.claims = slices.DeleteFunc(w.claims, func(x *fakeClaim) bool { return x == c })
				w.left["instance i-"+c.name] = fakeForget
			}
		}
	}
	w.place()
	w.consolidate()
}

// scale is the controller of the Deployment.
func (w *fakeWorld) scale() {
	want := w.replicas
	if !w.made["deployment"] {
		want = 0
	}
	for len(w.pods) < want {
		w.serial++
		w.pods[fmt.Sprintf("pod-%03d", w.serial)] = ""
	}
	for len(w.pods) > want {
		delete(w.pods, slices.Max(slices.Collect(maps.Keys(w.pods))))
	}
}

func (w *fakeWorld) on(node string) (n int) {
	for _, at := range w.pods {
		if at == node {
			n++
		}
	}
	return n
}

// place is the scheduler with the pass of provision.
func (w *fakeWorld) place() {
	waiting := 0
	for _, pod := range slices.Sorted(maps.Keys(w.pods)) {
		if w.pods[pod] != "" {
			continue
		}
		waiting++
		for _, c := range w.claims {
			if c.leaving == 0 && c.age >= fakeBoot && w.on(c.name) < fakePodsPerNode {
				w.pods[pod] = c.name
				waiting--
				break
			}
		}
	}
	for _, c := range w.claims {
		if c.age < fakeBoot {
			waiting -= fakePodsPerNode
		}
	}
	for ; waiting > 0 && w.made["pool"] && w.made["class"]; waiting -= fakePodsPerNode {
		w.serial++
		w.claims = append(w.claims, &fakeClaim{name: fmt.Sprintf("claim-%03d", w.serial)})
	}
}

// consolidate removes the node with the fewest pods when the others can take them, after some looks.
func (w *fakeWorld) consolidate() {
	steady := !slices.ContainsFunc(w.claims, func(c *fakeClaim) bool { return c.leaving > 0 || c.age < fakeBoot })
	if !steady || len(w.claims) == 0 || len(w.pods) > (len(w.claims)-1)*fakePodsPerNode {
		w.idle = 0
		return
	}
	if w.idle++; w.idle > 2 {
		slices.MinFunc(w.claims, func(a, b *fakeClaim) int { return w.on(a.name) - w.on(b.name) }).leaving = 1
	}
}

func (w *fakeWorld) Look(ctx context.Context, deep bool) (o accept.Observation, err error) {
	return o, w.point(ctx, "look", func() {
		w.move()
		o = accept.Observation{ClassReady: w.made["class"], PoolReady: w.made["pool"], Namespace: w.made["namespace"]}
		for _, what := range []string{"class", "pool", "deployment"} {
			if w.made[what] {
				o.Objects = append(o.Objects, what)
			}
		}
		for pod, node := range w.pods {
			o.Pods = append(o.Pods, accept.PodState{Name: pod, Node: node, Running: node != ""})
		}
		for _, c := range w.claims {
			o.Claims = append(o.Claims, accept.Claim{Name: c.name, Instance: "i-" + c.name, Node: c.name, InService: c.age >= fakeBoot, Leaving: c.leaving > 0})
		}
		if deep {
			o.Strays = w.strays
			for what := range w.left {
				o.Left = append(o.Left, what)
			}
		}
	})
}

func (w *fakeWorld) Inventory(ctx context.Context) (out []accept.Item, err error) {
	return slices.Clone(w.others), ctx.Err()
}

func (w *fakeWorld) Before(ctx context.Context) ([]accept.Item, bool, error) {
	return w.record, w.made["record"], ctx.Err()
}

func (w *fakeWorld) Rest(ctx context.Context, _ time.Duration) error {
	w.now = w.now.Add(acceptPoll)
	return ctx.Err()
}

func (w *fakeWorld) Now() time.Time { return w.now }

// playFake plays a whole run.
func playFake(ctx context.Context, w *fakeWorld) (told []string, err error) {
	w.record = slices.Clone(w.others)
	p := acceptPlayer{world: w, tell: func(format string, args ...any) { told = append(told, fmt.Sprintf(format, args...)) }}
	return told, p.run(ctx, "demo", true)
}

// traces are what there is of a run.
func (w *fakeWorld) traces() []string {
	var out []string
	for what := range w.made {
		out = append(out, what)
	}
	for what := range w.left {
		out = append(out, what)
	}
	for range w.pods {
		out = append(out, "pod")
	}
	for range w.claims {
		out = append(out, "claim")
	}
	return out
}

// A run does the whole main job, sends one notice about a node of its own, and leaves nothing.
func TestAcceptPlaysTheMainJob(t *testing.T) {
	w := newFakeWorld()
	told, err := playFake(t.Context(), w)
	if err != nil || len(w.traces()) > 0 {
		t.Fatalf("%v, left %v\n%s", err, w.traces(), strings.Join(told, "\n"))
	}
	if len(w.notices) != 1 || !strings.HasPrefix(w.notices[0], "i-claim-") {
		t.Errorf("notices about %v", w.notices)
	}
	for _, want := range []string{"NodePool ready: ready", "pods running: 10 of 10 pods on 4 nodes", "fewer pods, fewer nodes: 3 of 3 pods on 3 nodes, of 4",
		"spot notice: 3 of 3 pods on 1 nodes", "no pods, no nodes: 0 pods, 0 nodes", "removal: 0 claims, nothing left", "nothing left in AWS: nothing left"} {
		if !strings.Contains(strings.Join(told, "\n"), want) {
			t.Errorf("not told: %s\n%s", want, strings.Join(told, "\n"))
		}
	}
}

// Interrupted before or after any call, a run says how to clean up, and cleaning leaves nothing and changes nothing else.
func TestAcceptInterruptedAtEachStep(t *testing.T) {
	whole := newFakeWorld()
	if _, err := playFake(t.Context(), whole); err != nil {
		t.Fatal(err)
	}
	if whole.calls < 40 {
		t.Fatalf("a run makes only %d calls", whole.calls)
	}
	for at := 1; at <= whole.calls; at++ {
		for _, after := range []bool{false, true} {
			where := fmt.Sprintf("call %d of %d (%s), done %t", at, whole.calls, whole.points[at-1], after)
			ctx, cancel := context.WithCancel(t.Context())
			w := newFakeWorld()
			w.stopAt, w.after, w.stop = at, after, cancel
			_, err := playFake(ctx, w)
			cancel()
			if _, said := errors.AsType[*interruptedError](err); !said || !strings.Contains(err.Error(), "joiner accept --cluster demo --clean") {
				t.Fatalf("%s: %v", where, err)
			}
			w.stopAt = -1
			p := acceptPlayer{world: w, tell: func(string, ...any) {}}
			if err := p.clean(t.Context()); err != nil || len(w.traces()) > 0 {
				t.Fatalf("%s: cleaning: %v, left %v", where, err, w.traces())
			}
		}
	}
}

// What does not come in its time, pods of others, and what was changed meanwhile fail the run, and it is removed.
func TestAcceptFailsAndCleansUp(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(w *fakeWorld)
		want  string
	}{
		"no node comes": {func(w *fakeWorld) {
			w.stuck = func(w *fakeWorld) bool { return w.made["pool"] && len(w.pods) > 0 }
		}, "nodes in service: not within 15m0s; last seen: 0 of 0 nodes"},
		"nobody consolidates": {func(w *fakeWorld) {
			w.stuck = func(w *fakeWorld) bool { return w.made["pool"] && w.replicas == 3 && w.made["deployment"] }
		}, "fewer pods, fewer nodes: not within 20m0s"},
		"a volume stays":  {func(w *fakeWorld) { w.left["volume vol-1"] = 1 << 30 }, "nothing left in AWS: not within 10m0s; last seen: volume vol-1"},
		"a pod of others": {func(w *fakeWorld) { w.strays = []string{"shop/web"} }, "pods of others run on nodes of the run: shop/web"},
		"something of before is changed": {func(w *fakeWorld) {
			w.stuck = func(w *fakeWorld) bool { w.others[0].State = "u/2"; return false }
		}, "NodePool default is not as it was"},
	} {
		w := newFakeWorld()
		c.spoil(w)
		told, err := playFake(t.Context(), w)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q\n%s", name, err, c.want, strings.Join(told, "\n"))
		}
		if _, found := errors.AsType[*foundError](err); !found || name != "a pod of others" && name != "a volume stays" && len(w.traces()) > 0 {
			t.Errorf("%s: left %v, %v", name, w.traces(), err)
		}
	}
}
