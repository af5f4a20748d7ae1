package topology

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	api "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/requirements"
)

// RestrictSelfAffinity returns the snapshot in which pods that must share a domain with pods of their own kind ask for
// the domains where these run, as far as PodDisruptionBudgets do not let all of them go at once. kube-scheduler lets
// the first pod that moves nowhere else as long as the others run, and the budget lets no other go before that pod is
// ready. It holds for pods that run, and for waiting ones of which others run on nodes that are marked for deletion.
// Where one of the others may be anywhere, and is drained, all may: they follow it. Pods of nodes whose drain ends by
// force prefer these domains, because the budget holds until that end. why has a sentence for each pod that has no
// choice, by key.
func RestrictSelfAffinity(s cluster.Snapshot) (restricted cluster.Snapshot, why map[string]string) {
	if len(s.Budgets) == 0 {
		return s, nil
	}
	x := &kinIndex{s: s, all: IndexNamespaces(s.Namespaces), kinds: map[string]*kin{},
		byLabel: map[string]map[labelValue][]*cluster.Pod{}, looks: maxKinLooks}
	restricted, why = s, map[string]string{}
	cloned := false
	for i := range s.Pods {
		p := &s.Pods[i]
		k := x.kinOf(p)
		if k == nil {
			continue
		}
		forced := endsByForce(x.nodes[p.NodeName])
		if waits(p) {
			forced = k.forced
		}
		if k.budget == nil || waits(p) && !k.marked {
			continue
		}
		if !cloned {
			cloned, restricted.Pods = true, slices.Clone(s.Pods)
		}
		q := &restricted.Pods[i]
		if forced {
			const most = 100 // weight
			q.NodePrefers = append(slices.Clip(q.NodePrefers), cluster.WeightedRequirements{Weight: most,
				Requirements: k.domains})
			continue
		}
		why[p.Key()] = "it must be beside pods of its own kind, and PodDisruptionBudget " + k.budget.String() +
			" does not let all of these go at once"
		restrictPod(q, k.domains)
	}
	return restricted, why
}

// restrictPod has the pod ask for the domains. Its spreads count the nodes that they counted before: its node affinity
// would say which.
func restrictPod(p *cluster.Pod, domains []requirements.Requirement) {
	also := [][]requirements.Requirement{domains}
	honours := func(c cluster.Spread) bool { return !c.Soft && !c.IgnoreNodeAffinity }
	if slices.ContainsFunc(p.Spread, honours) {
		if len(p.NodeAffinity)+len(p.NodeSelector) > 0 {
			p.VolumeZones = requirements.CombineAlternatives(p.VolumeZones, also)
			return
		}
		p.Spread = slices.Clone(p.Spread)
		for i := range p.Spread {
			p.Spread[i].IgnoreNodeAffinity = true
		}
	}
	p.NodeAffinity = requirements.CombineAlternatives(p.NodeAffinity, also)
}

// maxKinLooks caps the pods that are looked at in search of the kin of others, a second of work. Beyond it pods are not
// restricted.
const maxKinLooks = 10_000_000

// kin is the pods that match their own required affinity.
type kin struct {
	domains []requirements.Requirement   // where they run, by topology key
	budget  *cluster.PodDisruptionBudget // that does not let all of them go at once, nil where all may
	marked  bool                         // some run on nodes that are marked for deletion
	forced  bool                         // the drains of all their nodes end by force
}

// kinIndex finds the kin of pods.
type kinIndex struct {
	s         cluster.Snapshot
	all       Namespaces
	kinds     map[string]*kin
	byLabel   map[string]map[labelValue][]*cluster.Pod // by key: pods that run or wait
	nodes     map[string]cluster.StateNode             // by name, once asked for
	obstacles cluster.Obstacles
	looks     int // that are left
}

// labelValue is a value of a label in one namespace, or in all where that is empty.
type labelValue struct{ namespace, value string }

// endsByForce reports whether the node goes, or is to go, and its drain has an end whatever budgets say.
func endsByForce(n cluster.StateNode) bool {
	c := n.Claim
	return c != nil && (!c.Deadline().IsZero() || c.Is(api.ConditionInstanceTerminating) ||
		c.Annotations[api.AnnotationDrainAfterReplacement] != "" || c.Annotations[api.AnnotationReplaceRequested] != "" ||
		c.TerminationGrace != nil && (n.MarkedForDeletion() || c.Is(api.ConditionDrifted)))
}

// waits reports whether the pod has no node, or ends and its controller makes another of its name.
func waits(p *cluster.Pod) bool { return p.NodeName == "" || p.Terminating() }

