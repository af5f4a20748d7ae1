package verify

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	api "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/cli"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/nomination"
	"joiner.sh/pkg/model/plan"
	"joiner.sh/pkg/workload"
)

// Options say what to verify and where.
type Options struct {
	Config   *rest.Config // of an administrator; the cluster has no nodes, and kwok plays those that ask for it
	Workload workload.File
	Catalog  instancetypes.Catalog
	Plan     func(cluster.Snapshot) plan.Plan
	Rounds   int // most plans to make, each for the pods that the one before left pending; 1 at least
	// scheduling is over when nothing was placed for so long; the scheduler's longest back-off is 10 s
	Idle time.Duration
	Seed uint64        // of the order in which nodes come, and unless it is 0 of that in which pods come
	Boot time.Duration // within which nodes register, evenly
	Warm time.Duration // from registering to Ready; for some nodes twice as long
	Free bool          // hold no node for its pods
	Log  func(format string, args ...any)
}

// trial is one workload in one cluster.
type trial struct {
	Options
	*plane
	names   workload.GroupNames
	pods    []*corev1.Pod     // that are to be scheduled, in the order they arrive
	refused map[string]string // pods that the API server does not take, to its words
	planned []planned         // nodes made so far
	opened  map[string]bool   // those of them that any pod may use
	readied sync.Map          // names of those that are ready, to the time since when
	placed  map[string]podsByGroup
	pending map[string]int // by group: pods that the first plan gave no place
	report  Report
}

// planned is a node of a plan with what its claim says.
type planned struct {
	workload.Node
	startup   []cluster.Taint
	nominated string
}

// podsByGroup is the number of pods of each group on one node.
type podsByGroup map[string]int

// RunTrial plans, makes the nodes, has the pods scheduled, and plans again for what stays pending as long as rounds are
// left. An error means that the trial could not be held; what the scheduler thinks of the plan is in the report.
func RunTrial(ctx context.Context, o Options) (Report, error) {
	p, err := newPlane(o.Config)
	if err != nil {
		return Report{}, err
	}
	if o.Rounds < 1 {
		return Report{}, errors.New("verify: no round is allowed")
	}
	t := &trial{
		Options: o, plane: p, names: o.Workload.IndexNames(), pods: pendingPods(o.Workload),
		refused: map[string]string{},
		placed:  map[string]podsByGroup{}, opened: map[string]bool{},
		report: Report{Workload: o.Workload.Name, Pods: o.Workload.Pending(), ExistingNodes: len(o.Workload.Nodes)},
	}
	if o.Seed != 0 {
		rand.New(rand.NewPCG(o.Seed, 0)).Shuffle(len(t.pods),
			func(i, j int) { t.pods[i], t.pods[j] = t.pods[j], t.pods[i] })
	}
	if err := t.prepareCluster(ctx); err != nil {
		return t.report, fmt.Errorf("prepare the cluster for %s: %w", o.Workload.Name, err)
	}
	for n := 1; n <= o.Rounds; n++ {
		r, err := t.runRound(ctx, n)
		if err != nil {
			return t.report, fmt.Errorf("round %d of %s: %w", n, o.Workload.Name, err)
		}
		idle := n > 1 && r.NewNodes == 0 && r.Scheduled == t.report.Rounds[n-2].Scheduled
		t.report.Rounds = append(t.report.Rounds, r)
		if r.Stranded == 0 && r.DaemonsPending == 0 || idle {
			break
		}
	}
	return t.report, nil
}

// prepareCluster makes everything that is there before the plan: DaemonSets, existing nodes and the pods on them.
func (t *trial) prepareCluster(ctx context.Context) error {
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
	nodes, err := t.nodeObjects(t.Workload.Nodes)
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
	if err := t.openNodes(ctx, nodes); err != nil {
		return err
	}
	t.Log("%s: %d pods are made and wait for nodes", t.Workload.Name, len(t.pods))
	if t.refused, err = t.createPods(ctx, t.pods); err != nil {
		return err
	}
	return t.awaitVerdicts(ctx, t.pods)
}

// runRound plans for what has no node, lets the nodes come, and waits until the scheduler is done.
func (t *trial) runRound(ctx context.Context, n int) (Round, error) {
	before, err := t.readPods(ctx, t.pods)
	if err != nil {
		return Round{}, err
	}
	s, err := t.readSnapshot(before)
	if err != nil {
		return Round{}, err
	}
	began := time.Now()
	p := nomination.NominatePods(s, t.Plan(s))
	r := Round{
		Number: n, PlanSeconds: time.Since(began).Seconds(), NewNodes: len(p.Launches), AddedUSD: p.TotalPrice(),
		OnExisting: len(p.Existing), Unplaced: len(p.Unplaced),
	}
	t.notePlan(n, p)
	if n == 1 {
		t.noteExistingPods(before)
	}
	fresh := plannedNodes(n, p.Launches)
	t.planned = append(t.planned, fresh...)
	if r.Held, err = t.admitNominated(ctx, before); err != nil {
		return r, err
	}
	t.Log("%s, round %d: %d new nodes for %d pods, %d pods on nodes that exist, %d unplaced, %d pods with a node held for them",
		t.Workload.Name, n, len(p.Launches), t.report.Pods-len(before.on)-r.OnExisting-r.Unplaced, r.OnExisting,
		r.Unplaced, r.Held)
	if _, err := t.createPods(ctx, t.missingPods(before)); err != nil {
		return r, err
	}
	if r.ScheduleSeconds, err = t.bringNodes(ctx, fresh); err != nil {
		return r, err
	}
	names := map[string]bool{}
	for _, n := range t.planned {
		names[n.Name] = true
	}
	if r.DaemonsPending, err = t.awaitDaemons(ctx, names); err != nil {
		return r, err
	}
	after, err := t.readPods(ctx, t.pods)
	if err != nil {
		return r, err
	}
	t.judgeRound(&r, after)
	return r, nil
}

