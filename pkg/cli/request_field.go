package cli

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"joiner.sh/pkg/whatif"
)

// containerRequests is where a change of a request is by what does not know the pod's spec.
const containerRequests = "spec.containers[*].resources.requests."

// requestFieldOf is where the pod asks for most of the resource: as a whole, in an init container that asks for more
// than its containers do together, or in these.
func requestFieldOf(s *corev1.PodSpec, name corev1.ResourceName) string {
	if s == nil {
		return containerRequests + string(name)
	}
	if s.Resources != nil {
		if _, whole := s.Resources.Requests[name]; whole {
			return "spec.resources.requests." + string(name)
		}
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
		return "spec.initContainers[*].resources.requests." + string(name)
	}
	return containerRequests + string(name)
}

// placeRequest has a change of a request of the pod say the field that has it.
func placeRequest(e *whatif.Edit, s *corev1.PodSpec) {
	if name, is := strings.CutPrefix(e.Field, containerRequests); is {
		to := requestFieldOf(s, corev1.ResourceName(name))
		e.Field, e.Place = to, strings.ReplaceAll(e.Place, e.Field, to)
	}
}
