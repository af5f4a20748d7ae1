package bootstrap

import (
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation"

	karpv1 "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/model/cluster"
)

// NodeRegistration is the labels and taints that a kubelet registers its Node with. NewNodeRegistration alone makes one
// that has any: what no Node can carry reaches no user data, whoever gave it to the claim.
type NodeRegistration struct {
	labels map[string]string
	taints []cluster.Taint
}

// NewNodeRegistration takes the labels and taints that the API server takes of a Node. The error is an *Error of
// ReasonRegistration and names the first that it refuses.
func NewNodeRegistration(labels map[string]string, taints []cluster.Taint) (NodeRegistration, error) {
	no := func(format string, args ...any) (NodeRegistration, error) {
		return NodeRegistration{}, &Error{Reason: ReasonRegistration, Message: fmt.Sprintf(format, args...)}
	}
	for _, k := range slices.Sorted(maps.Keys(labels)) {
		if len(validation.IsQualifiedName(k)) > 0 {
			return no("no label can have the key %.80q", k)
		}
		if len(validation.IsValidLabelValue(labels[k])) > 0 {
			return no("no label %s can have the value %.80q", k, labels[k])
		}
	}
	for _, t := range taints {
		if len(validation.IsQualifiedName(t.Key)) > 0 {
			return no("no taint can have the key %.80q", t.Key)
		}
		if len(validation.IsValidLabelValue(t.Value)) > 0 {
			return no("no taint %s can have the value %.80q", t.Key, t.Value)
		}
		if !slices.Contains([]string{"NoSchedule", "PreferNoSchedule", "NoExecute"}, t.Effect) {
			return no("no taint %s can have the effect %.80q", t.Key, t.Effect)
		}
	}
	return NodeRegistration{labels: maps.Clone(labels), taints: slices.Clone(taints)}, nil
}

// nodeLabels returns what the kubelet may register with, and the mark that tells registration not to add taints again.
func (r NodeRegistration) nodeLabels() map[string]string {
	out := make(map[string]string, len(r.labels)+1)
	for k, v := range r.labels {
		if kubeletMaySet(k) {
			out[k] = v
		}
	}
	out[karpv1.LabelDoNotSyncTaints] = "true"
	return out
}
