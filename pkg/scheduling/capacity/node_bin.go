package capacity

import (
	"math"
	"slices"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/requirements"
	"joiner.sh/pkg/model/resources"
	"joiner.sh/pkg/scheduling/podclass"
)

// Bin is a node that pods can go to: one that exists, one on its way, or a new one.
type Bin struct {
	Name     string           // of the node or its claim; empty for a new node
	Known    requirements.Set // of a host
	Exact    bool             // known are all labels there are
	typed    bool             // known are all labels of its instance
	Offering *Offering        // of a new node
	Takes    resources.List   // what a new node takes of its pool's limits
	Low      LoweredMinValues // MinValues of a new node
	Open     requirements.Set // of a new node: the labels that its pods decide, with the values that they left so far

	Taints []cluster.Taint // that pods on it have to tolerate
	// of a host: whether it has what a pod requires
	provides func(part string) bool
	Room     []int64            // by dimension: what is free; all zero on an overcommitted node
	Count    []int              // by counter of hostnames: pods it has
	Anti     []int              // by counter of hostnames: pods that keep the group away
	Ports    []cluster.HostPort // host ports that its pods and its DaemonSets take
	Wanted   []string           // pods a claim was made for

	// of a host that is not in service yet: the DaemonSets whose pods will come, by place among all
	daemons []int
	Disks   podclass.AttachableVolumes // volumes that it can still attach; the zero value limits none
	Load    []PodLoad                  // pods that the solution put here; nil for none
	Paid    float64                    // what priceOf found, 0 when it has to look again
	answers *hostAnswers               // of a host: shared by all solutions
}

// PodLoad is the pods of one view that a solution put into a bin.
type PodLoad struct {
	Pod       *podclass.RelaxedPod // their class at the relaxation at which they got this place
	Pins      []podclass.DomainPin // domains that they were tied to; nil for none
	Admission *podclass.Admission  // whose alternatives Alt counts
	Alt       int                  // the alternative of admit that holds here
	Settled   bool                 // an earlier pass put them here
	Pods      []string             // namespace/name; nil where only the requirements of the load are asked about
}

// HasGuests reports whether the bin is a host on which the solution put pods that were not meant for it before.
func (b *Bin) HasGuests() bool {
	return b.Offering == nil && slices.ContainsFunc(b.Load, func(l PodLoad) bool { return !l.Settled })
}

// Clone is a copy whose room and counts may be changed.
func (b *Bin) Clone() *Bin {
	c := *b
	c.Room, c.Count, c.Anti = slices.Clone(b.Room), slices.Clone(b.Count), slices.Clone(b.Anti)
	c.Ports = slices.Clip(b.Ports)
	c.Disks = b.Disks.Clone()
	return &c
}

// DomainOf is the bin's value for the topology key, NoDomain while it is open or where there is none.
func (b *Bin) DomainOf(key string) string {
	known := b.Known
	if b.Offering != nil {
		known = b.Open
		for _, l := range b.Load {
			for _, p := range l.Pins {
				if p.Key == key {
					return p.Domain
				}
			}
		}
	}
	r, ok := known.Get(key)
	if v, single := r.Single(); single {
		return v
	}
	if !ok && b.Offering != nil {
		if d := b.Offering.domainsFor(key); len(d) == 1 {
			return d[0]
		}
	}
	return podclass.NoDomain
}

// SameContents reports whether two new nodes are alike but for the names of their pods.
func (b *Bin) SameContents(o *Bin) bool {
	return b.Offering == o.Offering && slices.EqualFunc(b.Load, o.Load, func(x, y PodLoad) bool {
		return x.Pod == y.Pod && x.Admission == y.Admission && x.Alt == y.Alt && len(x.Pods) == len(y.Pods)
	})
}

// FitCount returns how many times need fits into room.
func FitCount(need, room []int64) int {
	n := int64(math.MaxInt32)
	for i, x := range need {
		switch {
		case room[i] < x:
			return 0
		case x > 0:
			n = min(n, room[i]/x)
		}
	}
	return int(n)
}

// AlternativeFor returns the first alternative of the admission that lets its pods run on the existing node or claim,
// -1 for none. The node remembers the answer.
func (b *Bin) AlternativeFor(a *podclass.Admission) int {
	x := b.answers
	if x == nil {
		return b.findAlternative(a)
	}
	if a.Number >= len(x.byAdmission) {
		x.byAdmission = append(x.byAdmission, make([]int16, a.Number+1-len(x.byAdmission))...)
	}
	if x.byAdmission[a.Number] == 0 {
		x.byAdmission[a.Number] = int16(min(b.findAlternative(a), mostAlternatives)) + 2
	}
	return int(x.byAdmission[a.Number]) - 2
}

// findAlternative is AlternativeFor for a node that remembers nothing.
func (b *Bin) findAlternative(a *podclass.Admission) int {
	if len(cluster.Untolerated(b.Taints, a.Tolerations)) > 0 || slices.ContainsFunc(a.Exclusions, b.awaits) ||
		!b.providesAll(a.Requires) {
		return -1
	}
	for i, alt := range a.Alternatives {
		if b.Known.Within(alt, b.surelyLacks) {
			return i
		}
	}
	return -1
}

func (b *Bin) providesAll(required []string) bool {
	return !slices.ContainsFunc(required, func(part string) bool { return !b.provides(part) })
}

// surelyLacks reports whether a host of which no value of the label is known has none, or none that a pod can mean. The
// labels of an instance type stand on a claim once it is launched, the partition of its placement group comes later.
// The name of its node comes later too, and is new.
func (b *Bin) surelyLacks(key string) bool {
	return b.Exact || !podclass.IsWellKnownLabel(key) || key == podclass.LabelHost || b.typed &&
		key != instancetypes.LabelPartition
}

// awaits reports whether the host will have a pod of the DaemonSet and a value for the key.
func (b *Bin) awaits(x podclass.Exclusion) bool {
	if _, comes := slices.BinarySearch(b.daemons, x.Daemon); !comes {
		return false
	}
	r, has := b.Known.Get(x.Key)
	return has && r.Operator() != requirements.DoesNotExist || x.Key == podclass.LabelHost ||
		podclass.OnEveryNode(x.Key)
}
