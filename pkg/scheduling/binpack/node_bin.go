package binpack

import (
	"math"
	"slices"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/requirements"
	"joiner.sh/pkg/model/resources"
	"joiner.sh/pkg/scheduling/podclass"
)

// bin is a node that pods can go to: one that exists, one on its way, or a new one.
type bin struct {
	name  string
	known requirements.Set // of a host
	exact bool             // known are all labels there are
	typed bool             // known are all labels of its instance
	offer *poolOffering    // of a new node
	takes resources.List   // what a new node takes of its pool's limits
	low   loweredMinValues // minValues of a new node
	open  requirements.Set // of a new node: the labels that its pods decide, with the values that they left so far

	taints []cluster.Taint
	room   []int64
	count  []int // by counter of hostnames: pods it has
	anti   []int // by counter of hostnames: pods that keep the group away
	ports  []cluster.HostPort
	wanted []string // pods a claim was made for

	// of a host that is not in service yet: the DaemonSets whose pods will come, by place among all
	daemons []int
	disks   podclass.AttachableVolumes
	load    []podLoad
	paid    float64      // what priceOf found, 0 when it has to look again
	answers *hostAnswers // of a host: shared by all solutions
}

// podLoad is what a solution put into a bin: some pods of one view.
type podLoad struct {
	view    *podclass.RelaxedPod
	pins    []podclass.DomainPin
	admit   *podclass.Admission
	alt     int  // the alternative of admit that holds here
	settled bool // an earlier pass put them here
	pods    []string
}

// hasGuests reports whether the bin is a host on which the solution put pods that were not meant for it before.
func (b *bin) hasGuests() bool {
	return b.offer == nil && slices.ContainsFunc(b.load, func(l podLoad) bool { return !l.settled })
}

// clone is a copy whose room and counts may be changed.
func (b *bin) clone() *bin {
	c := *b
	c.room, c.count, c.anti = slices.Clone(b.room), slices.Clone(b.count), slices.Clone(b.anti)
	c.ports = slices.Clone(b.ports)
	c.disks = b.disks.Clone()
	return &c
}

// domainOf is the bin's value for the topology key, empty while it is open.
func (b *bin) domainOf(key string) string {
	if b.offer == nil {
		if r, ok := b.known.Get(key); ok {
			v, _ := r.Single()
			return v
		}
		return ""
	}
	for _, l := range b.load {
		for _, p := range l.pins {
			if p.Key == key {
				return p.Domain
			}
		}
	}
	if r, ok := b.open.Get(key); ok {
		v, _ := r.Single()
		return v
	}
	if d := b.offer.domainsFor(key); len(d) == 1 {
		return d[0]
	}
	return ""
}

// sameContents reports whether two new nodes are alike but for the names of their pods.
func (b *bin) sameContents(o *bin) bool {
	return b.offer == o.offer && slices.EqualFunc(b.load, o.load, func(x, y podLoad) bool {
		return x.view == y.view && x.admit == y.admit && x.alt == y.alt && len(x.pods) == len(y.pods)
	})
}

// fitCount is how many of need fit into room.
func fitCount(need, room []int64) int {
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

// portsConflict reports whether pods with these host ports cannot share a node.
func portsConflict(a, b []cluster.HostPort) bool {
	for _, x := range a {
		for _, y := range b {
			if x.Port == y.Port && x.Protocol == y.Protocol && (x.IP == y.IP || anyIP(x.IP) || anyIP(y.IP)) {
				return true
			}
		}
	}
	return false
}

func anyIP(ip string) bool { return ip == "" || ip == "0.0.0.0" || ip == "::" }

// narrowOpenLabels limits the open labels to what the alternative allows; false when that leaves no value of one.
func narrowOpenLabels(open, alt requirements.Set) (requirements.Set, bool) {
	if open.Len() == 0 {
		return open, true
	}
	for _, r := range alt.All() {
		if mine, ok := open.Get(r.Key); ok {
			if !mine.Overlaps(r) {
				return open, false
			}
			open = open.And(r)
		}
	}
	return open, true
}