// kinOf returns the kin of the pod, nil where its affinity is not about itself.
func (x *kinIndex) kinOf(p *cluster.Pod) *kin {
	if !p.Reschedulable() || p.Virtual {
		return nil
	}
	group, is := x.selfAffinity(p)
	if !is {
		return nil
	}
	id := group.ID()
	for _, t := range p.Affinity {
		id += "|" + t.Key
	}
	k, known := x.kinds[id]
	if !known {
		k = x.findKin(group, p.Affinity)
		x.kinds[id] = k
	}
	return k
}

// selfAffinity returns the pods that the pod must be beside, and whether it is one of them.
func (x *kinIndex) selfAffinity(p *cluster.Pod) (group PodSelector, is bool) {
	if len(p.Affinity) == 0 {
		return PodSelector{}, false
	}
	group = OfTerms(p.Affinity, p.Namespace, x.all)
	return group, group.Selects(p.Namespace, p.Labels)
}

// findKin finds the pods of the group that run, and their domains of each topology key.
func (x *kinIndex) findKin(group PodSelector, terms []cluster.AffinityTerm) *kin {
	if x.nodes == nil {
		x.nodes, x.obstacles = map[string]cluster.StateNode{}, x.s.Obstacles()
		for _, n := range x.s.StateNodes() {
			if n.Node != nil {
				x.nodes[n.Node.Name] = n
			}
		}
	}
	out := &kin{forced: true}
	var running []*cluster.Pod
	least := int32(2) // of those that run: the first of them moves, and waits for the others
	for _, p := range x.podsLike(group) {
		node := x.nodes[p.NodeName]
		switch _, alike := x.selfAffinity(p); {
		case !group.Selects(p.Namespace, p.Labels), waits(p) && !alike:
		case waits(p):
			least = 1 // it waits for those that run
		case len(p.Affinity) == 0 && p.IsDrained():
			return &kin{} // it may be anywhere
		default:
			running = append(running, p)
			out.marked, out.forced = out.marked || node.MarkedForDeletion(), out.forced && endsByForce(node)
		}
	}
	if out.budget = x.obstacles.BudgetBelow(running, least); out.budget == nil {
		return out
	}
	out.domains = x.findDomains(running, terms)
	if !slices.ContainsFunc(out.domains, func(r requirements.Requirement) bool { return len(r.Values) > 0 }) {
		return &kin{} // to kube-scheduler none runs
	}
	return out
}

// findDomains returns where the pods run, by the topology keys of the terms.
func (x *kinIndex) findDomains(running []*cluster.Pod, terms []cluster.AffinityTerm) (out []requirements.Requirement) {
	for _, t := range terms {
		domains := requirements.Requirement{Key: t.Key}
		for _, p := range running {
			node := x.nodes[p.NodeName].Node
			if value, labelled := node.Labels[t.Key]; labelled {
				domains.Values = append(domains.Values, value)
			} else if t.Key == corev1.LabelHostname {
				domains.Values = append(domains.Values, node.Name)
			}
		}
		slices.Sort(domains.Values)
		domains.Values = slices.Compact(domains.Values)
		domains.Present = len(domains.Values) == 0 // their nodes have lost this label, not others: no node will do
		out = append(out, domains)
	}
	return out
}

// podsLike returns pods that run or wait, among them all of the group: those with the label of its selector that the
// fewest have. It returns none where that is more than may be looked at.
func (x *kinIndex) podsLike(group PodSelector) (out []*cluster.Pod) {
	namespace, _ := group.OfOneNamespace()
	key, values, least := "", []string{""}, len(x.labelled("")[labelValue{namespace, ""}])
	for _, r := range group.Selector.Requirements {
		if r.Operator() != requirements.In {
			continue
		}
		some := 0
		for _, value := range r.Values {
			some += len(x.labelled(r.Key)[labelValue{namespace, value}])
		}
		if some < least {
			key, values, least = r.Key, r.Values, some
		}
	}
	if x.looks -= least; x.looks < 0 {
		return nil
	}
	for _, value := range values {
		out = append(out, x.labelled(key)[labelValue{namespace, value}]...)
	}
	return out
}

// labelled returns the pods that run or wait by their values of the label, or all where the key is empty.
func (x *kinIndex) labelled(key string) map[labelValue][]*cluster.Pod {
	if out, known := x.byLabel[key]; known {
		return out
	}
	out := map[labelValue][]*cluster.Pod{}
	x.byLabel[key] = out
	for i := range x.s.Pods {
		p := &x.s.Pods[i]
		value, has := p.Labels[key]
		here := p.NodeName == "" || x.nodes[p.NodeName].Node != nil
		if (has || key == "") && here && !p.Virtual && (p.Active() || p.Reschedulable()) {
			for _, namespace := range []string{p.Namespace, ""} {
				out[labelValue{namespace, value}] = append(out[labelValue{namespace, value}], p)
			}
		}
	}
	return out
}
