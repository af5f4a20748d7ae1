package podtopology

import (
	"cmp"
	"slices"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/plan"
	"joiner.sh/pkg/model/topology"
	"joiner.sh/pkg/scheduling/capacity"
	"joiner.sh/pkg/scheduling/podclass"
)

// ReadRules finds the domains, relaxes the classes step by step, finds the nodes and counts the pods that stay on them.
func (top *Counts) ReadRules(stages podclass.StageTeller) {
	top.findKeys()
	softTaint := top.s.HasSoftTaints()
	for _, class := range top.Classes.List {
		stages.Tell(cluster.StageRelax, class, "")
		for _, x := range podclass.RelaxationSteps(class.Pod, top.s.Rules.IgnorePreferences, softTaint) {
			class.Views = append(class.Views, top.relaxedPodFor(class, x))
		}
	}
	top.nodes.FindHosts(top.Classes.Waiting)
	top.countRunningPods()
	top.dropCircles()
}

func (top *Counts) relaxedPodFor(class *podclass.Class, x podclass.Constraints) *podclass.RelaxedPod {
	pod := &podclass.RelaxedPod{Class: class, Wish: x, Admission: top.admissions.AdmissionOf(x)}
	add := func(r podclass.TopologyRule) {
		if r.Key == podclass.LabelHost {
			pod.HostRules = append(pod.HostRules, r)
		} else {
			pod.DomainRules = append(pod.DomainRules, r)
		}
	}
	follows := top.followRules(class, x.Pod.Affinity)
	pod.Together = slices.ContainsFunc(follows,
		func(r podclass.TopologyRule) bool { return r.Key == podclass.LabelHost && r.Self })
	prefer := func(r podclass.TopologyRule) {
		if !r.Self || !pod.Together { // pods that must share a node cannot spread or keep away from each other
			add(r)
		}
	}
	for _, c := range x.Pod.Spread {
		if !c.Soft {
			add(top.spreadRule(class, c))
		}
	}
	for _, c := range x.Soft {
		prefer(top.spreadRule(class, c))
	}
	for _, t := range x.Pod.AntiAffinity {
		add(top.termRule(class, t, podclass.TopologyRule{Kind: podclass.Avoid, Required: true}))
	}
	for _, t := range x.Avoids {
		prefer(top.termRule(class, t.Term, podclass.TopologyRule{Kind: podclass.Avoid}))
	}
	for _, r := range follows {
		add(r)
	}
	for _, t := range x.Prefers {
		add(top.termRule(class, t.Term, podclass.TopologyRule{Kind: podclass.Follow}))
	}
	slices.SortStableFunc(pod.DomainRules, func(a, b podclass.TopologyRule) int { return cmp.Compare(a.Key, b.Key) })
	return pod
}

// spreadRule counts pods on topology.CountedNodes. A node of its own admits the pod, or nobody asks for its count.
func (top *Counts) spreadRule(class *podclass.Class, c cluster.Spread) podclass.TopologyRule {
	s, g := topology.SpreadOf(c, &class.Pod)
	r := podclass.TopologyRule{Kind: podclass.Spread, Key: podclass.CanonicalKey(c.Key), MaxSkew: s.MaxSkew,
		MinDomains: s.MinDomains, Self: s.Self, Required: !c.Soft}
	if r.Key == podclass.LabelHost {
		r.Counter = top.counterIndex(r.Key, g, nil)
		top.Counters[r.Counter].limited = top.Counters[r.Counter].limited || r.Required
		return r
	}
	asks := podclass.Constraints{Pod: topology.CountedNodes(c, &class.Pod)}
	r.Counter = top.counterIndex(r.Key, g,
		top.admissions.AdmissionFor(asks.NodeAlternatives(false), asks.Pod.Tolerations))
	top.Counters[r.Counter].Spread = true
	top.Counters[r.Counter].strict = top.Counters[r.Counter].strict || r.Required
	return r
}

