package disruption

import (
	"encoding/binary"
	"encoding/json"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/cespare/xxhash/v2"
	v1 "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/resources"
)

// inputDigest collects all that the answers of a search depend on, for a digest of it.
type inputDigest []byte

// sum returns the digest, which memory holds: it is the same in every process.
func (d inputDigest) sum() uint64 {
	return xxhash.Sum64(d)
}

func (d *inputDigest) addText(list ...string) {
	for _, s := range list {
		*d = append(append(*d, s...), math.MaxUint8) // which no text has
	}
}

func (d *inputDigest) addNumber(list ...int64) {
	for _, n := range list {
		*d = binary.BigEndian.AppendUint64(*d, uint64(n))
	}
}

func (d *inputDigest) addPrice(usd float64) { d.addNumber(int64(math.Float64bits(usd))) }

func (d *inputDigest) addBool(list ...bool) {
	for i, b := range list {
		if b {
			d.addNumber(int64(i) + 1)
		}
	}
	d.addNumber(0)
}

func (d *inputDigest) addAmounts(l resources.List) {
	d.addNumber(l.CPU, l.Memory, l.Ephemeral, l.Pods)
	for _, e := range l.Extended {
		d.addText(e.Name)
		d.addNumber(e.Count)
	}
}

// addLabels adds up, so that the order of a map does not matter.
func (d *inputDigest) addLabels(m map[string]string) {
	var sum uint64
	start := len(*d)
	for k, v := range m {
		d.addText(k, v)
		sum += d.cut(start)
	}
	d.addNumber(int64(sum), int64(len(m)))
}

// cut takes what was added from start on off again, and returns the digest of that.
func (d *inputDigest) cut(start int) uint64 {
	sum := (*d)[start:].sum()
	*d = (*d)[:start]
	return sum
}

// asJSON is for what is small.
func (d *inputDigest) asJSON(what any) {
	b, err := json.Marshal(what)
	if err != nil {
		b = []byte(err.Error()) // cannot be: snapshots are stored as JSON
	}
	*d = append(*d, b...)
}

// digestInputs returns the digest of the baselines, who may go, what is sold, and the settings. Lists are added up, so
// that their order does not matter. Of the baseline of consolidation it covers which nodes have no room there.
func (ps *pass) digestInputs(candidates []*stateNode) uint64 {
	var d inputDigest
	sold := ps.state.snapshot.Catalog
	d.asJSON([]any{ps.state.snapshot.Rules, ps.state.paidShares, ps.state.commitmentsLeft, ps.state.snapshot.Unused,
		sold.Time, sold.TypesTime})
	sumDigests(&d, ps.state.snapshot.Classes, func(x *inputDigest, c *instancetypes.Class) { x.asJSON(c) })
	sumDigests(&d, ps.state.snapshot.Overlays, func(x *inputDigest, o *cluster.Overlay) { x.asJSON(o) })
	sumDigests(&d, ps.state.snapshot.Daemons, func(x *inputDigest, p *cluster.Pod) { x.asJSON(p) })
	sumDigests(&d, ps.state.snapshot.Namespaces, func(x *inputDigest, n *cluster.Namespace) { x.asJSON(n) })
	sumDigests(&d, ps.state.snapshot.Budgets, func(x *inputDigest, b *cluster.PodDisruptionBudget) { x.asJSON(b) })
	sumDigests(&d, ps.state.snapshot.Pools, func(x *inputDigest, p *cluster.Pool) { x.addPool(ps.state, ps.budget, p) })
	sumDigests(&d, ps.eval.driftBaseline.snapshot.Pods, (*inputDigest).addPod)
	sumDigests(&d, ps.eval.driftBaseline.snapshot.Nodes, (*inputDigest).addNode)
	d.addText(slices.Sorted(maps.Keys(ps.eval.podsWithLaunch))...)
	sumDigests(&d, candidates, func(x *inputDigest, n **stateNode) {
		x.addText((*n).Claim.Name)
		x.addPrice((*n).price)
		x.addPrice((*n).cost)
	})
	sumDigests(&d, ps.state.nodes, func(x *inputDigest, n **stateNode) { x.addStateNode(ps.state, *n) })
	for _, n := range candidates {
		if ps.candidates.goesAlone(n) {
			d.addText(n.Claim.Name, "alone")
		}
	}
	if len(ps.state.snapshot.Pools) > manyPools {
		d.addNumber(ps.state.now().Truncate(time.Minute).Unix())
	}
	return d.sum()
}

// sumDigests adds the sum of the digests of the items.
func sumDigests[T any](d *inputDigest, list []T, do func(*inputDigest, *T)) {
	var sum uint64
	start := len(*d)
	for i := range list {
		do(d, &list[i])
		sum += d.cut(start)
	}
	d.addNumber(int64(sum), int64(len(list)))
}

