package disruption

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	v1 "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/model/budgets"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/plan"
	"joiner.sh/pkg/nodeclaim/interruption"
	"joiner.sh/pkg/scheduling/binpack"
	"joiner.sh/pkg/testing/objects"
	"joiner.sh/pkg/testing/scenario"
)

// world is a cluster in which disruptions are carried out: what a command asks for is done at once, and pods that are
// evicted run where the packer puts them.
type world struct {
	*scenario.World
	memory   Memory
	schedule func()             // finds nodes for pods that wait
	drain    func([]string)     // empties the nodes of claims before they go
	begun    map[string]Command // by id
	held     Plan               // decided and not carried out
}

func newWorld() *world {
	w := &world{World: scenario.New(), begun: map[string]Command{}}
	w.schedule, w.drain = w.settle, func([]string) {}
	return w
}

func (w *world) next() Plan {
	p, m := Next(scenario.AsRead(w.Snapshot, MayEmpty), w.memory, w.Market)
	w.memory = m
	return p
}

// act carries out a plan.
func (w *world) act(p Plan) {
	s := &w.Snapshot
	for _, x := range p.PodStability {
		for i := range s.Claims {
			c := &s.Claims[i]
			if c.Name != x.Claim {
				continue
			}
			c.LastPodEvent = x.LastPodEvent
			c.Conditions = slices.DeleteFunc(slices.Clone(c.Conditions), func(k cluster.Condition) bool { return k.Type == v1.ConditionConsolidatable })
			if x.Consolidatable {
				c.Conditions = append(c.Conditions, cluster.Condition{Type: v1.ConditionConsolidatable, Status: "True"})
			}
		}
	}
	for _, c := range p.Begin {
		w.begun[c.ID] = c
		w.annotate(c.Claims, AnnotationMark, c.AsMark(s.Now).String())
		w.taint(c.Claims)
		before := len(s.Claims)
		*w.World = *w.Launched(plan.Plan{Launches: c.Launches})
		for i := before; i < len(s.Claims); i++ {
			s.Claims[i].Name = fmt.Sprintf("new-%s-%d", s.Now.Format("150405"), i)
			s.Claims[i].ProviderID = "aws:///" + s.Claims[i].Name
			w.annotate([]string{s.Claims[i].Name}, AnnotationReplaces, c.ID)
		}
	}
	w.eachNode(p.TaintFailed, func(n *cluster.Node) {
		n.Taints = append(slices.Clone(n.Taints), cluster.Taint{Key: v1.TaintFailedRevision, Effect: "NoSchedule"})
	})
	w.eachNode(p.UntaintFailed, func(n *cluster.Node) {
		n.Taints = slices.DeleteFunc(slices.Clone(n.Taints), cluster.Taint.IsFailedRevision)
	})
	w.eachNode(p.TaintPrevious, func(n *cluster.Node) {
		n.Taints = append(slices.Clone(n.Taints), objects.RevisionTaint(v1.TaintPreviousRevision))
	})
	w.eachNode(p.UntaintPrevious, func(n *cluster.Node) {
		n.Taints = slices.DeleteFunc(slices.Clone(n.Taints), cluster.Taint.IsPreviousRevision)
	})
	for _, e := range p.RollBack {
		w.annotate(e.Claims, AnnotationMark, "")
		w.untaint(e.Claims)
		w.remove(e.Unused)
	}
	for _, e := range p.Finish {
		w.drain(e.Claims)
		w.remove(e.Claims)
		w.schedule()
	}
}

// settle runs the pods that have no node where the packer puts them, and those that it would rather make a node for
// where there is room for them: preferences leave no pod waiting.
func (w *world) settle() {
	for _, ignore := range []bool{false, true} {
		s := w.Snapshot
		s.Rules.IgnorePreferences = ignore
		at := map[string]string{}
		for _, x := range binpack.PodsFrom(s, w.Market).Existing {
			at[x.Pod] = x.Node
		}
		for i := range s.Pods {
			if p := &s.Pods[i]; p.NodeName == "" && at[p.Key()] != "" {
				p.NodeName, p.Unscheduled = at[p.Key()], false
			}
		}
	}
}

func TestScenarios(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		w := newWorld()
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			out, err := w.do(d)
			if err != nil {
				d.Fatalf(t, "%v", err)
			}
			return out
		})
	})
}

