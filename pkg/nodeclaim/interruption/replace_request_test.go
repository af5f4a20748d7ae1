package interruption_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"github.com/google/go-cmp/cmp"

	v1 "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/plan"
	"joiner.sh/pkg/model/requirements"
	"joiner.sh/pkg/nodeclaim/interruption"
	"joiner.sh/pkg/testing/syntax"
)

// TestGoing plays the files in testdata/going; it is noon. "world" takes lines "nodes POOL=COUNT|PERCENT" (a budget),
// "node NAME [leave=CAUSE,-5m,10m] [not-ready] [starting] [deleting] [protected] [grace=1h] [bare]" (with its claim;
// bare has none of a node), "pod NAME [on=NODE] [protect=true] [daemon] [spread] [near=APP]" and "budget APP[-NAME]
// allowed=N [always] [elsewhere]" (a PodDisruptionBudget of the pods APP-..., in another namespace than they are).
// "admit" prints who may go, "room POD=NODE..." what the packer found for the pods of those who may, and who is
// deleted then; "again POD=NODE..." who may go once the packer has said that. NODE is nowhere where there is none.
func TestGoing(t *testing.T) {
	words := syntax.NewGrammar(nil, "world", "admit", "again *=", "room *=")
	datadriven.Walk(t, "testdata/going", func(t *testing.T, path string) {
		var s cluster.Snapshot
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			if err := words.Check(d); err != nil {
				d.Fatalf(t, "%v", err)
			}
			switch d.Cmd {
			case "world":
				s = world(t, d.Input)
				return ""
			case "admit":
				return twice(t, s, func(s cluster.Snapshot) string { return admitted(s, nil) })
			case "again":
				return twice(t, s, func(s cluster.Snapshot) string {
					return admitted(s, interruption.BlockedByCapacity(s, interruption.AdmitWithinBudgets(s, nil), outcomeFor(d.CmdArgs)))
				})
			case "room":
				return twice(t, s, func(s cluster.Snapshot) string { return replaced(s, d.CmdArgs) })
			}
			t.Fatalf("%s: unknown word %q", d.Pos, d.Cmd)
			return ""
		})
	})
}

// twice gives the answer, which must not depend on the order of the input, nor change it.
func twice(t *testing.T, s cluster.Snapshot, f func(cluster.Snapshot) string) string {
	t.Helper()
	out := f(s)
	r := rand.New(rand.NewPCG(1, 2))
	r.Shuffle(len(s.Claims), func(i, j int) { s.Claims[i], s.Claims[j] = s.Claims[j], s.Claims[i] })
	r.Shuffle(len(s.Nodes), func(i, j int) { s.Nodes[i], s.Nodes[j] = s.Nodes[j], s.Nodes[i] })
	if diff := cmp.Diff(out, f(s)); diff != "" {
		t.Errorf("in another order: %s", diff)
	}
	return out
}

func admitted(s cluster.Snapshot, noRoom map[string]string) string {
	var b strings.Builder
	going := interruption.AdmitWithinBudgets(s, noRoom)
	for _, g := range going {
		if g.Wait != "" {
			fmt.Fprintf(&b, "%s waits: %s\n", g.Claim, g.Wait)
			continue
		}
		fmt.Fprintf(&b, "%s may go\n", g.Claim)
	}
	for _, n := range interruption.WithoutAdmitted(s, going).Nodes {
		if len(n.Taints) > 0 {
			going = nil // the taints are those of who may go, or of nobody
		}
	}
	for _, n := range s.Nodes {
		if len(n.Taints) > 0 {
			b.WriteString("the snapshot was changed\n")
		}
	}
	if going != nil {
		b.WriteString("nobody is packed elsewhere\n")
	}
	return b.String()
}

// outcomeFor is the plan that the words tell.
func outcomeFor(words []datadriven.CmdArg) plan.Plan {
	var p plan.Plan
	for _, w := range words {
		if w.Vals[0] == "nowhere" {
			p.Unplaced = append(p.Unplaced, plan.Unplaced{Pod: "ns/" + w.Key, Why: []string{"no"}})
			continue
		}
		p.Existing = append(p.Existing, plan.Placement{Pod: "ns/" + w.Key, Node: w.Vals[0]})
	}
	return p
}

func replaced(s cluster.Snapshot, words []datadriven.CmdArg) string {
	p := outcomeFor(words)
	going := interruption.AdmitWithinBudgets(s, nil)
	var b strings.Builder
	for _, a := range interruption.DeleteReplaced(s, going, p) {
		b.WriteString(a.String())
		if a.Do == plan.SetDeadline {
			b.WriteString(" (" + a.Deadline.Format(time.RFC3339) + ")")
		}
		b.WriteByte('\n')
	}
	for _, u := range interruption.WithoutRunning(s, going, p).Unplaced {
		fmt.Fprintf(&b, "pending %s\n", u.Pod)
	}
	return b.String()
}

