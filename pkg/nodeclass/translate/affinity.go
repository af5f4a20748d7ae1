package translate

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	awsv1 "joiner.sh/pkg/api/aws/v1"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/lists"
	"joiner.sh/pkg/model/requirements"
)

// addAffinity translates node and pod affinity. What it cannot translate becomes words in Unmodelled.
func addAffinity(out *cluster.Pod, p *corev1.Pod) {
	a := p.Spec.Affinity
	if a == nil {
		return
	}
	if n := a.NodeAffinity; n != nil {
		addNodeAffinity(out, n)
	}
	if pa := a.PodAffinity; pa != nil {
		out.Affinity = affinityTerms(p, pa.RequiredDuringSchedulingIgnoredDuringExecution)
		out.Prefers = weightedTerms(p, pa.PreferredDuringSchedulingIgnoredDuringExecution)
	}
	if pa := a.PodAntiAffinity; pa != nil {
		out.AntiAffinity = affinityTerms(p, pa.RequiredDuringSchedulingIgnoredDuringExecution)
		out.Avoids = weightedTerms(p, pa.PreferredDuringSchedulingIgnoredDuringExecution)
	}
}

// addNodeAffinity keeps the required terms that a node can meet: one that none can falls away beside others, and is the
// reason where it is alone.
func addNodeAffinity(out *cluster.Pod, n *corev1.NodeAffinity) {
	if req := n.RequiredDuringSchedulingIgnoredDuringExecution; req != nil {
		var refused []string
		for _, t := range req.NodeSelectorTerms {
			rs, err := termFrom(t)
			why := termRefusals(out, rs)
			switch {
			case err != nil:
				refused = append(refused, err.Error())
			case len(why) > 0:
				refused = append(refused, why...)
			case len(rs) > 0: // an empty term selects no node
				out.NodeAffinity = append(out.NodeAffinity, rs)
			}
		}
		if len(refused) == 0 {
			refused = []string{cluster.AffinityRefused + " has no term and selects no node"}
		}
		// the daemon set controller pins its pods by field
		if len(out.NodeAffinity) == 0 && out.Owner != cluster.OwnerDaemonSet {
			out.Unmodelled = append(out.Unmodelled, refused...)
		}
	}
	for _, w := range n.PreferredDuringSchedulingIgnoredDuringExecution {
		if rs := preferredTerm(w.Preference); len(rs) > 0 {
			out.NodePrefers = append(out.NodePrefers, cluster.WeightedRequirements{Weight: w.Weight, Requirements: rs})
		}
	}
}

// termRefusals says why no node that is made can meet the required term, and nothing of pods that need none.
func termRefusals(p *cluster.Pod, term []requirements.Requirement) (out []string) {
	if p.Owner == cluster.OwnerDaemonSet {
		return nil
	}
	for _, r := range term {
		why := valueRefusal(r)
		if why == "" && p.NodeName == "" {
			why = labelRefusal(r)
		}
		if why != "" {
			out = append(out, cluster.AffinityRefused+": "+why)
		}
	}
	return out
}

// preferredTerm returns what can be wished of a node that is made, nothing where no such node meets the term. What all
// of them meet is left out: the API server would refuse a NodeClaim that asks for it. It does not look at the values of
// preferences; those that no label can have count as absent.
func preferredTerm(t corev1.NodeSelectorTerm) (out []requirements.Requirement) {
	if len(t.MatchFields) > 0 {
		return nil
	}
	for _, e := range t.MatchExpressions {
		values := slices.DeleteFunc(slices.Clone(e.Values), func(v string) bool {
			return !isLabelValue(v) && e.Operator != corev1.NodeSelectorOpGt // which has a number
		})
		if e.Operator == corev1.NodeSelectorOpNotIn && len(values) == 0 {
			continue
		}
		r, err := nodeRequirement(e.Key, e.Operator, values)
		if err != nil || labelRefusal(r) != "" {
			return nil
		}
		if !awsv1.RestrictedLabel(r.Key) {
			out = append(out, r)
		}
	}
	return out
}

// nodeRequirement returns what is asked of a node's label. Every node has a name, also one that has none yet: who asks
// for any gets one that is not empty. No label is a number below 0.
func nodeRequirement(key string, op corev1.NodeSelectorOperator, values []string) (requirements.Requirement, error) {
	if key == corev1.LabelHostname && op == corev1.NodeSelectorOpExists {
		return requirements.NewRequirement(key, requirements.NotIn, "")
	}
	if op == corev1.NodeSelectorOpGt && len(values) == 1 {
		if n, err := strconv.ParseInt(values[0], 10, 64); err == nil && n < 0 {
			return requirements.NewRequirement(stableKey(key), requirements.Gte, "0")
		}
	}
	return requirements.NewRequirement(stableKey(key), requirements.Operator(op), values...)
}

