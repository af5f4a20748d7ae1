package migrate

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"sigs.k8s.io/yaml"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/findings"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/lists"
)

const (
	labelNodeGroup = "eks.amazonaws.com/nodegroup"
	labelCapacity  = "eks.amazonaws.com/capacityType"
)

// NodeGroup holds what nodes of one node group have in common, and the NodePool that stands for it.
type NodeGroup struct {
	Name  string `json:"name"`     // of the node group
	Nodes int    `json:"nodes"`    // that have its label and no NodeClaim
	Pool  string `json:"nodePool"` // YAML
}

// addAutoscaler says what becomes of node groups and of what Cluster Autoscaler reads from pods.
func (r *Report) addAutoscaler(f Facts) {
	groups := map[string][]cluster.Node{}
	for _, node := range f.Snapshot.StateNodes() {
		if node.Claim == nil && node.Node.Labels[labelNodeGroup] != "" {
			name := node.Node.Labels[labelNodeGroup]
			groups[name] = append(groups[name], *node.Node)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(groups)) {
		r.Groups = append(r.Groups, poolOfGroup(name, groups[name]))
		r.Findings.Add(findings.Note, "node group "+name, fmt.Sprintf(
			"its %d nodes belong to an Auto Scaling group and stay there: Joiner uses room on them and never ends them",
			len(groups[name])),
			"apply a NodePool for it (see groups), then shrink the node group")
	}
	if len(f.Snapshot.Pools) == 0 {
		r.Findings.Add(findings.Blocks, "NodePools", "there are none: Joiner would launch nothing",
			"write an EC2NodeClass and NodePools; groups below has one for each node group")
	}
	if n := len(f.Pinned); n > 0 {
		r.Findings.Add(findings.Note, "pods", fmt.Sprintf("%d carry cluster-autoscaler.kubernetes.io/safe-to-evict: \"false\", which Joiner does not read (%s)", n, lists.Name(f.Pinned, ", ")),
			"annotate their templates with karpenter.sh/do-not-disrupt: \"true\"")
	}
}

// poolOfGroup makes the NodePool of a node group from what all its nodes show.
func poolOfGroup(name string, nodes []cluster.Node) NodeGroup {
	requirement := func(key string, label func(cluster.Node) string) string {
		found := map[string]bool{}
		for _, n := range nodes {
			if v := label(n); v != "" {
				found[v] = true
			}
		}
		if len(found) == 0 {
			return ""
		}
		return fmt.Sprintf("      - {key: %s, operator: In, values: [%s]}\n", key,
			quoteList(slices.Sorted(maps.Keys(found))))
	}
	of := func(key string) func(cluster.Node) string {
		return func(n cluster.Node) string { return n.Labels[key] }
	}
	var b strings.Builder
	fmt.Fprintf(&b, "apiVersion: karpenter.sh/v1\nkind: NodePool\nmetadata: {name: %s}\nspec:\n  template:\n", objectName(name))
	if labels := commonLabels(nodes); len(labels) > 0 {
		b.WriteString("    metadata:\n      labels:\n")
		for _, k := range slices.Sorted(maps.Keys(labels)) {
			fmt.Fprintf(&b, "        %s: %q\n", k, labels[k])
		}
	}
	b.WriteString("    spec:\n      nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}\n")
	if taints := sharedTaints(nodes); len(taints) > 0 {
		b.WriteString("      taints:\n")
		for _, t := range taints {
			fmt.Fprintf(&b, "      - {key: %s, value: %q, effect: %s}\n", t.Key, t.Value, t.Effect)
		}
	}
	b.WriteString("      requirements:\n")
	b.WriteString(requirement(instancetypes.LabelArch, of(instancetypes.LabelArch)))
	b.WriteString(requirement(instancetypes.LabelCapacityType, func(n cluster.Node) string {
		return map[string]string{"SPOT": instancetypes.Spot,
			"ON_DEMAND": instancetypes.OnDemand}[n.Labels[labelCapacity]]
	}))
	b.WriteString(requirement(instancetypes.LabelZone, of(instancetypes.LabelZone)))
	fmt.Fprintf(&b, "      # its nodes are %s; without this line any type may be chosen that holds the pods\n",
		instanceFamilies(nodes))
	b.WriteString(requirement(instancetypes.LabelFamily, func(n cluster.Node) string {
		family, _, _ := strings.Cut(n.Labels[instancetypes.LabelType], ".")
		return family
	}))
	return NodeGroup{Name: name, Nodes: len(nodes), Pool: b.String()}
}

// objectName makes the name of a node group, which may have capitals and underscores, one that an object can have. What
// YAML would take for a number or a truth is quoted.
func objectName(group string) string {
	name := strings.Trim(strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '-' {
			return r
		}
		return '-'
	}, strings.ToLower(group)), "-")
	var value any
	if yaml.Unmarshal([]byte(name), &value) != nil {
		return strconv.Quote(name)
	}
	if _, text := value.(string); !text {
		return strconv.Quote(name)
	}
	return name
}

func instanceFamilies(nodes []cluster.Node) string {
	found := lists.Set(nodes,
		func(n cluster.Node) string { return cmp.Or(n.Labels[instancetypes.LabelType], "of an unknown type") })
	return strings.Join(slices.Sorted(maps.Keys(found)), ", ")
}

// commonLabels are the labels that all nodes have with one value and that somebody chose, not a cloud or Kubernetes.
func commonLabels(nodes []cluster.Node) map[string]string {
	out := maps.Clone(nodes[0].Labels)
	for _, n := range nodes[1:] {
		maps.DeleteFunc(out, func(k, v string) bool { return n.Labels[k] != v })
	}
	maps.DeleteFunc(out, func(k, _ string) bool {
		domain, _, hasDomain := strings.Cut(k, "/")
		return hasDomain && slices.ContainsFunc([]string{"kubernetes.io", "k8s.io", "amazonaws.com", "aws.com",
			"k8s.aws", "karpenter.sh", "eksctl.io", "joiner.sh"},
			func(d string) bool { return domain == d || strings.HasSuffix(domain, "."+d) })
	})
	return out
}

// sharedTaints are the taints that all nodes have and that do not come and go by themselves.
func sharedTaints(nodes []cluster.Node) []cluster.Taint {
	return slices.DeleteFunc(slices.Clone(nodes[0].Taints), func(t cluster.Taint) bool {
		return strings.HasPrefix(t.Key, "node.kubernetes.io/") ||
			strings.HasPrefix(t.Key, "node.cloudprovider.kubernetes.io/") ||
			slices.ContainsFunc(nodes, func(n cluster.Node) bool { return !slices.Contains(n.Taints, t) })
	})
}

func quoteList(all []string) string {
	out := lists.Of(all, func(v string) string { return fmt.Sprintf("%q", v) })
	return strings.Join(out, ", ")
}
