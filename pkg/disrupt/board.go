package disrupt

import (
	"maps"
	"slices"

	"joiner/pkg/cluster"
	"joiner/pkg/resource"
)

// The packer says that pods can have a place; the scheduler, which gives each the emptiest node, may leave some without. A board plays
// the scheduler, so that a command brings what its pods will need, and saves what it says; and it finds in no time which nodes may be
// worth a question to the packer.

// site is a node that moved pods may come to.
type site struct {
	index     int
	name      string
	labels    map[string]string
	taints    []cluster.Taint
	free, all resource.List
	gone      bool // takes no pods
	held      bool // takes none yet
	taken     int  // moved pods that it got
}

// board is nodes with the pods on them. Moves on it are noted, and taken back with back.
type board struct {
	s        cluster.Snapshot
	sites    []*site
	byName   map[string]*site
	sorts    map[string]*sort // by text
	sortOf   map[podName]*sort
	counters map[string]*counter
	order    []*counter // in the order in which they came
	text     []byte
	steps    []step
	looks    int  // how many sites were looked at for pods
	blind    bool // no pod goes where the packer put it
}

// podName is a pod's key without making a text of it.
type podName struct{ namespace, name string }

// step is one move: a pod of the sort came to the site or left it, or the site went, or it came last.
type step struct {
	what moved
	sort *sort
	at   *site
}

type moved int

const (
	podCame moved = iota
	podLeft
	siteLeft
	siteCame
)

// newBoard has the hosts of s that take pods, but for those that are out.
func newBoard(s cluster.Snapshot, out map[string]bool) *board {
	b := &board{s: s, byName: map[string]*site{}, sorts: map[string]*sort{}, sortOf: map[podName]*sort{}, counters: map[string]*counter{}}
	used, daemons := map[string]resource.List{}, map[string]resource.List{}
	for i := range s.Pods {
		p := &s.Pods[i]
		if p.NodeName == "" || p.Terminal() || p.Virtual {
			continue
		}
		used[p.NodeName] = used[p.NodeName].Add(p.Need)
		if p.Owner == cluster.OwnerDaemonSet {
			daemons[p.NodeName] = daemons[p.NodeName].Add(p.Need)
		}
	}
	for _, h := range s.Hosts() {
		if out[h.Name()] || h.Condemned() || h.Node == nil {
			continue
		}
		x := &site{index: len(b.sites), name: h.Name(), labels: h.Labels(), taints: h.Taints(), all: h.Allocatable()}
		var kept resource.List
		for i := range s.Daemons {
			if admits(x, &s.Daemons[i]) {
				kept = kept.Add(s.Daemons[i].Need)
			}
		}
		x.free = x.all.Sub(used[x.name]).Sub(kept.Sub(daemons[x.name]).Max(resource.List{}))
		b.sites, b.byName[x.name] = append(b.sites, x), x
	}
	for i := range s.Pods {
		p := &s.Pods[i]
		if x := b.byName[p.NodeName]; x != nil && p.Active() && !p.Virtual {
			b.sort(p).stand(x, 1)
		}
	}
	for _, text := range slices.Sorted(maps.Keys(b.sorts)) { // those that stand keep others away
		b.prepare(b.sorts[text])
	}
	return b
}

// leave takes the node away with all that stands on it. What of that moves is to be put elsewhere.
func (b *board) leave(n *node) {
	x := b.byName[n.Name()]
	if x == nil || x.gone {
		return
	}
	for _, p := range n.moving {
		if !p.Active() {
			continue // it is not counted
		}
		b.do(step{podLeft, b.sort(p), x})
	}
	b.do(step{siteLeft, nil, x})
}

// come adds a node.
func (b *board) come(x *site) {
	x.index = len(b.sites)
	b.do(step{siteCame, nil, x})
}

// back takes back all but the first moves.
func (b *board) back(to int) {
	for len(b.steps) > to {
		last := b.steps[len(b.steps)-1]
		b.steps = b.steps[:len(b.steps)-1]
		b.undo(last)
	}
}

