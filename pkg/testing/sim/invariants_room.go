package sim

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	v1 "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/resources"
	"joiner.sh/pkg/testing/objects"
)

// willRefuse says why the node will not take the pod, as far as anybody can know: that its kubelet is silent shows only
// once its Ready condition says so, pods that end stand in the way of others for less than a minute, and provision lets
// pods onto nodes held for those that are evicted.
func willRefuse(w *world, p *pod, n *node) string {
	seen := *n
	seen.down = false
	if c := w.api.byUID[n.owner]; c != nil && c.Annotations[v1.AnnotationNominatedOwners] != "" {
		seen.Taints = slices.DeleteFunc(slices.Clone(n.Taints), cluster.Taint.IsNomination)
	}
	why := w.scheduler.refusalReason(p, &seen)
	if why != "pod affinity" {
		return why
	}
	ending := map[string]*pod{}
	for key, other := range w.api.pods {
		if other.Terminating() {
			ending[key] = other
		}
	}
	for key := range ending {
		delete(w.api.pods, key)
	}
	why = w.scheduler.refusalReason(p, &seen)
	for key, other := range ending {
		w.api.pods[key] = other
	}
	return why
}

// moveKin puts the pods of other apps that have the labels of this one, and run on the node too, where they have a
// place once the node is gone: they count for its spread. It returns what takes that back.
func moveKin(w *world, p *pod, n *node) (back func()) {
	var moved []*pod
	for _, kin := range w.api.podsOn(n.Name) {
		if kin.app == p.app || !kin.app.isKinOf(p.app) || !kin.Active() {
			continue
		}
		kin.NodeName = ""
		for _, name := range slices.Sorted(maps.Keys(w.api.nodes)) {
			if willRefuse(w, kin, w.api.nodes[name]) == "" {
				kin.NodeName = name
				break
			}
		}
		moved = append(moved, kin)
	}
	return func() {
		for _, kin := range moved {
			kin.NodeName = n.Name
		}
	}
}

// whyNot says of each node why it does not take the pod.
func whyNot(w *world, p *pod) string {
	var out string
	for _, name := range slices.Sorted(maps.Keys(w.api.nodes)) {
		if p.NodeName == "" {
			out += fmt.Sprintf("; %s: %s", name, cmp.Or(w.scheduler.refusalReason(p, w.api.nodes[name]), "would"))
		}
	}
	return out
}

// cannotPlace reports whether no node may be made for the pod, because with any that holds it its pool would be above
// its limits. Of pods that a limit keeps from being spread, all may have to wait.
func cannotPlace(w *world, p *pod) bool {
	if p.NodeName != "" || time.Since(p.Created) < patience || time.Since(w.calmed) < patience {
		return false
	}
	pool := w.api.pools[0]
	for _, other := range w.api.pools {
		if !other.Static && p.NodeSelector["team"] == other.Labels["team"] {
			pool = other
		}
	}
	if len(pool.Limited) > 0 && len(p.Spread) > 0 || volumesApart(w, p, pool) {
		return true
	}
	zone := cmp.Or(p.NodeSelector[labelZone], w.volumes.zoneOf(p.volumeClaims, 0))
	need := p.Need
	for _, a := range w.workloads.apps {
		if a.daemon {
			need = need.Add(a.pattern.Need)
		}
	}
	for _, t := range w.catalog.types {
		if need.FitsIn(t.Allocatable) && w.catalog.isOffered(t, zone) && len(overLimit(w, pool, "", t)) == 0 {
			return false
		}
	}
	return true
}

// overLimit says which limits of the pool one more instance of the type would break. Claims and nodes that are being
// deleted do not count, nor those that are being replaced because they drifted, which would never end at a limit, nor
// the claim of that UID.
func overLimit(w *world, pool cluster.Pool, except string, t instancetypes.Type) []string {
	sum, nodes := t.Capacity, int64(1)
	waiting := waitingForBatches(w)
	for _, m := range w.ec2.livingInstances() {
		c := w.api.byUID[m.owner]
		if m.owner == "" { // one more than claims wait for is leaked, and will be ended
			if waiting[m.Batch]--; waiting[m.Batch] < 0 {
				continue
			}
		}
		if m.pool != pool.Name || c != nil && (c.UID == except || !c.Deleting.IsZero() || goesForDrift(c)) ||
			m.node != nil && !m.node.Deleting.IsZero() {
			continue
		}
		sum, nodes = sum.Add(w.catalog.types[m.Type].Capacity), nodes+1
	}
	sum = sum.With("nodes", nodes)
	var out []string
	for _, name := range pool.Limited {
		if have, most := sum.Get(name), pool.Limits.Get(name); have > most {
			out = append(out, fmt.Sprintf("%s of %s, %s are allowed", resources.Format(name, have), name,
				resources.Format(name, most)))
		}
	}
	return out
}

// waitingForBatches returns the number of claims of each batch that have no instance.
func waitingForBatches(w *world) map[string]int {
	out := map[string]int{}
	for _, c := range w.api.claims {
		if b, ok := c.Batch(); ok && c.ProviderID == "" && c.Deleting.IsZero() {
			out[b.ID]++
		}
	}
	return out
}

// tooMany reports whether the claim is of a static pool that has more nodes than it is to have, so that nobody counts
// on it: its removal may have been tried and not done.
func tooMany(w *world, c *claim) bool {
	p := w.api.staticPool()
	if p == nil || c.Pool != p.Name {
		return false
	}
	have := int64(0)
	for _, other := range w.api.claims {
		if other.Pool == p.Name && other.Deleting.IsZero() {
			have++
		}
	}
	return have > p.Replicas
}

// volumesApart reports whether the volumes of the pod are, or may be, only where its spread does not let it be, on
// whatever node comes there. They were placed while there were no nodes in other zones; once there are, Kubernetes
// leaves such a pod waiting for ever. Nobody makes a node for it either while some zone has no node yet: zones in which
// one may come count for a spread.
func volumesApart(w *world, p *pod, pool cluster.Pool) bool {
	zones := w.volumes.zonesOf(p.volumeClaims)
	apart := func() bool {
		return len(zones) > 0 && !slices.ContainsFunc(zones,
			func(zone string) bool { return w.scheduler.spreadAllows(p, anyNode(pool, zone)) })
	}
	if apart() {
		return true
	}
	for _, zone := range w.catalog.zoneNames() {
		n := anyNode(pool, zone)
		w.api.nodes[n.Name] = n
		defer delete(w.api.nodes, n.Name)
	}
	return apart()
}

// holdsPodApart reports whether a pod on the claim's node would find no other place, so that it keeps that one for as
// long as EC2 lets it: in no zone of its volumes its spread allows it.
func holdsPodApart(w *world, c *claim) bool {
	for _, pool := range w.api.pools {
		if pool.Name != c.Pool {
			continue
		}
		return slices.ContainsFunc(w.api.podsOn(c.NodeName), func(p *pod) bool {
			defer func(was string) { p.NodeName = was }(p.NodeName)
			p.NodeName = ""
			return volumesApart(w, p, pool)
		})
	}
	return false
}

// anyNode is some node of the pool in the zone.
func anyNode(pool cluster.Pool, zone string) *node {
	return &node{Node: cluster.Node{Name: "any in " + zone,
		Labels: objects.Merge(pool.Labels, map[string]string{labelZone: zone})}}
}
