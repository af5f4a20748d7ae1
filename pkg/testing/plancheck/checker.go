package plancheck

import (
	"fmt"
	"maps"
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"

	api "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/workload"
)

// Report is the verdict on a placement.
type Report struct {
	Violations []string // sorted, none when the placement is valid
	HourlyUSD  float64  // of the new nodes, by the market's prices
	Nodes      int      // new ones
	Unplaced   int      // pods
}

// workloadCheck is one check.
type workloadCheck struct {
	file    workload.File
	market  Market
	pools   map[string]*api.NodePool
	kinds   []*podGroup // pending ones first
	byName  map[string]*podGroup
	daemons []*podGroup
	nodes   []*plannedNode
	report  Report
	spots   map[string][]string // domains by key and node rules
}

// podGroup is a group of pods.
type podGroup struct {
	name    string
	pod     *corev1.Pod
	count   int
	need    resourceAmounts
	match   nodeRule
	bound   bool
	refused []string
}

// podShare is some pods of a kind on a node.
type podShare struct {
	kind *podGroup
	n    int
}

// plannedNode is an existing or a new node with its pods.
type plannedNode struct {
	name   string
	typ    *soldType
	pool   string
	taints []corev1.Taint
	object *corev1.Node // for matching
	came   []podShare   // put there by the placement
	there  []podShare
}

// allPods are the pods of the node.
func (n *plannedNode) allPods() []podShare { return slices.Concat(n.there, n.came) }

func (j *workloadCheck) addViolation(format string, args ...any) {
	j.report.Violations = append(j.report.Violations, fmt.Sprintf(format, args...))
}

// CheckPlacement judges the placement of the workload.
func CheckPlacement(f workload.File, m Market, p workload.Placement) Report {
	j := &workloadCheck{file: f, market: m, pools: map[string]*api.NodePool{}, byName: map[string]*podGroup{},
		spots: map[string][]string{}}
	for i := range f.Pools {
		j.pools[f.Pools[i].Name] = &f.Pools[i]
	}
	j.readPods()
	j.existingNodes()
	byNode := map[string]*plannedNode{}
	for _, n := range j.nodes {
		byNode[n.name] = n
	}
	for _, o := range p.OnExisting {
		n := byNode[o.Node]
		if n == nil {
			j.addViolation("there is no node %s", o.Node)
			continue
		}
		n.came = append(n.came, j.readShares(o.Pods, n.name)...)
	}
	for i, c := range p.NodeClaims {
		j.launchedNode(fmt.Sprintf("claim %d (%s)", i, c.InstanceType), c)
	}
	if d := math.Abs(p.HourlyUSD - j.report.HourlyUSD); d > 1e-6*float64(1+len(p.NodeClaims)) {
		j.addViolation("the placement costs %.6f USD/h, it says %.6f", j.report.HourlyUSD, p.HourlyUSD)
	}
	j.checkCounts(p)
	for _, n := range j.nodes {
		j.checkNode(n)
	}
	j.checkPodRules()
	j.checkLimits()
	slices.Sort(j.report.Violations)
	j.report.Violations = slices.Compact(j.report.Violations)
	j.report.Nodes = len(p.NodeClaims)
	return j.report
}

// readPods makes kinds of everything that runs or waits.
func (j *workloadCheck) readPods() {
	add := func(name string, count int, pod *corev1.Pod, bound bool) *podGroup {
		k := newKind(name, count, pod, bound)
		j.kinds = append(j.kinds, k)
		return k
	}
	for _, g := range j.file.Groups {
		j.byName[g.Name] = add(g.Name, g.Count, podOf(g), false)
	}
	for i := range j.file.Pods {
		p := j.file.Pods[i].DeepCopy()
		if p.Namespace == "" {
			p.Namespace = workload.DefaultNamespace
		}
		j.byName[workload.PodKey(p)] = add(workload.PodKey(p), 1, p, false)
	}
	for _, g := range j.file.DaemonSets {
		pod := podOf(g)
		limitsStandIn(pod)
		j.daemons = append(j.daemons, newKind(g.Name, 0, pod, true))
	}
}

// readShares reads the pods of a node as a placement gives them.
func (j *workloadCheck) readShares(pods map[string]int, where string) []podShare {
	var out []podShare
	for _, g := range slices.Sorted(maps.Keys(pods)) {
		k := j.byName[g]
		switch {
		case k == nil:
			j.addViolation("%s: there is no group %s", where, g)
		case pods[g] < 0:
			j.addViolation("%s: %d pods of %s", where, pods[g], g)
		case pods[g] > 0:
			out = append(out, podShare{k, pods[g]})
		}
	}
	return out
}

// checkCounts wants every pod placed once or reported as unplaced (rule 1).
func (j *workloadCheck) checkCounts(p workload.Placement) {
	placed, pending := map[*podGroup]int{}, map[*podGroup]int{}
	for _, n := range j.nodes {
		for _, s := range n.came {
			placed[s.kind] += s.n
		}
	}
	for _, u := range p.Unplaced {
		k := j.byName[u.Group]
		if k == nil {
			j.addViolation("unplaced: there is no group %s", u.Group)
			continue
		}
		if len(u.Reasons) == 0 {
			j.addViolation("%s: unplaced without a reason", u.Group)
		}
		pending[k] += u.Count
		j.report.Unplaced += u.Count
	}
	for _, k := range j.kinds {
		if !k.bound && placed[k]+pending[k] != k.count {
			j.addViolation("%s: %d placed and %d unplaced of %d pods", k.name, placed[k], pending[k], k.count)
		}
		if placed[k] > 0 && len(k.refused) > 0 {
			j.addViolation("%s: placed although %s", k.name, k.refused[0])
		}
	}
}

// checkLimits checks what pools may have in sum.
func (j *workloadCheck) checkLimits() {
	used, grew := map[string]resourceAmounts{}, map[string]bool{}
	for _, n := range j.nodes {
		if used[n.pool] == nil {
			used[n.pool] = resourceAmounts{}
		}
		used[n.pool].addAmounts(n.typ.capacity, 1)
		used[n.pool]["nodes"]++
		grew[n.pool] = grew[n.pool] || n.object.UID == newNode
	}
	for _, p := range j.file.Pools {
		for name, q := range p.Spec.Limits { // violations are sorted later
			most := q.Value()
			if name == corev1.ResourceCPU {
				most = q.MilliValue()
			}
			if have := used[p.Name][string(name)]; grew[p.Name] && have > most {
				j.addViolation("pool %s: %d %s are more than its limit %s", p.Name, have, name, q.String())
			}
		}
	}
}