// do carries out one directive: those of a scenario's world; "disrupt" (one pass, printed and carried out; "all" with
// what stays, "eligible" with what may go, "starting" with the replacements that start, "hold" not carried out),
// "changed" (what has changed about what was held), "wait 20s" (-1h for a clock that is set back), "now TIME", "ready"
// (what was launched is a node), "still" (what claims say about quiet nodes), "forget" (the memory is lost), "late" (a
// pass is cut off), "steps 4" (what-if questions of a pass), "drifted-nodes 5" (that one command replaces at most),
// "hold" (new nodes are held, and pods whose names differ in the number at the end have the same controller), "move
// 0.002" (what moving a pod costs, USD), "disruption POOL" with lines such as "policy WhenEmpty", "after 5m", "budget
// 10% Drifted", "report", "saves 0.1 20%", "gently" (expiration within budgets), "mistake TEXT" (settings that cannot
// be understood), "refused TYPE" (on-demand, by EC2, a moment ago), "claim NAME" lines drifted, protected, expired,
// recommended (by EC2 to be left); "pod NAME" lines; and "price".
func (w *world) do(d *datadriven.TestData) (string, error) {
	arg := ""
	if len(d.CmdArgs) > 0 {
		arg = d.CmdArgs[0].Key
	}
	lines := strings.Split(d.Input, "\n")
	switch d.Cmd {
	case "disrupt":
		return w.pass(d), nil
	case "changed":
		var out strings.Builder
		check := NewLiveCheck(w.Snapshot, w.memory)
		for _, c := range w.held.Begin {
			fmt.Fprintln(&out, cmp.Or(check.ChangedSince(c), "nothing"))
		}
		return out.String(), nil
	case "wait":
		span, err := time.ParseDuration(arg)
		w.Snapshot.Now = w.Snapshot.Now.Add(span)
		return "ok\n", err
	case "steps":
		n, err := strconv.Atoi(arg)
		w.Snapshot.Rules.ConsolidationMaxEvaluations = n
		return "ok\n", err
	case "drifted-nodes":
		n, err := strconv.Atoi(arg)
		w.Snapshot.Rules.DriftedPerCommand = n
		return "ok\n", err
	case "hold":
		w.hold()
		return "ok\n", nil
	case "move":
		usd, err := strconv.ParseFloat(arg, 64)
		w.Snapshot.Rules.PodEvictionCostUSD = usd
		return "ok\n", err
	case "now":
		at, err := time.Parse(time.RFC3339, arg)
		w.Snapshot.Now = at
		return "ok\n", err
	case "still":
		return w.stillness(), nil
	case "forget":
		w.memory = Memory{}
		return "ok\n", nil
	case "late":
		w.memory = w.memory.RunLate(w.Snapshot.Now)
		return "ok\n", nil
	case "ready":
		w.initialize()
		return "ok\n", nil
	case "price":
		return fmt.Sprintf("%.4f USD/h on %d nodes\n", w.price(), len(w.Snapshot.Nodes)), nil
	case "lost":
		w.remove([]string{arg})
		return "ok\n", nil
	case "spot-types":
		n, err := strconv.Atoi(arg)
		w.Snapshot.Rules.MinSpotInstanceTypes = n
		return "ok\n", err
	case "spot-to-spot":
		w.Snapshot.Rules.NoSpotToSpotConsolidation = arg == "false"
		return "ok\n", nil
	case "disruption":
		return "ok\n", w.disruption(arg, lines)
	case "change":
		return "ok\n", w.change(arg, lines)
	case "rollout":
		return "ok\n", w.rollout(arg, lines)
	case "refused":
		return "ok\n", w.refuse(arg, lines)
	}
	known, err := w.Do(d)
	if !known {
		err = fmt.Errorf("unknown word %q", d.Cmd)
	}
	return "ok\n", err
}

