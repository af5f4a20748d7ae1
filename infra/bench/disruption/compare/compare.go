package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"joiner/infra/bench/karpenter"
	api "joiner/pkg/api/v1"
	"joiner/pkg/budget"
	"joiner/pkg/catalog"
	"joiner/pkg/cluster"
	"joiner/pkg/disrupt"
)

// finding is something that the two sides see otherwise.
type finding struct {
	Kind   string // candidate, budget, or the rule that a command breaks
	Claim  string // the node it is about, or the first one
	Reason api.DisruptionReason
	Ours   string
	Theirs string

	s        *scenario
	snapshot cluster.Snapshot
	verdict  karpenter.Verdict
	spared   disrupt.Spared
	command  disrupt.Command
}

// String says it in one line.
func (f finding) String() string {
	return fmt.Sprintf("%s %s %s: Joiner %s; Karpenter %s", f.Kind, f.Claim, f.Reason, f.Ours, f.Theirs)
}

// comparison is what a scenario shows.
type comparison struct {
	Findings []finding
	Nodes    int            // that were compared
	May      int            // for some reason, as both see it
	Commands map[string]int // that Karpenter was asked about, by reason
}

// compare lets both sides decide about the scenario at both times, and Karpenter judge what Joiner begins.
func compare(c catalog.Catalog, s *scenario) (out comparison, err error) {
	out.Commands = map[string]int{}
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic: %v", r)
		}
	}()
	var memory disrupt.Memory
	for _, now := range []*scenario{s.before(), s.after()} {
		snapshot := snapshotOf(c, now)
		j, err := karpenter.NewJudge(now.cluster(c, nominated(snapshot), now.Now.Equal(&s.Now)))
		if err != nil {
			return out, err
		}
		var p disrupt.Plan
		p, memory = disrupt.Next(snapshot, memory, sells(c, now.Now.Time))
		if err := out.candidates(j, now, snapshot, p); err != nil {
			return out, err
		}
		if err := out.budgets(j, now, snapshot); err != nil {
			return out, err
		}
		if err := out.commands(j, now, snapshot, p); err != nil {
			return out, err
		}
	}
	return out, nil
}

// cluster is the scenario as Karpenter sees it. Its controllers note on NodeClaims when pods came that were not there at first.
func (s *scenario) cluster(c catalog.Catalog, nominated []string, first bool) karpenter.Cluster {
	out := karpenter.Cluster{Now: s.Now.Time, Catalog: c, Pools: s.Pools, Nodes: s.Nodes, Pods: s.Pods, Budgets: s.Budgets, DaemonSets: s.DaemonSets,
		Nominated: nominated, BestEffort: s.BestEffort}
	came := map[string]bool{}
	for i := range s.Pods {
		if p := &s.Pods[i]; late(&p.ObjectMeta) && !first && !slices.ContainsFunc(p.OwnerReferences, func(o metav1.OwnerReference) bool { return o.Kind == "DaemonSet" }) {
			came[p.Spec.NodeName] = true
		}
	}
	for i := range s.Claims {
		n := s.Claims[i].DeepCopy()
		if at := &n.Status.LastPodEventTime; came[n.Status.NodeName] && n.Status.NodeName != "" && s.Now.Sub(at.Time) >= 10*time.Second {
			*at = s.Now
		}
		out.Claims = append(out.Claims, *n)
	}
	return out
}

// candidates compares for which reasons each node may go.
func (out *comparison) candidates(j *karpenter.Judge, s *scenario, snapshot cluster.Snapshot, p disrupt.Plan) error {
	verdicts, err := j.Candidates()
	if err != nil {
		return err
	}
	for _, v := range verdicts {
		out.Nodes++
		may := false
		for _, reason := range []api.DisruptionReason{api.DisruptionDrifted, api.DisruptionEmpty, api.DisruptionUnderutilized} {
			ours, theirs := slices.Contains(p.Eligible[reason], v.Claim), slices.Contains(v.Reasons, reason)
			may = may || ours && theirs
			if ours == theirs {
				continue
			}
			f := finding{Kind: "candidate", Claim: v.Claim, Reason: reason, Ours: "may go", Theirs: "may go", s: s, snapshot: snapshot, verdict: v}
			if i := slices.IndexFunc(p.Spared, func(x disrupt.Spared) bool { return x.Claim == v.Claim }); i >= 0 {
				f.spared = p.Spared[i]
			}
			if !ours {
				f.Ours = fmt.Sprintf("keeps it (%s: %s)", f.spared.Word, f.spared.Why)
			}
			if !theirs {
				f.Theirs = fmt.Sprintf("keeps it (graceful %q, eventual %q)", v.Graceful, v.Eventual)
			}
			out.Findings = append(out.Findings, f)
		}
		if may {
			out.May++
		}
	}
	return nil
}

// budgets compares how many nodes of each pool may go.
func (out *comparison) budgets(j *karpenter.Judge, s *scenario, snapshot cluster.Snapshot) error {
	for _, reason := range []api.DisruptionReason{api.DisruptionDrifted, api.DisruptionEmpty, api.DisruptionUnderutilized} {
		theirs, err := j.Budgets(reason)
		if err != nil {
			return err
		}
		for _, p := range snapshot.Pools {
			ours, err := budget.Left(snapshot, p, reason)
			if err != nil || ours != theirs[p.Name] {
				out.Findings = append(out.Findings, finding{Kind: "budget", Claim: p.Name, Reason: reason, s: s, snapshot: snapshot,
					Ours: fmt.Sprintf("lets %d go (%v)", ours, err), Theirs: fmt.Sprintf("lets %d go", theirs[p.Name])})
			}
		}
	}
	return nil
}

// commands lets Karpenter judge what begins.
func (out *comparison) commands(j *karpenter.Judge, s *scenario, snapshot cluster.Snapshot, p disrupt.Plan) error {
	for _, c := range p.Begin {
		out.Commands[string(c.Reason)]++
		err := j.Validate(c)
		var objection *karpenter.Objection
		switch {
		case errors.As(err, &objection):
			out.Findings = append(out.Findings, finding{Kind: objection.Rule, Claim: strings.Join(c.Claims, ","), Reason: c.Reason, Ours: c.String(), Theirs: "says " + objection.Why,
				s: s, snapshot: snapshot, command: c})
		case err != nil:
			return fmt.Errorf("judge %s: %w", c, err)
		}
	}
	return nil
}

// unexplained are the findings for which no documented difference accounts.
func (out *comparison) unexplained() []finding {
	return slices.DeleteFunc(slices.Clone(out.Findings), func(f finding) bool { return explain(f) != "" })
}
