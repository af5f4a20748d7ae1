package main

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"joiner.sh/infra/lab/bench/karpenter"
	api "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/disruption"
	"joiner.sh/pkg/model/budgets"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/scheduling/binpack"
)

// finding is something that the two sides see otherwise.
type finding struct {
	Kind   string // candidate, budget, or the rule of Karpenter that a command breaks
	About  string // a claim, those of a command, or a pool
	Reason api.DisruptionReason
	Ours   string
	Theirs string

	eased    string // the difference that explains it because without it both see the same
	snapshot cluster.Snapshot
	sells    []instancetypes.Type
	ours     bool               // of a candidate: Joiner may take it
	command  disruption.Command // of a command
	begun    []string           // claims of commands that began before
}

// String says it in one line.
func (f finding) String() string {
	return fmt.Sprintf("%s %s %s: Joiner %s; Karpenter %s", f.Kind, f.About, f.Reason, f.Ours, f.Theirs)
}

// comparison is what a scenario shows.
type comparison struct {
	Findings []finding
	Nodes    int            // that were compared
	May      int            // reasons for which both let one of them go
	Commands map[string]int // that Karpenter was asked about, by reason
}

// decider is Joiner's side: disruption.Next.
type decider func(cluster.Snapshot, disruption.Memory, binpack.Offerings) (disruption.Plan, disruption.Memory)

// sides are the two that are compared, and what is sold to both.
type sides struct {
	catalog instancetypes.Catalog
	types   []instancetypes.Type // of the catalog
	market  *karpenter.Market
	joiner  decider
}

func newSides(c instancetypes.Catalog) sides {
	c = smallCatalog(c)
	return sides{c, instancetypes.ResolveTypes(c, instancetypes.DefaultClass(c), nil, time.Time{}),
		karpenter.NewMarket(c), disruption.Next}
}

// classTypes is what any class may launch.
func (b sides) classTypes(string) []instancetypes.Type { return b.types }

// compareScenario lets both sides decide about the scenario at both times, and Karpenter judge what Joiner begins.
func (b sides) compareScenario(s *scenario) (out *comparison, err error) {
	out = &comparison{Commands: map[string]int{}}
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic: %v", r)
		}
	}()
	var memory disruption.Memory
	for i, now := range []*scenario{s.firstScenario(), s.secondScenario()} {
		snapshot := snapshotOf(b.catalog, now)
		var p disruption.Plan
		p, memory = b.joiner(snapshot, memory, b.classTypes)
		placed := placePods(snapshot, b.classTypes)
		x := &question{out: out, sells: b.types, snapshot: snapshot, plan: p,
			variants: clusterVariants(now.karpenterCluster(b.market, nominatedNodes(placed), i == 0), placed)}
		if x.judge, err = karpenter.NewJudge(x.variants[0].cluster); err != nil {
			return out, err
		}
		if err := errors.Join(
			x.compareCandidates(), x.compareBudgets(), x.compareCommands(), x.compareRemaining()); err != nil {
			return out, err
		}
	}
	return out, nil
}

// karpenterCluster is the scenario as Karpenter sees it. Its controllers note on NodeClaims when pods came that were
// not there at first.
func (s *scenario) karpenterCluster(m *karpenter.Market, nominated []string, first bool) karpenter.Cluster {
	out := karpenter.Cluster{Now: s.Now.Time, Market: m, Pools: s.Pools, Nodes: s.Nodes, Pods: s.Pods,
		Budgets: s.Budgets, DaemonSets: s.DaemonSets,
		Nominated: nominated, BestEffort: s.BestEffort}
	came := map[string]bool{}
	for i := range s.Pods {
		if p := &s.Pods[i]; isLate(&p.ObjectMeta) && !first &&
			!slices.ContainsFunc(p.OwnerReferences,
				func(o metav1.OwnerReference) bool { return o.Kind == "DaemonSet" }) {
			came[p.Spec.NodeName] = true
		}
	}
	for i := range s.Claims {
		n := s.Claims[i].DeepCopy()
		node := slices.IndexFunc(s.Nodes, func(o corev1.Node) bool { return o.Spec.ProviderID == n.Status.ProviderID })
		if at := &n.Status.LastPodEventTime; node >= 0 && came[s.Nodes[node].Name] &&
			s.Now.Sub(at.Time) >= 10*time.Second {
			*at = s.Now
		}
		out.Claims = append(out.Claims, *n)
	}
	return out
}

// question is one of the times of a scenario: what Joiner decides, and several clusters that are shown to Karpenter,
// the first as it is.
type question struct {
	out      *comparison
	snapshot cluster.Snapshot
	plan     disruption.Plan
	sells    []instancetypes.Type
	judge    *karpenter.Judge // about the first, which is asked and not told
	variants []variant
}

