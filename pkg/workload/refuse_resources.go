package workload

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"
	resourcehelper "k8s.io/component-helpers/resource"
)

// mostUnits bounds what a pod may ask for of anything in whole units: cores or devices. Bytes may be mostUnits MiB.
const mostUnits = 1_000_000_000

// badContainerResources says which amounts of a container the API server refuses, and which no node has.
func badContainerResources(who string, r corev1.ResourceRequirements) []string {
	var out []string
	for _, name := range namedResources(r) {
		known := resourcehelper.IsSupportedPodLevelResource(name) || name == corev1.ResourceEphemeralStorage ||
			strings.Contains(string(name), "/")
		if !known || len(validation.IsQualifiedName(string(name))) > 0 {
			out = append(out, fmt.Sprintf("%s asks for %s, which is no resource of a container: use cpu, memory, "+
				"ephemeral-storage, hugepages-SIZE, or a device like nvidia.com/gpu", who, name))
		}
	}
	return append(out, badRequirements(who, r)...)
}

// badPodResources is the same for what the pod asks for as a whole, beside its containers.
func badPodResources(s corev1.PodSpec) []string {
	var out []string
	for _, name := range namedResources(*s.Resources) {
		if !resourcehelper.IsSupportedPodLevelResource(name) {
			out = append(out, fmt.Sprintf("the pod as a whole asks for %s: that is for containers; "+
				"a pod can ask for cpu, memory and hugepages-SIZE", name))
		}
	}
	out = append(out, badRequirements("the pod", *s.Resources)...)
	beyond := func(who, what string, amounts, most corev1.ResourceList) {
		for _, name := range slices.Sorted(maps.Keys(amounts)) {
			q, bound := amounts[name], most[name]
			if _, bounded := most[name]; bounded && q.Cmp(bound) > 0 {
				out = append(out, fmt.Sprintf("%s %s of %s, and the pod as a whole of %s; the API server refuses that",
					who, what+" "+q.String(), name, bound.String()))
			}
		}
	}
	pod := &corev1.Pod{Spec: s}
	beyond("its containers", "request", resourcehelper.AggregateContainerRequests(pod,
		resourcehelper.PodResourcesOptions{}), s.Resources.Requests)
	limits := resourcehelper.AggregateContainerLimits(pod, resourcehelper.PodResourcesOptions{})
	maps.DeleteFunc(limits, func(name corev1.ResourceName, _ resource.Quantity) bool { return !isHugePage(name) })
	beyond("its containers", "have limits", limits, s.Resources.Limits)
	for _, c := range s.Containers {
		beyond("container "+c.Name, "has a limit", c.Resources.Limits, s.Resources.Limits)
	}
	return out
}

// namedResources lists what is requested or limited.
func namedResources(r corev1.ResourceRequirements) []corev1.ResourceName {
	names := slices.Concat(slices.Collect(maps.Keys(r.Requests)), slices.Collect(maps.Keys(r.Limits)))
	slices.Sort(names)
	return slices.Compact(names)
}

func badRequirements(who string, r corev1.ResourceRequirements) []string {
	out := append(badAmounts(who+" requests", r.Requests), negativeAmounts(who+" is limited to", r.Limits)...)
	pages, beside := false, false
	for _, name := range namedResources(r) {
		pages = pages || isHugePage(name)
		beside = beside || name == corev1.ResourceCPU || name == corev1.ResourceMemory
		if mayOvercommit(name) {
			asked, limit := r.Requests[name], r.Limits[name]
			if _, limited := r.Limits[name]; limited && asked.Cmp(limit) > 0 {
				out = append(out, fmt.Sprintf("%s requests %s of %s and is limited to %s; the API server refuses that",
					who, asked.String(), name, limit.String()))
			}
			continue
		}
		out = append(out, badDevices(who, name, r)...)
	}
	if pages && !beside {
		out = append(out, who+" asks for huge pages and for neither cpu nor memory; the API server refuses that")
	}
	return out
}

// badDevices returns what the API server refuses of devices and huge pages: parts, and a limit that is not the request.
func badDevices(who string, name corev1.ResourceName, r corev1.ResourceRequirements) []string {
	asked, limit := r.Requests[name], r.Limits[name]
	_, limited := r.Limits[name]
	for _, q := range []resource.Quantity{asked, limit} {
		switch {
		case isHugePage(name) && !wholePages(name, q):
			return []string{fmt.Sprintf("%s asks for %s of %s, which is not a number of such pages", who, q.String(), name)}
		case !isHugePage(name) && q.MilliValue()%1000 != 0:
			return []string{fmt.Sprintf("%s asks for %s of %s; the API server takes whole devices only", who,
				q.String(), name)}
		}
	}
	switch {
	case !limited:
		return []string{fmt.Sprintf("%s requests %s of %s without a limit; the API server wants the same as limit",
			who, asked.String(), name)}
	case asked.Cmp(limit) != 0:
		return []string{fmt.Sprintf("%s requests %s of %s and is limited to %s; the API server wants both to be equal",
			who, asked.String(), name, limit.String())}
	}
	return nil
}

// mayOvercommit reports whether limits of the resource may be above its requests. Names without a domain are
// Kubernetes' own.
func mayOvercommit(name corev1.ResourceName) bool {
	return !isHugePage(name) && (!strings.Contains(string(name), "/") ||
		strings.Contains(string(name), corev1.ResourceDefaultNamespacePrefix))
}

func isHugePage(name corev1.ResourceName) bool {
	return strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix)
}

// wholePages reports whether the amount is a multiple of the size that the name of the resource ends in.
func wholePages(name corev1.ResourceName, q resource.Quantity) bool {
	size, err := resource.ParseQuantity(strings.TrimPrefix(string(name), corev1.ResourceHugePagesPrefix))
	return err == nil && size.Sign() > 0 && size.MilliValue()%1000 == 0 && q.Value()%size.Value() == 0
}

func badAmounts(what string, l corev1.ResourceList) []string {
	out := negativeAmounts(what, l)
	for _, name := range slices.Sorted(maps.Keys(l)) {
		q, most := l[name], resource.NewQuantity(mostUnits, resource.DecimalSI)
		switch name {
		case corev1.ResourceMemory, corev1.ResourceEphemeralStorage:
			most = resource.NewQuantity(mostUnits<<20, resource.BinarySI)
		}
		if q.Cmp(*most) > 0 {
			out = append(out, fmt.Sprintf("%s %s of %s; nothing has that much", what, q.String(), name))
		}
	}
	return out
}

func negativeAmounts(what string, l corev1.ResourceList) []string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(l)) {
		if q := l[name]; q.Sign() < 0 {
			out = append(out, fmt.Sprintf("%s %s of %s; it cannot be negative", what, q.String(), name))
		}
	}
	return out
}
