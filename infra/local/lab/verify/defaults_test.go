package verify_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	quantity "k8s.io/apimachinery/pkg/api/resource"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	resourcehelper "k8s.io/component-helpers/resource"
	"k8s.io/kubernetes/pkg/api/pod"
	"k8s.io/kubernetes/pkg/apis/core"
	apiserver "k8s.io/kubernetes/pkg/apis/core/v1"
	"k8s.io/kubernetes/pkg/features"

	"joiner.sh/pkg/model/admission"
)

// Pods are by our rules what they are by the API server's own: requests of every container and of the pod, and ports.
func TestDefaultsAreThoseOfTheAPIServer(t *testing.T) {
	defaultAsBefore(t)
	changed := 0
	for seed := range uint64(5000) {
		spec := randomSpec(rand.New(rand.NewPCG(seed, 1)))
		theirs := &corev1.Pod{Spec: *spec.DeepCopy()}
		apiserver.SetObjectDefaults_Pod(theirs)
		ours := spec.DeepCopy()
		admission.SetDefaults(ours)
		if diff := cmp.Diff(countedFields(theirs.Spec), countedFields(*ours)); diff != "" {
			t.Fatalf("seed %d (-API server +ours):\n%s", seed, diff)
		}
		if cmp.Diff(countedFields(spec), countedFields(*ours)) != "" {
			changed++
		}
	}
	if changed < 2500 {
		t.Errorf("only %d of 5000 pods have something to be given", changed)
	}
}

// defaultAsBefore has the API server of the test give pods as a whole what it gave them before 1.37.
func defaultAsBefore(t *testing.T) {
	t.Helper()
	set := func(on bool) {
		gate := fmt.Sprintf("%s=%t", features.PodLevelResourcesFixDefaulting, on)
		if err := utilfeature.DefaultMutableFeatureGate.Set(gate); err != nil {
			t.Fatal(err)
		}
	}
	set(false)
	t.Cleanup(func() { set(true) })
}

// Since 1.37 the API server gives pods as a whole more, after admission: what a scheduler counts stays what it is by ours.
func TestRequestsAreThoseAfterAdmission(t *testing.T) {
	whole := 0
	for seed := range uint64(5000) {
		spec := randomSpec(rand.New(rand.NewPCG(seed, 1)))
		roundUp(spec) // it adds up what is rounded, as 1.36 does not
		theirs, ours := &corev1.Pod{Spec: *spec.DeepCopy()}, &corev1.Pod{Spec: *spec.DeepCopy()}
		apiserver.SetObjectDefaults_Pod(theirs)
		kept := &core.Pod{}
		if err := apiserver.Convert_v1_PodSpec_To_core_PodSpec(&theirs.Spec, &kept.Spec, nil); err != nil {
			t.Fatal(err)
		}
		pod.DefaultPodLevelResources(kept)
		if err := apiserver.Convert_core_PodSpec_To_v1_PodSpec(&kept.Spec, &theirs.Spec, nil); err != nil {
			t.Fatal(err)
		}
		admission.SetDefaults(&ours.Spec)
		if cmp.Diff(countedFields(theirs.Spec), countedFields(ours.Spec)) != "" {
			whole++
		}
		text := func(p *corev1.Pod) map[string]string {
			out := map[string]string{}
			for name, q := range resourcehelper.PodRequests(p, resourcehelper.PodResourcesOptions{}) {
				out[string(name)] = q.String()
			}
			return out
		}
		if diff := cmp.Diff(text(theirs), text(ours)); diff != "" {
			t.Fatalf("seed %d (-API server +ours):\n%s", seed, diff)
		}
	}
	if whole == 0 {
		t.Error("no pod as a whole is given more")
	}
}

// roundUp makes all amounts of containers whole thousandths.
func roundUp(s corev1.PodSpec) {
	for _, c := range append(s.Containers, s.InitContainers...) {
		for _, list := range []corev1.ResourceList{c.Resources.Limits, c.Resources.Requests} {
			for name, q := range list {
				q.RoundUp(quantity.Milli)
				list[name] = q
			}
		}
	}
}

// countedFields are what a scheduler counts, as text.
func countedFields(s corev1.PodSpec) map[string]string {
	out := map[string]string{}
	note := func(at string, list corev1.ResourceList) {
		for name, q := range list {
			out[at+" "+string(name)] = q.String()
		}
	}
	for kind, list := range map[string][]corev1.Container{"container": s.Containers, "init": s.InitContainers} {
		for i, c := range list {
			at := fmt.Sprintf("%s %d", kind, i)
			note(at+" requests", c.Resources.Requests)
			note(at+" limits", c.Resources.Limits)
			for j, p := range c.Ports {
				out[fmt.Sprintf("%s port %d", at, j)] = fmt.Sprint(p.HostPort)
			}
		}
	}
	if s.Resources != nil {
		note("pod requests", s.Resources.Requests)
		note("pod limits", s.Resources.Limits)
	}
	note("overhead", s.Overhead)
	return out
}

func randomSpec(r *rand.Rand) corev1.PodSpec {
	s := corev1.PodSpec{HostNetwork: r.IntN(3) == 0}
	for range 1 + r.IntN(3) {
		s.Containers = append(s.Containers, randomContainer(r))
	}
	for range r.IntN(3) {
		c := randomContainer(r)
		if always := corev1.ContainerRestartPolicyAlways; r.IntN(2) == 0 {
			c.RestartPolicy = &always
		}
		s.InitContainers = append(s.InitContainers, c)
	}
	if r.IntN(3) == 0 {
		s.Resources = &corev1.ResourceRequirements{Limits: randomAmounts(r), Requests: randomAmounts(r)}
	}
	if r.IntN(4) == 0 {
		s.Overhead = randomAmounts(r)
	}
	return s
}

func randomContainer(r *rand.Rand) corev1.Container {
	c := corev1.Container{Resources: corev1.ResourceRequirements{Limits: randomAmounts(r), Requests: randomAmounts(r)}}
	for range r.IntN(3) {
		p := corev1.ContainerPort{ContainerPort: int32(1 + r.IntN(9))}
		if r.IntN(2) == 0 {
			p.HostPort = int32(11 + r.IntN(9))
		}
		c.Ports = append(c.Ports, p)
	}
	return c
}

// randomAmounts are none, or some of few values, so that sums and comparisons meet.
func randomAmounts(r *rand.Rand) corev1.ResourceList {
	if r.IntN(3) == 0 {
		return nil
	}
	out := corev1.ResourceList{}
	for name, values := range map[corev1.ResourceName][]string{
		corev1.ResourceCPU: {"0", "250m", "2", "100u"}, corev1.ResourceMemory: {"0", "64Mi", "1Gi", "1e9"},
		corev1.ResourceEphemeralStorage: {"1Gi", "2G"}, "hugepages-2Mi": {"2Mi", "4Mi"}, "nvidia.com/gpu": {"0", "1"},
	} {
		if n := r.IntN(2 * len(values)); n < len(values) {
			out[name] = quantity.MustParse(values[n])
		}
	}
	return out
}
