package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"joiner.sh/infra/local/env"
)

// Of pdb-team.yaml and the chapters before.
const (
	teamPods    = 48
	teamBudget  = 36
	inflatePods = 5
	// mostAfter is the part of the price before that may be left. The pods ask for a fifth of the cpu that they did.
	mostAfter = 0.5
	// quietFor is how long disruption must want no more for it to be at its end: it looks every ten seconds here, and
	// begins what it proposed the time before.
	quietFor = time.Minute
)

// reducedReplicas is what the deployments of the chapters before come down to: too much for the small nodes that there
// are, too little for the big ones. inflate1 and my-app keep their pods.
func reducedReplicas() map[string]int {
	return map[string]int{"workload-my-team": teamPods, "burst": 1, "burst-anywhere": 1}
}

// showConsolidation lets deployments shrink until most nodes are empty or half empty, and shows that disruption makes
// the cluster cheaper: what replaces nodes is ready before those are drained, the budget of the pods that move holds,
// and every pod runs in the end.
func (s *story) showConsolidation(ctx context.Context) error {
	before := s.hourlyPrice()
	if err := s.applyManifest(ctx, "pdb-team.yaml"); err != nil {
		return err
	}
	budget, err := s.followBudget(ctx, "workload-my-team", teamBudget)
	if err != nil {
		return err
	}
	defer budget.stop()
	moving, err := s.followMoves(ctx)
	if err != nil {
		return err
	}
	defer moving.stop()
	if err := s.consolidateAfter(ctx, "0s"); err != nil {
		return err
	}
	pods, err := s.scaleDown(ctx)
	if err != nil {
		return err
	}
	if err := s.printNodes(ctx); err != nil {
		return err
	}
	if err := s.waitMoved(ctx, moving, before); err != nil {
		return err
	}
	if err := s.consolidateAfter(ctx, "Never"); err != nil { // that is enough to see
		return err
	}
	if err := s.waitExactly(ctx, pods); err != nil {
		return err
	}
	lowest, err := budget.lowestAvailable()
	if err != nil {
		return err
	}
	if lowest == teamPods {
		return errors.New("no pod of workload-my-team moved, so its budget was not tried")
	}
	m, err := moving.currentMoves()
	if err != nil {
		return err
	}
	how := "the pods had room on nodes that stay, so that no replacement was needed"
	if m.hasBegun() {
		how = "replacements were ready before nodes were drained"
		if err := s.printReasons(ctx, m); err != nil {
			return err
		}
	}
	fmt.Printf("   before %.4f USD/h, after %.4f USD/h; %s; of workload-my-team at least %d pods were available at any time (budget %d)\n",
		before, s.hourlyPrice(), how, lowest, teamBudget)
	return s.printNodes(ctx)
}

// waitMoved waits until the pods run on nodes that cost enough less than before, in USD per hour.
func (s *story) waitMoved(ctx context.Context, moving *moving, before float64) error {
	enough := func() bool { return s.hourlyPrice() <= mostAfter*before }
	var packed time.Time // since when nothing needs a replacement
	if err := s.pollUntil(ctx, "replacements are ready, or none is needed", func(context.Context) (string, bool, error) {
		m, err := moving.currentMoves()
		switch {
		case !m.allPacked() || !enough():
			packed = time.Time{}
		case packed.IsZero():
			packed = time.Now()
		}
		return m.String(), m.hasBegun() || !packed.IsZero() && time.Since(packed) > quietFor, err
	}); err != nil {
		return err
	}
	return s.pollUntil(ctx, "the pods run on cheaper nodes", func(context.Context) (string, bool, error) {
		m, err := moving.currentMoves()
		return fmt.Sprintf("%s; %.4f USD/h of %.4f", m, s.hourlyPrice(), before),
			(m.allDone() || m.allPacked()) && enough(), err
	})
}

// scaleDown scales the deployments down and returns how many pods are left.
func (s *story) scaleDown(ctx context.Context) (int, error) {
	pods := gracefulPods + inflatePods
	for name, n := range reducedReplicas() {
		pods += n
		patch := fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, n)
		if _, err := s.Kube.AppsV1().Deployments("default").Patch(ctx, name, types.MergePatchType, patch,
			metav1.PatchOptions{}); err != nil {
			return 0, err
		}
	}
	return pods, s.waitExactly(ctx, pods)
}

// consolidateAfter patches the NodePool, as kubectl would.
func (s *story) consolidateAfter(ctx context.Context, after string) error {
	patch := fmt.Appendf(nil, `{"spec":{"disruption":{"consolidateAfter":%q,"budgets":[{"nodes":"100%%"}]}}}`, after)
	_, err := s.Kube.Dynamic.Resource(env.NodePools()).Patch(ctx, "default", types.MergePatchType, patch,
		metav1.PatchOptions{})
	return err
}

// hourlyPrice is what the instances cost that have not ended, in USD per hour.
func (s *story) hourlyPrice() (usd float64) {
	for _, i := range s.liveInstances() {
		usd += i.PriceUSD
	}
	return usd
}

// waitExactly waits until so many pods are ready and there are no others.
func (s *story) waitExactly(ctx context.Context, want int) error {
	return s.pollUntil(ctx, fmt.Sprintf("%d pods are left and ready", want),
		func(ctx context.Context) (string, bool, error) {
			pods, err := s.Kube.CoreV1().Pods("default").List(ctx, metav1.ListOptions{})
			if err != nil {
				return "", false, err
			}
			up := 0
			for i := range pods.Items {
				if isAvailable(&pods.Items[i]) {
					up++
				}
			}
			return fmt.Sprintf("%d pods, %d of them ready", len(pods.Items), up), up == want && len(pods.Items) == want,
				nil
		})
}

// printReasons prints what the events of the NodeClaims that went say, each text once.
func (s *story) printReasons(ctx context.Context, m moves) error {
	events, err := s.Kube.CoreV1().Events("default").List(ctx,
		metav1.ListOptions{FieldSelector: "involvedObject.kind=NodeClaim,reason=DisruptionLaunching"})
	if err != nil {
		return err
	}
	told := map[string]bool{}
	for _, e := range events.Items {
		if m[e.InvolvedObject.Name] != nil && !told[e.Message] {
			told[e.Message] = true
			fmt.Printf("   event on NodeClaim %s: %s\n", e.InvolvedObject.Name, e.Message)
		}
	}
	if !slices.ContainsFunc(slices.Collect(maps.Keys(told)), func(text string) bool {
		return strings.Contains(text, "Underutilized") && strings.Contains(text, "saves")
	}) {
		return errors.New("no event on a NodeClaim says that its node was underutilized and what is saved")
	}
	return nil
}
