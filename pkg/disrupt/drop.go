package disrupt

import (
	"slices"
	"time"

	"joiner/pkg/cluster"
)

// drop is the snapshot without the nodes of those names. Pods that need room elsewhere are pending, the others gone; those that nobody may
// evict need none (spec core.md §6.6).
func (v *view) drop(s cluster.Snapshot, out map[string]bool, forGood bool) cluster.Snapshot {
	return v.dropInto(nil, s, out, forGood)
}

// dropInto is drop with the memory for the pods.
func (v *view) dropInto(pods []cluster.Pod, s cluster.Snapshot, out map[string]bool, forGood bool) cluster.Snapshot {
	if len(out) == 0 {
		return s
	}
	pods = slices.Grow(pods, len(s.Pods))
	for i := range s.Pods {
		p := &s.Pods[i]
		if !out[p.NodeName] {
			pods = append(pods, *p)
		} else if p.Reschedulable() && !p.Protected(v.now()) && !v.s.Unevictable(*p) {
			pods = append(pods, *p)
			p = &pods[len(pods)-1]
			p.NodeName, p.Unscheduled, p.Deleting = "", true, time.Time{}
		}
	}
	s.Pods = pods
	s.Nodes = slices.DeleteFunc(slices.Clone(s.Nodes), func(n cluster.Node) bool { return out[n.Name] })
	s.Claims = slices.Clone(s.Claims)
	for i := range s.Claims {
		c := &s.Claims[i]
		n := v.byClaim[c.Name]
		if n == nil || n.Node == nil || !out[n.Node.Name] {
			continue
		}
		gone := cluster.Claim{Name: c.Name, Pool: c.Pool, Capacity: n.Capacity(), Allocatable: nothing(), Deleting: c.Deleting}
		if forGood {
			gone.Deleting = v.now()
		}
		*c = gone
	}
	return s
}

// ask is drop for one question: the pods are valid until the next.
func (v *view) ask(s cluster.Snapshot, out map[string]bool, forGood bool) cluster.Snapshot {
	s = v.dropInto(v.asking[:0], s, out, forGood)
	if len(out) > 0 {
		v.asking = s.Pods
	}
	return s
}
