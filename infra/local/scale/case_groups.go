package main

import (
	"context"
	"fmt"
)

// caseGroup is some cases that are measured together.
type caseGroup struct {
	name string
	run  func(context.Context, *measured) error
}

// caseGroups are all of them, in the order in which they are measured.
func caseGroups() []caseGroup {
	return []caseGroup{
		{"cold", func(ctx context.Context, m *measured) error { return m.tickAll(ctx, idleCold, true) }},
		{"foreign", func(ctx context.Context, m *measured) error { return m.foreignNotices(ctx) }},
		{"warm", func(ctx context.Context, m *measured) error {
			if err := m.warmFunctions(ctx); err != nil {
				return err
			}
			return m.tickTwice(ctx, idleWarm)
		}},
		{"heartbeats", func(ctx context.Context, m *measured) error {
			err := m.underHeartbeats(ctx)
			m.atRest = m.log.countMetrics("")
			return err
		}},
		{"one-cold", func(ctx context.Context, m *measured) error { return m.measureWaiting(ctx, 1, true) }},
		{"one-warm", func(ctx context.Context, m *measured) error { return m.measureWaiting(ctx, 1, false) }},
		{"many-cold", func(ctx context.Context, m *measured) error { return m.measureWaiting(ctx, m.many, true) }},
		{"many-warm", func(ctx context.Context, m *measured) error { return m.measureWaiting(ctx, m.many, false) }},
		{"interrupted", func(ctx context.Context, m *measured) error { return m.interruptNodes(ctx) }},
	}
}

func groupNames() (names []string) {
	for _, g := range caseGroups() {
		names = append(names, g.name)
	}
	return names
}

// runCases measures everything in turn, or the groups that were asked for, under heartbeats and in processes that began
// when the cluster was there.
func (m *measured) runCases(ctx context.Context) error {
	if m.cases != nil {
		if err := m.tickAll(ctx, "", true); err != nil {
			return err
		}
		m.beating.Store(true)
	}
	for _, g := range caseGroups() {
		if m.cases != nil && !m.cases.MatchString(g.name) {
			continue
		}
		if err := g.run(ctx, m); err != nil {
			return err
		}
		if failed := m.failed.Swap(nil); failed != nil {
			return fmt.Errorf("play the kubelets: %w", *failed)
		}
	}
	return nil
}

// waitingCase is the name of the case in which so many pods wait.
func waitingCase(pods int, cold bool) string {
	if cold {
		return fmt.Sprintf("%d pods wait, cold", pods)
	}
	return fmt.Sprintf("%d pods wait, warm", pods)
}
