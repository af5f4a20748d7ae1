package faultisolation

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	v1 "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/plan"
	"joiner.sh/pkg/model/requirements"
)

// part is a thing that a decision can be taken without: it is left out of the snapshot, or made harmless there.
type part struct {
	cluster.Aside
	at    []int // in the list of its kind
	since time.Time
	first string // of its names
}

// group is parts of one kind. A decision that fails with parts of a later group and not without them is more likely to
// fail about those.
type group []*part

// asideKey tells parts apart.
func asideKey(a cluster.Aside) string { return string(a.Kind) + "\x00" + a.Name + "\x00" + a.For }

// inventory is a snapshot with what can be left out of it.
type inventory struct {
	s      cluster.Snapshot
	groups []group
	byKey  map[string]*part
}

// takeInventory finds the parts of the snapshot. Those of a kind are in the order in which they came, so that the later
// of two that fail together is left out; pools and what has no time are in the order of their names.
func takeInventory(s cluster.Snapshot, claims bool) *inventory {
	inv := &inventory{s: s, byKey: map[string]*part{}}
	rest := group{}
	for i, d := range s.Daemons {
		rest = append(rest, newPart(cluster.DaemonPods, d.Key(), i))
	}
	for i, o := range s.Overlays {
		rest = append(rest, newPart(cluster.OverlayPart, o.Name, i))
	}
	var list group
	for i, c := range s.Claims {
		if claims {
			list = append(list, newPart(cluster.ClaimPart, c.Name, i))
		}
	}
	var stopped group
	for i, b := range s.Stopped {
		stopped = append(stopped, newPart(cluster.BufferPart, b.Namespace+"/"+b.Name, i))
	}
	waiting, running := inv.podParts()
	for _, g := range []group{running, byName(rest), inv.poolParts(""), waiting, byName(stopped), byName(list)} {
		if len(g) > 0 {
			inv.groups = append(inv.groups, g)
		}
		for _, p := range g {
			inv.byKey[asideKey(p.Aside)] = p
		}
	}
	return inv
}

// findPart is the part that was left out before, nil if it is there no more.
func (inv *inventory) findPart(a cluster.Aside) *part {
	if a.For == "" {
		return inv.byKey[asideKey(a)]
	}
	pool, pods := inv.byKey[asideKey(cluster.Aside{Kind: a.Kind, Name: a.Name})],
		inv.byKey[asideKey(cluster.Aside{Kind: cluster.WaitingPods, Name: a.For})]
	if pool == nil || pods == nil {
		return nil
	}
	x := *pool
	x.For = a.For
	return &x
}

func newPart(kind cluster.PartKind, name string, at int) *part {
	return &part{Aside: cluster.Aside{Kind: kind, Name: name}, at: []int{at}, first: name}
}

func byName(g group) group {
	slices.SortStableFunc(g, func(a, b *part) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind),
			strings.Compare(a.Name, b.Name))
	})
	return g
}

// poolParts are the NodePools, to be left out for all pods or for those alike that are named.
func (inv *inventory) poolParts(only string) (out group) {
	for i, p := range inv.s.Pools {
		x := newPart(cluster.PoolPart, p.Name, i)
		x.For = only
		out = append(out, x)
	}
	return byName(out)
}

// podParts groups the pods that are alike: those that need a place, and those that have one.
func (inv *inventory) podParts() (waiting, running group) {
	leaving := map[string]bool{}
	for _, node := range inv.s.StateNodes() {
		if node.Node != nil && node.MarkedForDeletion() {
			leaving[node.Node.Name] = true
		}
	}
	known := map[string]*part{}
	for i := range inv.s.Pods {
		p := &inv.s.Pods[i]
		kind := cluster.RunningPods
		if p.NodeName == "" || leaving[p.NodeName] {
			kind = cluster.WaitingPods
		}
		a := cluster.Aside{Kind: kind, Name: nameOf(p)}
		x := known[asideKey(a)]
		if x == nil {
			x = &part{Aside: a, since: p.Created, first: p.Key()}
			known[asideKey(a)] = x
			if kind == cluster.WaitingPods {
				waiting = append(waiting, x)
			} else {
				running = append(running, x)
			}
		}
		x.at = append(x.at, i)
		x.first = min(x.first, p.Key())
		if p.Created.Before(x.since) {
			x.since = p.Created
		}
	}
	for _, g := range []group{waiting, running} {
		slices.SortFunc(g, func(a, b *part) int {
			return cmp.Or(a.since.Compare(b.since), strings.Compare(a.first, b.first), strings.Compare(a.Name, b.Name))
		})
	}
	return waiting, running
}

