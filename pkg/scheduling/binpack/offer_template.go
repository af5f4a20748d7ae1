package binpack

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	api "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/overlays"
	"joiner.sh/pkg/model/plan"
	"joiner.sh/pkg/model/requirements"
)

// TemplateNode is a node as the template of the pool has it, for no pods: any type that the pool allows may come, and
// the choice is only what is cheapest now. Where nothing is to be had, refused says why. relax takes a minValues that
// cannot be met as a wish.
func TemplateNode(p cluster.Pool, types []instancetypes.Type, relax bool) (l plan.Launch, refused string) {
	set := p.Requirements.AndSet(requirements.FromLabels(p.Labels)).And(requirements.Of(labelPool, p.Name),
		requirements.Of(labelClass, p.Class))
	l = plan.Launch{Pool: p.Name, Class: p.Class, Taints: p.Taints, Startup: p.StartupTaints,
		Labels: maps.Clone(p.Labels), Annotations: maps.Clone(p.Annotations)}
	if l.Labels == nil {
		l.Labels = map[string]string{}
	}
	if l.Annotations == nil {
		l.Annotations = map[string]string{}
	}
	chosen := chooseCustomLabels(set, anyValue)
	for _, r := range chosen.All() {
		l.Labels[r.Key], _ = r.Single()
	}
	set = set.AndSet(chosen)
	l.Labels[labelPool], l.Labels[labelClass] = p.Name, p.Class
	l.Requirements = set
	seen := map[string]map[string]bool{}
	for _, t := range types {
		best, ok := cheapestOffering(t, set)
		if !ok {
			continue
		}
		if len(l.Types) == 0 || best.Price < l.Choice.Price || best.Price == l.Choice.Price && t.Name < l.Choice.Type {
			l.Choice = best
		}
		l.Types = append(l.Types, t.Name)
		overlays.AnnotateClaim(l.Annotations, t)
		noteValues(seen, set, t)
	}
	slices.Sort(l.Types)
	if len(l.Types) == 0 {
		return l, "nothing that its requirements allow is to be had now"
	}
	short := ""
	for _, r := range set.All() {
		if n := len(seen[r.Key]); n < int(r.MinValues) {
			short = fmt.Sprintf("its requirements want %d values of %s, and what is to be had now has %d", r.MinValues,
				r.Key, n)
		}
	}
	if short != "" && !relax {
		return l, short
	}
	l.Annotations[api.AnnotationMinValuesRelaxed] = strconv.FormatBool(short != "")
	return l, ""
}

// chooseCustomLabels is one value for each label of the set that the launch has to choose: for those that instances
// have EC2 decides, and what must not exist gets none.
func chooseCustomLabels(set requirements.Set, value func(requirements.Requirement) string) (chosen requirements.Set) {
	for _, r := range set.All() {
		if !isWellKnownLabel(r.Key) && r.Key != labelClass && r.Operator() != requirements.DoesNotExist {
			chosen = chosen.And(requirements.Of(r.Key, value(r)))
		}
	}
	return chosen
}

// cheapestOffering is the cheapest offering of the type that may come and is to be had.
func cheapestOffering(t instancetypes.Type, set requirements.Set) (best instancetypes.Offering, ok bool) {
	if !set.Intersects(t.Requirements) {
		return best, false
	}
	for _, o := range t.Offerings {
		if o.Available && len(o.Paid) == 0 && o.Meets(set) && (!ok || o.Price < best.Price) {
			best, ok = o, true
		}
	}
	return best, ok
}

// noteValues notes the values that the type has for each requirement with minValues.
func noteValues(seen map[string]map[string]bool, set requirements.Set, t instancetypes.Type) {
	for _, r := range set.All() {
		if r.MinValues == 0 {
			continue
		}
		if seen[r.Key] == nil {
			seen[r.Key] = map[string]bool{}
		}
		q, _ := t.Requirements.Get(r.Key)
		for _, v := range q.Values {
			if r.Has(v) {
				seen[r.Key][v] = true
			}
		}
	}
}
