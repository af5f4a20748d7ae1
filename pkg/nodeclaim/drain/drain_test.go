package drain_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"github.com/google/go-cmp/cmp"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/plan"
	"joiner.sh/pkg/model/requirements"
	"joiner.sh/pkg/nodeclaim/drain"
	"joiner.sh/pkg/testing/syntax"
)

func noon() time.Time { return time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC) }

// TestScenarios plays the files in testdata. Each line of "pods" is "NAME [daemon|static|other] [critical] [grace=30]
// [deleting=-10s] [phase=Running] [protect=true] [started=-1m] [tolerates=key:Effect|all]"; times are relative to noon.
// "drain [deadline=30s] [first=20s] [pass=5s]" prints what is evicted or deleted and who is waited for. Words about
// budgets: "app=web" and "unready" of a pod, and "budgets" with lines "[NAMESPACE/]NAME APP ALLOWED", of the pods'
// namespace ns without another.
func TestScenarios(t *testing.T) {
	words := syntax.NewGrammar(nil, "pods", "budgets", "drain deadline= first= pass=")
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		var pods []cluster.Pod
		var budgets []cluster.PodDisruptionBudget
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			if err := words.Check(d); err != nil {
				d.Fatalf(t, "%v", err)
			}
			switch d.Cmd {
			case "pods":
				pods = nil
				for l := range strings.SplitSeq(strings.TrimSpace(d.Input), "\n") {
					pods = append(pods, pod(t, l))
				}
				return ""
			case "budgets":
				budgets = nil
				for l := range strings.SplitSeq(strings.TrimSpace(d.Input), "\n") {
					budgets = append(budgets, budget(t, l))
				}
				return ""
			case "drain":
				times := drain.DrainTimes{Now: noon()}
				for _, a := range d.CmdArgs {
					switch when := at(t, a.Vals[0]); a.Key {
					case "first":
						times.First = when
					case "pass":
						times.PassTook = when.Sub(noon())
					default:
						times.Deadline = when
					}
				}
				step := drain.NextStep(pods, drain.NewPodBudgets(budgets), times)
				r := rand.New(rand.NewPCG(1, 2))
				for range 3 {
					other := slices.Clone(pods)
					r.Shuffle(len(other), func(i, j int) { other[i], other[j] = other[j], other[i] })
					if diff := cmp.Diff(step, drain.NextStep(other, drain.NewPodBudgets(budgets), times)); diff != "" {
						t.Errorf("%s: shuffled the step differs:\n%s", d.Pos, diff)
					}
				}
				return text(step)
			}
			t.Fatalf("%s: unknown word %q", d.Pos, d.Cmd)
			return ""
		})
	})
}

func text(s drain.DrainStep) string {
	var b strings.Builder
	for _, a := range s.Actions {
		b.WriteString(a.String())
		if a.Do == plan.DeletePod {
			fmt.Fprintf(&b, " (grace %d s)", a.GraceSec)
		}
		b.WriteByte('\n')
	}
	for _, w := range s.Waiting {
		word := "waiting for"
		if slices.Contains(s.Blocked, w) {
			word = "blocked by"
		}
		fmt.Fprintf(&b, "%s %s\n", word, w)
	}
	if s.Done {
		b.WriteString("done\n")
	}
	return b.String()
}

func at(t *testing.T, s string) time.Time {
	d, err := time.ParseDuration(s)
	if err != nil {
		t.Fatal(err)
	}
	return noon().Add(d)
}

func budget(t *testing.T, line string) cluster.PodDisruptionBudget {
	f := strings.Fields(line)
	n, err := strconv.ParseInt(f[2], 10, 32)
	if err != nil {
		t.Fatal(err)
	}
	namespace, name, elsewhere := strings.Cut(f[0], "/")
	if !elsewhere {
		namespace, name = "ns", f[0]
	}
	return cluster.PodDisruptionBudget{Namespace: namespace, Name: name, DisruptionsAllowed: int32(n),
		Selector: &cluster.Selector{Requirements: []requirements.Requirement{requirements.Of("app", f[1])}}}
}

func pod(t *testing.T, line string) cluster.Pod {
	f := strings.Fields(line)
	p := cluster.Pod{Namespace: "ns", Name: f[0], NodeName: "n1", Phase: "Running", Ready: true, GraceSec: 30, Owner: cluster.OwnerOther}
	for _, w := range f[1:] {
		k, v, _ := strings.Cut(w, "=")
		switch k {
		case "daemon":
			p.Owner = cluster.OwnerDaemonSet
		case "static":
			p.Owner = cluster.OwnerNode
		case "critical":
			p.Critical = true
		case "phase":
			p.Phase = v
		case "grace":
			n, err := strconv.ParseInt(v, 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			p.GraceSec = n
		case "deleting":
			p.Deleting = at(t, v)
		case "started":
			p.Started = at(t, v)
		case "created":
			p.Created = at(t, v)
		case "protect":
			p.DoNotDisrupt = v
		case "app":
			p.Labels = map[string]string{"app": v}
		case "unready":
			p.Ready = false
		case "refused":
			p.AskAgain = at(t, v)
		case "tolerates":
			key, effect, _ := strings.Cut(strings.TrimPrefix(v, "all"), ":")
			p.Tolerations = []cluster.Toleration{{Operator: "Exists", Key: key, Effect: effect}}
		default:
			t.Fatalf("pod %s: %v", f[0], syntax.UnknownWord("word", k, "daemon", "static", "critical", "phase", "grace", "deleting", "started", "created", "protect", "app",
				"unready", "refused", "tolerates"))
		}
	}
	return p
}

func TestMessageNamesTheFirstFew(t *testing.T) {
	for _, c := range []struct {
		waiting []string
		want    string
	}{
		{nil, ""},
		{[]string{"a: x", "b: y", "c: z"}, "a: x; b: y; c: z"},
		{[]string{"a: x", "b: y", "c: z", "d: w", "e: v"}, "a: x; b: y; c: z; and 2 more pods"},
	} {
		if got := drain.BlockedMessage(c.waiting); got != c.want {
			t.Errorf("%v: %q", c.waiting, got)
		}
	}
}

// A budget allows more soon while one of its pods comes or goes: a drain under it is watched then.
func TestBudgetsThatChangeSoon(t *testing.T) {
	budgets := []cluster.PodDisruptionBudget{budget(t, "web web 0"), budget(t, "other/web web 0"), budget(t, "db db 0")}
	for _, c := range []struct {
		node, beside string
		want         bool
	}{
		{"web-1 app=web", "web-2 app=web", false},
		{"web-1 app=web", "web-2 app=web unready created=-1m", true},
		{"web-1 app=web", "web-2 app=web unready created=-6m", false},
		{"web-1 app=web", "web-2 app=web unready created=-1m phase=Failed", false},
		{"web-1 app=web", "db-1 app=db unready created=-1m", false},
		{"web-1 app=web", "web-2 app=web deleting=20s", true},
		{"web-1 app=web", "web-2 app=web deleting=-1h", false},
		{"web-1 app=web deleting=20s", "db-1 app=db", true},
		{"web-1 app=web tolerates=all", "web-2 app=web unready created=-1m", false},
		{"lone-1 app=lone", "web-2 app=web unready created=-1m", false},
	} {
		node := []cluster.Pod{pod(t, c.node)}
		b := drain.NewPodBudgets(budgets)
		for _, time := range []string{"first", "second"} {
			if got := b.ChangesSoon(node, append(node, pod(t, c.beside)), noon()); got != c.want {
				t.Errorf("%s beside %s: got %v when asked for the %s time", c.node, c.beside, got, time)
			}
		}
	}
}
