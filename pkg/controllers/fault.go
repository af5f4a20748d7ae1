package controllers

import (
	"context"
	"fmt"
	"log/slog"

	"joiner.sh/pkg/model/faultisolation"
	"joiner.sh/pkg/model/metrics"
	"joiner.sh/pkg/model/plan"
)

// ReasonDecisionFailed is the reason of events and conditions about what Joiner itself failed about.
const ReasonDecisionFailed = "DecisionFailed"

// FaultError says that Joiner itself failed about something: it panicked.
type FaultError struct {
	About string
	*faultisolation.Panic
}

// Error says about what, and what was said.
func (e *FaultError) Error() string {
	return fmt.Sprintf("Joiner itself failed about %s: %s", e.About, e.Why)
}

// Shield keeps a panic about one thing from all others.
type Shield struct {
	log     *slog.Logger
	metrics Metrics // nil: nothing is counted
}

// Do returns the error of f, and a panic in it as a FaultError, which is logged with its stack and counted.
func (s Shield) Do(about string, f func() error) (err error) {
	p := faultisolation.Catch(func() { err = f() })
	if p == nil {
		return err
	}
	fault := &FaultError{about, p}
	s.Report(plan.Fault{Name: about, Why: p.Why, Stack: p.Stack})
	return fault
}

// GuardPass is a pass that ends with an error where it would panic, so that its lease is given back and what was
// measured is not lost.
func (s Shield) GuardPass(f func(context.Context) (bool, error)) func(context.Context) (bool, error) {
	return func(ctx context.Context) (busy bool, err error) {
		err = s.Do("the pass", func() (err error) { busy, err = f(ctx); return err })
		return busy, err
	}
}

// Report logs and counts what failed.
func (s Shield) Report(faults ...plan.Fault) {
	for _, f := range faults {
		s.log.Error("Joiner itself failed", "kind", string(f.Kind), "about", f.Name, "pods", plan.NamePods(f.Pods),
			"why", f.Why, "stack", f.Stack)
	}
	if len(faults) > 0 && s.metrics != nil {
		s.metrics.Put(metrics.Record{Values: []metrics.Value{metrics.Total(metrics.Faults, len(faults))}})
	}
}
