package workload

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	api "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/model/lists"
)

// validateFile refuses what cannot be meant. What is wrong with a single pod alone is left to Refusals.
func (f *File) validateFile() error {
	if f.Schema != Schema && f.Schema != 0 {
		return fmt.Errorf("schema: it is %d, this version reads %d", f.Schema, Schema)
	}
	total := len(f.Pods)
	for _, list := range []struct {
		field string
		in    []PodGroup
	}{{"groups", f.Groups}, {"daemonSets", f.DaemonSets}, {"boundGroups", f.BoundGroups}} {
		seen := map[string]bool{}
		for i, g := range list.in {
			at := fmt.Sprintf("%s[%d] (%s)", list.field, i, g.Name)
			switch {
			case g.Name == "":
				return fmt.Errorf("%s[%d].name is missing; it names the pods", list.field, i)
			case strings.Contains(g.Name, "/"):
				return fmt.Errorf("%s.name may not contain a slash", at)
			case seen[g.Name]:
				return fmt.Errorf("%s.name was used before; give each its own", at)
			case list.field == "groups" && (g.Count < 0 || g.Count > MostPods):
				return fmt.Errorf("%s.count is %d; allowed: 0 to %d", at, g.Count, MostPods)
			case len(g.Pod.Spec.Containers) == 0:
				return fmt.Errorf("%s.pod.spec.containers is empty; a pod has at least one", at)
			}
			seen[g.Name] = true
			if list.field == "groups" {
				total += g.Count
			}
		}
	}
	if err := f.checkPods(); err != nil {
		return err
	}
	bound, err := f.checkNodes()
	if err != nil {
		return err
	}
	if total+bound > MostPods {
		return fmt.Errorf("groups, pods and nodes hold more than %d pods; plan parts of them", MostPods)
	}
	return nil
}

func (f *File) checkPods() error {
	seen := map[string]bool{}
	counts := f.groupCounts()
	for i := range f.Pods {
		p := &f.Pods[i]
		key := PodKey(p)
		_, numbered := inGroup(key, counts)
		switch {
		case p.Name == "":
			return fmt.Errorf("pods[%d].metadata.name is missing", i)
		case len(p.Spec.Containers) == 0:
			return fmt.Errorf("pods[%d] (%s).spec.containers is empty; a pod has at least one", i, key)
		case seen[key] || numbered:
			return fmt.Errorf("pods[%d] (%s): another pod has this namespace and name; give each its own", i, key)
		case p.Spec.NodeName != "":
			return fmt.Errorf("pods[%d] (%s).spec.nodeName is set; only pods without a node belong here, others under boundGroups", i, key)
		}
		seen[key] = true
	}
	return nil
}

// groupCounts returns the number of pods of the groups, by namespace and name.
func (f *File) groupCounts() map[string]int {
	counts := map[string]int{}
	for _, g := range f.Groups {
		counts[g.Namespace()+"/"+g.Name] = g.Count
	}
	return counts
}

// inGroup reports whether the key is that of a pod of a group, and the name of the group.
func inGroup(key string, counts map[string]int) (group string, taken bool) {
	i := strings.LastIndexByte(key, '-')
	if i < 0 {
		return "", false
	}
	n, err := strconv.Atoi(key[i+1:])
	count, ok := counts[key[:i]]
	_, group, _ = strings.Cut(key[:i], "/")
	return group, ok && err == nil && strconv.Itoa(n) == key[i+1:] && n < count
}

// checkNodes returns the number of running pods.
func (f *File) checkNodes() (int, error) {
	groups := lists.Set(f.BoundGroups, func(g PodGroup) string { return g.Name })
	seen := map[string]bool{}
	bound := 0
	for i, n := range f.Nodes {
		at := fmt.Sprintf("nodes[%d] (%s)", i, n.Name)
		switch {
		case n.Name == "":
			return 0, fmt.Errorf("nodes[%d].name is missing", i)
		case seen[n.Name]:
			return 0, fmt.Errorf("%s.name was used before; give each its own", at)
		case n.InstanceType == "" || n.Zone == "" || n.CapacityType == "":
			return 0, fmt.Errorf("%s: instanceType, zone and capacityType are needed", at)
		}
		seen[n.Name] = true
		for _, g := range slices.Sorted(maps.Keys(n.Pods)) {
			count := n.Pods[g]
			switch {
			case !groups[g]:
				return 0, fmt.Errorf("%s.pods: no boundGroup is named %s", at, g)
			case count < 0 || count > MostPods:
				return 0, fmt.Errorf("%s.pods.%s is %d; allowed: 0 to %d", at, g, count, MostPods)
			}
			bound += count
		}
		if bound > MostPods {
			return bound, nil
		}
	}
	return bound, nil
}

// checkPools wants every pool that a node names.
func (f *File) checkPools() error {
	names := lists.Set(f.Pools, func(p api.NodePool) string { return p.Name })
	for i, n := range f.Nodes {
		if n.NodePool != "" && !names[n.NodePool] {
			return fmt.Errorf("nodes[%d] (%s).nodePool: no NodePool %s was given; labels and taints of the node are unknown without it", i, n.Name, n.NodePool)
		}
	}
	if len(f.Pools) == 0 && len(f.Nodes) == 0 {
		return errors.New("nodePools: there is neither a NodePool nor a node; pods could go nowhere")
	}
	return nil
}
