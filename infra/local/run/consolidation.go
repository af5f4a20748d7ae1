package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"joiner/infra/local/env"
	"joiner/pkg/disrupt"
)

// Of pdb-team.yaml and the chapters before.
const (
	teamPods    = 48
	teamBudget  = 36
	inflatePods = 5
	// mostAfter is the part of the price before that may be left. The pods ask for a fifth of the cpu that they did.
	mostAfter = 0.5
)

// fewer is what the deployments of the chapters before come down to: too much for the small nodes that there are, too little for the big
// ones. inflate1 and my-app keep their pods.
func fewer() map[string]int {
	return map[string]int{"workload-my-team": teamPods, "burst": 1, "burst-anywhere": 1}
}

// consolidation lets deployments shrink until most nodes are empty or half empty, and shows that disruption makes the cluster cheaper: what
// replaces nodes is ready before those are drained, the budget of the pods that move holds, and every pod runs in the end.
func (s *story) consolidation(ctx context.Context) error {
	before := s.price()
	if err := s.apply(ctx, "pdb-team.yaml"); err != nil {
		return err
	}
	budget, err := s.followBudget(ctx, "workload-my-team", teamBudget)
	if err != nil {
		return err
	}
	defer budget.stop()
	if err := s.consolidateAfter(ctx, "0s"); err != nil {
		return err
	}
	pods, err := s.shrink(ctx)
	if err != nil {
		return err
	}
	if err := s.table(ctx); err != nil {
		return err
	}
	m := moves{}
	if err := s.until(ctx, "replacements are ready", func(ctx context.Context) (string, bool, error) {
		err := s.follow(ctx, m)
		return m.String(), m.begun(), err
	}); err != nil {
		return err
	}
	if err := s.until(ctx, "the pods run on cheaper nodes", func(ctx context.Context) (string, bool, error) {
		err := s.follow(ctx, m)
		return fmt.Sprintf("%s; %.4f USD/h of %.4f", m, s.price(), before), m.done() && s.price() <= mostAfter*before, err
	}); err != nil {
		return err
	}
	if err := s.consolidateAfter(ctx, "Never"); err != nil { // that is enough to see
		return err
	}
	if err := s.exactly(ctx, pods); err != nil {
		return err
	}
	lowest, err := budget.lowest()
	if err != nil {
		return err
	}
	if lowest == teamPods {
		return errors.New("no pod of workload-my-team moved, so its budget was not tried")
	}
	if err := s.reasons(ctx, m); err != nil {
		return err
	}
	fmt.Printf("   before %.4f USD/h, after %.4f USD/h; replacements were ready before nodes were drained; of workload-my-team at least %d pods were "+
		"available at any time (budget %d)\n", before, s.price(), lowest, teamBudget)
	return s.table(ctx)
}

// shrink scales the deployments down and returns how many pods are left.
func (s *story) shrink(ctx context.Context) (int, error) {
	pods := gracefulPods + inflatePods
	for name, n := range fewer() {
		pods += n
		patch := fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, n)
		if _, err := s.Kube.AppsV1().Deployments("default").Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
			return 0, err
		}
	}
	return pods, s.exactly(ctx, pods)
}

// consolidateAfter patches the NodePool, as kubectl would.
func (s *story) consolidateAfter(ctx context.Context, after string) error {
	patch := fmt.Appendf(nil, `{"spec":{"disruption":{"consolidateAfter":%q,"budgets":[{"nodes":"100%%"}]}}}`, after)
	_, err := s.Kube.Dynamic.Resource(env.NodePools()).Patch(ctx, "default", types.MergePatchType, patch, metav1.PatchOptions{})
	return err
}

// price is what the instances cost that have not ended, in USD per hour.
func (s *story) price() (usd float64) {
	for _, i := range s.alive() {
		usd += i.PriceUSD
	}
	return usd
}