// nameOf names pods that are alike: pods of one StatefulSet are, as far as their volumes may be in the same zones.
func nameOf(p *cluster.Pod) string {
	x := cluster.Pod{Namespace: p.Namespace, Priority: p.Priority, Critical: p.Critical, Owner: p.Owner,
		GraceSec: p.GraceSec, DoNotDisrupt: p.DoNotDisrupt, DeletionCost: p.DeletionCost,
		Need: p.Need, NeedAnew: p.NeedAnew, NeedBounds: p.NeedBounds, NodeSelector: p.NodeSelector,
		NodeAffinity: p.NodeAffinity, NodePrefers: p.NodePrefers, Tolerations: p.Tolerations, Spread: p.Spread,
		Affinity: p.Affinity, AntiAffinity: p.AntiAffinity, Prefers: p.Prefers, Avoids: p.Avoids,
		HostPorts: p.HostPorts, VolumeZones: p.VolumeZones, Requires: p.Requires, Unmodelled: p.Unmodelled,
		DeviceTemplates: p.DeviceTemplates, Virtual: p.Virtual}
	x.Labels = maps.Clone(p.Labels)
	delete(x.Labels, "statefulset.kubernetes.io/pod-name")
	delete(x.Labels, "apps.kubernetes.io/pod-index")
	for _, v := range p.Volumes {
		x.Volumes = append(x.Volumes, cluster.Volume{Driver: v.Driver})
	}
	text, err := json.Marshal(x)
	if err != nil { // no value of a pod is beyond JSON
		text = []byte(p.Key())
	}
	sum := sha256.Sum256(text)
	return p.Namespace + "/" + hex.EncodeToString(sum[:6])
}

// snapshotWithout is the snapshot without the parts. The one taken is not changed.
func (inv *inventory) snapshotWithout(out []*part) cluster.Snapshot {
	s := inv.s
	if len(out) == 0 {
		return s
	}
	gone := map[cluster.PartKind]map[int]bool{}
	s.Pods, s.Aside = slices.Clone(s.Pods), nil
	for _, p := range out {
		if gone[p.Kind] == nil {
			gone[p.Kind] = map[int]bool{}
		}
		switch {
		case p.Kind == cluster.RunningPods:
			for _, i := range p.at {
				s.Pods[i] = asFixedPod(s.Pods[i])
			}
		case p.Kind == cluster.ClaimPart:
			s.Aside = append(s.Aside, p.Aside)
		case p.For != "":
			inv.keepOff(s.Pods, p)
		case p.Kind == cluster.PoolPart, p.Kind == cluster.BufferPart:
			s.Aside = append(s.Aside, p.Aside) // its nodes belong to something
			gone[p.Kind][p.at[0]] = true
		default:
			for _, i := range p.at {
				gone[p.Kind][i] = true
			}
		}
	}
	s.Pods = withoutIndexes(s.Pods, gone[cluster.WaitingPods])
	s.Pools = withoutIndexes(s.Pools, gone[cluster.PoolPart])
	s.Overlays = withoutIndexes(s.Overlays, gone[cluster.OverlayPart])
	s.Stopped = withoutIndexes(s.Stopped, gone[cluster.BufferPart])
	s.Daemons = slices.Clone(s.Daemons)
	for i := range gone[cluster.DaemonPods] { // each on its own
		s.Daemons[i] = asFixedPod(s.Daemons[i])
	}
	return s
}

