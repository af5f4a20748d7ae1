// Package verify lets the real kube-scheduler judge a plan: it makes the planned nodes in a local control plane, lets the
// scheduler place the pods of the workload, and counts those that stay pending.
//
// It knows the workload format and Kubernetes' API. What a plan is made of it takes from the planner it is given; it
// refuses to know how one is made, and it places no pod itself but those that the workload says are running. Nodes are all there
// before the first pod is: what a late node changes is not seen here. A pod that pre-empts others is seen by its victims missing.
package verify

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"joiner/pkg/catalog"
	"joiner/pkg/cli"
	"joiner/pkg/cluster"
	"joiner/pkg/plan"
	"joiner/pkg/workload"
)

// Options say what to verify and where.
type Options struct {
	Config   *rest.Config // of an administrator; the cluster has no nodes, and kwok plays those that ask for it
	Workload workload.File
	Catalog  catalog.Catalog
	Plan     func(cluster.Snapshot) plan.Plan
	Rounds   int           // most plans to make, each for the pods that the one before left pending; 1 at least
	Idle     time.Duration // scheduling is over when nothing was placed for so long; the scheduler's longest back-off is 10 s
	Shuffle  uint64        // seed of the order in which pods arrive; 0 for that of the workload
	Nominate bool          // tell the scheduler in each pod's status.nominatedNodeName which node the plan has for it
	Log      func(format string, args ...any)
}

// trial is one workload in one cluster.
type trial struct {
	Options
	*plane
	names    workload.Names
	pods     []*corev1.Pod     // that are to be scheduled, in the order they arrive
	refused  map[string]string // pods that the API server does not take, to its words
	planned  []workload.Node   // made so far
	seats    map[string]seating
	homeless map[string]int // by group: pods that the first plan gave no place
	report   Report
}

// seating is the number of pods of each group on one node.
type seating map[string]int

// Run plans, makes the nodes, has the pods scheduled, and plans again for what stays pending as long as rounds are left. An error
// means that the trial could not be held; what the scheduler thinks of the plan is in the report.
func Run(ctx context.Context, o Options) (Report, error) {
	p, err := newPlane(o.Config)
	if err != nil {
		return Report{}, err
	}
	if o.Rounds < 1 {
		return Report{}, errors.New("verify: no round is allowed")
	}
	t := &trial{
		Options: o, plane: p, names: o.Workload.Names(), pods: pendingPods(o.Workload), refused: map[string]string{},
		seats:  map[string]seating{},
		report: Report{Workload: o.Workload.Name, Pods: o.Workload.Pending(), ExistingNodes: len(o.Workload.Nodes)},
	}
	if o.Shuffle != 0 {
		rand.New(rand.NewPCG(o.Shuffle, 0)).Shuffle(len(t.pods), func(i, j int) { t.pods[i], t.pods[j] = t.pods[j], t.pods[i] })
	}
	if err := t.furnish(ctx); err != nil {
		return t.report, fmt.Errorf("prepare the cluster for %s: %w", o.Workload.Name, err)
	}
	for n := 1; n <= o.Rounds; n++ {
		r, err := t.round(ctx, n)
		if err != nil {
			return t.report, fmt.Errorf("round %d of %s: %w", n, o.Workload.Name, err)
		}
		t.report.Rounds = append(t.report.Rounds, r)
		if r.Stranded == 0 && r.DaemonsPending == 0 || n > 1 && r.NewNodes == 0 {
			break
		}
	}
	return t.report, nil
}

// furnish makes everything that is there before the plan: DaemonSets, existing nodes and the pods on them.
func (t *trial) furnish(ctx context.Context) error {
	daemons := daemonSets(t.Workload)
	bound, err := boundPods(t.Workload)
	if err != nil {
		return err
	}
	if err := t.admitPods(ctx, slices.Concat(t.pods, bound), daemons); err != nil {
		return err
	}
	for _, d := range daemons {
		if err := t.createDaemonSet(ctx, d); err != nil {
			return err
		}
	}
	nodes, err := t.nodes(t.Workload.Nodes)
	if err != nil {
		return err
	}
	if err := t.createNodes(ctx, nodes); err != nil {
		return err
	}
	refused, err := t.createPods(ctx, bound)
	if err != nil {
		return err
	}
	for key, why := range refused {
		return fmt.Errorf("running pod %s: %s", key, why)
	}
	if err := t.awaitNodes(ctx, nodes); err != nil {
		return err
	}
	return t.openNodes(ctx, nodes)
}

