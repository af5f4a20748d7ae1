package annotations

import (
	"fmt"
	"strconv"

	corev1 "k8s.io/api/core/v1"

	v1 "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/model/cluster"
)

// NodeProblems says what annotations of people on a Node say that Joiner does not know. A duration is for pods alone.
func NodeProblems(all map[string]string) []Problem {
	var out []Problem
	for _, a := range []struct{ key, does string }{
		{v1.AnnotationDoNotDisrupt, "protects"}, {v1.AnnotationDoNotRepair, "spares"},
	} {
		if value := all[a.key]; value != "" && value != "true" {
			out = append(out, Problem{Key: a.key,
				Message: fmt.Sprintf("%s=%q %s nothing: on a node it is true, or not there", a.key, value, a.does)})
		}
	}
	return out
}

// PodProblems says what annotations of people on a Pod say that Joiner does not know.
func PodProblems(all map[string]string) []Problem {
	var out []Problem
	if value := all[v1.AnnotationDoNotDisrupt]; (cluster.Pod{DoNotDisrupt: value}).InvalidProtection() {
		out = append(out, Problem{Key: v1.AnnotationDoNotDisrupt,
			Message: fmt.Sprintf("%s=%q protects nothing: it is neither true nor a positive duration like 30m",
				v1.AnnotationDoNotDisrupt, value)})
	}
	for _, key := range []string{v1.AnnotationDisruptionCost, corev1.PodDeletionCost} {
		value, given := all[key]
		if _, err := strconv.ParseInt(value, 10, 32); given && err != nil {
			out = append(out, Problem{Key: key,
				Message: fmt.Sprintf("%s=%q counts as 0: it is no whole number of 32 bits", key, value)})
		}
	}
	return out
}