// withoutIndexes is the list without those elements. The one given is not changed.
func withoutIndexes[T any](list []T, gone map[int]bool) []T {
	if len(gone) == 0 {
		return list
	}
	out := make([]T, 0, len(list))
	for i, x := range list {
		if !gone[i] {
			out = append(out, x)
		}
	}
	return out
}

// asFixedPod is the pod as something that takes its room and has no rule, and that nobody moves.
func asFixedPod(p cluster.Pod) cluster.Pod {
	return cluster.Pod{Namespace: p.Namespace, Name: p.Name, UID: p.UID, Labels: p.Labels, Created: p.Created,
		Started: p.Started, Priority: p.Priority,
		Owner: p.Owner, Controller: p.Controller, Phase: p.Phase, Ready: p.Ready, NodeName: p.NodeName,
		Deleting: p.Deleting, GraceSec: p.GraceSec,
		Need: p.Need, Virtual: p.Virtual, DoNotDisrupt: "true"}
}

// keepOff keeps the pods that the pool is left out for off its nodes.
func (inv *inventory) keepOff(pods []cluster.Pod, pool *part) {
	alike := inv.byKey[asideKey(cluster.Aside{Kind: cluster.WaitingPods, Name: pool.For})]
	if alike == nil {
		return
	}
	elsewhere := requirements.Requirement{Key: v1.LabelNodePool, Not: true, Values: []string{pool.Name}}
	for _, i := range alike.at {
		terms := [][]requirements.Requirement{{elsewhere}}
		if mine := pods[i].NodeAffinity; len(mine) > 0 {
			terms = nil
			for _, t := range mine {
				if len(t) > 0 { // an empty term matches no node
					t = append(slices.Clip(t), elsewhere)
				}
				terms = append(terms, t)
			}
		}
		pods[i].NodeAffinity = terms
	}
}

// concernedPods are the pods of the part, sorted.
func (inv *inventory) concernedPods(a cluster.Aside) (out []string) {
	x := inv.byKey[asideKey(a)]
	if a.For != "" {
		x = inv.byKey[asideKey(cluster.Aside{Kind: cluster.WaitingPods, Name: a.For})]
	}
	if x == nil || x.Kind != cluster.WaitingPods && x.Kind != cluster.RunningPods {
		return nil
	}
	for _, i := range x.at {
		out = append(out, inv.s.Pods[i].Key())
	}
	slices.Sort(out)
	return out
}

// unplacedBy says, by namespace/name, why pods stay without a place that were left out, and of NodePools that were, by
// name, why nothing is launched from them.
func unplacedBy(inv *inventory, aside []cluster.Aside) (pods []plan.Unplaced, pools []plan.Skip) {
	for _, a := range aside {
		switch {
		case a.Kind == cluster.PoolPart && a.For == "" && inv.byKey[asideKey(a)] != nil:
			pools = append(pools, plan.Skip{Pool: a.Name, Why: whyPool + a.Why})
		case a.Kind == cluster.WaitingPods && inv.byKey[asideKey(a)] != nil:
			for _, i := range inv.byKey[asideKey(a)].at {
				if p := inv.s.Pods[i]; p.NodeName == "" && p.Provisionable() || p.NodeName != "" && p.Reschedulable() {
					pods = append(pods, plan.Unplaced{Pod: p.Key(), Why: []string{whyPod + a.Why}, Fault: true})
				}
			}
		}
	}
	slices.SortFunc(pods, func(a, b plan.Unplaced) int { return strings.Compare(a.Pod, b.Pod) })
	slices.SortFunc(pools, func(a, b plan.Skip) int { return strings.Compare(a.Pool, b.Pool) })
	return pods, pools
}

// What is said of what is left out.
const (
	whyPod  = "Joiner itself fails about this pod, and leaves it out so that others get their nodes: "
	whyPool = "Joiner itself fails about this NodePool, and leaves it out so that others are used: "
)
