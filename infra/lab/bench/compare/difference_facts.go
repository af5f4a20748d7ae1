package main

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"

	"joiner.sh/infra/lab/bench/manifests"
	api "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/scheduling/binpack"
)

// theirsAccepted counts the pods that kube-scheduler lets where Karpenter has them.
func (t *trial) theirsAccepted() int {
	n := 0
	for pod := range t.theirs.PlacedPods() {
		if t.refused[pod] == "" {
			n++
		}
	}
	return n
}

// followsDeleted reports whether a required affinity of the pod selects waiting pods that either side places, all of
// which are being deleted, and no pod that runs.
func (t *trial) followsDeleted(p *corev1.Pod) bool {
	if p.Spec.Affinity == nil || p.Spec.Affinity.PodAffinity == nil {
		return false
	}
	ours, theirs := t.ours.PlacedPods(), t.theirs.PlacedPods()
	return slices.ContainsFunc(p.Spec.Affinity.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution,
		func(x corev1.PodAffinityTerm) bool {
			selector, err := metav1.LabelSelectorAsSelector(x.LabelSelector)
			deleted := false
			for key, o := range t.pods {
				waits := o.Spec.NodeName == ""
				if err != nil || !selector.Matches(labels.Set(o.Labels)) ||
					waits && ours[key] == "" && theirs[key] == "" {
					continue
				}
				if !waits || o.DeletionTimestamp == nil {
					return false
				}
				deleted = true
			}
			return deleted
		})
}

// othersThere reports whether Karpenter has the pod on a node that is there, and Joiner as many pods on that node.
func (t *trial) othersThere(pod string) bool {
	count := func(o manifests.Outcome, node string) (n int) {
		for _, at := range o.Existing {
			if at == node {
				n++
			}
		}
		return n
	}
	node := t.theirs.Existing[pod]
	return node != "" && count(t.ours, node) >= count(t.theirs, node)
}

// exceededLimits lists what the NodePool of Karpenter's new node for the pod has more of than it allows. Where
// Karpenter has the pod on a node that is there, it is about the nodes that Karpenter makes for pods that Joiner has on
// that node.
func (t *trial) exceededLimits(pod string) []string {
	var out []string
	for at, x := range t.theirs.New {
		if slices.Contains(x.Pods, pod) || slices.ContainsFunc(x.Pods, func(other string) bool {
			return t.theirs.Existing[pod] != "" && t.ours.Existing[other] == t.theirs.Existing[pod]
		}) {
			out = append(out, t.overshotBy(at)...)
		}
	}
	return out
}

// overshotBy counts nodes and claims of the NodePool that are not being deleted, and all nodes that Karpenter makes in
// it. A claim that is not launched counts as the smallest type that it may become.
func (t *trial) overshotBy(at int) []string {
	i := slices.IndexFunc(t.c.NodePools, func(p api.NodePool) bool { return p.Name == t.theirs.New[at].NodePool })
	p := t.c.NodePools[i]
	used := corev1.ResourceList{}
	add := func(capacity corev1.ResourceList) {
		capacity = maps.Clone(capacity)
		capacity[api.LimitNodes] = *resource.NewQuantity(1, resource.DecimalSI)
		for name := range p.Spec.Limits {
			q := used[name]
			q.Add(capacity[name])
			used[name] = q
		}
	}
	nodes := map[string]bool{}
	for _, x := range t.c.Nodes {
		if nodes[x.Spec.ProviderID] = true; x.Labels[keyPool] == p.Name && x.DeletionTimestamp == nil {
			add(x.Status.Capacity)
		}
	}
	for _, c := range t.c.NodeClaims {
		if c.Labels[keyPool] == p.Name && c.DeletionTimestamp == nil && !nodes[c.Status.ProviderID] {
			add(t.leastCapacity(c))
		}
	}
	for _, x := range t.theirs.New {
		if x.NodePool == p.Name {
			add(t.capacityOf[x.InstanceType])
		}
	}
	var out []string
	for name, most := range p.Spec.Limits {
		if q := used[name]; q.Cmp(most) > 0 {
			out = append(out, string(name))
		}
	}
	return out
}

