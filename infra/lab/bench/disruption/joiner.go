package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"joiner.sh/infra/lab/bench/world"
	api "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/cli"
	"joiner.sh/pkg/disruption"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/nomination"
	"joiner.sh/pkg/model/requirements"
	"joiner.sh/pkg/nodeclass/translate"
	"joiner.sh/pkg/provisioning"
)

// joiner is our side: snapshots of the world go to disruption.Next, what it plans is done at once.
type joiner struct {
	w       *world.World
	rules   whatIf
	memory  disruption.Memory
	cache   disruption.Cache
	pods    map[string]cluster.Pod     // as translated, by name; without their node
	since   map[string]time.Time       // by node: when it was launched
	startup map[string][]cluster.Taint // by node: the taints it was launched with
	made    int
	began   map[string]disruption.Command
	why     map[string]int // nodes of the last pass that stayed, by word
	said    []string       // the last plan, without those
}

// whatIf is what differs from the defaults.
type whatIf struct {
	moveUSD float64 // what moving a pod costs, 0 for the default
}

func newJoiner(w *world.World, r whatIf) *joiner {
	j := &joiner{w: w, rules: r, pods: map[string]cluster.Pod{}, since: map[string]time.Time{},
		startup: map[string][]cluster.Taint{}, began: map[string]disruption.Command{}}
	for _, p := range w.Pods {
		c := translate.Pod(p.Object)
		c.Phase, c.Ready = string(corev1.PodRunning), true
		j.pods[p.Object.Name] = c
	}
	for name := range w.Nodes {
		j.since[name] = w.Now.Add(-12 * time.Hour)
	}
	return j
}

// RunPass runs one invocation of disrupt with what provision does after it.
func (j *joiner) RunPass(context.Context) (acted bool, took cli.MeasuredWork, err error) {
	s := j.readSnapshot()
	var p disruption.Plan
	took = cli.MeasureWork(func() {
		p, j.memory = disruption.NextFrom(s, j.memory, j.cache.Offerings(s), &j.cache)
	})
	j.why = map[string]int{}
	for _, x := range p.NotDisrupted {
		j.why[string(x.Reason)]++
	}
	j.said = p.Lines()[:len(p.Lines())-len(p.NotDisrupted)]
	for _, c := range p.Begin {
		if err := j.beginCommand(c); err != nil {
			return true, took, err
		}
	}
	for _, e := range p.RollBack {
		for _, name := range e.Claims {
			n := j.w.Nodes[name]
			n.Closed = false
			delete(n.Marks, api.AnnotationDisruptionCommand)
		}
		for _, name := range e.Unused {
			j.w.RemoveNode(name)
		}
	}
	for _, e := range p.Finish {
		for _, name := range e.Claims {
			j.w.RemoveNode(name)
		}
	}
	j.w.BindPods()
	acted = len(p.Begin)+len(p.RollBack)+len(p.Finish)+len(p.Proposed)+len(p.Waiting) > 0 || j.memory.Search.Sets != nil
	return acted, took, j.provisionPods()
}

func (j *joiner) beginCommand(c disruption.Command) error {
	j.began[c.ID] = c
	for _, name := range c.Claims {
		n := j.w.Nodes[name]
		n.Closed, n.Marks[api.AnnotationDisruptionCommand] = true, c.AsMark(j.w.Now).String()
	}
	for _, l := range c.Launches {
		n, err := j.launchNode(l.Pool, l.Choice.OfferingKey)
		if err != nil {
			return err
		}
		maps.Copy(n.Marks, l.Annotations)
		n.Marks[api.AnnotationReplaces] = c.ID
		n.Kept = n.Marks[api.AnnotationNominatedOwners] != ""
		j.startup[n.Name] = l.Startup
	}
	return nil
}

func (j *joiner) launchNode(pool string, o instancetypes.OfferingKey) (*world.Node, error) {
	n, err := j.w.LaunchNode(pool, o)
	if err == nil {
		j.since[n.Name] = j.w.Now
		j.made++
	}
	return n, err
}

// openNodes lets all pods onto the nodes that were kept while others were drained.
func (j *joiner) openNodes(s cluster.Snapshot) {
	evictions := nomination.FindOwnerNominations(s)
	for _, n := range j.w.SortedNodes() {
		if node, claim := j.nodeAndClaim(n); n.Kept && !evictions.AwaitsPods(claim, node) {
			n.Kept = false
		}
	}
}

