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
		{"bookmark", func(ctx context.Context, m *measured) error { return m.measureBookmarks(ctx) }},
		{"one-cold", waitingGroup(one, true)},
		{"one-warm", waitingGroup(one, false)},
		{"many-cold", waitingGroup(many, true)},
		{"many-warm", waitingGroup(many, false)},
		{"interrupted", func(ctx context.Context, m *measured) error { return m.measureRounds(ctx, m.interruptNodes) }},
	}
}

func one(*measured) int { return 1 }

func many(m *measured) int { return m.many }

func waitingGroup(pods func(*measured) int, cold bool) func(context.Context, *measured) error {
	return func(ctx context.Context, m *measured) error {
		return m.measureRounds(ctx, func(ctx context.Context) error { return m.measureWaiting(ctx, pods(m), cold) })
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