// disruptionReasons are those for which nodes go.
func disruptionReasons() []api.DisruptionReason {
	return []api.DisruptionReason{api.DisruptionDrifted, api.DisruptionEmpty, api.DisruptionUnderutilized}
}

// addFinding notes a finding, with the first change by which both sides see the same.
func (x *question) addFinding(f finding, same func(c karpenter.Cluster) (bool, error)) error {
	f.snapshot, f.sells = x.snapshot, x.sells
	for _, v := range x.variants[1:] {
		ok, err := same(v.cluster)
		if err != nil {
			return err
		}
		if ok {
			f.eased = v.name
			break
		}
	}
	x.out.Findings = append(x.out.Findings, f)
	return nil
}

// compareCandidates compares for which reasons each node may go.
func (x *question) compareCandidates() error {
	verdicts, err := x.judge.CandidateVerdicts()
	if err != nil {
		return err
	}
	for _, v := range verdicts {
		x.out.Nodes++
		for _, reason := range disruptionReasons() {
			ours, theirs := slices.Contains(x.plan.Eligible[reason], v.Claim), slices.Contains(v.Reasons, reason)
			if ours == theirs {
				if ours {
					x.out.May++
				}
				continue
			}
			f := finding{Kind: "candidate", About: v.Claim, Reason: reason, Ours: "may go", Theirs: "may go",
				ours: ours}
			if !ours {
				f.Ours = "keeps it" + x.sparedReason(v.Claim)
			}
			if !theirs {
				f.Theirs = fmt.Sprintf("keeps it (graceful %q, eventual %q)", v.Graceful, v.Eventual)
			}
			if err := x.addFinding(f, func(c karpenter.Cluster) (bool,
				error) {
				return hasVerdict(c, v.Claim, reason, ours)
			}); err != nil {
				return err
			}
		}
	}
	return nil
}

// hasVerdict reports whether Karpenter's verdict about the node is that.
func hasVerdict(c karpenter.Cluster, claim string, reason api.DisruptionReason, may bool) (bool, error) {
	j, err := karpenter.NewJudge(c)
	if err != nil {
		return false, err
	}
	all, err := j.CandidateVerdicts()
	i := slices.IndexFunc(all, func(v karpenter.Verdict) bool { return v.Claim == claim })
	return i >= 0 && slices.Contains(all[i].Reasons, reason) == may, err
}

// sparedReason is why the node stays.
func (x *question) sparedReason(claim string) string {
	i := slices.IndexFunc(x.plan.NotDisrupted, func(s disruption.NotDisrupted) bool { return s.Claim == claim })
	if i < 0 {
		return ""
	}
	return fmt.Sprintf(" (%s: %s)", x.plan.NotDisrupted[i].Reason, x.plan.NotDisrupted[i].Why)
}