func termFrom(t corev1.NodeSelectorTerm) ([]requirements.Requirement, error) {
	if len(t.MatchFields) > 0 {
		return nil, fmt.Errorf("%s by field (%s in matchFields) is not supported", cluster.AffinityRefused, t.MatchFields[0].Key)
	}
	var out []requirements.Requirement
	for _, e := range t.MatchExpressions {
		r, err := nodeRequirement(e.Key, e.Operator, e.Values)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", cluster.AffinityRefused, err)
		}
		out = append(out, r)
	}
	return out, nil
}

func affinityTerms(p *corev1.Pod, terms []corev1.PodAffinityTerm) []cluster.AffinityTerm {
	return lists.Of(terms, func(t corev1.PodAffinityTerm) cluster.AffinityTerm { return affinityTerm(p, t) })
}

func weightedTerms(p *corev1.Pod, terms []corev1.WeightedPodAffinityTerm) []cluster.WeightedAffinityTerm {
	return lists.Of(terms, func(t corev1.WeightedPodAffinityTerm) cluster.WeightedAffinityTerm {
		return cluster.WeightedAffinityTerm{Weight: t.Weight, Term: affinityTerm(p, t.PodAffinityTerm)}
	})
}

// affinityTerm folds matchLabelKeys and mismatchLabelKeys into the selector. Newer API servers have done so already;
// doing it again changes nothing.
func affinityTerm(p *corev1.Pod, t corev1.PodAffinityTerm) cluster.AffinityTerm {
	s := selectorFrom(t.LabelSelector)
	s = foldPodLabels(s, p.Labels, t.MatchLabelKeys, requirements.In)
	s = foldPodLabels(s, p.Labels, t.MismatchLabelKeys, requirements.NotIn)
	out := cluster.AffinityTerm{
		Key: t.TopologyKey, Selector: s, Namespaces: slices.Clone(t.Namespaces),
		NamespaceSelector: selectorFrom(t.NamespaceSelector),
	}
	slices.Sort(out.Namespaces)
	return out
}

func spreadFrom(p *corev1.Pod) []cluster.Spread {
	var out []cluster.Spread
	for _, c := range p.Spec.TopologySpreadConstraints {
		s := cluster.Spread{
			Key:      c.TopologyKey,
			MaxSkew:  c.MaxSkew,
			Soft:     c.WhenUnsatisfiable == corev1.ScheduleAnyway,
			Selector: foldPodLabels(selectorFrom(c.LabelSelector), p.Labels, c.MatchLabelKeys, requirements.In),

			MinDomains:         ptr.Deref(c.MinDomains, 0),
			IgnoreNodeAffinity: ptr.Deref(c.NodeAffinityPolicy, "") == corev1.NodeInclusionPolicyIgnore,
			HonorTaints:        ptr.Deref(c.NodeTaintsPolicy, "") == corev1.NodeInclusionPolicyHonor,
		}
		if s.Selector != nil && len(s.Selector.Requirements) == 0 {
			s.Selector = nil // kube-scheduler counts no pods for an empty one: kubernetes/kubernetes#141339, until 1.38
		}
		out = append(out, s)
	}
	return out
}

// selectorFrom translates a label selector. Requirements on one key stay apart: "exists" and "not in" together must not
// become one "not in", which an absent label would satisfy. A selector that the API server would not take selects
// nothing.
func selectorFrom(s *metav1.LabelSelector) *cluster.Selector {
	if s == nil {
		return nil
	}
	out := &cluster.Selector{}
	for k, v := range s.MatchLabels {
		out.Requirements = append(out.Requirements, requirements.Of(k, v))
	}
	for _, e := range s.MatchExpressions {
		r, err := requirements.NewRequirement(e.Key, requirements.Operator(e.Operator), e.Values...)
		if err != nil {
			return nil
		}
		out.Requirements = append(out.Requirements, r)
	}
	return sortRequirements(out)
}

// foldPodLabels adds what the pod's own labels say for these keys; keys the pod does not have are ignored.
func foldPodLabels(s *cluster.Selector, labels map[string]string, keys []string,
	op requirements.Operator) *cluster.Selector {
	if s == nil {
		return nil
	}
	for _, k := range keys {
		v, ok := labels[k]
		if !ok {
			continue
		}
		if r, err := requirements.NewRequirement(k, op, v); err == nil {
			s.Requirements = append(s.Requirements, r)
		}
	}
	return sortRequirements(s)
}

// sortRequirements sorts the requirements and drops repetitions, so that equal selectors compare alike.
func sortRequirements(s *cluster.Selector) *cluster.Selector {
	slices.SortFunc(s.Requirements, func(a, b requirements.Requirement) int {
		return cmp.Or(cmp.Compare(a.Key, b.Key), cmp.Compare(a.String(), b.String()))
	})
	s.Requirements = slices.CompactFunc(s.Requirements, func(a, b requirements.Requirement) bool {
		return a.Key == b.Key && a.Not == b.Not && slices.Equal(a.Values, b.Values)
	})
	return s
}
