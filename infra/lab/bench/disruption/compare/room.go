package main

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	api "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/requirements"
	"joiner.sh/pkg/model/resources"
)

// room is a node that pods may come to.
type room struct {
	labels map[string]string
	taints []cluster.Taint
	free   resources.List
	pods   []cluster.Pod
}

// hasRoom reports whether the pods of the command have room on the nodes there are and on what it launches, by trying
// every way: then Karpenter's first fit is all that is against it. It is false where pods must be with others.
func (f finding) hasRoom() bool {
	var pods []cluster.Pod
	for _, p := range f.snapshot.Pods {
		if !f.movesPod(p) {
			continue
		}
		if len(p.Affinity) > 0 {
			return false
		}
		pods = append(pods, p)
	}
	return placeAll(pods, f.freeRooms(), zonesOf(f.snapshot.Catalog))
}

// movesPod reports whether the pod needs another node when the command's nodes go, or waits for one that is there.
func (f finding) movesPod(p cluster.Pod) bool {
	if !p.Reschedulable() {
		return false
	}
	for _, name := range f.command.Claims {
		h, ok := hostOf(f.snapshot, name)
		if ok && h.Node != nil && h.Node.Name == p.NodeName {
			return !p.Protected(f.snapshot.Now) && !f.snapshot.Obstacles().Unevictable(&p)
		}
	}
	return false
}

// freeRooms are the nodes that stay, with what is free there, and the replacements.
func (f finding) freeRooms() (out []room) {
	for _, h := range f.snapshot.StateNodes() {
		gone := h.Claim != nil && (slices.Contains(f.command.Claims, h.Claim.Name) ||
			slices.Contains(f.begun, h.Claim.Name))
		if h.Node == nil || gone || h.MarkedForDeletion() || !h.Initialized() || f.isYoung(h) {
			continue
		}
		free := h.Allocatable()
		var daemons resources.List
		var pods []cluster.Pod
		for _, p := range f.snapshot.Pods {
			if p.NodeName != h.Node.Name {
				continue
			}
			pods = append(pods, p)
			free = free.Sub(p.Need)
			if p.Owner == cluster.OwnerDaemonSet {
				daemons = daemons.Add(p.Need)
			}
		}
		out = append(out, f.withDaemons(room{h.Labels(), h.Taints(), free, pods}, daemons))
	}
	for _, l := range f.command.Launches {
		for _, t := range f.sells {
			if t.Name == l.Choice.Type {
				out = append(out, f.withDaemons(room{launchLabels(t, l.Choice.OfferingKey, l.Pool, l.Labels), l.Taints,
					t.Allocatable, nil}, resources.List{}))
			}
		}
	}
	return out
}

// isYoung reports whether consolidation puts nothing on the node. Both ask that of nodes of NodePools that may launch.
func (f finding) isYoung(h cluster.StateNode) bool {
	if f.Reason != api.DisruptionUnderutilized || h.Claim == nil {
		return false
	}
	p, ok := f.snapshot.PoolOf(h.Claim.Pool)
	since := h.Claim.Condition(api.ConditionInitialized).Since
	if h.Claim.LastPodEvent.After(since) {
		since = h.Claim.LastPodEvent
	}
	return ok && p.Ready && !p.Static && !p.Disruption.Never && f.snapshot.Now.Before(since.Add(p.Disruption.After))
}

// withDaemons keeps room for the daemons that the node will have beside those it has.
func (f finding) withDaemons(r room, has resources.List) room {
	var all resources.List
	for i := range f.snapshot.Daemons {
		if r.takesPod(&f.snapshot.Daemons[i]) {
			all = all.Add(f.snapshot.Daemons[i].Need)
		}
	}
	r.free = r.free.Sub(all.Sub(has).Max(resources.List{}))
	return r
}

func launchLabels(
	t instancetypes.Type, o instancetypes.OfferingKey, pool string, more map[string]string,
) map[string]string {
	out := t.Requirements.Labels()
	for k, v := range more {
		out[k] = v
	}
	out[api.LabelNodePool], out[api.LabelCapacityType], out["topology.kubernetes.io/zone"] = pool, o.CapacityType,
		o.Zone
	return out
}

// takesPod reports whether labels and taints let the pod there.
func (r room) takesPod(p *cluster.Pod) bool {
	for k, v := range p.NodeSelector {
		if has, ok := r.labels[k]; !ok || has != v {
			return false
		}
	}
	meets := func(term []requirements.Requirement) bool {
		return !slices.ContainsFunc(term, func(q requirements.Requirement) bool { return !q.Matches(r.labels) })
	}
	hard := slices.DeleteFunc(slices.Clone(r.taints),
		func(t cluster.Taint) bool { return t.Effect == "PreferNoSchedule" || t.IsNomination() })
	return (len(p.NodeAffinity) == 0 || slices.ContainsFunc(p.NodeAffinity, meets)) &&
		len(cluster.Untolerated(hard, p.Tolerations)) == 0
}

// placeAll reports whether the pods can be shared out over the rooms.
func placeAll(pods []cluster.Pod, rooms []room, zones []string) bool {
	if len(pods) == 0 {
		return spreadHolds(rooms, zones)
	}
	p := pods[0]
	for i := range rooms {
		if !p.Need.FitsIn(rooms[i].free) || !rooms[i].takesPod(&p) {
			continue
		}
		if slices.ContainsFunc(rooms[i].pods, func(other cluster.Pod) bool {
			return avoidsPod(p, other) ||
				avoidsPod(other, p)
		}) {
			continue
		}
		before := rooms[i]
		p.NodeName = moved
		rooms[i].free, rooms[i].pods = before.free.Sub(p.Need), append(slices.Clone(before.pods), p)
		if placeAll(pods[1:], rooms, zones) {
			return true
		}
		rooms[i] = before
	}
	return false
}

// avoidsPod reports whether the pod may not be on a node with the other one.
func avoidsPod(p, other cluster.Pod) bool {
	return slices.ContainsFunc(p.AntiAffinity, func(t cluster.AffinityTerm) bool {
		return other.Active() && p.Namespace == other.Namespace && t.Selector.Matches(other.Labels)
	})
}

// moved is the node name of pods that were given a place.
const moved = "moved"

func zonesOf(c instancetypes.Catalog) []string { return slices.Sorted(maps.Keys(c.Zones)) }

// spreadHolds reports whether the spread of every pod that was given a place holds over the zones.
func spreadHolds(rooms []room, zones []string) bool {
	for _, r := range rooms {
		for _, p := range r.pods {
			if p.NodeName == moved && slices.ContainsFunc(p.Spread,
				func(c cluster.Spread) bool { return !c.Soft && !evenFor(c, p, r, rooms, zones) }) {
				return false
			}
		}
	}
	return true
}

func evenFor(c cluster.Spread, p cluster.Pod, at room, rooms []room, zones []string) bool {
	counts := map[string]int32{}
	for _, r := range rooms {
		for _, other := range r.pods {
			if other.Active() && other.Namespace == p.Namespace && c.Selector.Matches(other.Labels) {
				counts[r.labels[c.Key]]++
			}
		}
	}
	least := counts[zones[0]]
	for _, z := range zones {
		least = min(least, counts[z])
	}
	return c.Key == corev1.LabelTopologyZone && counts[at.labels[c.Key]]-least <= c.MaxSkew
}
