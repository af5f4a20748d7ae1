package provision_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/controllers/provision"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/resources"
	"joiner.sh/pkg/testing/controllertest"
	"joiner.sh/pkg/testing/fake"
)

// refusingWorld is a world in which kube-scheduler puts no pod on nodes of the type that is bought first, and empty nodes
// go. It runs for so many minutes, and returns how many instances of each type were bought.
func refusingWorld(t *testing.T, f *controllertest.Functions, minutes int) map[string]int {
	t.Helper()
	bought, typeOf := map[string]bool{}, map[string]int{}
	for end := f.World.Now().Add(time.Duration(minutes) * time.Minute); f.World.Now().Before(end); {
		f.Rest(t, 1)
		for _, c := range f.World.Claims() {
			if !bought[c.UID] && c.ProviderID != "" {
				bought[c.UID] = true
				typeOf[c.Labels["node.kubernetes.io/instance-type"]]++
			}
		}
		if err := f.Disrupt(f.World.Ports(fake.Fault{})).Run(t.Context(), f.Once()); err != nil {
			t.Fatal(err)
		}
	}
	return typeOf
}

// throttledBrake is a brake that the API server lets nobody tell anything.
type throttledBrake struct{ provision.PurchaseBrake }

var errThrottled = errors.New("note nodes that were bought in vain: 429 Too Many Requests")

func (throttledBrake) NoteUnusedNodes(context.Context, []instancetypes.UnusedNode, []string) ([]instancetypes.UnavailableOffering, error) {
	return nil, errThrottled
}

// While what was bought in vain cannot be noted, as the API server throttles or forbids it, passes go on, and a process
// buys of a type that takes no pods no more than it would: what it saw itself counts.
func TestTheBrakeHoldsWhileNothingCanBeNoted(t *testing.T) {
	f := &controllertest.Functions{World: controllertest.NewWorld()}
	f.World.ChangePool(func(p *cluster.Pool) {
		p.Disruption = cluster.Disruption{Policy: "WhenEmpty", Budgets: []cluster.NodeBudget{{Every: true, Nodes: "100%"}}}
	})
	refused := ""
	f.World.RefusePod = func(n cluster.Node) bool {
		refused = cmp.Or(refused, n.Labels["node.kubernetes.io/instance-type"])
		return n.Labels["node.kubernetes.io/instance-type"] == refused
	}
	f.World.RunApp("web", 1, controllertest.PodOf(1500, 3000))
	process, bought, told := &provision.ProcessState{}, map[string]string{}, false
	for range 60 {
		c := f.Provision(f.World.Ports(fake.Fault{}))
		c.Brake, c.Process = throttledBrake{c.Brake}, process
		err := c.Run(t.Context(), f.Once())
		if told = told || errors.Is(err, errThrottled); err != nil && !errors.Is(err, errThrottled) {
			t.Fatal(err)
		}
		if err := f.Lifecycle(f.World.Ports(fake.Fault{})).Run(t.Context(), f.World.Now().Add(10*time.Second)); err != nil {
			t.Fatal(err)
		}
		if err := f.Disrupt(f.World.Ports(fake.Fault{})).Run(t.Context(), f.Once()); err != nil {
			t.Fatal(err)
		}
		for _, c := range f.World.Claims() {
			if c.ProviderID != "" {
				bought[c.UID] = c.Labels["node.kubernetes.io/instance-type"]
			}
		}
		f.World.Advance(20 * time.Second)
	}
	count := map[string]int{}
	for _, typ := range bought {
		count[typ]++
	}
	if len(count) != 2 || count[refused] != 3 || !told {
		t.Errorf("bought %v, want three of %s and another; told %t", count, refused, told)
	}
	controllertest.NoProblems(t, f.World)
}

// A type whose nodes kube-scheduler refuses for a reason that nobody knows is bought three times; then another one is, and
// pods of which none fits say why they wait. After an hour it is tried once more.
func TestTypesOfWhichNodesStayUnusedAreLeftOut(t *testing.T) {
	f := &controllertest.Functions{World: controllertest.NewWorld()}
	f.World.ChangePool(func(p *cluster.Pool) {
		p.Disruption = cluster.Disruption{Policy: "WhenEmpty", Budgets: []cluster.NodeBudget{{Every: true, Nodes: "100%"}}}
	})
	refused := ""
	f.World.RefusePod = func(n cluster.Node) bool {
		typ := n.Labels["node.kubernetes.io/instance-type"]
		if refused == "" {
			refused = typ
		}
		return typ == refused
	}
	f.World.RunApp("web", 1, controllertest.PodOf(1500, 3000))
	bought := refusingWorld(t, f, 20)
	if len(bought) != 2 || bought[refused] != 3 {
		t.Errorf("bought %v, want three of %s and another", bought, refused)
	}
	controllertest.NoProblems(t, f.World)
	tied := controllertest.PodOf(1500, 3000)
	tied.NodeSelector = map[string]string{"node.kubernetes.io/instance-type": refused}
	f.World.RunApp("tied", 1, tied)
	if later := refusingWorld(t, f, 30); later[refused] > 0 {
		t.Errorf("bought %v while it is left out", later)
	}
	want := "3 of its nodes took none of the pods that they were bought for; it is left out until"
	said := controllertest.EventsWith(f.World.Events("Pod"), "FailedScheduling")
	if !slices.ContainsFunc(said, func(e string) bool {
		return strings.Contains(e, want) && strings.Contains(e, "0/9 nodes are available: 9 no.)")
	}) {
		t.Errorf("pods say %q, want %q", said, want)
	}
	if later := refusingWorld(t, f, 45); later[refused] != 1 {
		t.Errorf("bought %v in the hour after, want one", later)
	}
	f.World.RefusePod = nil
	refusingWorld(t, f, 90)
	controllertest.NoProblems(t, f.World)
}