func (b *board) do(s step) {
	b.steps = append(b.steps, s)
	switch s.what {
	case podCame:
		s.at.free = s.at.free.Sub(s.sort.pod.Need)
		s.at.taken++
		s.sort.stand(s.at, 1)
	case podLeft:
		s.sort.stand(s.at, -1)
	case siteLeft:
		s.at.gone = true
		b.stays(s.at, -1)
	case siteCame:
		b.sites, b.byName[s.at.name] = append(b.sites, s.at), s.at
		for _, c := range b.order {
			c.see(s.at)
		}
		for _, k := range b.sorts {
			k.see(s.at)
		}
	}
}

func (b *board) undo(s step) {
	switch s.what {
	case podCame:
		s.at.free = s.at.free.Add(s.sort.pod.Need)
		s.at.taken--
		s.sort.stand(s.at, -1)
	case podLeft:
		s.sort.stand(s.at, 1)
	case siteLeft:
		s.at.gone = false
		b.stays(s.at, 1)
	case siteCame:
		b.sites = b.sites[:len(b.sites)-1]
		delete(b.byName, s.at.name)
		for _, c := range b.order {
			c.unsee(s.at)
		}
		for _, k := range b.sorts {
			k.unsee(s.at)
		}
	}
}

// run puts the pods onto the sites one after the other. It returns those that find no place. Where more decides about a pod than what
// a board knows, it goes where the packer put it: planned names the site by pod.
func (b *board) run(pods []*cluster.Pod, planned map[string]string) []*cluster.Pod {
	return b.move(pods, planned, true)
}

// move is run that stops, unless all are wanted, at the first pod without a place.
func (b *board) move(pods []*cluster.Pod, planned map[string]string, all bool) (left []*cluster.Pod) {
	for _, p := range pods {
		if b.blind || !choosy(p) {
			continue
		}
		if x := b.byName[planned[p.Key()]]; x != nil && !x.gone && p.Need.FitsIn(x.free) {
			b.do(step{podCame, b.sort(p), x})
		} else {
			left = append(left, p)
		}
		if len(left) > 0 && !all {
			return left
		}
	}
	for _, p := range pods {
		if !b.blind && choosy(p) {
			continue
		}
		k := b.sort(p)
		if x := b.best(k); x != nil {
			b.do(step{podCame, k, x})
		} else {
			left = append(left, p)
		}
		if len(left) > 0 && !all {
			return left
		}
	}
	return left
}

// best is the emptiest site that takes a pod of the sort, or nil.
func (b *board) best(k *sort) (out *site) {
	need := k.pod.Need
	rules := b.rules(k)
	most := 0.0
	all := b.admitting(k)
	b.looks += len(all)
	for _, x := range all {
		if x.gone || x.held || x.free.CPU < need.CPU || x.free.Memory < need.Memory {
			continue
		}
		e := x.emptiness(need)
		if (out == nil || e > most) && need.FitsIn(x.free) && rules.allow(x) {
			out, most = x, e
		}
	}
	return out
}

// either are the pods that do leaves without a place, which runs them: with those of which a board does not know all where the packer put
// them, else, since the scheduler may have another mind, as if there were no more to know. It takes back what do does.
func (b *board) either(pods []*cluster.Pod, do func() []*cluster.Pod) []*cluster.Pod {
	before := len(b.steps)
	left := do()
	b.back(before)
	if len(left) > 0 || !slices.ContainsFunc(pods, choosy) {
		return left
	}
	b.blind = true
	left = do()
	b.back(before)
	b.blind = false
	return left
}

// choosy reports whether more decides where the pod may be than a board knows.
func choosy(p *cluster.Pod) bool {
	return len(p.HostPorts)+len(p.VolumeZones)+len(p.Volumes)+len(p.UnreadClaims) > 0
}
