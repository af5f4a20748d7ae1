// Package admission is what the API server makes of a pod on its way in, as far as a scheduler looks at it.
//
// Manifests and the templates of workloads are pods before that. Everything that counts their requests or ports calls
// SetDefaults first. It refuses to know what makes a pod invalid.
package admission

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	resourcehelper "k8s.io/component-helpers/resource"
)

// SetDefaults gives a pod what the API server gives it by default. What is not requested is requested up to its limit,
// by containers, init containers and the pod as a whole; on the network of its node each port is a host port. It shares
// no list of resources or ports with what the spec was copied from.
func SetDefaults(s *corev1.PodSpec) {
	for _, list := range []*[]corev1.Container{&s.Containers, &s.InitContainers} {
		*list = slices.Clone(*list)
		for i := range *list {
			c := &(*list)[i]
			c.Resources.Requests = maps.Clone(c.Resources.Requests)
			for name, most := range c.Resources.Limits {
				setUnlessGiven(&c.Resources.Requests, name, most)
			}
			if s.HostNetwork {
				c.Ports = hostPorts(c.Ports)
			}
		}
	}
	if s.Resources != nil {
		s.Resources = s.Resources.DeepCopy()
		setPodLevel(s)
		roundUp(s.Resources)
	}
	for _, list := range [][]corev1.Container{s.Containers, s.InitContainers} {
		for i := range list {
			roundUp(&list[i].Resources)
		}
	}
	s.Overhead = rounded(s.Overhead)
}

// setPodLevel gives the pod as a whole the requests that its own limits and its containers imply. A resource that the
// pod has no say in as a whole stays with its containers.
func setPodLevel(s *corev1.PodSpec) {
	whole := s.Resources
	if len(whole.Limits) == 0 && len(whole.Requests) == 0 {
		return
	}
	pod := &corev1.Pod{Spec: *s}
	for name, q := range resourcehelper.AggregateContainerLimits(pod, resourcehelper.PodResourcesOptions{}) {
		if _, asked := whole.Requests[name]; isHugePage(name) && !asked {
			setUnlessGiven(&whole.Limits, name, q)
		}
	}
	if len(whole.Limits) == 0 {
		return
	}
	for name, q := range resourcehelper.AggregateContainerRequests(pod, resourcehelper.PodResourcesOptions{}) {
		if resourcehelper.IsSupportedPodLevelResource(name) && !isHugePage(name) {
			setUnlessGiven(&whole.Requests, name, q)
		}
	}
	for name, q := range whole.Limits {
		if resourcehelper.IsSupportedPodLevelResource(name) {
			setUnlessGiven(&whole.Requests, name, q)
		}
	}
}

func isHugePage(name corev1.ResourceName) bool {
	return strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix)
}

func setUnlessGiven(list *corev1.ResourceList, name corev1.ResourceName, q resource.Quantity) {
	if _, given := (*list)[name]; given {
		return
	}
	if *list == nil {
		*list = corev1.ResourceList{}
	}
	(*list)[name] = q
}

func roundUp(r *corev1.ResourceRequirements) {
	r.Limits, r.Requests = rounded(r.Limits), rounded(r.Requests)
}

// rounded is a copy of the list in whole thousandths, which is the finest that the API server keeps.
func rounded(list corev1.ResourceList) corev1.ResourceList {
	out := maps.Clone(list)
	for name, q := range out {
		q = q.DeepCopy()
		q.RoundUp(resource.Milli)
		out[name] = q
	}
	return out
}

func hostPorts(ports []corev1.ContainerPort) []corev1.ContainerPort {
	out := slices.Clone(ports)
	for i := range out {
		if out[i].HostPort == 0 {
			out[i].HostPort = out[i].ContainerPort
		}
	}
	return out
}