// resourcesByType are the capacity of all types and what is allocatable of it, by name.
func resourcesByType(s cluster.Snapshot) (capacity, allocatable map[string]corev1.ResourceList) {
	capacity, allocatable = map[string]corev1.ResourceList{}, map[string]corev1.ResourceList{}
	sells := binpack.ResolveOfferings(s)
	for _, c := range s.Classes {
		for _, t := range sells(c.Name) {
			capacity[t.Name], allocatable[t.Name] = resourceList(t.Capacity), resourceList(t.Allocatable)
		}
	}
	return capacity, allocatable
}

// leastCapacity is what the claim has, or, before its launch, the least of each resource of the types it asks for.
func (t *trial) leastCapacity(c api.NodeClaim) corev1.ResourceList {
	if len(c.Status.Capacity) > 0 {
		return c.Status.Capacity
	}
	var least corev1.ResourceList
	for name, capacity := range t.capacityOf {
		asks := !slices.ContainsFunc(c.Spec.Requirements, func(r api.Requirement) bool {
			return r.Key == keyType && r.Operator == corev1.NodeSelectorOpIn && !slices.Contains(r.Values, name)
		})
		switch {
		case !asks:
		case least == nil:
			least = maps.Clone(capacity)
		default:
			for of, q := range least {
				if other := capacity[of]; other.Cmp(q) < 0 {
					least[of] = other
				}
			}
		}
	}
	return least
}

// samePolicies reports whether both spreads count pods on the same nodes, as far as their policies say.
func samePolicies(a, b corev1.TopologySpreadConstraint) bool {
	return ignoresAffinity(a) == ignoresAffinity(b) &&
		ptr.Deref(a.NodeTaintsPolicy, corev1.NodeInclusionPolicyIgnore) ==
			ptr.Deref(b.NodeTaintsPolicy, corev1.NodeInclusionPolicyIgnore)
}

func ignoresAffinity(c corev1.TopologySpreadConstraint) bool {
	return ptr.Deref(c.NodeAffinityPolicy, corev1.NodeInclusionPolicyHonor) == corev1.NodeInclusionPolicyIgnore
}

// sameNodes reports whether both pods ask for the same nodes.
func sameNodes(a, b *corev1.Pod) bool {
	return equality.Semantic.DeepEqual(a.Spec.NodeSelector, b.Spec.NodeSelector) &&
		equality.Semantic.DeepEqual(requiredNodes(a), requiredNodes(b))
}

// requiredNodes is the required node affinity of the pod, nil where it has none.
func requiredNodes(p *corev1.Pod) *corev1.NodeSelector {
	if p.Spec.Affinity == nil || p.Spec.Affinity.NodeAffinity == nil {
		return nil
	}
	return p.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution
}

// asksNodes reports whether an expression of the pod's required node affinity is such a one.
func asksNodes(p *corev1.Pod, such func(corev1.NodeSelectorRequirement) bool) bool {
	required := requiredNodes(p)
	return required != nil && slices.ContainsFunc(required.NodeSelectorTerms, func(n corev1.NodeSelectorTerm) bool {
		return slices.ContainsFunc(n.MatchExpressions, such)
	})
}

// spreadsBeyond reports whether a spread of the pod over the label counts nodes on which the pod cannot be: because a
// volume ties it by the label, or because the spread ignores that the pod's own node affinity does.
func (t *trial) spreadsBeyond(p *corev1.Pod, key string) bool {
	return slices.ContainsFunc(p.Spec.TopologySpreadConstraints, func(c corev1.TopologySpreadConstraint) bool {
		return c.TopologyKey == key && (t.tiedByVolume(p, key) || ignoresAffinity(c) && tiedByNodes(p, key))
	})
}

// tiedByNodes reports whether the pod asks for nodes by that label.
func tiedByNodes(p *corev1.Pod, key string) bool {
	selected := slices.Collect(maps.Keys(p.Spec.NodeSelector))
	return slices.ContainsFunc(selected, func(k string) bool { return sameLabel(k, key) }) ||
		asksNodes(p, func(r corev1.NodeSelectorRequirement) bool { return sameLabel(r.Key, key) })
}