// addStateNode adds what is known of a node beside its Node object.
func (d *inputDigest) addStateNode(st *State, n *stateNode) {
	d.addText(n.Claim.Name, n.Pool(), string(n.blocked.reason))
	d.addBool(n.taken, n.Initialized(), n.MarkedForDeletion(), st.takesNoPods(n))
	d.addLabels(n.Claim.Labels)
	d.addAmounts(n.Claim.Capacity)
	d.addAmounts(n.Claim.Allocatable)
	if n.Node == nil || n.Claim.Annotations[v1.AnnotationNominatedPods] != "" &&
		st.now().Before(n.Node.ReadySince.Add(cluster.RefusedAfter)) {
		d.addNumber(st.now().UnixNano())
	}
}

// manyPools is the number of pools beyond which the packer does not look at all of them in each minute.
const manyPools = 50

// addPool adds the pool with what it may launch, and how many of its nodes may go.
func (d *inputDigest) addPool(st *State, budget *Budget, p *cluster.Pool) {
	d.asJSON(p)
	for _, r := range []v1.DisruptionReason{v1.DisruptionEmpty, v1.DisruptionDrifted, v1.DisruptionUnderutilized} {
		d.addNumber(int64(budget.Left(p.Name, r)))
	}
	sumDigests(d, st.types(*p), (*inputDigest).addType)
}

func (d *inputDigest) addType(t *instancetypes.Type) {
	d.addText(t.Name)
	d.addAmounts(t.Allocatable)
	for i := range t.Offerings {
		o := &t.Offerings[i]
		d.addText(o.Zone, o.CapacityType)
		d.addPrice(o.Price)
		d.addPrice(o.NodeUSD)
		d.addBool(o.Available)
		for _, c := range o.Paid {
			d.addText(c.Commitment)
			d.addNumber(c.Amount)
		}
		if o.Reservation != nil {
			d.addText(o.Reservation.ID)
			d.addNumber(o.Reservation.Remaining)
		}
	}
}

func (d *inputDigest) addPod(p *cluster.Pod) {
	if p.Virtual { // a CapacityBuffer has others of the same UID once its template changes
		d.asJSON(p)
		return
	}
	d.addText(p.UID, p.Namespace, p.Name, p.NodeName, p.Phase, p.Nominated, p.DoNotDisrupt, string(p.Owner))
	d.addNumber(int64(p.Priority), int64(p.DeletionCost), int64(len(p.Tolerations)), int64(len(p.NodeSelector)),
		int64(len(p.Volumes)), int64(len(p.Spread)))
	d.addBool(p.Terminating(), p.Unscheduled)
	if len(p.VolumeZones) > 0 {
		d.asJSON(p.VolumeZones)
	}
	for _, v := range p.Volumes {
		d.addText(v.Driver, v.ID)
	}
	for i, list := range [][]string{p.Requires, p.Holds, p.Unmodelled, p.UnreadClaims, p.DeviceTemplates,
		p.DeviceClaims} {
		if len(list) > 0 {
			d.addNumber(int64(i))
			d.addText(list...)
		}
	}
	d.addAmounts(p.Need)
	if !p.NeedAnew.IsZero() {
		d.addAmounts(p.NeedAnew)
	}
	d.addLabels(p.Labels)
}

func (d *inputDigest) addNode(n *cluster.Node) {
	d.addText(n.Name)
	d.addBool(n.Ready, !n.Deleting.IsZero())
	d.addLabels(n.Labels)
	d.addAmounts(n.Capacity)
	d.addAmounts(n.Allocatable)
	d.addNumber(int64(len(n.VolumeLimits)))
	for _, driver := range slices.Sorted(maps.Keys(n.VolumeLimits)) {
		d.addText(driver)
		d.addNumber(n.VolumeLimits[driver])
	}
	d.addText(n.Provides...)
	for _, t := range n.Taints {
		d.addText(t.Key, t.Value, t.Effect)
	}
}

// rememberedReasons returns why nodes stay, where another reason was found than that nothing is cheaper.
func (cs *candidates) rememberedReasons(all []*stateNode) map[string]RetainedReason {
	out := map[string]RetainedReason{}
	for _, n := range all {
		if n.notConsolidated.reason != "" {
			out[n.Claim.Name] = RetainedReason{n.notConsolidated.reason, n.notConsolidated.why}
		}
	}
	return out
}

// recallReasons records again why nodes stay.
func (cs *candidates) recallReasons(all []*stateNode, kept map[string]RetainedReason) {
	for _, n := range all {
		if k, ok := kept[n.Claim.Name]; ok {
			n.presumeNotConsolidated(refusal{k.Reason, k.Why})
		}
	}
}
