package disrupt

import (
	"maps"
	"slices"
	"strings"

	v1 "joiner/pkg/api/v1"
	"joiner/pkg/cluster"
)

func (w *world) annotate(claims []string, key, value string) {
	for i := range w.Snapshot.Claims {
		if c := &w.Snapshot.Claims[i]; slices.Contains(claims, c.Name) {
			c.Annotations = maps.Clone(c.Annotations)
			if c.Annotations == nil {
				c.Annotations = map[string]string{}
			}
			if c.Annotations[key] = value; value == "" {
				delete(c.Annotations, key)
			}
		}
	}
}

func (w *world) taint(claims []string) {
	w.eachNode(claims, func(n *cluster.Node) {
		n.Taints = append(slices.Clone(n.Taints), cluster.Taint{Key: v1.TaintDisrupted, Effect: "NoSchedule"})
	})
}

func (w *world) untaint(claims []string) {
	w.eachNode(claims, func(n *cluster.Node) {
		n.Taints = slices.DeleteFunc(slices.Clone(n.Taints), func(t cluster.Taint) bool { return t.Key == v1.TaintDisrupted })
	})
}

func (w *world) eachNode(claims []string, do func(*cluster.Node)) {
	for _, c := range w.Snapshot.Claims {
		for i := range w.Snapshot.Nodes {
			if slices.Contains(claims, c.Name) && w.Snapshot.Nodes[i].Name == c.NodeName {
				do(&w.Snapshot.Nodes[i])
			}
		}
	}
}

// remove takes claims away with their nodes; their pods are pending again.
func (w *world) remove(claims []string) {
	s := &w.Snapshot
	w.eachNode(claims, func(n *cluster.Node) {
		for i := range s.Pods {
			if p := &s.Pods[i]; p.NodeName == n.Name {
				p.NodeName, p.Unscheduled = "", true
			}
		}
		n.Name = ""
	})
	s.Nodes = slices.DeleteFunc(s.Nodes, func(n cluster.Node) bool { return n.Name == "" })
	s.Claims = slices.DeleteFunc(s.Claims, func(c cluster.Claim) bool { return slices.Contains(claims, c.Name) })
}

// hold has new nodes held; pods whose names differ in digits have the same controller.
func (w *world) hold() {
	w.Snapshot.Rules.Hold = true
	for i := range w.Snapshot.Pods {
		p := &w.Snapshot.Pods[i]
		p.Controller = strings.TrimRight(p.Name, "-0123456789")
	}
}

// price is what all nodes of ours cost.
func (w *world) price() (usd float64) {
	v := look(w.Snapshot, Memory{}, w.Market, nil)
	for _, n := range v.nodes {
		usd += n.price
	}
	return usd
}