// termRule is the rule, of which the kind is known and whether it is required, with what the term says.
func (top *Counts) termRule(class *podclass.Class, t cluster.AffinityTerm,
	r podclass.TopologyRule) podclass.TopologyRule {
	g := topology.OfTerm(t, class.Pod.Namespace, top.spaces)
	r.Key, r.Self = podclass.CanonicalKey(t.Key), g.Selects(class.Pod.Namespace, class.Pod.Labels)
	r.Counter = top.counterIndex(r.Key, g, nil)
	c := &top.Counters[r.Counter]
	c.Avoided = c.Avoided || r.Kind == podclass.Avoid && r.Required && r.Key != podclass.LabelHost
	c.strict = c.strict || r.Required
	return r
}

// followRules returns the rules of required affinity.
func (top *Counts) followRules(class *podclass.Class, terms []cluster.AffinityTerm) []podclass.TopologyRule {
	all := topology.OfTerms(terms, class.Pod.Namespace, top.spaces)
	var out []podclass.TopologyRule
	for _, t := range terms {
		key := podclass.CanonicalKey(t.Key)
		counter := top.counterIndex(key, all, nil)
		top.Counters[counter].strict = true
		out = append(out, podclass.TopologyRule{Kind: podclass.Follow, Key: key, Counter: counter, Required: true,
			Self: all.Selects(class.Pod.Namespace, class.Pod.Labels)})
	}
	return out
}