// provisionPods lets pods onto the nodes that are kept for them, and launches nodes for those that found none.
func (j *joiner) provisionPods() error {
	if len(j.w.WaitingPods()) == 0 {
		j.openNodes(j.readSnapshot())
		return nil
	}
	s := j.readSnapshot()
	plan := provisioning.Decide(s).Plan
	to := plan.NodeByPod()
	for _, p := range j.w.WaitingPods() {
		if n := j.w.Nodes[to[p.Object.Namespace+"/"+p.Object.Name]]; n != nil && n.Kept {
			j.w.PlacePod(p, n)
		}
	}
	j.openNodes(s)
	for _, l := range plan.Launches {
		if _, err := j.launchNode(l.Pool, l.Choice.OfferingKey); err != nil {
			return err
		}
	}
	j.w.BindPods()
	return nil
}

func (j *joiner) readSnapshot() cluster.Snapshot {
	class := instancetypes.DefaultClass(j.w.Catalog)
	class.Name = "default"
	s := cluster.Snapshot{Now: j.w.Now, Catalog: j.w.Catalog, Classes: []instancetypes.Class{class},
		Namespaces: []cluster.Namespace{{Name: "default"}},
		Rules:      cluster.Settings{NominatedPodsOnly: true, PodEvictionCostUSD: j.rules.moveUSD}}
	for i := range j.w.Pools {
		p := translate.Pool(&j.w.Pools[i], s.Classes)
		p.Ready = true
		s.Pools = append(s.Pools, p)
	}
	d := translate.Template(j.w.Daemon.Pod.Namespace, j.w.Daemon.Pod)
	d.Name, d.Owner = j.w.Daemon.Name, cluster.OwnerDaemonSet
	s.Daemons = []cluster.Pod{*d}
	for _, b := range j.w.Budgets {
		s.Budgets = append(s.Budgets, cluster.PodDisruptionBudget{Namespace: b.Namespace, Name: b.Name,
			DisruptionsAllowed: b.Status.DisruptionsAllowed,
			Selector: &cluster.Selector{Requirements: []requirements.Requirement{requirements.Of("app",
				b.Spec.Selector.MatchLabels["app"])}}})
	}
	for _, p := range j.w.Pods {
		c := j.pods[p.Object.Name]
		c.NodeName = p.Object.Spec.NodeName
		c.Unscheduled = c.NodeName == ""
		s.Pods = append(s.Pods, c)
	}
	slices.SortFunc(s.Pods, func(a, b cluster.Pod) int { return strings.Compare(a.Key(), b.Key()) })
	for _, n := range j.w.SortedNodes() {
		node, claim := j.nodeAndClaim(n)
		s.Nodes, s.Claims = append(s.Nodes, node), append(s.Claims, claim)
	}
	return s
}

func (j *joiner) nodeAndClaim(n *world.Node) (cluster.Node, cluster.Claim) {
	t := j.w.InstanceType(n.OfferingKey.Type)
	since := j.since[n.Name]
	id := fmt.Sprintf("aws:///%s/%s", n.OfferingKey.Zone, n.Name)
	node := cluster.Node{Name: n.Name, ProviderID: id, Created: since, Labels: j.w.NodeLabels(n), Capacity: t.Capacity,
		Allocatable: t.Allocatable,
		Ready:       true, ReadySince: since, Finalizer: true}
	if n.Closed {
		node.Taints = []cluster.Taint{{Key: api.TaintDisrupted, Effect: "NoSchedule"}}
	}
	claim := cluster.Claim{Name: n.Name, Pool: n.Pool, Class: "default", Created: since, Finalizer: true,
		Labels: node.Labels, Annotations: n.Marks,
		ProviderID: id, NodeName: n.Name, Capacity: t.Capacity, Allocatable: t.Allocatable}
	for _, k := range []string{api.ConditionInitialized, api.ConditionLaunched, api.ConditionRegistered} {
		claim.Conditions = append(claim.Conditions, cluster.Condition{Type: k, Status: "True", Since: since})
	}
	if n.Kept {
		claim.StartupTaints, node.Taints = j.startup[n.Name], j.startup[n.Name]
		claim.Conditions = slices.DeleteFunc(claim.Conditions,
			func(k cluster.Condition) bool { return k.Type == api.ConditionInitialized })
		node.Labels = maps.Clone(node.Labels)
		delete(node.Labels, api.LabelInitialized)
	}
	return node, claim
}