// exactly waits until so many pods are ready and there are no others.
func (s *story) exactly(ctx context.Context, want int) error {
	return s.until(ctx, fmt.Sprintf("%d pods are left and ready", want), func(ctx context.Context) (string, bool, error) {
		pods, err := s.Kube.CoreV1().Pods("default").List(ctx, metav1.ListOptions{})
		if err != nil {
			return "", false, err
		}
		up := 0
		for i := range pods.Items {
			if available(&pods.Items[i]) {
				up++
			}
		}
		return fmt.Sprintf("%d pods, %d of them ready", len(pods.Items), up), up == want && len(pods.Items) == want, nil
	})
}

// moves are the NodeClaims that disruption has begun with, by name.
type moves map[string]*moved

// moved is one of them.
type moved struct {
	mark    disrupt.Mark
	deleted time.Time // zero as long as its replacements are waited for
	gone    bool
}

// String says how far they are.
func (m moves) String() string {
	var marked, deleted, gone int
	for _, one := range m {
		switch {
		case one.gone:
			gone++
		case !one.deleted.IsZero():
			deleted++
		default:
			marked++
		}
	}
	return fmt.Sprintf("%d nodes wait for what replaces them, %d are drained, %d are gone", marked, deleted, gone)
}

// begun reports whether a node goes after what replaces it has come.
func (m moves) begun() bool {
	for _, one := range m {
		if one.mark.Replacements > 0 && !one.deleted.IsZero() {
			return true
		}
	}
	return false
}

// done reports whether all nodes have gone for which one command brought others.
func (m moves) done() bool {
	left := map[string]int{}
	for _, one := range m {
		if one.mark.Replacements == 0 {
			continue
		}
		left[one.mark.ID] += 0
		if !one.gone {
			left[one.mark.ID]++
		}
	}
	return slices.Contains(slices.Collect(maps.Values(left)), 0)
}

// follow notes what disruption does. It fails when a node was drained before its replacements were ready.
func (s *story) follow(ctx context.Context, m moves) error {
	list, err := s.Kube.Dynamic.Resource(env.NodeClaims()).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	return m.note(list.Items)
}

// note brings the moves up to date.
func (m moves) note(claims []unstructured.Unstructured) error {
	there := map[string]bool{}
	for _, c := range claims {
		there[c.GetName()] = true
		text := c.GetAnnotations()[disrupt.AnnotationMark]
		if text == "" {
			delete(m, c.GetName()) // taken back
			continue
		}
		if m[c.GetName()] == nil {
			m[c.GetName()] = &moved{}
		}
		one := m[c.GetName()]
		if err := json.Unmarshal([]byte(text), &one.mark); err != nil {
			return fmt.Errorf("read the mark of NodeClaim %s: %w", c.GetName(), err)
		}
		if at := c.GetDeletionTimestamp(); at != nil && one.deleted.IsZero() {
			one.deleted = at.Time
			if n := readyBy(claims, one.mark.ID, at.Time); n < one.mark.Replacements {
				return fmt.Errorf("NodeClaim %s was deleted when %d of its %d replacements were ready", c.GetName(), n, one.mark.Replacements)
			}
		}
	}
	for name, one := range m {
		if one.gone = !there[name]; one.gone && one.deleted.IsZero() {
			return errors.New("NodeClaim " + name + " was gone before anybody saw whether its replacements were ready")
		}
	}
	return nil
}

// readyBy counts the replacements of a command whose nodes were ready then. Times of the API have whole seconds.
func readyBy(claims []unstructured.Unstructured, id string, then time.Time) (n int) {
	for _, c := range claims {
		if c.GetAnnotations()[disrupt.AnnotationReplaces] != id {
			continue
		}
		all, _, _ := unstructured.NestedSlice(c.Object, "status", "conditions")
		for _, k := range all {
			k, ok := k.(map[string]any)
			if !ok || k["type"] != "Initialized" || k["status"] != "True" {
				continue
			}
			if since, err := time.Parse(time.RFC3339, fmt.Sprint(k["lastTransitionTime"])); err == nil && !since.After(then) {
				n++
			}
		}
	}
	return n
}

// reasons prints what the events of the NodeClaims that went say, each text once.
func (s *story) reasons(ctx context.Context, m moves) error {
	events, err := s.Kube.CoreV1().Events("default").List(ctx, metav1.ListOptions{FieldSelector: "involvedObject.kind=NodeClaim,reason=DisruptionLaunching"})
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