// tiedByVolume reports whether a volume of the pod says where it may be by that label.
func (t *trial) tiedByVolume(p *corev1.Pod, key string) bool {
	return slices.ContainsFunc(p.Spec.Volumes, func(v corev1.Volume) bool {
		if v.PersistentVolumeClaim == nil {
			return false
		}
		i := slices.IndexFunc(t.c.VolumeClaims, func(c corev1.PersistentVolumeClaim) bool {
			return c.Namespace == p.Namespace && c.Name == v.PersistentVolumeClaim.ClaimName
		})
		if i < 0 {
			return false
		}
		claim := t.c.VolumeClaims[i]
		namesLabel := func(n corev1.NodeSelectorTerm) bool {
			return slices.ContainsFunc(n.MatchExpressions,
				func(r corev1.NodeSelectorRequirement) bool { return sameLabel(r.Key, key) })
		}
		return slices.ContainsFunc(t.c.Volumes, func(x corev1.PersistentVolume) bool {
			return x.Name == claim.Spec.VolumeName && x.Spec.NodeAffinity != nil &&
				x.Spec.NodeAffinity.Required != nil &&
				slices.ContainsFunc(x.Spec.NodeAffinity.Required.NodeSelectorTerms, namesLabel)
		}) || slices.ContainsFunc(t.c.StorageClasses, func(x storagev1.StorageClass) bool {
			return claim.Spec.VolumeName == "" && x.Name == ptr.Deref(claim.Spec.StorageClassName, "") &&
				slices.ContainsFunc(x.AllowedTopologies, func(n corev1.TopologySelectorTerm) bool {
					return slices.ContainsFunc(n.MatchLabelExpressions,
						func(r corev1.TopologySelectorLabelRequirement) bool { return sameLabel(r.Key, key) })
				})
		})
	})
}

// sameLabel reports whether both labels have the same domains: zones have an id too, and the driver of volumes has a
// name of its own for them.
func sameLabel(a, b string) bool {
	zones := []string{keyZone, keyZoneID, "topology.ebs.csi.aws.com/zone"}
	return a == b || slices.Contains(zones, a) && slices.Contains(zones, b)
}

// hasRuleOver reports whether a required rule over the label is the pod's own, or one of a pod that waits and counts
// it.
func (t *trial) hasRuleOver(p *corev1.Pod, key string) bool {
	for _, o := range t.pods {
		if o.Spec.NodeName != "" {
			continue
		}
		counts := func(s *metav1.LabelSelector) bool {
			selector, err := metav1.LabelSelectorAsSelector(s)
			return o == p || err == nil && selector.Matches(labels.Set(p.Labels))
		}
		for _, c := range o.Spec.TopologySpreadConstraints {
			if c.TopologyKey == key && c.WhenUnsatisfiable == corev1.DoNotSchedule && counts(c.LabelSelector) {
				return true
			}
		}
		for _, x := range requiredTerms(o) {
			if x.TopologyKey == key && counts(x.LabelSelector) {
				return true
			}
		}
	}
	return false
}

// excludesPod reports whether required anti-affinity of the pod selects the other one.
func excludesPod(p, other *corev1.Pod) bool {
	return p.Spec.Affinity != nil && p.Spec.Affinity.PodAntiAffinity != nil && slices.ContainsFunc(
		p.Spec.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution,
		func(x corev1.PodAffinityTerm) bool {
			selector, err := metav1.LabelSelectorAsSelector(x.LabelSelector)
			near := p.Namespace == other.Namespace || len(x.Namespaces) > 0 || x.NamespaceSelector != nil
			return err == nil && near && selector.Matches(labels.Set(other.Labels))
		})
}

// requiredTerms are those of the pod's affinity and anti-affinity.
func requiredTerms(p *corev1.Pod) []corev1.PodAffinityTerm {
	var out []corev1.PodAffinityTerm
	if a := p.Spec.Affinity; a != nil && a.PodAffinity != nil {
		out = append(out, a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution...)
	}
	if a := p.Spec.Affinity; a != nil && a.PodAntiAffinity != nil {
		out = append(out, a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution...)
	}
	return out
}

// anyNodeNames reports whether a node has the label, or a NodePool names it.
func (t *trial) anyNodeNames(key string) bool {
	return slices.ContainsFunc(t.c.Nodes, func(n corev1.Node) bool { return n.Labels[key] != "" }) ||
		slices.ContainsFunc(t.c.NodePools, func(p api.NodePool) bool {
			_, given := p.Spec.Template.Labels[key]
			return given || slices.ContainsFunc(p.Spec.Template.Spec.Requirements,
				func(r api.Requirement) bool { return r.Key == key })
		})
}