// round plans for what has no node, makes the nodes, and waits until the scheduler is done.
func (t *trial) round(ctx context.Context, n int) (Round, error) {
	before, err := t.look(ctx, t.pods)
	if err != nil {
		return Round{}, err
	}
	s, err := t.snapshot(before)
	if err != nil {
		return Round{}, err
	}
	began := time.Now()
	p := t.Plan(s)
	r := Round{
		Number: n, PlanSeconds: time.Since(began).Seconds(), NewNodes: len(p.Launches), AddedUSD: p.Price(),
		OnExisting: len(p.Existing), Unplaced: len(p.Unplaced),
	}
	t.note(n, p)
	t.Log("%s, round %d: %d new nodes for %d pods, %d pods on nodes that exist, %d unplaced",
		t.Workload.Name, n, len(p.Launches), t.report.Pods-len(before.on)-r.OnExisting-r.Unplaced, r.OnExisting, r.Unplaced)
	fresh := launched(n, p.Launches)
	nodes, err := t.nodes(fresh)
	if err != nil {
		return r, err
	}
	t.planned = append(t.planned, fresh...)
	if err := t.createNodes(ctx, nodes); err != nil {
		return r, err
	}
	if err := t.awaitNodes(ctx, nodes); err != nil {
		return r, err
	}
	began = time.Now()
	if err := t.release(ctx, nodes, t.missing(before), t.seatsOf(n, p)); err != nil {
		return r, err
	}
	if r.ScheduleSeconds, err = t.settle(ctx, began); err != nil {
		return r, err
	}
	after, err := t.look(ctx, t.pods)
	if err != nil {
		return r, err
	}
	t.judge(&r, after)
	planned := map[string]bool{}
	for _, n := range t.planned {
		planned[n.Name] = true
	}
	r.DaemonsPending, err = t.daemonsPending(ctx, planned)
	return r, err
}

// release opens the new nodes and makes the pods. Pods to be nominated are held back by a gate until they all are: the
// scheduler keeps room for them only then.
func (t *trial) release(ctx context.Context, nodes []*corev1.Node, pods []*corev1.Pod, seats []seat) error {
	if t.Nominate {
		pods, seats = gated(pods), t.alternate(seats)
		if err := t.nominate(ctx, seats); err != nil { // those that exist since an earlier round
			return err
		}
	}
	if err := t.openNodes(ctx, nodes); err != nil {
		return err
	}
	refused, err := t.createPods(ctx, pods)
	maps.Copy(t.refused, refused)
	if err != nil || !t.Nominate {
		return err
	}
	if err := t.nominate(ctx, seats); err != nil {
		return err
	}
	return t.ungate(ctx, pods)
}

// note remembers whom the plan seats where, and, of the first plan, who has no place in it.
func (t *trial) note(n int, p plan.Plan) {
	for _, s := range t.seatsOf(n, p) {
		if t.seats[s.node] == nil {
			t.seats[s.node] = seating{}
		}
		t.seats[s.node][t.names.Group(s.pod)]++
	}
	if n > 1 {
		return
	}
	t.homeless = map[string]int{}
	for _, u := range p.Unplaced {
		t.homeless[t.names.Group(u.Pod)]++
	}
}

// missing lists the pods that do not exist: all of them at first, then those that were pre-empted.
func (t *trial) missing(v view) []*corev1.Pod {
	var out []*corev1.Pod
	for _, p := range t.pods {
		key := workload.Key(p)
		if _, refused := t.refused[key]; !refused && !v.exists[key] {
			out = append(out, p)
		}
	}
	return out
}

// snapshot is the cluster as it is now: the workload with the nodes made so far, and each pod where the scheduler put it.
func (t *trial) snapshot(v view) (cluster.Snapshot, error) {
	f := t.Workload
	f.Nodes = slices.Concat(f.Nodes, t.planned)
	s, err := cli.Snapshot(f, t.Catalog)
	if err != nil {
		return s, fmt.Errorf("read workload: %w", err)
	}
	for i := range s.Pods {
		p := &s.Pods[i]
		if node, ok := v.on[p.Key()]; ok {
			p.NodeName, p.Phase, p.Unscheduled, p.Ready = node, string(corev1.PodRunning), false, true
		}
	}
	return s, nil
}

// nodes are the objects of workload nodes: labels, taints and amounts as the catalog and the pools say.
func (t *trial) nodes(list []workload.Node) ([]*corev1.Node, error) {
	s, err := cli.Snapshot(workload.File{Manifests: workload.Manifests{Pools: t.Workload.Pools}, Nodes: withoutPods(list)}, t.Catalog)
	if err != nil {
		return nil, fmt.Errorf("describe nodes: %w", err)
	}
	var out []*corev1.Node
	for _, n := range s.Nodes {
		out = append(out, nodeObject(n))
	}
	return out, nil
}