// compareBudgets compares how many nodes of each pool may go.
func (x *question) compareBudgets() error {
	for _, reason := range disruptionReasons() {
		left, err := x.judge.AllowedDisruptions(reason)
		if err != nil {
			return err
		}
		for _, p := range x.snapshot.Pools {
			ours, problem := budgets.RemainingDisruptions(x.snapshot, p, reason)
			if problem == nil && ours == left[p.Name] {
				continue
			}
			f := finding{Kind: "budget", About: p.Name, Reason: reason,
				Ours: fmt.Sprintf("lets %d go (%v)", ours, problem), Theirs: fmt.Sprintf("lets %d go", left[p.Name])}
			err := x.addFinding(f, func(c karpenter.Cluster) (bool, error) {
				j, err := karpenter.NewJudge(c)
				if err != nil {
					return false, err
				}
				left, err := j.AllowedDisruptions(reason)
				return problem == nil && ours == left[p.Name], err
			})
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// compareCommands lets Karpenter judge what begins. Those of static pools come last: they do not ask where their pods
// go.
func (x *question) compareCommands() error {
	all := slices.Clone(x.plan.Begin)
	slices.SortStableFunc(all, func(a, b disruption.Command) int {
		return cmp.Compare(x.staticOrder(a), x.staticOrder(b))
	})
	if len(all) == 0 {
		return nil
	}
	j, err := karpenter.NewJudge(x.variants[0].cluster)
	if err != nil {
		return err
	}
	var begun []string
	for i, c := range all {
		x.out.Commands[string(c.Reason)]++
		o, err := findObjection(j, c)
		if err != nil {
			return err
		}
		if o != nil {
			f := finding{Kind: o.Rule, About: strings.Join(c.Claims, ","), Reason: c.Reason, Ours: "begins " +
				c.String(), Theirs: "says " + o.Why, command: c, begun: slices.Clone(begun)}
			err := x.addFinding(f, func(c karpenter.Cluster) (bool, error) {
				o, err := objectionTo(c, all[:i+1])
				if err != nil || o == nil {
					return err == nil, err
				}
				rest := f
				rest.Kind, rest.Theirs, rest.snapshot, rest.sells = o.Rule, "says "+o.Why, x.snapshot, x.sells
				return explainFinding(rest) != "", nil
			})
			if err != nil {
				return err
			}
		}
		begun = append(begun, c.Claims...)
	}
	return nil
}

// objectionTo is what Karpenter has against the last command when the others have begun.
func objectionTo(c karpenter.Cluster, all []disruption.Command) (last *karpenter.Objection, err error) {
	j, err := karpenter.NewJudge(c)
	if err != nil {
		return nil, err
	}
	for _, c := range all {
		if last, err = findObjection(j, c); err != nil {
			return nil, err
		}
	}
	return last, nil
}

// findObjection returns what Karpenter has against the command, nil for nothing.
func findObjection(j *karpenter.Judge, c disruption.Command) (*karpenter.Objection, error) {
	err := j.ValidateCommand(c)
	var o *karpenter.Objection
	if err != nil && !errors.As(err, &o) {
		return nil, fmt.Errorf("judge %s: %w", c, err)
	}
	return o, nil
}

// compareRemaining compares nodes that stay because Joiner finds no way for their pods with what Karpenter would do
// about them when those are gone that Joiner takes.
func (x *question) compareRemaining() error {
	for _, n := range x.plan.NotDisrupted {
		gone, begun := x.takenClaims(n.Claim)
		for _, reason := range []api.DisruptionReason{api.DisruptionDrifted, api.DisruptionUnderutilized} {
			if !slices.Contains(x.plan.Eligible[reason], n.Claim) ||
				(n.Reason == disruption.IneligibleDrifted) != (reason == api.DisruptionDrifted) ||
				!slices.Contains([]disruption.IneligibleReason{disruption.IneligibleDrifted,
					disruption.IneligiblePodsUnschedulable, disruption.IneligibleNoCheaperAlternative}, n.Reason) {
				continue
			}
			would := func(c karpenter.Cluster) (string, error) {
				j, err := karpenter.NewJudge(withoutNodes(c, gone))
				if err != nil {
					return "", err
				}
				for _, c := range begun {
					if _, err := findObjection(j, c); err != nil {
						return "", err
					}
				}
				return j.ExpectedAction(n.Claim, reason)
			}
			what, err := would(x.variants[0].cluster)
			if err != nil {
				return err
			}
			if what == "" || n.Reason == disruption.IneligibleNoCheaperAlternative && what != "delete" {
				continue
			}
			f := finding{Kind: "left", About: n.Claim, Reason: reason, Ours: "keeps it (" + string(n.Reason) + ": " +
				n.Why + ")", Theirs: "would " + what + " it"}
			if err := x.addFinding(f, func(c karpenter.Cluster) (bool, error) {
				what, err := would(c)
				return what == "",
					err
			}); err != nil {
				return err
			}
		}
	}
	return nil
}

// takenClaims are the claims that are gone when the plan is carried out, as far as those matter for the one that stays.
// A node of its own static NodePool goes only when its replacement is there, which counts for the limit from the
// beginning: such commands are begun.
func (x *question) takenClaims(stays string) (gone []string, begun []disruption.Command) {
	mine, _ := hostOf(x.snapshot, stays)
	for _, list := range [][]disruption.Command{x.plan.Begin, x.plan.Proposed} {
		for _, c := range list {
			first, _ := hostOf(x.snapshot, c.Claims[0])
			if x.staticOrder(c) == 1 && len(c.Launches) > 0 && first.Pool() == mine.Pool() {
				begun = append(begun, c)
			} else {
				gone = append(gone, c.Claims...)
			}
		}
	}
	return gone, begun
}

// staticOrder is 1 for a command about nodes of a static pool, else 0.
func (x *question) staticOrder(c disruption.Command) int {
	for _, n := range x.snapshot.Claims {
		if p, ok := x.snapshot.PoolOf(n.Pool); ok && p.Static && slices.Contains(c.Claims, n.Name) {
			return 1
		}
	}
	return 0
}

// unexplainedFindings are the findings for which no documented difference accounts.
func (out *comparison) unexplainedFindings() []finding {
	return slices.DeleteFunc(slices.Clone(out.Findings), func(f finding) bool { return explainFinding(f) != "" })
}
