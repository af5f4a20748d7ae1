package nodeclass

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/utils/ptr"

	v1 "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/model/annotations"
	"joiner.sh/pkg/model/budgets"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/lists"
)

// ReadDisruption reads when nodes of the pool may be replaced by choice. While its Message says what cannot be
// understood or contradicts itself, the pool is one that only reports.
func ReadDisruption(p *v1.NodePool) cluster.Disruption {
	d := p.Spec.Disruption
	said, problems := annotations.ReadPool(p.Annotations)
	out := cluster.Disruption{TimeZone: said.TimeZone,
		Policy: string(cmp.Or(d.ConsolidationPolicy, v1.ConsolidationWhenEmptyOrUnderutilized))}
	switch after := d.ConsolidateAfter; {
	case after.Duration != nil:
		out.After = *after.Duration
	case after.Raw == v1.Never:
		out.Never = true
	}
	for _, b := range d.Budgets {
		n := cluster.NodeBudget{Every: b.Reasons == nil, Nodes: b.Nodes, Schedule: ptr.Deref(b.Schedule, ""),
			Reasons: lists.Of(b.Reasons, func(r v1.DisruptionReason) string { return string(r) })}
		if b.Duration != nil {
			n.Duration = b.Duration.Duration
		}
		out.Budgets = append(out.Budgets, n)
	}
	out.SavesUSD, out.SavesPercent = said.MinSavingsUSD, said.MinSavingsPercent
	out.SpotToSpot, out.ExpireGently = said.SpotToSpot, said.ExpireWithinBudgets
	out.SleepAt, out.SleepFor = sleepOf(said)
	err := errors.Join(budgets.ValidateBudgets(out), asError(problems), disruptionConflicts(p, out))
	if err != nil {
		out.Message = strings.ReplaceAll(err.Error(), "\n", "; ")
	}
	out.ReportOnly = said.ReportOnly || err != nil
	return out
}

// asError joins the problems that stop disruption.
func asError(problems []annotations.Problem) error {
	var all []error
	for _, p := range problems {
		if p.Stops == annotations.StopsDisruption {
			all = append(all, errors.New(p.Message))
		}
	}
	return errors.Join(all...)
}

// disruptionConflicts are settings each of which can be understood, and that cannot be meant together.
func disruptionConflicts(p *v1.NodePool, d cluster.Disruption) error {
	var all []error
	add := func(is bool, format string, args ...any) {
		if is {
			all = append(all, fmt.Errorf(format, args...))
		}
	}
	saves := d.SavesUSD > 0 || d.SavesPercent > 0
	known := []v1.ConsolidationPolicy{v1.ConsolidationWhenEmpty, v1.ConsolidationWhenEmptyOrUnderutilized,
		v1.ConsolidationBalanced}
	add(!slices.Contains(known, v1.ConsolidationPolicy(d.Policy)), "consolidationPolicy %q is none of %v", d.Policy,
		known)
	add(saves && d.Policy == string(v1.ConsolidationWhenEmpty),
		"a least saving is asked for (%s, %s), and consolidationPolicy %s never looks at prices: take the annotation off, or change the policy",
		v1.AnnotationMinSavingsUSD, v1.AnnotationMinSavingsPercent, d.Policy)
	add(saves && d.Never, "a least saving is asked for (%s, %s), and consolidateAfter is Never: take the annotation off, or give a duration", v1.AnnotationMinSavingsUSD, v1.AnnotationMinSavingsPercent)
	add(saves && p.Spec.Replicas != nil, "a least saving is asked for (%s, %s), and nodes of a pool with replicas are never consolidated: take the annotation off", v1.AnnotationMinSavingsUSD, v1.AnnotationMinSavingsPercent)
	add(d.ExpireGently && p.Spec.Template.Spec.ExpireAfter.Duration == nil &&
		p.Spec.Template.Spec.ExpireAfter.Raw == v1.Never,
		"annotation %s asks for expiration within budgets, and expireAfter is Never: take the annotation off, or give a duration", v1.AnnotationExpire)
	add(d.ExpireGently && slices.ContainsFunc(d.Budgets, neverOpens),
		"annotation %s asks for expiration within budgets, and a budget of 0 at all hours lets no node go for reason Drifted: "+
			"give that budget a schedule, another count or other reasons", v1.AnnotationExpire)
	return errors.Join(all...)
}

// neverOpens reports whether the budget never lets a drifted node go.
func neverOpens(b cluster.NodeBudget) bool {
	return b.Schedule == "" && (b.Nodes == "0" || b.Nodes == "0%") &&
		(b.Every || slices.Contains(b.Reasons, string(v1.DisruptionDrifted)))
}
