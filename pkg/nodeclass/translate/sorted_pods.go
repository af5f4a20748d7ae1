package translate

import (
	"cmp"
	"iter"
	"slices"
)

// SortedPods are pods by namespace and name. They are never changed. The zero value has none.
type SortedPods struct{ list []*ListedPod }

// SortPods sorts pods.
func SortPods(all iter.Seq[*ListedPod]) SortedPods {
	return SortedPods{slices.SortedFunc(all, compareListed)}
}

// Update is the pods after those of the UIDs given have changed, come or gone: all has what they are now. It sorts
// these alone.
func (s SortedPods) Update(changed map[string]bool, all map[string]*ListedPod) SortedPods {
	if len(changed) == 0 {
		return s
	}
	fresh := make([]*ListedPod, 0, len(changed))
	for uid := range changed {
		if p, ok := all[uid]; ok {
			fresh = append(fresh, p)
		}
	}
	slices.SortFunc(fresh, compareListed)
	out := make([]*ListedPod, 0, len(s.list)+len(fresh))
	for _, p := range s.list {
		if changed[p.UID] {
			continue
		}
		for len(fresh) > 0 && compareListed(fresh[0], p) < 0 {
			out, fresh = append(out, fresh[0]), fresh[1:]
		}
		out = append(out, p)
	}
	return SortedPods{append(out, fresh...)}
}

func compareListed(a, b *ListedPod) int {
	return cmp.Or(cmp.Compare(a.Shape.Namespace, b.Shape.Namespace), cmp.Compare(a.Name, b.Name),
		cmp.Compare(a.UID, b.UID))
}

// All are the pods in their order.
func (s SortedPods) All() iter.Seq[*ListedPod] { return slices.Values(s.list) }

// Len returns the number of pods.
func (s SortedPods) Len() int { return len(s.list) }