// rollout has a NodeRollout allow that pool so many more nodes of the revision new, as "slots 1" says; "halted" and
// "rollingback" end that, "gone" is without a NodeRollout.
func (w *world) rollout(pool string, lines []string) (err error) {
	i := slices.IndexFunc(w.Snapshot.Pools, func(p cluster.Pool) bool { return p.Name == pool })
	r := cluster.PoolRollout{Name: "canary", Good: "old", Try: "new", DriftTo: "new"}
	switch f := strings.Fields(lines[0]); f[0] {
	case "slots":
		r.Slots, err = strconv.Atoi(f[1])
	case "halted":
		r.DriftTo, r.Failed = "", "new"
	case "gone":
		w.Snapshot.Pools[i].Rollout = nil
		return nil
	case "rollingback":
		r.Try, r.DriftTo, r.Failed, r.RolledBack = "", "old", "new", []string{"new"}
	}
	w.Snapshot.Pools[i].Rollout = &r
	return err
}

func (w *world) disruption(pool string, lines []string) (err error) {
	i := slices.IndexFunc(w.Snapshot.Pools, func(p cluster.Pool) bool { return p.Name == pool })
	d := cluster.Disruption{Policy: string(v1.ConsolidationWhenEmptyOrUnderutilized)}
	for _, l := range lines {
		f := append(strings.Fields(l), "")
		switch f[0] {
		case "":
		case "policy":
			d.Policy = f[1]
		case "after":
			d.After, err = time.ParseDuration(f[1])
		case "never":
			d.Never = true
		case "budget":
			d.Budgets = append(d.Budgets, cluster.NodeBudget{Nodes: f[1], Every: len(f) == 3, Reasons: f[2 : len(f)-1]})
		case "hours": // budget NODES for DURATION from each CRON on
			b := cluster.NodeBudget{Every: true, Nodes: f[1], Schedule: strings.Join(f[3:len(f)-1], " ")}
			b.Duration, err = time.ParseDuration(f[2])
			d.Budgets = append(d.Budgets, b)
		case "zone":
			d.TimeZone = f[1]
		case "report":
			d.ReportOnly = true
		case "sleep":
			d.SleepFor, err = time.ParseDuration(f[1])
			d.SleepAt = strings.TrimSpace(strings.Join(f[2:], " "))
		case "spot-to-spot":
			allowed := f[1] == "true"
			d.SpotToSpot = &allowed
		case "gently":
			d.ExpireGently = true
		case "mistake":
			d.ReportOnly, d.Message = true, strings.TrimSpace(strings.Join(f[1:], " "))
		case "saves":
			_, err = fmt.Sscanf(l, "saves %f %f%%", &d.SavesUSD, &d.SavesPercent)
		default:
			return fmt.Errorf("unknown line %q", l)
		}
	}
	w.Snapshot.Pools[i].Disruption = d
	return errorsOr(err, budgets.ValidateBudgets(d))
}

