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
	left     int    // of the budgets, as Karpenter counts it
	eased    string // what makes Karpenter let the command pass
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
		theirs := now.cluster(c, nominated(c, snapshot), now.Now.Equal(&s.Now))
		j, err := karpenter.NewJudge(theirs)
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
		if err := out.commands(c, theirs, now, snapshot, p); err != nil {
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
				out.Findings = append(out.Findings, finding{Kind: "budget", Claim: p.Name, Reason: reason, s: s, snapshot: snapshot, left: theirs[p.Name],
					Ours: fmt.Sprintf("lets %d go (%v)", ours, err), Theirs: fmt.Sprintf("lets %d go", theirs[p.Name])})
			}
		}
	}
	return nil
}

// commands lets Karpenter judge what begins. What it objects to is tried again without what keeps it from answering.
func (out *comparison) commands(c catalog.Catalog, now karpenter.Cluster, s *scenario, snapshot cluster.Snapshot, p disrupt.Plan) error {
	if len(p.Begin) == 0 {
		return nil
	}
	judges := make([]*karpenter.Judge, len(easings()))
	for i, e := range easings() {
		var err error
		if judges[i], err = karpenter.NewJudge(e.change(now, homeless(c, snapshot))); err != nil {
			return err
		}
	}
	for _, cmd := range p.Begin {
		out.Commands[string(cmd.Reason)]++
		eased := ""
		var first *karpenter.Objection
		for i, j := range judges {
			err := j.Validate(cmd)
			var objection *karpenter.Objection
			switch {
			case err != nil && !errors.As(err, &objection):
				return fmt.Errorf("judge %s: %w", cmd, err)
			case i == 0:
				first = objection
			case objection == nil && eased == "":
				eased = easings()[i].name
			}
		}
		if first != nil {
			out.Findings = append(out.Findings, finding{Kind: first.Rule, Claim: cmp.Or(first.Claim, strings.Join(cmd.Claims, ",")), Reason: cmd.Reason, Ours: "begins " + cmd.String(),
				Theirs: "says " + first.Why, s: s, snapshot: snapshot, command: cmd, eased: eased})
		}
	}
	return nil
}

// easing is a change to a cluster after which Karpenter answers questions that it does not answer before.
type easing struct {
	name   string
	change func(c karpenter.Cluster, homeless []string) karpenter.Cluster
}

func easings() []easing {
	spare := func(c karpenter.Cluster, _ []string) karpenter.Cluster { c.Spare = true; return c }
	alone := func(c karpenter.Cluster, homeless []string) karpenter.Cluster {
		c.Pods = slices.DeleteFunc(slices.Clone(c.Pods), func(p corev1.Pod) bool { return slices.Contains(homeless, p.Namespace+"/"+p.Name) })
		return c
	}
	return []easing{
		{"", func(c karpenter.Cluster, _ []string) karpenter.Cluster { return c }},
		{easedByPool, spare},
		{easedByPods, alone},
		{easedByPods, func(c karpenter.Cluster, homeless []string) karpenter.Cluster { return spare(alone(c, homeless), nil) }},
	}
}

const (
	easedByPool = "a NodePool that may launch"
	easedByPods = "nothing waiting for new nodes"
)

// unexplained are the findings for which no documented difference accounts.
func (out *comparison) unexplained() []finding {
	return slices.DeleteFunc(slices.Clone(out.Findings), func(f finding) bool { return explain(f) != "" })
}
