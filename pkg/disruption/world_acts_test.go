package disruption

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	v1 "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/nomination"
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

// initialize makes nodes of the claims that have none. Those that are held lack nothing but pods.
func (w *world) initialize() {
	s := &w.Snapshot
	for _, node := range s.StateNodes() {
		if node.Node != nil {
			continue
		}
		for i := range s.Claims {
			c := &s.Claims[i]
			if c.Name != node.Claim.Name {
				continue
			}
			n := cluster.Node{Name: "node-" + c.Name, ProviderID: c.ProviderID, Capacity: c.Capacity, Allocatable: c.Allocatable, Ready: true, ReadySince: s.Now,
				Labels: maps.Clone(c.Labels), Taints: slices.Clone(c.Taints)}
			n.Labels[v1.LabelRegistered], n.Labels["kubernetes.io/hostname"] = "true", n.Name
			c.NodeName = n.Name
			if c.Annotations[v1.AnnotationNominatedOwners] == "" {
				w.start(c, &n)
			} else {
				t, _ := nomination.TaintOf(*c)
				n.Taints = append(n.Taints, t)
			}
			s.Nodes = append(s.Nodes, n)
		}
	}
}

// start has the node initialized.
func (w *world) start(c *cluster.Claim, n *cluster.Node) {
	n.Labels = maps.Clone(n.Labels)
	n.Labels[v1.LabelInitialized] = "true"
	c.Conditions = append(slices.Clone(c.Conditions), cluster.Condition{Type: v1.ConditionInitialized, Status: "True", Since: w.Snapshot.Now})
}

// open lets all pods onto the nodes that were held while others were drained.
func (w *world) open() {
	s := &w.Snapshot
	evictions := nomination.FindOwnerNominations(*s)
	for _, node := range s.StateNodes() {
		if !node.ReadyForNominated() || evictions.AwaitsPods(*node.Claim, *node.Node) {
			continue
		}
		c := slices.IndexFunc(s.Claims, func(c cluster.Claim) bool { return c.Name == node.Claim.Name })
		w.eachNode([]string{node.Claim.Name}, func(n *cluster.Node) {
			n.Taints = slices.DeleteFunc(slices.Clone(n.Taints), cluster.Taint.IsNomination)
			w.start(&s.Claims[c], n)
		})
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

// hold has new nodes held; pods whose names differ in the number at the end have the same controller.
func (w *world) hold() {
	w.Snapshot.Rules.NominatedPodsOnly = true
	for i := range w.Snapshot.Pods {
		p := &w.Snapshot.Pods[i]
		p.Controller = strings.TrimSuffix(strings.TrimRight(p.Name, "0123456789"), "-")
	}
}

// price is what all nodes of ours cost.
func (w *world) price() (usd float64) {
	v := newState(w.Snapshot, Memory{}, w.Market, nil)
	for _, n := range v.nodes {
		usd += n.price
	}
	return usd
}

// refuse has EC2 refuse a type for a minute, on demand and in every zone without lines "capacity spot" and "zone c".
func (w *world) refuse(name string, lines []string) error {
	o := instancetypes.OfferingKey{CapacityType: instancetypes.OnDemand, Type: name}
	for _, l := range lines {
		switch word, value, _ := strings.Cut(l, " "); word {
		case "":
		case "capacity":
			o.CapacityType = value
		case "zone":
			o.Zone = value
		default:
			return fmt.Errorf("refused %s: unknown line %q", name, l)
		}
	}
	w.Snapshot.Unavailable = append(w.Snapshot.Unavailable,
		instancetypes.UnavailableOffering{Until: w.Snapshot.Now.Add(time.Minute), OfferingKey: o})
	return nil
}