// largePool shows the pool with so many nodes more, on each of which a pod runs.
type largePool struct {
	*fake.Ports
	more int
}

func (l largePool) ReadSnapshot(ctx context.Context) (cluster.Snapshot, error) {
	s, err := l.Ports.ReadSnapshot(ctx)
	for i := range l.more {
		name := fmt.Sprintf("other-%03d", i)
		id := "aws:///us-west-2a/i-" + name
		s.Nodes = append(s.Nodes, cluster.Node{Name: name, UID: name, ProviderID: id, Ready: true, ReadySince: s.Now.Add(-time.Hour),
			Labels:      map[string]string{v1.LabelRegistered: "true", v1.LabelInitialized: "true", v1.LabelNodePool: "general"},
			Allocatable: resources.List{CPU: 100, Memory: resources.MiB, Pods: 1}})
		s.Claims = append(s.Claims, cluster.Claim{Name: name, UID: name, Pool: "general", Class: "default", ProviderID: id, NodeName: name,
			Created: s.Now.Add(-2 * time.Hour), Conditions: []cluster.Condition{{Type: v1.ConditionLaunched, Status: "True"},
				{Type: v1.ConditionRegistered, Status: "True"}, {Type: v1.ConditionInitialized, Status: "True"}}})
		s.Pods = append(s.Pods, cluster.Pod{Namespace: "default", Name: name, UID: name, NodeName: name, Phase: "Running", Owner: cluster.OwnerOther,
			Need: resources.List{CPU: 100, Memory: resources.MiB, Pods: 1}})
	}
	return s, err
}

// What keeps pods off nodes of a type, whatever it is, ends in another type: after three nodes, or one of a hundred of a
// large pool, and one that is bought meanwhile where it shows at once that the pods do not fit. Such a node counts 15
// seconds after it became ready, one that is refused for no known reason a minute after that, and one whose taint may be
// that of an agent that starts once its five minutes are over.
func TestNodesThatTakeNoPodsEndInAnotherType(t *testing.T) {
	taint := func(key string) func(*cluster.Node) {
		return func(n *cluster.Node) { n.Taints = append(n.Taints, cluster.Taint{Key: key, Effect: "NoSchedule"}) }
	}
	for name, c := range map[string]struct {
		mar             func(*cluster.Node)
		refuses         bool          // kube-scheduler does, and nobody knows why
		more            int           // nodes of the pool
		vain            int           // nodes that are bought in vain
		after, atLatest time.Duration // the pod runs
	}{
		"too small":               {mar: func(n *cluster.Node) { n.Allocatable.CPU = 1000 }, vain: 4, atLatest: 3 * time.Minute},
		"a cordon":                {mar: taint("node.kubernetes.io/unschedulable"), vain: 4, atLatest: 3 * time.Minute},
		"a reason nobody knows":   {refuses: true, vain: 3, after: 3 * 80 * time.Second, atLatest: 6 * time.Minute},
		"a taint nobody declared": {mar: taint("agents.example.com/setup"), vain: 3, after: 15 * time.Minute, atLatest: 20 * time.Minute},
		"in a large pool":         {refuses: true, more: 500, vain: 5, after: 5 * 80 * time.Second, atLatest: 10 * time.Minute},
	} {
		w := controllertest.NewWorld()
		w.ChangePool(func(p *cluster.Pool) { p.Disruption = cluster.Disruption{Never: true} })
		first := ""
		isFirst := func(n *cluster.Node) bool {
			typ := n.Labels["node.kubernetes.io/instance-type"]
			if first == "" {
				first = typ
			}
			return typ == first
		}
		w.MarNode = func(n *cluster.Node) {
			if isFirst(n) && c.mar != nil {
				c.mar(n)
			}
		}
		w.RefusePod = func(n cluster.Node) bool { return c.refuses && isFirst(&n) }
		w.RunApp("web", 1, controllertest.PodOf(1500, 3000))
		f, began := &controllertest.Functions{World: w}, w.Now()
		for w.Now().Sub(began) < c.atLatest && !runs(w) {
			p := w.Ports(fake.Fault{})
			run := f.Provision(p)
			run.Read = largePool{p, c.more}
			if err := run.Run(t.Context(), f.Once()); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if err := f.Lifecycle(w.Ports(fake.Fault{})).Run(t.Context(), f.Once()); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			w.Advance(10 * time.Second)
		}
		bought := map[string]int{}
		for _, i := range w.Instances() {
			bought[i.Type]++
		}
		took := w.Now().Sub(began)
		if !runs(w) || took < c.after || bought[first] != c.vain || len(bought) != 2 {
			t.Errorf("%s: bought %v, want %d of %s and another; after %s, runs %t", name, bought, c.vain, first, took, runs(w))
		}
	}
}

