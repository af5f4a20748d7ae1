package translate

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	awsv1 "joiner.sh/pkg/api/aws/v1"
	karpv1 "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/requirements"
)

// stableKey returns the present name of a renamed label, and the node label that a volume's topology label stands for.
func stableKey(key string) string {
	switch key {
	case corev1.LabelFailureDomainBetaZone, awsv1.LabelEBSZone:
		return corev1.LabelTopologyZone
	case corev1.LabelFailureDomainBetaRegion:
		return corev1.LabelTopologyRegion
	case "beta.kubernetes.io/arch":
		return corev1.LabelArchStable
	case "beta.kubernetes.io/os":
		return corev1.LabelOSStable
	case corev1.LabelInstanceType:
		return corev1.LabelInstanceTypeStable
	}
	return key
}

func stableKeys(labels map[string]string) map[string]string {
	if len(labels) == 0 {
		return nil
	}
	out := make(map[string]string, len(labels))
	for k, v := range labels {
		if stableKey(k) == k {
			out[k] = v
		}
	}
	for _, k := range slices.Sorted(maps.Keys(labels)) {
		to := stableKey(k)
		if v, there := out[to]; there && v != labels[k] {
			to = k // the old name says something else: both names stay, and no node meets them
		}
		out[to] = labels[k]
	}
	return out
}

// ourAnnotations keeps the annotations of karpenter.sh, joiner.sh and karpenter.k8s.aws with their subdomains.
func ourAnnotations(all map[string]string) map[string]string {
	var out map[string]string
	for k, v := range all {
		if !slices.ContainsFunc([]string{"karpenter.sh", "joiner.sh", awsv1.Group},
			func(d string) bool { return inDomain(k, d) }) {
			continue
		}
		if out == nil {
			out = map[string]string{}
		}
		out[k] = v
	}
	return out
}

func inDomain(key, domain string) bool {
	prefix, _, ok := strings.Cut(key, "/")
	return ok && (prefix == domain || strings.HasSuffix(prefix, "."+domain))
}

// addUnmodelled names the constraints of the pod that Joiner does not model, and for a pod that waits for a node those
// that no node of ours can ever meet.
func addUnmodelled(out *cluster.Pod, p *corev1.Pod) {
	addDeviceTemplates(out, p)
	if p.Spec.SchedulingGroup != nil {
		out.Unmodelled = append(out.Unmodelled, "scheduling in groups is not supported")
	}
	if out.NodeName != "" || out.Owner == cluster.OwnerDaemonSet {
		return
	}
	for _, k := range slices.Sorted(maps.Keys(out.NodeSelector)) {
		r := requirements.Of(k, out.NodeSelector[k])
		if why := cmp.Or(valueRefusal(r), labelRefusal(r)); why != "" {
			out.Unmodelled = append(out.Unmodelled, cluster.SelectorRefused+why)
		}
	}
}

// isLabelValue reports whether a label can have the value.
func isLabelValue(v string) bool { return len(validation.IsValidLabelValue(v)) == 0 }

// valueRefusal names a value that no label can have, or nothing.
func valueRefusal(r requirements.Requirement) string {
	if i := slices.IndexFunc(r.Values, func(v string) bool { return !isLabelValue(v) }); i >= 0 {
		return fmt.Sprintf("no label %s can have the value %.80q", r.Key, r.Values[i])
	}
	return ""
}

// labelRefusal says why no node that is made meets the requirement, or nothing.
func labelRefusal(r requirements.Requirement) string {
	switch {
	case r.Key == corev1.LabelHostname:
		if r.Operator() == requirements.NotIn { // its name is a new one
			return ""
		}
		return "it selects its node by " + corev1.LabelHostname + ", which no new node can promise"
	case r.Key == karpv1.LabelCapacityType:
		known := slices.ContainsFunc([]string{instancetypes.Spot, instancetypes.OnDemand,
			instancetypes.Reserved}, r.Has)
		if r.Operator() == requirements.In && !known {
			return fmt.Sprintf("%s: the capacity types are on-demand, spot and reserved", r)
		}
		return ""
	case !awsv1.RestrictedLabel(r.Key):
		return ""
	case r.Key == karpv1.LabelRegistered, r.Key == karpv1.LabelInitialized, r.Key == labelProvisioner:
		return fmt.Sprintf("the label %s is restricted, pods may not ask for it", r.Key)
	case r.AllowsAbsent():
		return ""
	}
	return fmt.Sprintf("the label %s is restricted, nodes do not carry it", r.Key)
}

// labelProvisioner is the label of the NodePool in versions of Karpenter before v1. Who keeps off nodes with it means
// ours as well.
const labelProvisioner = "karpenter.sh/provisioner-name"
