package kube

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	karpv1 "joiner/pkg/api/v1"
	"joiner/pkg/budget"
	"joiner/pkg/cluster"
)

// Annotations on a NodePool that say what Karpenter's schema has no field for.
const (
	annotationReportOnly   = "joiner.sh/disruption"      // "report": decide and tell, change nothing
	annotationSavesUSD     = "joiner.sh/min-savings-usd" // per hour
	annotationSavesPercent = "joiner.sh/min-savings-percent"
	annotationSleep        = "joiner.sh/sleep"     // cron, in the time zone of budgets: the pool falls asleep
	annotationSleepFor     = "joiner.sh/sleep-for" // a duration: how long it sleeps
)

// disruptionFrom translates when nodes of the pool may be replaced by choice. While its Message says what cannot be understood,
// the pool is one that only reports.
func disruptionFrom(p *karpv1.NodePool) cluster.Disruption {
	d := p.Spec.Disruption
	out := cluster.Disruption{Policy: string(d.ConsolidationPolicy), TimeZone: p.Annotations[budget.AnnotationTimeZone]}
	if out.Policy == "" {
		out.Policy = string(karpv1.ConsolidationWhenEmptyOrUnderutilized)
	}
	switch after := d.ConsolidateAfter; {
	case after.Duration != nil:
		out.After = *after.Duration
	case after.Raw == karpv1.Never:
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
	mode, modeErr := modeFrom(p.Annotations[annotationReportOnly])
	var usdErr, percentErr error
	out.SavesUSD, usdErr = savingFrom(p.Annotations, annotationSavesUSD)
	out.SavesPercent, percentErr = savingFrom(p.Annotations, annotationSavesPercent)
	out.SleepAt = p.Annotations[annotationSleep]
	sleepErr := sleepFor(p.Annotations[annotationSleepFor], &out)
	err := errors.Join(budget.Check(out), modeErr, usdErr, percentErr, sleepErr)
	if err != nil {
		out.Message = strings.ReplaceAll(err.Error(), "\n", "; ")
	}
	out.ReportOnly = mode || err != nil
	return out
}

// sleepFor reads how long the pool sleeps.
func sleepFor(text string, out *cluster.Disruption) (err error) {
	if text == "" {
		return nil
	}
	if out.SleepFor, err = time.ParseDuration(text); err != nil {
		return fmt.Errorf("annotation %s: %q is no duration; write it like 12h", annotationSleepFor, text)
	}
	return nil
}

func modeFrom(text string) (reportOnly bool, err error) {
	switch text {
	case "", "act":
		return false, nil
	case "report":
		return true, nil
	}
	return true, fmt.Errorf("annotation %s: %q is neither act nor report", annotationReportOnly, text)
}

func savingFrom(annotations map[string]string, name string) (float64, error) {
	text, given := annotations[name]
	if !given {
		return 0, nil
	}
	n, err := strconv.ParseFloat(strings.TrimSuffix(text, "%"), 64)
	if err != nil || !(n >= 0 && n <= 1e6) {
		return 0, fmt.Errorf("annotation %s: %q is not a number from 0 up", name, text)
	}
	return n, nil
}