// KeysOf lists the topology keys whose rules, own or others', concern the view.
func (top *Counts) KeysOf(pod *podclass.RelaxedPod) []string {
	var keys []string
	for _, r := range pod.DomainRules {
		if !pod.Unbound || !top.concernsNobody(pod, r) {
			keys = append(keys, r.Key)
		}
	}
	for _, c := range pod.Class.Matched {
		if x := top.Counters[c]; x.Key != podclass.LabelHost &&
			(!pod.Unbound || x.strict && !top.concernsOnly(pod, c)) {
			keys = append(keys, x.Key)
		}
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}

// concernsNobody reports whether the rule of the view is anti-affinity over a label of every node to pods of which no
// other runs or waits, or affinity to its only pod.
func (top *Counts) concernsNobody(pod *podclass.RelaxedPod, r podclass.TopologyRule) bool {
	lone := len(pod.Class.Pods) == 1
	return (r.Kind == podclass.Avoid && (!r.Self || lone) || r.Kind == podclass.Follow && r.Self && lone) &&
		podclass.OnEveryNode(r.Key) && !top.hasRunningMatch(r) &&
		!slices.ContainsFunc(top.Classes.List, func(o *podclass.Class) bool {
			return o != pod.Class &&
				slices.Contains(o.Matched, r.Counter)
		})
}

// concernsOnly reports whether the counter is that of a rule about nobody but the view's own pod, and of no rule of
// other pods.
func (top *Counts) concernsOnly(pod *podclass.RelaxedPod, counter int) bool {
	of := func(r podclass.TopologyRule) bool { return r.Counter == counter }
	return slices.ContainsFunc(pod.DomainRules, of) &&
		!slices.ContainsFunc(pod.DomainRules,
			func(r podclass.TopologyRule) bool { return of(r) && !top.concernsNobody(pod, r) }) &&
		!isAnyCounted(top.Tally.Anti[counter]) &&
		!slices.ContainsFunc(top.Classes.List, func(o *podclass.Class) bool {
			return o != pod.Class &&
				slices.ContainsFunc(o.LastRelaxation().DomainRules, of)
		})
}

// StrictestSpread is the required spread with the counter that allows least.
func (top *Counts) StrictestSpread(counter int) podclass.TopologyRule {
	if top.spreads != nil {
		return top.spreads[counter]
	}
	top.spreads = make([]podclass.TopologyRule, len(top.Counters))
	for _, class := range top.Classes.List {
		for _, r := range class.LastRelaxation().DomainRules {
			s := &top.spreads[r.Counter]
			if r.Kind == podclass.Spread && r.Required && (s.MaxSkew == 0 || r.MaxSkew < s.MaxSkew) {
				*s = r
			}
		}
	}
	return top.spreads[counter]
}

// onlyCountedClass returns the class that is the only one the counter counts, nil when there are several.
func (top *Counts) onlyCountedClass(counter int) *podclass.Class {
	if top.lone == nil {
		top.lone = make([]*podclass.Class, len(top.Counters))
		seen := make([]int, len(top.Counters))
		for _, class := range top.Classes.List {
			for _, c := range class.Matched {
				seen[c]++
				top.lone[c] = class
			}
		}
		for c, n := range seen {
			if n != 1 {
				top.lone[c] = nil
			}
		}
	}
	return top.lone[counter]
}

// EvenSplit is a spread that makes each of several domains take its part of the pods of a class; without a key, none.
type EvenSplit struct {
	Key     string   // topology key of the spread
	Domains []string // at least two, without pods that the spread counts; nil without a key
	Skew    int      // maxSkew of the spread, in pods
}

// SpreadSplitsEvenly tells whether a spread makes each of several domains take its part of the pods of the view: one
// that counts nobody else, in domains that they can reach.
func (top *Counts) SpreadSplitsEvenly(pod *podclass.RelaxedPod) EvenSplit {
	if slices.ContainsFunc(top.nodes.Hosts, func(b *capacity.Bin) bool { return len(b.Wanted) > 0 }) {
		return EvenSplit{} // where pods of an earlier pass stand is not asked again
	}
	for _, r := range pod.DomainRules {
		if r.Kind != podclass.Spread || !r.Self || r.MinDomains > 0 || top.onlyCountedClass(r.Counter) != pod.Class {
			continue
		}
		x := EvenSplit{Key: r.Key, Skew: r.MaxSkew}
		eligible := top.EligibleDomains(r).Eligible
		for d, domain := range top.Domains[r.Key] {
			if eligible[d] && top.Tally.Count[r.Counter][d] == 0 {
				x.Domains = append(x.Domains, domain)
			} else if top.Tally.Count[r.Counter][d] > 0 {
				return EvenSplit{}
			}
		}
		if len(x.Domains) > 1 {
			return x
		}
	}
	return EvenSplit{}
}

// waitsInCircle is the reason of pods that a scheduler, which takes one pod after the other, can never place.
const waitsInCircle = "pod affinity: the pods it must be near to wait for others in turn, and none of them can come first; " +
	"let one of them do without, or select itself"

// dropCircles takes out the pods whose required affinity goes round in a circle. Everybody's wish would hold once all
// were there, but nobody can be the first, so nodes made for them would stay empty.
func (top *Counts) dropCircles() {
	came := make([]bool, len(top.Classes.List))
	arrives := func(class *podclass.Class) bool {
		for _, r := range class.RequiredAffinityRules() {
			if !r.Self && !top.hasRunningMatch(r) &&
				!slices.ContainsFunc(top.Classes.List, func(o *podclass.Class) bool {
					return came[o.ID] &&
						slices.Contains(o.Matched, r.Counter)
				}) {
				return false
			}
		}
		return true
	}
	for again := true; again; {
		again = false
		for i, class := range top.Classes.List {
			if !came[i] && arrives(class) {
				came[i], again = true, true
			}
		}
	}
	for i, class := range top.Classes.List {
		if came[i] || slices.ContainsFunc(class.RequiredAffinityRules(),
			func(r podclass.TopologyRule) bool {
				return !r.Self && !top.hasRunningMatch(r) && !top.hasPendingMatch(r)
			}) {
			continue // of pods that do not exist at all the reason is another
		}
		for _, p := range class.Pods {
			top.Classes.Unmodelled = append(top.Classes.Unmodelled, plan.Unplaced{Pod: p, Why: []string{waitsInCircle}})
		}
		class.Pods = nil
	}
}
