package binpack

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"

	aws "joiner.sh/pkg/api/aws/v1"
	api "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/overlays"
	"joiner.sh/pkg/model/plan"
	"joiner.sh/pkg/model/requirements"
	"joiner.sh/pkg/scheduling/capacity"
	"joiner.sh/pkg/scheduling/podclass"
)

// TemplateNode is a node as the template of the pool has it, for no pods: any type that the pool allows may come, and
// the choice is only what is cheapest now. Where nothing is to be had, refused says why. relax takes a MinValues that
// cannot be met as a wish.
func TemplateNode(p cluster.Pool, types []instancetypes.Type, relax bool) (l plan.Launch, refused string) {
	set := p.Requirements.AndSet(requirements.FromLabels(p.Labels)).And(requirements.Of(api.LabelNodePool, p.Name),
		requirements.Of(aws.LabelEC2NodeClass, p.Class))
	l = plan.Launch{Pool: p.Name, Class: p.Class, Taints: p.Taints, Startup: p.StartupTaints,
		Labels: maps.Clone(p.Labels), Annotations: maps.Clone(p.Annotations)}
	if l.Labels == nil {
		l.Labels = map[string]string{}
	}
	if l.Annotations == nil {
		l.Annotations = map[string]string{}
	}
	chosen := capacity.ChooseCustomLabels(set, requirements.Requirement.AnyValue)
	for _, r := range chosen.All() {
		l.Labels[r.Key], _ = r.Single()
	}
	set = set.AndSet(chosen)
	l.Labels[api.LabelNodePool], l.Labels[aws.LabelEC2NodeClass] = p.Name, p.Class
	seen := map[string]map[string]bool{}
	for _, t := range types {
		available := availableOfferings(t, set)
		if len(available) == 0 {
			continue
		}
		best := slices.MinFunc(available, func(x, y instancetypes.Offering) int {
			return cmp.Compare(x.Price, y.Price)
		})
		if len(l.Types) == 0 || best.Price < l.Choice.Price || best.Price == l.Choice.Price && t.Name < l.Choice.Type {
			l.Choice = best
		}
		l.Types = append(l.Types, t.Name)
		overlays.AnnotateClaim(l.Annotations, t)
		noteValues(seen, set, t, available)
	}
	slices.Sort(l.Types)
	if len(l.Types) == 0 {
		l.Requirements = set
		return l, "nothing that its requirements allow is to be had now"
	}
	short, low := "", capacity.LoweredMinValues{}
	for _, r := range set.All() {
		if n := len(seen[r.Key]); n < int(r.MinValues) {
			low[r.Key] = n
			short = fmt.Sprintf("its requirements want %d values of %s, and what is to be had now has %d", r.MinValues,
				r.Key, n)
		}
	}
	if l.Requirements = set; short != "" && !relax {
		return l, short
	}
	l.Requirements = low.ApplyTo(set)
	l.Annotations[api.AnnotationMinValuesRelaxed] = strconv.FormatBool(short != "")
	return l, ""
}

// availableOfferings are the offerings of the type that may come and are to be had.
func availableOfferings(t instancetypes.Type, set requirements.Set) (out []instancetypes.Offering) {
	if !set.Intersects(t.Requirements) {
		return nil
	}
	for _, o := range t.Offerings {
		if o.Available && len(o.Paid) == 0 && o.Meets(set) {
			out = append(out, o)
		}
	}
	return out
}

// noteValues notes the values that nodes of the type may have for each requirement with MinValues.
func noteValues(seen map[string]map[string]bool, set requirements.Set, t instancetypes.Type,
	available []instancetypes.Offering) {
	for _, r := range set.All() {
		if r.MinValues == 0 {
			continue
		}
		if seen[r.Key] == nil {
			seen[r.Key] = map[string]bool{}
		}
		q, _ := t.Requirements.Get(r.Key)
		values := q.Values
		if podclass.VariesByOffering(r.Key) {
			values = nil
			for _, o := range available {
				v, _ := o.Label(r.Key)
				values = append(values, v)
			}
		}
		for _, v := range values {
			if v != "" && r.Has(v) {
				seen[r.Key][v] = true
			}
		}
	}
}
