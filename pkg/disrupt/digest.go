package disrupt

import (
	"encoding/json"
	"hash/fnv"
	"maps"
	"math"
	"slices"
	"time"

	v1 "joiner/pkg/api/v1"
	"joiner/pkg/catalog"
	"joiner/pkg/cluster"
	"joiner/pkg/pack"
	"joiner/pkg/resource"
)

// digest sums up all that the answers of this search depend on.
type digest uint64

func (d *digest) text(list ...string) {
	h := uint64(*d)
	for _, s := range list {
		for i := range len(s) {
			h = (h ^ uint64(s[i])) * 1099511628211
		}
		h = (h ^ 0xff) * 1099511628211
	}
	*d = digest(h)
}

func (d *digest) number(list ...int64) {
	h := uint64(*d)
	for _, n := range list {
		h = (h ^ uint64(n)) * 1099511628211
		h ^= h >> 29
	}
	*d = digest(h)
}

func (d *digest) price(usd float64) { d.number(int64(math.Float64bits(usd))) }

func (d *digest) yes(list ...bool) {
	for i, b := range list {
		if b {
			d.number(int64(i) + 1)
		}
	}
	d.number(0)
}

func (d *digest) amounts(l resource.List) {
	d.number(l.CPU, l.Memory, l.Ephemeral, l.Pods)
	for _, e := range l.Extended {
		d.text(e.Name)
		d.number(e.Count)
	}
}

// labels adds up, so that the order of a map does not matter.
func (d *digest) labels(m map[string]string) {
	var sum uint64
	for k, v := range m {
		x := begin()
		x.text(k, v)
		sum += uint64(x)
	}
	d.number(int64(sum), int64(len(m)))
}

// asJSON is for what is small.
func (d *digest) asJSON(what any) {
	b, err := json.Marshal(what)
	if err != nil {
		b = []byte(err.Error()) // cannot be: snapshots are stored as JSON
	}
	h := fnv.New64a()
	h.Write(b)
	d.number(int64(h.Sum64()))
}

// restless is how long after a node became ready what the packer says about it changes with time alone.
const restless = 20 * time.Second

// digest is about the baselines, who may go, what is sold, and the settings. Lists are added up, so that their order does not matter. The
// baseline of consolidation is that of drift without the room on nodes that settle, and both are told of each node.
func (v *view) digest(candidates []*node) uint64 {
	d := begin()
	d.asJSON([]any{v.s.Rules, v.paid, v.room})
	each(&d, v.s.Classes, func(x *digest, c *catalog.Class) { x.asJSON(c) })
	each(&d, v.s.Overlays, func(x *digest, o *cluster.Overlay) { x.asJSON(o) })
	each(&d, v.s.Daemons, func(x *digest, p *cluster.Pod) { x.asJSON(p) })
	each(&d, v.s.Namespaces, func(x *digest, n *cluster.Namespace) { x.asJSON(n) })
	each(&d, v.s.Budgets, func(x *digest, b *cluster.Budget) { x.asJSON(b) })
	each(&d, v.s.Pools, func(x *digest, p *cluster.Pool) { x.pool(v, p) })
	each(&d, v.renewal.s.Pods, (*digest).pod)
	each(&d, v.renewal.s.Nodes, (*digest).node)
	d.text(slices.Sorted(maps.Keys(v.housed))...)
	each(&d, candidates, func(x *digest, n **node) {
		x.text((*n).Claim.Name)
		x.price((*n).price)
		x.price((*n).cost)
	})
	each(&d, v.nodes, func(x *digest, n **node) { x.host(v, *n) })
	if len(v.s.Pools) > manyPools {
		d.number(v.now().Unix() / 60)
	}
	return uint64(d)
}

func begin() digest { return 14695981039346656037 }

// each adds up what do says of the items.
func each[T any](d *digest, list []T, do func(*digest, *T)) {
	var sum uint64
	for i := range list {
		x := begin()
		do(&x, &list[i])
		sum += uint64(x)
	}
	d.number(int64(sum), int64(len(list)))
}

// host is what we know of a node of ours beside its Node object.
func (d *digest) host(v *view, n *node) {
	d.text(n.Claim.Name, n.Pool(), n.barred.word)
	d.yes(n.taken, n.Initialized(), n.Condemned(), v.settling(n))
	if n.Node == nil || n.Claim.Annotations[pack.AnnotationNominated] != "" && v.now().Before(n.Node.ReadySince.Add(restless)) {
		d.number(v.now().UnixNano())
	}
}

// manyPools is from how many pools on the packer does not look at all of them in each minute.
const manyPools = 50

// pool is the pool with what it may launch, and how many of its nodes may go.
func (d *digest) pool(v *view, p *cluster.Pool) {
	d.asJSON(p)
	for _, r := range []v1.DisruptionReason{v1.DisruptionEmpty, v1.DisruptionDrifted, v1.DisruptionUnderutilized} {
		d.number(int64(v.left[p.Name][r]))
	}
	each(d, v.types(*p), func(d *digest, t *catalog.Type) {
		d.text(t.Name)
		d.amounts(t.Allocatable)
		for i := range t.Offerings {
			o := &t.Offerings[i]
			d.text(o.Zone, o.CapacityType)
			d.price(o.Price)
			d.yes(o.Available)
			if o.Reservation != nil {
				d.text(o.Reservation.ID)
				d.number(o.Reservation.Remaining)
			}
		}
	})
}

func (d *digest) pod(p *cluster.Pod) {
	d.text(p.UID, p.Namespace, p.Name, p.NodeName, p.Phase, p.Nominated, p.DoNotDisrupt)
	d.number(int64(p.Priority), int64(p.DeletionCost), int64(len(p.Tolerations)), int64(len(p.NodeSelector)), int64(len(p.Volumes)), int64(len(p.Spread)))
	d.yes(p.Terminating(), p.Unscheduled, p.Virtual)
	if len(p.VolumeZones) > 0 {
		d.asJSON(p.VolumeZones)
	}
	d.amounts(p.Need)
	d.labels(p.Labels)
}

func (d *digest) node(n *cluster.Node) {
	d.text(n.Name)
	d.yes(n.Ready, !n.Deleting.IsZero())
	d.labels(n.Labels)
	d.amounts(n.Allocatable)
	d.number(int64(len(n.VolumeLimits)))
	for _, driver := range slices.Sorted(maps.Keys(n.VolumeLimits)) {
		d.text(driver)
		d.number(n.VolumeLimits[driver])
	}
	for _, t := range n.Taints {
		d.text(t.Key, t.Value, t.Effect)
	}
}

// mostWhy is how much of a reason is remembered.
const mostWhy = 300

// reasons are why nodes stay, where it is not that nothing cheaper was found.
func (v *view) reasons(all []*node) map[string]Kept {
	out := map[string]Kept{}
	for _, n := range all {
		if n.kept.word != "" {
			out[n.Claim.Name] = Kept{n.kept.word, n.kept.why[:min(len(n.kept.why), mostWhy)]}
		}
	}
	return out
}

// recall says of nodes again why they stay.
func (v *view) recall(all []*node, kept map[string]Kept) {
	for _, n := range all {
		if k, ok := kept[n.Claim.Name]; ok && n.kept.word == "" {
			n.kept = refuse{k.Word, k.Why}
		}
	}
}
