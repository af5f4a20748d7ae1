package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"joiner.sh/infra/lab/bench/manifests"
	"joiner.sh/pkg/model/instancetypes"
)

// mostTrials bounds the clusters that are tried for one that fails.
const mostTrials = 600

// shrinkCluster returns the smallest cluster found that has a fault like one of those of c, and its faults.
func shrinkCluster(
	ctx context.Context, c *manifests.Cluster, like []fault, all instancetypes.Catalog,
) (*manifests.Cluster, []fault) {
	s := &shrinker{ctx: ctx, all: all, like: like[0], best: c, faults: like}
	for s.shrinkRound() {
	}
	return s.best, s.faults
}

type shrinker struct {
	ctx    context.Context
	all    instancetypes.Catalog
	like   fault
	best   *manifests.Cluster
	faults []fault
	size   int // of best, as JSON
	trials int
}

// keepsFault reports whether the cluster of the tree has such a fault, and then keeps it.
func (s *shrinker) keepsFault(tree map[string]any) bool {
	if s.trials++; s.trials > mostTrials {
		return false
	}
	b, err := json.Marshal(tree)
	if err != nil {
		return false
	}
	c := &manifests.Cluster{}
	if json.Unmarshal(b, c) != nil {
		return false
	}
	// what was left out came back as nothing
	if b, err = json.Marshal(c); err != nil || s.size > 0 && len(b) >= s.size {
		return false
	}
	v, err := judgeCluster(s.ctx, c, s.all)
	if err != nil || !slices.ContainsFunc(v.faults, s.like.sameAs) {
		return false
	}
	s.best, s.faults, s.size = c, v.faults, len(b)
	return true
}

// shrinkRound leaves out all that can be left out, the largest parts first. It reports whether anything could.
func (s *shrinker) shrinkRound() bool {
	shorter := false
	for _, depth := range []int{1, 2, 3, 30} {
		for at := 0; s.trials <= mostTrials; {
			tree, err := treeOf(s.best)
			if err != nil {
				return false
			}
			cuts := cutsOf(tree, depth)
			if at >= len(cuts) {
				break
			}
			cuts[at]()
			if s.keepsFault(tree) {
				shorter = true
				continue // what came after it is now at its place
			}
			at++
		}
	}
	return shorter && s.trials <= mostTrials
}

func treeOf(c *manifests.Cluster) (map[string]any, error) {
	b, err := json.Marshal(c)
	if err != nil {
		return nil, fmt.Errorf("shrink: %w", err)
	}
	var tree map[string]any
	if err := json.Unmarshal(b, &tree); err != nil {
		return nil, fmt.Errorf("shrink: %w", err)
	}
	return tree, nil
}

// isOptional reports whether an object makes sense without the field.
func isOptional(field string) bool {
	return slices.Contains([]string{
		"nodeSelector", "affinity", "nodeAffinity", "podAffinity", "podAntiAffinity",
		"requiredDuringSchedulingIgnoredDuringExecution",
		"preferredDuringSchedulingIgnoredDuringExecution", "tolerations", "topologySpreadConstraints", "priority",
		"initContainers", "overhead", "resources",
		"ports", "volumes", "limits", "weight", "taints", "startupTaints", "minDomains", "nodeAffinityPolicy",
		"nodeTaintsPolicy", "matchLabelKeys",
		"namespaceSelector", "namespaces", "minValues", "kubelet", "placementGroupSelector", "capacityReservations",
		"ownerReferences", "nominatedNodeName",
		"soldOut", "relaxMinValues", "ignorePreferences", "allowedTopologies", "NodeOverlays", "DaemonSets", "CSINodes",
		"StorageClasses",
	}, field)
}

// hasFreeEntries reports whether each entry of the map may go by itself.
func hasFreeEntries(field string) bool {
	return slices.Contains([]string{"nodeSelector", "labels", "requests", "limits", "reserved", "partitions"}, field)
}

// cutsOf are all ways to leave out one thing that is no deeper in the tree than that: a field, an entry of a map or of
// a list. The last thing of a list goes with its field.
func cutsOf(tree map[string]any, deep int) []func() {
	var out []func()
	var walk func(node any, put func(any), field string, depth int)
	walk = func(node any, put func(any), field string, depth int) {
		if depth > deep {
			return
		}
		switch v := node.(type) {
		case map[string]any:
			for _, key := range slices.Sorted(maps.Keys(v)) {
				if key == "NodeClasses" && depth == 0 || key == "Namespaces" { // nothing makes sense without them
					continue
				}
				if v[key] != nil && (isOptional(key) || hasFreeEntries(field)) {
					out = append(out, func() { delete(v, key) })
				}
				walk(v[key], func(x any) { v[key] = x }, key, depth+1)
			}
		case []any:
			for i := range v {
				if len(v) > 1 || depth <= 2 {
					out = append(out, func() { put(slices.Delete(slices.Clone(v), i, i+1)) })
				}
				walk(v[i], func(x any) { v[i] = x }, field, depth+1)
			}
		}
	}
	walk(tree, nil, "", 0)
	return out
}
