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
// Pods on drifted or marked nodes whose drain ends by force are free. why has a sentence for each pod, by key.
func RestrictSelfAffinity(s cluster.Snapshot) (restricted cluster.Snapshot, why map[string]string) {
	if len(s.Budgets) == 0 {
		return s, nil
	}
	x := &kinIndex{s: s, all: IndexNamespaces(s.Namespaces), kinds: map[string]*kin{},
		byLabel: map[string]map[string][]*cluster.Pod{}}
	restricted, why = s, map[string]string{}
	for i := range s.Pods {
		p := &s.Pods[i]
		k := x.kinOf(p)
		if k == nil || k.budget == nil || p.NodeName == "" && !k.marked || endsByForce(x.nodes[p.NodeName]) {
			continue
		}
		if len(why) == 0 {
			restricted.Pods = slices.Clone(s.Pods)
		}
		restricted.Pods[i].NodeAffinity = withRequirements(p.NodeAffinity, k.domains)
		why[p.Key()] = "it must be beside pods of its own kind, and PodDisruptionBudget " + k.budget.String() +
			" does not let all of these go at once"
	}
	return restricted, why
}

// kin is the pods that match their own required affinity.
type kin struct {
	domains []requirements.Requirement   // where they run, by topology key
	budget  *cluster.PodDisruptionBudget // that does not let all of them go at once, nil where all may
	marked  bool                         // some run on nodes that are marked for deletion
}

// kinIndex finds the kin of pods.
type kinIndex struct {
	s         cluster.Snapshot
	all       Namespaces
	kinds     map[string]*kin
	byLabel   map[string]map[string][]*cluster.Pod // by key and value: pods that run
	nodes     map[string]cluster.StateNode         // by name, once asked for
	obstacles cluster.Obstacles
}

// endsByForce reports whether the node goes, or is to go, and its drain has an end whatever budgets say.
func endsByForce(n cluster.StateNode) bool {
	return n.Claim != nil && n.Claim.TerminationGrace != nil &&
		(n.MarkedForDeletion() || n.Claim.Is(api.ConditionDrifted))
}

// kinOf returns the kin of the pod, nil where its affinity is not about itself.
func (x *kinIndex) kinOf(p *cluster.Pod) *kin {
	if len(p.Affinity) == 0 || !p.Active() || p.Owner == cluster.OwnerDaemonSet {
		return nil
	}
	group := OfTerms(p.Affinity, p.Namespace, x.all)
	if !group.Selects(p.Namespace, p.Labels) {
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
	out := &kin{}
	var running []*cluster.Pod
	for _, p := range x.podsLike(group) {
		if group.Selects(p.Namespace, p.Labels) {
			running = append(running, p)
			out.marked = out.marked || x.nodes[p.NodeName].MarkedForDeletion()
		}
	}
	if out.budget = x.obstacles.BudgetBelow(running); out.budget == nil {
		return out
	}
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
		if domains.Values = slices.Compact(domains.Values); len(domains.Values) == 0 {
			return &kin{} // a key that no node has any more
		}
		out.domains = append(out.domains, domains)
	}
	return out
}

// podsLike returns pods that run, among them all of the group.
func (x *kinIndex) podsLike(group PodSelector) (out []*cluster.Pod) {
	key, values := "", []string(nil)
	for _, r := range group.Selector.Requirements {
		if r.Operator() == requirements.In {
			key, values = r.Key, r.Values
			break
		}
	}
	byValue := x.byLabel[key]
	if byValue == nil {
		byValue = map[string][]*cluster.Pod{}
		x.byLabel[key] = byValue
		for i := range x.s.Pods {
			p := &x.s.Pods[i]
			value, labelled := p.Labels[key]
			if (labelled || key == "") && p.Active() && x.nodes[p.NodeName].Node != nil {
				byValue[value] = append(byValue[value], p)
			}
		}
	}
	if key == "" {
		values = []string{""}
	}
	for _, value := range values {
		out = append(out, byValue[value]...)
	}
	return out
}

// withRequirements returns the alternatives, each with the requirements as well.
func withRequirements(alternatives [][]requirements.Requirement,
	also []requirements.Requirement) (out [][]requirements.Requirement) {
	if len(alternatives) == 0 {
		return [][]requirements.Requirement{also}
	}
	for _, term := range alternatives {
		out = append(out, slices.Concat(term, also))
	}
	return out
}