// runs reports whether no pod waits.
func runs(w *fake.World) bool {
	waiting, err := w.Ports(fake.Fault{}).PendingPods(context.Background())
	return err == nil && len(waiting) == 0
}

// A pod that asks for what nodes of every type turned out never to have says so, and until when they are left out.
func TestAPodSaysWhatNodesNeverHad(t *testing.T) {
	w := controllertest.NewWorld()
	s, err := w.Ports(fake.Fault{}).ReadSnapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var unused []instancetypes.UnusedNode
	for _, f := range w.Catalog.Types {
		for i := range 2 {
			unused = append(unused, instancetypes.UnusedNode{Class: "default", Type: f.Name, Resource: instancetypes.ResourcePodENI,
				Cause: s.Classes[0].CauseOf(f.Name), Instance: fmt.Sprint("i-", f.Name, i), Allowed: 2, Why: "its nodes never had it"})
		}
	}
	if _, err := w.Ports(fake.Fault{}).NoteUnusedNodes(t.Context(), unused, nil); err != nil {
		t.Fatal(err)
	}
	pod := controllertest.PodOf(1500, 3000)
	pod.Need = pod.Need.With(instancetypes.ResourcePodENI, 1)
	w.RunApp("web", 1, pod)
	p, err := controllertest.InvokeProvision(t, w, 0)
	if err != nil || count(p.Calls(), "create claim") > 0 {
		t.Errorf("error %v, calls %q", err, p.Calls())
	}
	const want = "and 1 more never had vpc.amazonaws.com/pod-eni, which counts as zero there until 2026-01-02T12:00:00Z"
	said := w.Events("Pod")
	if len(said) != 1 || !strings.Contains(said[0], "; nodes of ") || !strings.Contains(said[0], want) {
		t.Errorf("pods say %q, want %q", said, want)
	}
}

// Nodes on which something stays that keeps them from ever being initialized, as the taint of an agent that does not
// start, are not bought without end: two of a type, one of another, and then none for an hour. Pods say why. Where only
// one type is like that the next one serves them.
func TestNodesThatNeverInitializeAreNotBoughtWithoutEnd(t *testing.T) {
	for name, c := range map[string]struct {
		oneType bool
		want    int // nodes in three hours
	}{"every type": {want: 3}, "one type": {oneType: true, want: 3}} {
		w := controllertest.NewWorld()
		w.ChangePool(func(p *cluster.Pool) { p.Disruption = cluster.Disruption{Never: true} })
		first := ""
		w.MarNode = func(n *cluster.Node) {
			typ := n.Labels["node.kubernetes.io/instance-type"]
			if first == "" {
				first = typ
			}
			if typ == first || !c.oneType {
				n.Taints = append(n.Taints, cluster.Taint{Key: "node.cilium.io/agent-not-ready", Effect: "NoSchedule"})
			}
		}
		w.RunApp("web", 1, controllertest.PodOf(1500, 3000))
		f, began := &controllertest.Functions{World: w}, w.Now()
		seen, bought := map[string]bool{}, map[string]int{} // nodes by type
		for w.Now().Sub(began) < 150*time.Minute {
			if err := f.Provision(w.Ports(fake.Fault{})).Run(t.Context(), f.Once()); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if err := f.Lifecycle(w.Ports(fake.Fault{})).Run(t.Context(), f.Once()); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			w.Advance(30 * time.Second)
			for _, i := range w.Instances() {
				if !seen[i.ID] {
					seen[i.ID] = true
					bought[i.Type]++
				}
			}
		}
		if got := len(seen); got != c.want || bought[first] != 2 || runs(w) != c.oneType {
			t.Errorf("%s: bought %v, want %d, 2 of them %s; runs %t", name, bought, c.want, first, runs(w))
		}
		said := strings.Join(controllertest.EventsWith(w.Events("Pod"), "FailedScheduling"), "\n")
		const want = "3 nodes of the class in a row never became usable; it is left alone until "
		const words = "taint node.cilium.io/agent-not-ready:NoSchedule is still on the node; its NodePool does not declare it under startupTaints"
		if told := strings.Contains(said, want) && strings.Contains(said, words); told == c.oneType {
			t.Errorf("%s: pods say %q, want %q: %t", name, said, want, !c.oneType)
		}
	}
}
