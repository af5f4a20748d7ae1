package verify_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	quantity "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/kubernetes/pkg/apis/core"
	apiserver "k8s.io/kubernetes/pkg/apis/core/v1"
	"k8s.io/kubernetes/pkg/apis/core/validation"

	"joiner.sh/pkg/model/admission"
	"joiner.sh/pkg/workload"
)

// Amounts that the API server's own validation refuses are refused in files, and no others.
func TestRefusedResourcesAreThoseOfTheAPIServer(t *testing.T) {
	defaultAsBefore(t)
	refused, taken := 0, 0
	for seed := range uint64(3000) {
		pod := &corev1.Pod{Spec: refusableSpec(rand.New(rand.NewPCG(seed, 2)))}
		ours := pod.Spec.DeepCopy()
		admission.SetDefaults(ours)
		why := workload.SpecRefusals(*ours)
		apiserver.SetObjectDefaults_Pod(pod)
		var spec core.PodSpec
		if err := apiserver.Convert_v1_PodSpec_To_core_PodSpec(&pod.Spec, &spec, nil); err != nil {
			t.Fatal(err)
		}
		var theirs []string
		for _, e := range validation.ValidatePodSpec(&spec, &metav1.ObjectMeta{}, field.NewPath("spec"),
			validation.PodValidationOptions{PodLevelResourcesEnabled: true}) {
			if strings.Contains(e.Field, "resources") {
				theirs = append(theirs, e.Error())
			}
		}
		if (len(why) > 0) != (len(theirs) > 0) {
			t.Fatalf("seed %d: %+v\nAPI server: %q\nours: %q", seed, amountsOf(*ours), theirs, why)
		}
		if len(why) > 0 {
			refused++
		} else {
			taken++
		}
	}
	if refused < 500 || taken < 500 {
		t.Errorf("%d refused, %d taken: too few of one kind to tell", refused, taken)
	}
}

// amountsOf is what a reader needs to know of a spec.
func amountsOf(s corev1.PodSpec) (out []string) {
	for _, c := range append(s.InitContainers, s.Containers...) {
		out = append(out, fmt.Sprintf("%s: %v of %v", c.Name, c.Resources.Requests, c.Resources.Limits))
	}
	if s.Resources != nil {
		out = append(out, fmt.Sprintf("pod: %v of %v", s.Resources.Requests, s.Resources.Limits))
	}
	return out
}

// refusableSpec is one of which about half are refused.
func refusableSpec(r *rand.Rand) corev1.PodSpec {
	var s corev1.PodSpec
	for i := range 1 + r.IntN(2) {
		s.Containers = append(s.Containers, corev1.Container{Name: fmt.Sprint("c", i), Image: "x",
			Resources: refusableAmounts(r)})
	}
	if r.IntN(3) == 0 {
		s.InitContainers = []corev1.Container{{Name: "i", Image: "x", Resources: refusableAmounts(r)}}
	}
	if r.IntN(3) == 0 {
		amounts := refusableAmounts(r)
		s.Resources = &amounts
	}
	return s
}

func refusableAmounts(r *rand.Rand) corev1.ResourceRequirements {
	out := corev1.ResourceRequirements{Requests: corev1.ResourceList{}, Limits: corev1.ResourceList{}}
	for range r.IntN(3) {
		kinds := []struct {
			name   corev1.ResourceName
			values []string
		}{
			{corev1.ResourceCPU, []string{"1", "2", "-1"}}, {corev1.ResourceCPU, []string{"1", "2"}},
			{corev1.ResourceMemory, []string{"1Gi", "2Gi"}}, {corev1.ResourceEphemeralStorage, []string{"1Gi", "500m"}},
			{"hugepages-2Mi", []string{"2Mi", "4Mi", "3Mi"}}, {"hugepages-x", []string{"2Mi"}},
			{"nvidia.com/gpu", []string{"1", "2", "500m"}}, {"nvidia.com/gpu", []string{"1"}}, {"mem", []string{"1Gi"}},
			{"pods", []string{"1"}}, {"kubernetes.io/batteries", []string{"1", "500m"}},
		}
		k := kinds[r.IntN(len(kinds))]
		pick := func() quantity.Quantity { return quantity.MustParse(k.values[r.IntN(len(k.values))]) }
		switch q := pick(); r.IntN(4) {
		case 0:
			out.Requests[k.name] = q
		case 1:
			out.Limits[k.name] = q
		case 2:
			out.Requests[k.name], out.Limits[k.name] = q, q
		default:
			out.Requests[k.name], out.Limits[k.name] = q, pick()
		}
	}
	return out
}
