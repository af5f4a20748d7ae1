package main

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	api "joiner/pkg/api/v1"
	"joiner/pkg/budget"
	"joiner/pkg/cluster"
)

// difference is a way in which both sides differ on purpose. README.md of the bench has a row for each, by its name.
type difference struct {
	name    string
	applies func(finding) bool
}

// explain is the name of the difference that accounts for the finding, empty for none.
func explain(f finding) string {
	for _, d := range differences() {
		if d.applies(f) {
			return d.name
		}
	}
	return ""
}

func differences() []difference {
	return []difference{
		{"taint of a disruption that nobody began", func(f finding) bool {
			return f.keptByUs("leaving") && tainted(f.node()) && !f.deletingClaim()
		}},
		{"node deleted without its claim", func(f finding) bool {
			return f.keptByUs("leaving") && f.node() != nil && !f.node().DeletionTimestamp.IsZero() && !f.deletingClaim()
		}},
		{"label taken off a node", func(f finding) bool {
			return f.Kind == "candidate" && f.Ours != "" && f.stripped()
		}},
		{"price that nobody knows", func(f finding) bool { return f.keptByUs("price") }},
		{"nodes that are out of service for the budget", func(f finding) bool { return f.Kind == "budget" && f.sameBudgets() }},
		{"no NodePool that may launch", func(f finding) bool { return f.eased == easedByPool }},
		{"pods of others without a node", func(f finding) bool { return f.eased == easedByPods }},
	}
}

// keptByUs reports whether Karpenter takes the node and we keep it for the reason of that word.
func (f finding) keptByUs(word string) bool {
	return f.Kind == "candidate" && f.spared.Word == word && strings.HasPrefix(f.Ours, "keeps it")
}

// claim is the claim that the finding is about, nil for none.
func (f finding) claim() *api.NodeClaim {
	i := slices.IndexFunc(f.s.Claims, func(c api.NodeClaim) bool { return c.Name == f.Claim })
	if i < 0 {
		return nil
	}
	return &f.s.Claims[i]
}

// node is the node of that claim, nil for none.
func (f finding) node() *corev1.Node {
	c := f.claim()
	if c == nil {
		return nil
	}
	i := slices.IndexFunc(f.s.Nodes, func(n corev1.Node) bool { return n.Spec.ProviderID == c.Status.ProviderID })
	if i < 0 {
		return nil
	}
	return &f.s.Nodes[i]
}

func (f finding) deletingClaim() bool { return !f.claim().DeletionTimestamp.IsZero() }

func tainted(n *corev1.Node) bool {
	return n != nil && slices.ContainsFunc(n.Spec.Taints, func(t corev1.Taint) bool { return t.Key == api.TaintDisrupted })
}

// stripped reports whether the node lacks a label that its claim says it had.
func (f finding) stripped() bool {
	n, c := f.node(), f.claim()
	return n != nil && (n.Labels[api.LabelNodePool] == "" || n.Labels[api.LabelInitialized] == "" && initialized(c))
}

func initialized(c *api.NodeClaim) bool {
	for _, k := range c.Status.Conditions {
		if k.Type == api.ConditionInitialized {
			return k.Status == "True"
		}
	}
	return false
}

// sameBudgets reports whether the budgets let as many nodes go when nodes count as Karpenter counts them: by the labels of the Node, and
// as out of service only when the claim is being deleted.
func (f finding) sameBudgets() bool {
	s := f.snapshot
	s.Nodes, s.Claims = slices.Clone(s.Nodes), slices.Clone(s.Claims)
	for i := range s.Nodes {
		n := &s.Nodes[i]
		n.Taints = slices.DeleteFunc(slices.Clone(n.Taints), func(t cluster.Taint) bool { return t.Key == api.TaintDisrupted })
	}
	for _, h := range s.Hosts() {
		if h.Node == nil || h.Claim == nil {
			continue
		}
		i := slices.IndexFunc(s.Claims, func(c cluster.Claim) bool { return c.Name == h.Claim.Name })
		s.Claims[i].Pool = h.Node.Labels[api.LabelNodePool]
		if h.Node.Labels[api.LabelInitialized] == "" {
			s.Claims[i].Conditions = nil
		}
		if h.Claim.Deleting.IsZero() {
			k := slices.IndexFunc(s.Nodes, func(n cluster.Node) bool { return n.Name == h.Node.Name })
			s.Nodes[k].Deleting = h.Claim.Deleting
		}
	}
	p, ok := s.PoolOf(f.Claim)
	if !ok {
		return false
	}
	ours, err := budget.Left(s, p, f.Reason)
	return err == nil && ours == f.left
}
