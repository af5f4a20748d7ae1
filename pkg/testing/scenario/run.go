package scenario

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"joiner.sh/pkg/model/plan"
	"joiner.sh/pkg/testing/syntax"
)

// Run plays every scenario file below dir. The word "pack" asks decide for a plan and prints it, checked; "pack detail"
// prints what each launch asks for too.
func Run(t *testing.T, dir string, decide func(*World) plan.Plan) {
	datadriven.Walk(t, dir, func(t *testing.T, path string) {
		w, words := New(), syntax.NewGrammar(Words(), "pack detail")
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			if err := words.Check(d); err != nil {
				d.Fatalf(t, "%v", err)
			}
			if d.Cmd == "pack" {
				p := decide(w)
				for _, fault := range w.Faults(p, decide) {
					t.Errorf("%s: %s", d.Pos, fault)
				}
				return planText(p, d.HasArg("detail"))
			}
			if _, err := w.Do(d); err != nil {
				d.Fatalf(t, "%v", err)
			}
			return "ok\n"
		})
	})
}

// Faults checks a plan in every way this package knows: by the rules, against shuffled input, and by packing again once
// the claims are written and once they are launched.
func (w *World) Faults(p plan.Plan, decide func(*World) plan.Plan) []string {
	bad := w.Check(p)
	for seed := range uint64(3) {
		if got, want := planText(decide(w.Shuffled(seed)), true), planText(p, true); got != want {
			bad = append(bad, fmt.Sprintf("shuffled with seed %d the plan is\n%s\nnot\n%s", seed, got, want))
		}
	}
	if w.Snapshot.Rules.MaxClaims > 0 {
		return bad
	}
	for name, apply := range map[string]func(*World, plan.Plan) *World{"written": (*World).Apply,
		"launched": (*World).Launched} {
		bad = append(bad, w.unsettled(p, decide, name, apply)...)
	}
	return bad
}

// unsettled checks the passes that follow a plan. When it gave every pod a place they must launch nothing. Pods without
// one may get one later, because a claim may become a smaller type than the pool's limits had to reckon with; then it
// must come to rest within a few passes.
func (w *World) unsettled(p plan.Plan, decide func(*World) plan.Plan, name string,
	apply func(*World, plan.Plan) *World) []string {
	const most = 4
	var bad []string
	after := w
	for range most {
		after = apply(after, p)
		again := decide(after)
		for _, fault := range after.Check(again) {
			bad = append(bad, fmt.Sprintf("once its claims are %s: %s", name, fault))
		}
		for _, pod := range lost(p, again) {
			bad = append(bad, fmt.Sprintf("once its claims are %s %s has no place any more", name, pod))
		}
		if len(again.Launches) == 0 {
			return bad
		}
		if len(p.Unplaced) == 0 {
			return append(bad, fmt.Sprintf("once its claims are %s the plan goes on: %s", name, again.Launches[0]))
		}
		p = again
	}
	return append(bad, fmt.Sprintf("it launches more in each of %d passes: %s", most, p.Launches[0]))
}

// lost are the pods for which the plan makes nodes and which then have no place any more.
func lost(before, after plan.Plan) []string {
	var made []string
	for _, l := range before.Launches {
		made = append(made, l.Pods...)
	}
	var out []string
	for _, u := range after.Unplaced {
		if slices.Contains(made, u.Pod) {
			out = append(out, u.Pod+" ("+u.Message()+")")
		}
	}
	return out
}

// Shuffled returns the world with its lists in another order.
func (w *World) Shuffled(seed uint64) *World {
	out := *w
	r := rand.New(rand.NewPCG(seed, 1))
	s := &out.Snapshot
	s.Pods, s.Nodes, s.Claims = mixed(r, s.Pods), mixed(r, s.Nodes), mixed(r, s.Claims)
	s.Pools, s.Daemons, s.Budgets = mixed(r, s.Pools), mixed(r, s.Daemons), mixed(r, s.Budgets)
	s.Namespaces, s.Overlays, s.Classes = mixed(r, s.Namespaces), mixed(r, s.Overlays), mixed(r, s.Classes)
	out.Types = mixed(r, w.Types)
	return &out
}

func mixed[T any](r *rand.Rand, list []T) []T {
	out := slices.Clone(list)
	r.Shuffle(len(out), func(i, j int) { out[i], out[j] = out[j], out[i] })
	return out
}

func planText(p plan.Plan, detail bool) string {
	var b strings.Builder
	for _, line := range p.Lines() {
		b.WriteString(line + "\n")
	}
	if !detail {
		return b.String()
	}
	for _, l := range p.Launches {
		fmt.Fprintf(&b, "launch for %s\n  types %s\n  requests %s\n", strings.Join(l.Pods, ","),
			strings.Join(l.Types, " "), l.Requests)
		for _, r := range l.Requirements.All() {
			fmt.Fprintf(&b, "  %s\n", r)
		}
		fmt.Fprintf(&b, "  labels %v\n  annotations %v\n  taints %v startup %v\n", l.Labels, l.Annotations, l.Taints,
			l.Startup)
	}
	return b.String()
}
