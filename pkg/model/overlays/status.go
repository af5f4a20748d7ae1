package overlays

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation"

	awsv1 "joiner.sh/pkg/api/aws/v1"
	karpv1 "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/api/v1alpha1"
	"joiner.sh/pkg/model/instancetypes"
)

// What one overlay may say.
const (
	// MostPrice is several times what the dearest instance costs, in USD per hour.
	MostPrice = 10_000
	// mostValues bounds the values of all requirements: there are about 800 instance types.
	mostValues = 1_000
	// mostCapacity bounds the resources: each is a dimension of the room of every node.
	mostCapacity = 32
)

// FindExcess says what of the overlay is too much, empty for nothing.
func FindExcess(o *v1alpha1.NodeOverlay) string {
	values := 0
	for _, r := range o.Spec.Requirements {
		values += len(r.Values)
	}
	switch {
	case values > mostValues:
		return fmt.Sprintf("its requirements have %d values, more than %d", values, mostValues)
	case len(o.Spec.Capacity) > mostCapacity:
		return fmt.Sprintf("it gives nodes %d resources, more than %d", len(o.Spec.Capacity), mostCapacity)
	}
	return ""
}

// ValidateOverlay are the rules that the schema cannot check.
func ValidateOverlay(o *v1alpha1.NodeOverlay) []string {
	var out []string
	for _, r := range o.Spec.Requirements {
		out = append(out, requirementProblems(r)...)
	}
	for _, name := range slices.Sorted(maps.Keys(o.Spec.Capacity)) {
		q := o.Spec.Capacity[name]
		switch {
		case slices.Contains(knownResources(), name):
			out = append(out, fmt.Sprintf("capacity may not hold %s: the instance type gives it", name))
		case q.Sign() < 0:
			out = append(out, fmt.Sprintf("capacity %s is below zero: %s", name, q.String()))
		}
	}
	return out
}

func requirementProblems(r v1alpha1.Requirement) []string {
	var out []string
	if len(validation.IsQualifiedName(r.Key)) > 0 {
		out = append(out, fmt.Sprintf("requirement key %.80q is no label key", r.Key))
	}
	for _, v := range r.Values {
		if len(validation.IsValidLabelValue(v)) > 0 {
			out = append(out, fmt.Sprintf("requirement %s has a value that no label can have: %.80q", r.Key, v))
		}
	}
	types := []string{instancetypes.OnDemand, instancetypes.Reserved, instancetypes.Spot}
	switch {
	case r.Key == karpv1.LabelNodePool, slices.Contains(awsv1.WellKnownLabels(), r.Key):
	case r.Key == karpv1.LabelCapacityType:
		if r.Operator == corev1.NodeSelectorOpIn &&
			!slices.ContainsFunc(r.Values, func(v string) bool { return slices.Contains(types, v) }) {
			out = append(out, fmt.Sprintf("requirement %s allows none of on-demand, reserved and spot: %v", r.Key,
				r.Values))
		}
	case r.Key == corev1.LabelHostname, requirementWithin(r.Key, karpv1.Group), requirementWithin(r.Key, awsv1.Group):
		out = append(out, "requirement "+r.Key+" is about a label that no instance type has")
	}
	return out
}

// knownResources are the extended resources that an instance type has or has not, whatever anybody says.
func knownResources() []corev1.ResourceName {
	return []corev1.ResourceName{
		corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage, corev1.ResourcePods,
		instancetypes.ResourcePodENI, instancetypes.ResourceNeuron, instancetypes.ResourceNeuronCore,
		instancetypes.ResourceGaudi, instancetypes.ResourceEFA,
	}
}

func requirementWithin(key, domain string) bool {
	prefix, _, found := strings.Cut(key, "/")
	return found && (prefix == domain || strings.HasSuffix(prefix, "."+domain))
}

// UpdateStatus writes what became of the overlay into its conditions and reports whether anything changed.
func UpdateStatus(o *v1alpha1.NodeOverlay, v Verdict, now time.Time) bool {
	before := o.Status.DeepCopy()
	conditions := o.StatusConditions()
	conditions.Initialize()
	switch {
	case v.Invalid != "":
		conditions.SetFalse(karpv1.ConditionValidationSucceeded, v1alpha1.ReasonRuntimeValidation, v.Invalid, now)
	case v.Conflict != "":
		conditions.SetFalse(karpv1.ConditionValidationSucceeded, v1alpha1.ReasonConflict, v.Conflict, now)
	default:
		conditions.SetTrue(karpv1.ConditionValidationSucceeded, now)
	}
	return !equality.Semantic.DeepEqual(before, &o.Status)
}
