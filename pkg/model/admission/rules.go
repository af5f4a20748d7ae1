package admission

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
)

// Rules are the objects of a cluster that change pods on their way in.
type Rules struct {
	LimitRanges     []corev1.LimitRange // with their namespace
	RuntimeClasses  []nodev1.RuntimeClass
	PriorityClasses []schedulingv1.PriorityClass
}

// Admit gives a pod that has its defaults what the rules add: resources of the LimitRanges of its namespace, overhead,
// node labels and tolerations of its RuntimeClass, and its priority. It returns what the pod names and is not among the
// rules: the API server refuses such a pod. Lists of the spec may be shared with others; they are not changed.
func (r Rules) Admit(namespace string, s *corev1.PodSpec) (missing []string) {
	for _, l := range r.LimitRanges {
		if l.Namespace == namespace {
			applyLimitRange(l, s)
		}
	}
	if name := s.RuntimeClassName; name != nil && *name != "" {
		i := slices.IndexFunc(r.RuntimeClasses, func(c nodev1.RuntimeClass) bool { return c.Name == *name })
		if i < 0 {
			missing = append(missing, "RuntimeClass "+*name)
		} else {
			applyRuntimeClass(r.RuntimeClasses[i], s)
		}
	}
	if s.Priority != nil {
		return missing
	}
	value, found := r.priority(s.PriorityClassName)
	if !found {
		return append(missing, "PriorityClass "+s.PriorityClassName)
	}
	s.Priority = value
	return missing
}

// priority is the value of the class; without a name that of the default class, nil where there is none.
func (r Rules) priority(class string) (value *int32, found bool) {
	switch class {
	case "system-cluster-critical":
		return new(int32(2_000_000_000)), true
	case "system-node-critical":
		return new(int32(2_000_001_000)), true
	case "":
		for _, c := range r.PriorityClasses { // of several, the lowest counts
			if c.GlobalDefault && (value == nil || c.Value < *value) {
				value = &c.Value
			}
		}
		return value, true
	}
	for _, c := range r.PriorityClasses {
		if c.Name == class {
			return &c.Value, true
		}
	}
	return nil, false
}

// applyLimitRange gives containers the default limits and requests of the range. Where it has none, its largest limit
// is the default, and the default limit is the default request, else the least one is.
func applyLimitRange(l corev1.LimitRange, s *corev1.PodSpec) {
	limits, requests := corev1.ResourceList{}, corev1.ResourceList{}
	for _, item := range l.Spec.Limits {
		if item.Type != corev1.LimitTypeContainer {
			continue
		}
		most := overlay(item.Max, item.Default)
		maps.Copy(limits, most)
		maps.Copy(requests, overlay(item.Min, most, item.DefaultRequest))
	}
	for _, list := range []*[]corev1.Container{&s.Containers, &s.InitContainers} {
		*list = slices.Clone(*list)
		for i := range *list {
			r := &(*list)[i].Resources
			r.Limits, r.Requests = overlay(limits, r.Limits), overlay(requests, r.Requests)
		}
	}
}

// overlay is all of the lists, where they meet the last.
func overlay(lists ...corev1.ResourceList) corev1.ResourceList {
	out := corev1.ResourceList{}
	for _, l := range lists {
		maps.Copy(out, l)
	}
	return out
}

func applyRuntimeClass(c nodev1.RuntimeClass, s *corev1.PodSpec) {
	if c.Overhead != nil {
		s.Overhead = maps.Clone(c.Overhead.PodFixed)
	}
	if c.Scheduling == nil {
		return
	}
	if len(c.Scheduling.NodeSelector) > 0 {
		labels := maps.Clone(c.Scheduling.NodeSelector)
		maps.Copy(labels, s.NodeSelector)
		s.NodeSelector = labels
	}
	s.Tolerations = slices.Concat(s.Tolerations, c.Scheduling.Tolerations)
}
