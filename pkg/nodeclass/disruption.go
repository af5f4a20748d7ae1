package nodeclass

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	v1 "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/model/budgets"
	"joiner.sh/pkg/model/cluster"
)

// ReadDisruption reads when nodes of the pool may be replaced by choice. While its Message says what cannot be
// understood or contradicts itself, the pool is one that only reports.
func ReadDisruption(p *v1.NodePool) cluster.Disruption {
	d := p.Spec.Disruption
	out := cluster.Disruption{Policy: string(d.ConsolidationPolicy), TimeZone: p.Annotations[v1.AnnotationTimeZone]}
	if out.Policy == "" {
		out.Policy = string(v1.ConsolidationWhenEmptyOrUnderutilized)
	}
	switch after := d.ConsolidateAfter; {
	case after.Duration != nil:
		out.After = *after.Duration
	case after.Raw == v1.Never:
		out.Never = true
	}
	for _, b := range d.Budgets {
		n := cluster.NodeBudget{Every: b.Reasons == nil, Nodes: b.Nodes}
		for _, r := range b.Reasons {
			n.Reasons = append(n.Reasons, string(r))
		}
		if b.Schedule != nil {
			n.Schedule = *b.Schedule
		}
		if b.Duration != nil {
			n.Duration = b.Duration.Duration
		}
		out.Budgets = append(out.Budgets, n)
	}
	mode, modeErr := modeFrom(p.Annotations[v1.AnnotationDisruption])
	var usdErr, percentErr error
	out.SavesUSD, usdErr = savingFrom(p.Annotations, v1.AnnotationMinSavingsUSD, mostUSD, "")
	out.SavesPercent, percentErr = savingFrom(p.Annotations, v1.AnnotationMinSavingsPercent, 100, "%")
	sleepErr := sleepFrom(p.Annotations, &out)
	var expireErr, spotErr error
	out.SpotToSpot, spotErr = optionalBool(p.Annotations, v1.AnnotationSpotToSpot)
	out.ExpireGently, expireErr = parseExpire(p.Annotations[v1.AnnotationExpire])
	err := errors.Join(budgets.ValidateBudgets(out), modeErr, usdErr, percentErr, sleepErr, expireErr, spotErr,
		disruptionConflicts(p, out))
	if err != nil {
		out.Message = strings.ReplaceAll(err.Error(), "\n", "; ")
	}
	out.ReportOnly = mode || err != nil
	return out
}

func modeFrom(text string) (reportOnly bool, err error) {
	switch text {
	case "", "act":
		return false, nil
	case "report":
		return true, nil
	}
	return true, fmt.Errorf("annotation %s: %q is neither act nor report", v1.AnnotationDisruption, text)
}

// mostUSD is more than a node costs in an hour.
const mostUSD = 1e6

// savingFrom reads a number from 0 to most, which the unit may follow.
func savingFrom(annotations map[string]string, name string, most float64, unit string) (float64, error) {
	text, given := annotations[name]
	if !given {
		return 0, nil
	}
	n, err := strconv.ParseFloat(strings.TrimSuffix(text, unit), 64)
	if err != nil || !(n >= 0 && n <= most) {
		return 0, fmt.Errorf("annotation %s: %q is not a number from 0 to %.0f%s", name, text, most, unit)
	}
	return n, nil
}

// optionalBool reads an annotation that is "true" or "false", nil where it is missing.
func optionalBool(annotations map[string]string, name string) (*bool, error) {
	text, given := annotations[name]
	switch {
	case !given:
		return nil, nil
	case text == "true" || text == "false":
		is := text == "true"
		return &is, nil
	}
	return nil, fmt.Errorf("annotation %s: %q is neither true nor false", name, text)
}

func parseExpire(text string) (gently bool, err error) {
	switch text {
	case "", "force":
		return false, nil
	case "within-budgets":
		return true, nil
	}
	return false, fmt.Errorf("annotation %s: %q is neither force nor within-budgets", v1.AnnotationExpire, text)
}

// disruptionConflicts are settings each of which can be understood, and that cannot be meant together.
func disruptionConflicts(p *v1.NodePool, d cluster.Disruption) error {
	var all []error
	add := func(is bool, format string, args ...any) {
		if is {
			all = append(all, fmt.Errorf(format, args...))
		}
	}
	_, usd := p.Annotations[v1.AnnotationMinSavingsUSD]
	_, percent := p.Annotations[v1.AnnotationMinSavingsPercent]
	saves := usd || percent
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
