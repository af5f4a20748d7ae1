package cluster

import "joiner.sh/pkg/model/requirements"

// PodBudgetIndex finds the PodDisruptionBudgets that select a pod without asking each of its namespace: most of them
// name a label that hardly another one names.
type PodBudgetIndex struct {
	byNamespace map[string]*podBudgetsOfNamespace
}

// podBudgetsOfNamespace are the budgets of a namespace, each in one place.
type podBudgetsOfNamespace struct {
	byLabel map[string]map[string][]*PodDisruptionBudget // by a label that its pods have: key, and value
	others  []*PodDisruptionBudget                       // whose selectors name no value
}

// IndexPodBudgets returns the index of the budgets, which are not copied.
func IndexPodBudgets(budgets []PodDisruptionBudget) PodBudgetIndex {
	x := PodBudgetIndex{byNamespace: map[string]*podBudgetsOfNamespace{}}
	named := map[[3]string]int{} // how many budgets name the value, by namespace, key and value
	for i := range budgets {
		b := &budgets[i]
		if b.Selector == nil {
			continue // it selects nothing
		}
		for _, r := range b.Selector.Requirements {
			for _, value := range selectedValues(r) {
				named[[3]string{b.Namespace, r.Key, value}]++
			}
		}
	}
	for i := range budgets {
		if b := &budgets[i]; b.Selector != nil {
			x.addBudget(b, named)
		}
	}
	return x
}

// addBudget files the budget under the requirement whose values are named least.
func (x PodBudgetIndex) addBudget(b *PodDisruptionBudget, named map[[3]string]int) {
	in := x.byNamespace[b.Namespace]
	if in == nil {
		in = &podBudgetsOfNamespace{byLabel: map[string]map[string][]*PodDisruptionBudget{}}
		x.byNamespace[b.Namespace] = in
	}
	var rarest *requirements.Requirement
	least := 0
	for i := range b.Selector.Requirements {
		r, sum := &b.Selector.Requirements[i], 0
		for _, value := range selectedValues(*r) {
			sum += named[[3]string{b.Namespace, r.Key, value}]
		}
		if sum > 0 && (rarest == nil || sum < least) {
			rarest, least = r, sum
		}
	}
	if rarest == nil {
		in.others = append(in.others, b)
		return
	}
	values := in.byLabel[rarest.Key]
	if values == nil {
		values = map[string][]*PodDisruptionBudget{}
		in.byLabel[rarest.Key] = values
	}
	for _, value := range rarest.Values {
		values[value] = append(values[value], b)
	}
}

// selectedValues are the values of which a label must have one; none where the requirement names no such values.
func selectedValues(r requirements.Requirement) []string {
	if r.Not || r.Min != nil || r.Max != nil {
		return nil
	}
	return r.Values
}

// Selecting returns the budgets that select the pod, in no order.
func (x PodBudgetIndex) Selecting(p *Pod) (out []*PodDisruptionBudget) {
	in := x.byNamespace[p.Namespace]
	if in == nil {
		return nil
	}
	selects := func(b *PodDisruptionBudget) bool { return b.Selector.Matches(p.Labels) }
	for key, values := range in.byLabel {
		if value, labelled := p.Labels[key]; labelled {
			for _, b := range values[value] {
				if selects(b) {
					out = append(out, b)
				}
			}
		}
	}
	for _, b := range in.others {
		if selects(b) {
			out = append(out, b)
		}
	}
	return out
}
