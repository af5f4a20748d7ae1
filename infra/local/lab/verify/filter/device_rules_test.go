package filter_test

import (
	"math/rand/v2"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	resourcev1beta2 "k8s.io/api/resource/v1beta2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"joiner.sh/infra/local/controlplane/filter"
	"joiner.sh/pkg/model/plan"
)

// deviceRules is what a draw has of DeviceTaintRules and of claims that pods share. It has chances of its own.
type deviceRules struct {
	r   *rand.Rand
	all []resourcev1beta2.DeviceTaintRule
}

func newDeviceRules(seed uint64) deviceRules {
	d := deviceRules{r: rand.New(rand.NewPCG(seed, 2))}
	if d.r.IntN(8) == 0 {
		selector := &resourcev1beta2.DeviceTaintSelector{}
		if d.r.IntN(3) > 0 {
			selector.Driver = new([]string{gpuDriver, efaDriver}[d.r.IntN(2)])
		}
		effect := []resourcev1beta2.DeviceTaintEffect{resourcev1beta2.DeviceTaintEffectNoSchedule, resourcev1beta2.DeviceTaintEffectNoExecute, resourcev1beta2.DeviceTaintEffectNone}[d.r.IntN(3)]
		d.all = []resourcev1beta2.DeviceTaintRule{{ObjectMeta: metav1.ObjectMeta{Name: "all"}, Spec: resourcev1beta2.DeviceTaintRuleSpec{DeviceSelector: selector, Taint: resourcev1beta2.DeviceTaint{Key: "rule", Value: "x", Effect: effect}}}}
	}
	return d
}

// toleration is one of the rule's taint, of another, or none.
func (d deviceRules) toleration() []resourcev1.DeviceToleration {
	if len(d.all) == 0 {
		return nil
	}
	return [][]resourcev1.DeviceToleration{nil, {{Key: "rule", Operator: resourcev1.DeviceTolerationOpExists}}, {{Key: "rule", Operator: resourcev1.DeviceTolerationOpEqual, Value: "x"}},
		{{Key: "rule", Operator: resourcev1.DeviceTolerationOpEqual, Value: "y"}}, {{Operator: resourcev1.DeviceTolerationOpExists, Effect: resourcev1.DeviceTaintEffectNoSchedule}}}[d.r.IntN(5)]
}

// taint is the question with the slices as kube-scheduler sees them under the rules.
func (d deviceRules) taint(q filter.Question) filter.Question {
	for _, r := range d.all {
		var all []*resourcev1.ResourceSlice
		for _, s := range q.ResourceSlices {
			s = s.DeepCopy()
			for i := range s.Spec.Devices {
				if x := &s.Spec.Devices[i]; r.Spec.DeviceSelector.Driver == nil || *r.Spec.DeviceSelector.Driver == s.Spec.Driver {
					x.Taints = append(x.Taints, resourcev1.DeviceTaint{Key: r.Spec.Taint.Key, Value: r.Spec.Taint.Value, Effect: resourcev1.DeviceTaintEffect(r.Spec.Taint.Effect)})
				}
			}
			all = append(all, s)
		}
		q.ResourceSlices = all
	}
	return q
}

// shareClaims has some pods that wait share the claim of another one that waits: they name it, as its owner does.
func (d deviceRules) shareClaims(q filter.Question) {
	if d.r.IntN(4) > 0 {
		return
	}
	var owner *corev1.Pod
	for _, p := range q.Pods {
		switch {
		case p.Spec.NodeName != "":
		case owner == nil && len(p.Spec.ResourceClaims) > 0:
			owner = p
		case owner != nil && d.r.IntN(2) == 0:
			name := *owner.Status.ResourceClaimStatuses[0].ResourceClaimName
			for _, c := range q.ResourceClaims {
				if c.Name == name {
					c.Annotations, c.OwnerReferences = nil, nil
				}
			}
			owner.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "g", ResourceClaimName: &name}}
			p.Spec.ResourceClaims, p.Status.ResourceClaimStatuses = owner.Spec.ResourceClaims, nil
		}
	}
	if owner != nil && owner.Spec.ResourceClaims[0].ResourceClaimName != nil {
		owner.Status.ResourceClaimStatuses = nil
	}
}

// shares reports whether the pod shares a claim: where its first pod has no place the others have none, though the
// scheduler might give it to one of them.
func (d deviceRules) shares(p *corev1.Pod) bool {
	return len(p.Spec.ResourceClaims) > 0 && p.Spec.ResourceClaims[0].ResourceClaimName != nil
}

// count counts the pods that have a place and share a claim, and those that a rule is about.
func (d deviceRules) count(q filter.Question, p plan.Plan, into map[string]int) {
	placed := p.NodeByPod()
	for _, l := range p.Launches {
		for _, pod := range l.Pods {
			placed[pod] = "new"
		}
	}
	for _, pod := range q.Pods {
		switch on := placed[pod.Namespace+"/"+pod.Name]; {
		case on == "":
		case d.shares(pod):
			into["share a claim"]++
		case len(d.all) > 0 && len(pod.Spec.ResourceClaims) > 0:
			into["tolerate a rule"]++
		}
	}
	for _, u := range p.Unplaced {
		if strings.Contains(strings.Join(u.Why, ""), "DeviceTaintRule all") {
			into["tolerate no rule"]++
		}
	}
}