// change changes the node, claim or pod of that name.
func (w *world) change(name string, lines []string) error {
	s := &w.Snapshot
	c := slices.IndexFunc(s.Claims, func(c cluster.Claim) bool { return c.Name == name || c.NodeName == name })
	n := slices.IndexFunc(s.Nodes, func(n cluster.Node) bool { return n.Name == name })
	p := slices.IndexFunc(s.Pods, func(p cluster.Pod) bool { return p.Name == name })
	for _, l := range lines {
		f := strings.Fields(l)
		switch {
		case f[0] == "recommended" && c >= 0:
			w.annotate([]string{s.Claims[c].Name}, v1.AnnotationReplaceRequested,
				interruption.ReplaceRequest{Cause: interruption.Rebalance, Since: s.Now, Until: s.Now.Add(15 * time.Minute)}.String())
		case f[0] == "drifted" && c >= 0:
			since := s.Now
			if len(f) > 1 {
				span, err := time.ParseDuration(f[1])
				if err != nil {
					return err
				}
				since = since.Add(-span)
			}
			s.Claims[c].Conditions = append(s.Claims[c].Conditions, cluster.Condition{Type: v1.ConditionDrifted, Status: "True", Since: since, Reason: strings.Join(f[min(len(f), 2):], "")})
		case f[0] == "revision" && c >= 0:
			w.annotate([]string{s.Claims[c].Name}, v1.AnnotationNodeRevision, f[1])
		case f[0] == "expired" && c >= 0:
			s.Claims[c].Created, s.Claims[c].ExpireAfter = s.Now.Add(-time.Hour), time.Hour
		case f[0] == "ending" && c >= 0:
			s.Claims[c].Conditions = append(s.Claims[c].Conditions, cluster.Condition{Type: v1.ConditionInstanceTerminating, Status: "True", Since: s.Now})
		case f[0] == "started" && n >= 0:
			s.Nodes[n].Taints, s.Nodes[n].Labels[v1.LabelInitialized] = nil, "true"
		case f[0] == "uninitialized" && c >= 0 && n >= 0:
			delete(s.Nodes[n].Labels, v1.LabelInitialized)
			s.Claims[c].Conditions = slices.DeleteFunc(slices.Clone(s.Claims[c].Conditions), func(k cluster.Condition) bool { return k.Type == v1.ConditionInitialized })
		case f[0] == "initialized" && c >= 0:
			span, err := time.ParseDuration(f[1])
			if err != nil {
				return err
			}
			s.Claims[c].Conditions = append(s.Claims[c].Conditions, cluster.Condition{Type: v1.ConditionInitialized, Status: "True", Since: s.Now.Add(-span)})
		case f[0] == "grace" && c >= 0:
			grace := time.Hour
			s.Claims[c].TerminationGrace = &grace
		case f[0] == "leave" && c >= 0:
			l := interruption.ReplaceRequest{Cause: interruption.Rebalance, Since: s.Now, Until: s.Now.Add(15 * time.Minute)}
			w.annotate([]string{s.Claims[c].Name}, v1.AnnotationReplaceRequested, l.String())
		case f[0] == "mark" && c >= 0:
			w.annotate([]string{s.Claims[c].Name}, AnnotationMark, f[1])
		case f[0] == "pool" && c >= 0:
			s.Claims[c].Pool = strings.Join(f[1:], "")
		case f[0] == "tainted" && n >= 0:
			w.taint([]string{s.Claims[c].Name})
		case f[0] == "untainted" && n >= 0:
			w.untaint([]string{s.Claims[c].Name})
		case f[0] == "ready" && p >= 0:
			s.Pods[p].Ready = true
		case f[0] == "terminating" && p >= 0:
			s.Pods[p].Deleting = s.Now.Add(30 * time.Second)
		case f[0] == "ended" && p >= 0:
			s.Pods[p].Phase = "Succeeded"
		case f[0] == "started" && p >= 0:
			s.Pods[p].Started = s.Now
		case f[0] == "running" && p >= 0:
			s.Pods[p].Deleting = time.Time{}
		case f[0] == "unprotected" && p >= 0:
			s.Pods[p].DoNotDisrupt = ""
		case f[0] == "deleting" && n >= 0:
			s.Nodes[n].Deleting = s.Now
		case f[0] == "undrifted" && c >= 0:
			s.Claims[c].Conditions = slices.DeleteFunc(slices.Clone(s.Claims[c].Conditions), func(k cluster.Condition) bool { return k.Type == v1.ConditionDrifted })
		case f[0] == "attaches" && n >= 0:
			most, err := strconv.ParseInt(f[2], 10, 64)
			if err != nil {
				return err
			}
			s.Nodes[n].VolumeLimits = map[string]int64{f[1]: most}
		case f[0] == "provides" && n >= 0:
			s.Nodes[n].Provides = append(slices.Clip(s.Nodes[n].Provides), strings.Join(f[1:], " "))
		case f[0] == "protected" && n >= 0:
			s.Nodes[n].Annotations = map[string]string{v1.AnnotationDoNotDisrupt: cmp.Or(strings.Join(f[1:], ""), "true")}
		case f[0] == "unprotected" && n >= 0:
			s.Nodes[n].Annotations = nil
		case f[0] == "unready" && n >= 0:
			s.Nodes[n].Ready = false
		case f[0] == "ready" && n >= 0:
			s.Nodes[n].Ready = true
		case f[0] == "protected" && p >= 0:
			s.Pods[p].DoNotDisrupt = cmp.Or(strings.Join(f[1:], ""), "true")
		case f[0] == "gone" && p >= 0:
			s.Pods = slices.Delete(slices.Clone(s.Pods), p, p+1)
		case f[0] == "cheap" && p >= 0: // by this part of an ordinary pod
			part, err := strconv.ParseFloat(cmp.Or(strings.Join(f[1:], ""), "1"), 64)
			if err != nil {
				return err
			}
			s.Pods[p].DeletionCost = int32(-part * (1 << 27))
		default:
			return fmt.Errorf("cannot change %s: %q", name, l)
		}
	}
	return nil
}
