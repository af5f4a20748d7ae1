package main

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"runtime/debug"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"joiner.sh/infra/lab/bench/manifests"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/overlays"
	"joiner.sh/pkg/model/plan"
	"joiner.sh/pkg/scheduling/binpack"
)

// panicked is what the packer panicked with.
type panicked struct {
	value any
	stack string
}

// decidePlan packs the snapshot. A panic is told, not passed on.
func decidePlan(s cluster.Snapshot) (p plan.Plan, bad *panicked) {
	defer func() {
		if v := recover(); v != nil {
			bad = &panicked{v, firstOf(string(debug.Stack()), "joiner.sh/pkg/")}
		}
	}()
	return binpack.Pods(s), nil
}

// firstOf is the first frame of a stack below the panic that is in the package.
func firstOf(stack, in string) string {
	_, below, _ := strings.Cut(stack, "panic(")
	for line := range strings.Lines(below) {
		if strings.HasPrefix(line, in) {
			return strings.TrimSpace(line)
		}
	}
	return ""
}

// another draws another instance that a launch may become than the one it chose.
type another func(l plan.Launch, possible []instancetypes.Offering) instancetypes.Offering

// asChosen is the offering that the packer chose.
func asChosen(l plan.Launch, _ []instancetypes.Offering) instancetypes.Offering { return l.Choice }

// byChance is one of all offerings that the launch allows.
func byChance(r *rand.Rand) another {
	return func(l plan.Launch, possible []instancetypes.Offering) instancetypes.Offering {
		if len(possible) == 0 {
			return l.Choice
		}
		return possible[r.IntN(len(possible))]
	}
}

// outcomeOf says in objects what the plan decided; of what its launches allow, become is what they turn into.
func outcomeOf(s cluster.Snapshot, p plan.Plan, become another) (manifests.Outcome, error) {
	out := manifests.Outcome{Existing: map[string]string{}, Left: map[string]string{}}
	sells := overlays.ByPool(s, binpack.ResolveOfferings(s))
	for i, l := range p.Launches {
		pool, _ := s.PoolOf(l.Pool)
		types := sells(pool)
		var possible []instancetypes.Offering
		for _, t := range types {
			if !slices.Contains(l.Types, t.Name) {
				continue
			}
			for _, o := range t.Offerings {
				if o.Available && o.Meets(l.Requirements) {
					possible = append(possible, o)
				}
			}
		}
		o := become(l, possible)
		at := slices.IndexFunc(types, func(t instancetypes.Type) bool { return t.Name == o.Type })
		if at < 0 {
			return out, fmt.Errorf("launch %d of %s: nobody sells %s", i, l.Pool, o.Type)
		}
		out.New = append(out.New, newNode(nameOf(i), l, types[at], o))
	}
	for _, e := range p.Existing {
		out.Existing[e.Pod] = e.Node
	}
	for _, u := range p.Unplaced {
		out.Left[u.Pod] = u.Message()
	}
	return out, nil
}

// nameOf is the name of the node that the i-th launch becomes.
func nameOf(i int) string { return fmt.Sprintf("new-%03d", i) }

// newNode is the node that a launch becomes as the offering.
func newNode(name string, l plan.Launch, t instancetypes.Type, o instancetypes.Offering) manifests.NewNode {
	n := manifests.NewNode{Name: name, NodePool: l.Pool, InstanceType: o.Type, Zone: o.Zone,
		CapacityType: o.CapacityType, Pods: l.Pods,
		Allocatable: resourceList(t.Allocatable), Labels: t.Requirements.Labels()}
	for _, key := range []string{instancetypes.LabelReservationID, instancetypes.LabelReservation,
		instancetypes.LabelInterruptible, instancetypes.LabelZoneID, instancetypes.LabelPartition,
		instancetypes.LabelTenancy} {
		delete(n.Labels, key)
	}
	for _, r := range l.Requirements.All() {
		if v, ok := r.Single(); ok {
			n.Labels[r.Key] = v
		}
	}
	maps.Copy(n.Labels, l.Labels)
	for _, key := range []string{instancetypes.LabelZone, instancetypes.LabelZoneID, instancetypes.LabelCapacityType,
		instancetypes.LabelReservationID, instancetypes.LabelReservation, instancetypes.LabelInterruptible} {
		delete(n.Labels, key)
		if v, _ := o.Label(key); v != "" {
			n.Labels[key] = v
		}
	}
	n.Labels[instancetypes.LabelTenancy] = cmp.Or(n.Labels[instancetypes.LabelTenancy], instancetypes.TenancyDefault)
	for _, x := range l.Taints {
		n.Taints = append(n.Taints, corev1.Taint{Key: x.Key, Value: x.Value, Effect: corev1.TaintEffect(x.Effect)})
	}
	return n
}

// comingNodes are the nodes of claims that have no instance yet, as the type that they ask for.
func comingNodes(s cluster.Snapshot) []manifests.NewNode {
	var out []manifests.NewNode
	sells := overlays.ByPool(s, binpack.ResolveOfferings(s))
	for _, c := range s.Claims {
		kind, _ := c.Requirements.Get(instancetypes.LabelType)
		zone, _ := c.Requirements.Get(instancetypes.LabelZone)
		name, ok := kind.Single()
		if c.ProviderID != "" || !ok {
			continue
		}
		pool, _ := s.PoolOf(c.Pool)
		for _, t := range sells(pool) {
			for _, o := range t.Offerings {
				if t.Name == name && zone.Has(o.Zone) && o.Meets(c.Requirements) {
					out = append(out, newNode(c.Name,
						plan.Launch{Pool: c.Pool, Requirements: c.Requirements, Labels: c.Labels, Taints: c.Taints}, t,
						o))
					break
				}
			}
		}
	}
	return out
}
