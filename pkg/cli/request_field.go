package cli

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"joiner.sh/pkg/whatif"
)

// requestFieldOf returns the field where the pod asks for most of the resource that a change of its containers is
// about. That is in the pod, an init container that asks for more than the containers together, or these, as where
// nobody knows the spec.
func requestFieldOf(s *corev1.PodSpec, field string) string {
	of, is := strings.CutPrefix(field, "spec.containers[*].resources.")
	if !is || s == nil {
		return field
	}
	_, resourceName, _ := strings.Cut(of, ".") // of requests or limits
	name := corev1.ResourceName(resourceName)
	if s.Resources != nil && !s.Resources.Requests.Name(name, resource.DecimalSI).IsZero() {
		return "spec.resources." + of
	}
	var together, most resource.Quantity
	for _, c := range s.Containers {
		together.Add(c.Resources.Requests[name])
	}
	for _, c := range s.InitContainers {
		if q := c.Resources.Requests[name]; q.Cmp(most) > 0 {
			most = q
		}
	}
	if most.Cmp(together) > 0 {
		return "spec.initContainers[*].resources." + of
	}
	return field
}

// placeRequest has a change of a request of the pod say the field that has it.
func placeRequest(e *whatif.Edit, s *corev1.PodSpec) {
	to := requestFieldOf(s, e.Field)
	e.Field, e.Place = to, strings.ReplaceAll(e.Place, e.Field, to)
}