func world(t *testing.T, text string) cluster.Snapshot {
	t.Helper()
	s := cluster.Snapshot{Now: noon(), Pools: []cluster.Pool{{Name: "general"}}}
	for l := range strings.SplitSeq(strings.TrimSpace(text), "\n") {
		f := strings.Fields(l)
		key, value, _ := strings.Cut(f[1], "=")
		switch f[0] {
		case "nodes":
			s.Pools[0].Name = key
			s.Pools[0].Disruption.Budgets = append(s.Pools[0].Disruption.Budgets, cluster.NodeBudget{Every: true, Nodes: value})
		case "node":
			addNode(t, &s, f[1], f[2:])
		case "pod":
			s.Pods = append(s.Pods, podOn(t, f[1], f[2:]))
		case "budget":
			app, _, _ := strings.Cut(f[1], "-")
			for _, w := range f[3:] {
				if w != "always" && w != "elsewhere" {
					t.Fatalf("line %q: %v", l, syntax.UnknownWord("word", w, "always", "elsewhere"))
				}
			}
			b := cluster.PodDisruptionBudget{Namespace: "ns", Name: f[1], Selector: appSelector(app), AlwaysAllowUnready: slices.Contains(f, "always")}
			if slices.Contains(f, "elsewhere") {
				b.Namespace = "elsewhere"
			}
			if _, err := fmt.Sscanf(f[2], "allowed=%d", &b.DisruptionsAllowed); err != nil {
				t.Fatal(err)
			}
			s.Budgets = append(s.Budgets, b)
		default:
			t.Fatalf("line %q: %v", l, syntax.UnknownWord("word", f[0], "nodes", "node", "pod", "budget"))
		}
	}
	return s
}

func addNode(t *testing.T, s *cluster.Snapshot, name string, words []string) {
	c := cluster.Claim{Name: "claim-" + name, Pool: "general", ProviderID: "aws:///a/" + name, Created: noon().Add(-time.Hour),
		Annotations: map[string]string{}, Conditions: []cluster.Condition{{Type: v1.ConditionInitialized, Status: "True"}}}
	n := cluster.Node{Name: name, ProviderID: c.ProviderID, Ready: true, Labels: map[string]string{}, Annotations: map[string]string{}}
	bare := false
	for _, w := range words {
		k, v, _ := strings.Cut(w, "=")
		switch k {
		case "leave":
			c.Annotations[v1.AnnotationReplaceRequested] = leave(t, v)
		case "not-ready":
			n.Ready = false
		case "starting":
			c.Conditions = nil
		case "deleting":
			c.Deleting = noon()
		case "protected":
			n.Annotations[v1.AnnotationDoNotDisrupt] = "true"
		case "grace":
			g := at(t, v).Sub(noon())
			c.TerminationGrace = &g
		case "bare":
			bare = true
		default:
			t.Fatalf("node %s: %v", name, syntax.UnknownWord("word", k, "leave", "not-ready", "starting", "deleting", "protected", "grace", "bare"))
		}
	}
	s.Claims = append(s.Claims, c)
	if !bare {
		s.Nodes = append(s.Nodes, n)
	}
}

func podOn(t *testing.T, name string, words []string) cluster.Pod {
	app, _, _ := strings.Cut(name, "-")
	p := cluster.Pod{Namespace: "ns", Name: name, UID: "uid-" + name, Phase: "Running", Owner: cluster.OwnerOther, GraceSec: 30,
		Labels: map[string]string{"app": app}}
	for _, w := range words {
		k, v, _ := strings.Cut(w, "=")
		switch k {
		case "on":
			p.NodeName = v
		case "protect":
			p.DoNotDisrupt = v
		case "spread":
			p.Spread = append(p.Spread, cluster.Spread{Key: "topology.kubernetes.io/zone", MaxSkew: 1, Selector: appSelector(app)})
		case "near":
			p.Affinity = append(p.Affinity, cluster.AffinityTerm{Key: "topology.kubernetes.io/zone", Selector: appSelector(v)})
		case "daemon":
			p.Owner = cluster.OwnerDaemonSet
		case "static":
			p.Owner = cluster.OwnerNode
		case "ended":
			p.Phase = "Succeeded"
		case "leaving":
			p.Deleting = noon()
		case "ready":
			p.Ready = true
		default:
			t.Fatalf("pod %s: %v", name, syntax.UnknownWord("word", k, "on", "protect", "spread", "near", "daemon", "static", "ended", "leaving", "ready"))
		}
	}
	return p
}

func appSelector(app string) *cluster.Selector {
	return &cluster.Selector{Requirements: []requirements.Requirement{requirements.Of("app", app)}}
}

func TestRemove(t *testing.T) {
	var pods []cluster.Pod
	for _, l := range []string{"web-2", "web-1", "job-1 ended", "fluentd-1 daemon", "etcd-1 static", "db-1 leaving"} {
		f := strings.Fields(l)
		pods = append(pods, podOn(t, f[0], append(f[1:], "on=n1")))
	}
	list := func(rest interruption.PodRemoval) (out []string) {
		for _, a := range interruption.RemovePods(rest, pods) {
			out = append(out, fmt.Sprintf("%s %d", a.Pod, a.GraceSec))
		}
		return out
	}
	for rest, want := range map[interruption.PodRemoval][]string{
		interruption.LeaveToDrain: nil,
		interruption.EndPods:      {"ns/web-1 30", "ns/web-2 30"},
		interruption.ForgetPods:   {"ns/db-1 0", "ns/fluentd-1 0", "ns/web-1 0", "ns/web-2 0"},
	} {
		if diff := cmp.Diff(want, list(rest)); diff != "" {
			t.Errorf("%d (-want +got):\n%s", rest, diff)
		}
	}
}
