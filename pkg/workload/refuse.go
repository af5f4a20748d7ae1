package workload

import (
	"fmt"
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"joiner.sh/pkg/model/lists"
)

// fargateScheduler places pods that run on AWS Fargate.
const fargateScheduler = "fargate-scheduler"

// PodRefusals says what no API server would accept about a pod, or what a workload file cannot describe: such a pod
// stays unschedulable, with these reasons.
func PodRefusals(s corev1.PodSpec) []string {
	out := SpecRefusals(s)
	for _, v := range s.Volumes {
		if v.PersistentVolumeClaim != nil || v.Ephemeral != nil {
			out = append(out, fmt.Sprintf("volume %s: a workload file does not say where persistent volumes can be",
				v.Name))
		}
	}
	return out
}

// SpecRefusals are PodRefusals but for volumes, of which manifests say where they can be.
func SpecRefusals(s corev1.PodSpec) []string {
	var out []string
	for _, c := range slices.Concat(s.InitContainers, s.Containers) {
		out = append(out, badContainerResources("container "+c.Name, c.Resources)...)
		for _, p := range c.Ports {
			if p.HostPort < 0 || p.HostPort > math.MaxUint16 {
				out = append(out, fmt.Sprintf("container %s: hostPort is %d, it must be from 1 to 65535", c.Name,
					p.HostPort))
			}
		}
	}
	out = append(out, badClaims(s)...)
	if s.Resources != nil {
		out = append(out, badPodResources(s)...)
	}
	out = append(out, badAmounts("its overhead has", s.Overhead)...)
	for _, t := range s.Tolerations {
		out = append(out, badToleration(t)...)
	}
	for i, c := range s.TopologySpreadConstraints {
		out = append(out, badSpread(c)...)
		if slices.ContainsFunc(s.TopologySpreadConstraints[:i], func(o corev1.TopologySpreadConstraint) bool {
			return o.TopologyKey == c.TopologyKey && o.WhenUnsatisfiable == c.WhenUnsatisfiable
		}) {
			out = append(out, fmt.Sprintf("topology spread over %s: there are two with %s", c.TopologyKey, c.WhenUnsatisfiable))
		}
	}
	if s.Affinity != nil {
		out = append(out, badAffinity(*s.Affinity)...)
	}
	if s.SchedulerName == fargateScheduler {
		out = append(out, "it is scheduled by "+fargateScheduler+" and needs no node")
	}
	if len(s.SchedulingGates) > 0 {
		out = append(out, fmt.Sprintf("it waits for its scheduling gate %s; nothing is launched for it before",
			s.SchedulingGates[0].Name))
	}
	return out
}

// badClaims says which claims of devices the API server refuses. Of one that names nothing says translate.Pod.
func badClaims(s corev1.PodSpec) (out []string) {
	given := map[string]bool{}
	for _, c := range s.ResourceClaims {
		if given[c.Name] {
			out = append(out, fmt.Sprintf("claim %s is given twice; give each its own name", c.Name))
		}
		if given[c.Name] = true; c.ResourceClaimName != nil && c.ResourceClaimTemplateName != nil {
			out = append(out, fmt.Sprintf("claim %s names a ResourceClaim and a ResourceClaimTemplate; the API server takes one of them",
				c.Name))
		}
	}
	for _, c := range slices.Concat(s.InitContainers, s.Containers) {
		for _, r := range c.Resources.Claims {
			if !given[r.Name] {
				out = append(out, fmt.Sprintf("container %s uses the claim %s, which is not among the resourceClaims of the pod",
					c.Name, r.Name))
			}
		}
	}
	return out
}

func badToleration(t corev1.Toleration) (out []string) {
	switch exists := t.Operator == corev1.TolerationOpExists; {
	case exists && t.Value != "":
		out = append(out, fmt.Sprintf("toleration of %s: it has a value, and the operator Exists", t.Key))
	case !exists && t.Key == "":
		out = append(out, "toleration of "+t.Value+": it has no key, and not the operator Exists")
	}
	switch t.Operator {
	case "", corev1.TolerationOpEqual, corev1.TolerationOpExists, "Gt", "Lt":
	default:
		out = append(out, fmt.Sprintf("toleration of %s: unknown operator %q, use Equal or Exists", t.Key, t.Operator))
	}
	switch t.Effect {
	case "", corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute:
	default:
		out = append(out, fmt.Sprintf("toleration of %s: unknown effect %q, use NoSchedule, PreferNoSchedule or NoExecute", t.Key, t.Effect))
	}
	if t.TolerationSeconds != nil && t.Effect != corev1.TaintEffectNoExecute {
		out = append(out, fmt.Sprintf("toleration of %s: tolerationSeconds goes with effect NoExecute alone", t.Key))
	}
	return out
}