// admitNominated does what the pass after a launch does: it sees the claims, and lets pods onto the nodes that are held
// for them. It returns how many.
func (t *trial) admitNominated(ctx context.Context, v view) (int, error) {
	s, err := t.readSnapshot(v)
	if err != nil {
		return 0, err
	}
	wishes := nomination.TolerationsNeeded(s, t.Plan(s))
	return len(wishes), forEach(wishes, func(w nomination.TolerationNeeded) error {
		w.Pod.UID = v.uid[w.Pod.Key()]
		return t.joiner.TolerateNomination(ctx, w.Pod, w.Taint)
	})
}

// notePlan remembers where the plan places whom, and, of the first plan, who has no place in it.
func (t *trial) notePlan(n int, p plan.Plan) {
	for _, s := range plannedPlaces(n, p) {
		if t.placed[s.node] == nil {
			t.placed[s.node] = podsByGroup{}
		}
		t.placed[s.node][t.names.GroupOf(s.pod)]++
	}
	if n > 1 {
		return
	}
	t.pending = map[string]int{}
	for _, u := range p.Unplaced {
		t.pending[t.names.GroupOf(u.Pod)]++
	}
}

// noteExistingPods notes the pods that had a place before there was a plan, on nodes that exist.
func (t *trial) noteExistingPods(v view) {
	for pod, node := range v.on {
		if t.placed[node] == nil {
			t.placed[node] = podsByGroup{}
		}
		t.placed[node][t.names.GroupOf(pod)]++
	}
}

// missingPods lists the pods that do not exist: all of them at first, then those that were pre-empted.
func (t *trial) missingPods(v view) []*corev1.Pod {
	var out []*corev1.Pod
	for _, p := range t.pods {
		key := workload.PodKey(p)
		if _, refused := t.refused[key]; !refused && !v.exists[key] {
			out = append(out, p)
		}
	}
	return out
}

// readSnapshot returns the cluster as it is now: the workload with the nodes made so far and their claims, and each pod
// where the scheduler put it.
func (t *trial) readSnapshot(v view) (cluster.Snapshot, error) {
	f := t.Workload
	f.Nodes = slices.Clone(f.Nodes)
	for _, n := range t.planned {
		f.Nodes = append(f.Nodes, n.Node)
	}
	s, err := cli.WorkloadSnapshot(f, t.Catalog)
	if err != nil {
		return s, fmt.Errorf("read workload: %w", err)
	}
	s.Now, s.Rules.NominatedPodsOnly = time.Now(), !t.Free
	for i := range s.Pods {
		p := &s.Pods[i]
		p.Holds = v.holds[p.Key()]
		if node, ok := v.on[p.Key()]; ok {
			p.NodeName, p.Phase, p.Unscheduled, p.Ready = node, string(corev1.PodRunning), false, true
		}
	}
	byName := map[string]planned{}
	for _, n := range t.planned {
		byName[n.Name] = n
	}
	for i := range s.Nodes {
		n := &s.Nodes[i]
		if p, ok := byName[n.Name]; ok {
			n.ReadySince, n.Ready = t.readySince(n.Name)
			if !t.opened[n.Name] {
				n.Taints = slices.Concat(n.Taints, p.startup)
				delete(n.Labels, api.LabelInitialized)
			}
			s.Claims = append(s.Claims, cluster.Claim{Name: p.Name, Pool: p.NodePool, ProviderID: n.ProviderID,
				NodeName: n.Name, StartupTaints: p.startup,
				Labels: n.Labels, Capacity: n.Capacity, Allocatable: n.Allocatable,
				Annotations: map[string]string{api.AnnotationNominatedPods: p.nominated}})
		}
	}
	return s, nil
}

// readySince tells since when a planned node is ready.
func (t *trial) readySince(name string) (time.Time, bool) {
	since, ok := t.readied.Load(name)
	if !ok {
		return time.Time{}, false
	}
	return since.(time.Time), true
}

// nodeObjects are the objects of workload nodes: labels, taints and amounts as the catalog and the pools say.
func (t *trial) nodeObjects(list []workload.Node) ([]*corev1.Node, error) {
	s, err := cli.WorkloadSnapshot(workload.File{Manifests: workload.Manifests{Pools: t.Workload.Pools},
		Nodes: withoutPods(list)}, t.Catalog)
	if err != nil {
		return nil, fmt.Errorf("describe nodes: %w", err)
	}
	var out []*corev1.Node
	for _, n := range s.Nodes {
		out = append(out, nodeObject(n))
	}
	return out, nil
}
