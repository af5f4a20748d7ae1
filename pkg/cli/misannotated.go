package cli

import (
	"context"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"joiner.sh/pkg/cli/doctor"
	"joiner.sh/pkg/model/annotations"
)

// misannotated gathers annotations that say nothing. Pods of one controller that say the same count once.
type misannotated map[doctor.Misannotation]bool

// addPod adds those of the pod.
func (m misannotated) addPod(p corev1.Pod) {
	m.add("-n "+p.Namespace+" "+ownerOf(p), annotations.PodProblems(p.Annotations))
}

// addNodes adds those of all nodes.
func (m misannotated) addNodes(ctx context.Context, s storedObjects) error {
	return s.forEach(ctx, atNodes, func(o *unstructured.Unstructured) {
		m.add("node "+o.GetName(), annotations.NodeProblems(o.GetAnnotations()))
	})
}

func (m misannotated) add(object string, problems []annotations.Problem) {
	for _, p := range problems {
		m[doctor.Misannotation{Object: object, Message: p.Message}] = true
	}
}

// list returns them in order.
func (m misannotated) list() []doctor.Misannotation {
	return slices.SortedFunc(maps.Keys(m), func(a, b doctor.Misannotation) int {
		return strings.Compare(a.Object+" "+a.Message, b.Object+" "+b.Message)
	})
}