func badSpread(c corev1.TopologySpreadConstraint) []string {
	var out []string
	at := "topology spread over " + c.TopologyKey
	switch {
	case c.TopologyKey == "":
		out = append(out, "topology spread: topologyKey is missing")
	case c.MaxSkew <= 0:
		out = append(out, fmt.Sprintf("%s: maxSkew is %d, it must be 1 or more", at, c.MaxSkew))
	case c.WhenUnsatisfiable != corev1.DoNotSchedule && c.WhenUnsatisfiable != corev1.ScheduleAnyway:
		out = append(out, fmt.Sprintf("%s: whenUnsatisfiable is %q, use DoNotSchedule or ScheduleAnyway", at,
			c.WhenUnsatisfiable))
	case c.MinDomains != nil && *c.MinDomains <= 0:
		out = append(out, fmt.Sprintf("%s: minDomains is %d, it must be 1 or more", at, *c.MinDomains))
	case c.MinDomains != nil && c.WhenUnsatisfiable != corev1.DoNotSchedule:
		out = append(out, at+": minDomains goes with whenUnsatisfiable DoNotSchedule alone")
	case len(c.MatchLabelKeys) > 0 && c.LabelSelector == nil:
		out = append(out, at+": matchLabelKeys go with a labelSelector, and there is none")
	}
	out = append(out, badInclusion(at+": nodeAffinityPolicy", c.NodeAffinityPolicy)...)
	out = append(out, badInclusion(at+": nodeTaintsPolicy", c.NodeTaintsPolicy)...)
	if _, err := metav1.LabelSelectorAsSelector(c.LabelSelector); err != nil {
		out = append(out, fmt.Sprintf("%s: %v", at, err))
	}
	return out
}

func badAffinity(a corev1.Affinity) (out []string) {
	if a.NodeAffinity != nil {
		for _, p := range a.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution {
			out = append(out, badWeight("node affinity", p.Weight)...)
		}
	}
	if a.PodAffinity != nil {
		out = append(out, badTerms("pod affinity", a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution,
			a.PodAffinity.PreferredDuringSchedulingIgnoredDuringExecution)...)
	}
	if a.PodAntiAffinity != nil {
		out = append(out, badTerms("pod anti-affinity",
			a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution,
			a.PodAntiAffinity.PreferredDuringSchedulingIgnoredDuringExecution)...)
	}
	return out
}

func badInclusion(what string, p *corev1.NodeInclusionPolicy) []string {
	if p == nil || *p == corev1.NodeInclusionPolicyHonor || *p == corev1.NodeInclusionPolicyIgnore {
		return nil
	}
	return []string{fmt.Sprintf("%s is %q, use Honor or Ignore", what, *p)}
}

func badWeight(what string, weight int32) []string {
	if weight >= 1 && weight <= 100 {
		return nil
	}
	return []string{fmt.Sprintf("%s: weight is %d, it must be from 1 to 100", what, weight)}
}

func badTerms(what string, terms []corev1.PodAffinityTerm, preferred []corev1.WeightedPodAffinityTerm) []string {
	var out []string
	for _, w := range preferred {
		out = append(out, badWeight(what+" over "+w.PodAffinityTerm.TopologyKey, w.Weight)...)
	}
	weighted := func(w corev1.WeightedPodAffinityTerm) corev1.PodAffinityTerm { return w.PodAffinityTerm }
	for _, t := range slices.Concat(terms, lists.Of(preferred, weighted)) {
		if t.TopologyKey == "" {
			out = append(out, what+": topologyKey is missing")
		}
		for _, s := range []*metav1.LabelSelector{t.LabelSelector, t.NamespaceSelector} {
			if _, err := metav1.LabelSelectorAsSelector(s); err != nil {
				out = append(out, fmt.Sprintf("%s over %s: %v", what, t.TopologyKey, err))
			}
		}
	}
	return out
}
