package interruption_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"github.com/google/go-cmp/cmp"

	v1 "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/nodeclaim/interruption"
	"joiner.sh/pkg/testing/syntax"
)

func noon() time.Time { return time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC) }

// TestScenarios plays the files in testdata; it is noon. Each line of "claims" is "NAME id=i-1 [deleting[=-1m]]
// [type=..] [zone=..] [capacity=..] [grace=1h] [deadline=1m] [age=1h] [registered] [initialized] [drained]
// [terminating] [leave=CAUSE,-5m,10m]". Then "spot|reservation ID [sent=-10s] [untimed] [at=2m] [action=hibernate]",
// "state ID STATE", "rebalance ID [choice=replace]" and "scheduled ID [at=48h] [in-force]" print what is made of a
// notice; all dates are from noon.
func TestScenarios(t *testing.T) {
	words := syntax.NewGrammar(nil, "claims", "spot [ID] sent= untimed at= action=", "reservation [ID] sent= untimed at= action=",
		"state ID STATE sent= untimed", "rebalance [ID] sent= untimed choice=", "scheduled [ID] sent= untimed at= in-force")
	datadriven.Walk(t, "testdata/notice", func(t *testing.T, path string) {
		var claims []cluster.Claim
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			if err := words.Check(d); err != nil {
				d.Fatalf(t, "%v", err)
			}
			if d.Cmd == "claims" {
				claims = nil
				for l := range strings.SplitSeq(strings.TrimSpace(d.Input), "\n") {
					claims = append(claims, claim(t, l))
				}
				return ""
			}
			decide := decision(t, d)
			out := decide(claims)
			slices.Reverse(claims)
			if diff := cmp.Diff(out, decide(claims)); diff != "" {
				t.Errorf("%s: with the claims in another order: %s", d.Pos, diff)
			}
			return show(out)
		})
	})
}

// decision is what the command asks for.
func decision(t *testing.T, d *datadriven.TestData) func([]cluster.Claim) interruption.Response {
	n := interruption.Notice{Time: noon(), At: date(t, d, "at"), InForce: d.HasArg("in-force")}
	if len(d.CmdArgs) > 0 && len(d.CmdArgs[0].Vals) == 0 {
		n.Instance = d.CmdArgs[0].Key
	}
	if sent := date(t, d, "sent"); !sent.IsZero() {
		n.Time = sent
	}
	if d.HasArg("untimed") {
		n.Time = time.Time{}
	}
	n.Action = word(d, "action", "")
	switch d.Cmd {
	case "spot", "reservation":
		n.Kind = map[string]interruption.Kind{"spot": interruption.Spot, "reservation": interruption.Reservation}[d.Cmd]
		return func(c []cluster.Claim) interruption.Response { return interruption.Interrupted(n, c, noon()) }
	case "state":
		n.Kind = map[string]interruption.Kind{"running": interruption.Running, "stopping": interruption.Stopping, "stopped": interruption.Stopped,
			"shutting-down": interruption.Ending, "terminated": interruption.Ended}[d.CmdArgs[1].Key]
		return func(c []cluster.Claim) interruption.Response { return interruption.StateChanged(n, c, noon()) }
	case "rebalance":
		n.Kind = interruption.Rebalance
		pool := interruption.RebalancePolicy{Choice: interruption.RebalanceChoice(word(d, "choice", "replace")), MinAge: 15 * time.Minute}
		return func(c []cluster.Claim) interruption.Response { return interruption.DecideRebalance(n, c, pool, noon()) }
	case "scheduled":
		n.Kind = interruption.Scheduled
		return func(c []cluster.Claim) interruption.Response { return interruption.ScheduledChange(n, c, noon()) }
	}
	t.Fatalf("%s: unknown word %q", d.Pos, d.Cmd)
	return nil
}

func word(d *datadriven.TestData, key, otherwise string) string {
	for _, a := range d.CmdArgs {
		if a.Key == key {
			return strings.Join(a.Vals, ",")
		}
	}
	return otherwise
}

// date is noon and the duration of a word, zero without the word.
func date(t *testing.T, d *datadriven.TestData, key string) time.Time {
	t.Helper()
	if v := word(d, key, ""); v != "" {
		return at(t, v)
	}
	return time.Time{}
}

func at(t *testing.T, after string) time.Time {
	t.Helper()
	d, err := time.ParseDuration(after)
	if err != nil {
		t.Fatal(err)
	}
	return noon().Add(d)
}

func claim(t *testing.T, line string) cluster.Claim {
	f := strings.Fields(line)
	c := cluster.Claim{Name: f[0], UID: "uid-" + f[0], Pool: "general", Created: noon().Add(-time.Hour), Labels: map[string]string{},
		Annotations: map[string]string{}}
	for _, w := range f[1:] {
		k, v, _ := strings.Cut(w, "=")
		switch k {
		case "id":
			c.ProviderID = "aws:///us-west-2a/" + v
		case "deleting":
			c.Deleting = noon()
			if v != "" {
				c.Deleting = at(t, v)
			}
		case "type":
			c.Labels["node.kubernetes.io/instance-type"] = v
		case "zone":
			c.Labels["topology.kubernetes.io/zone"] = v
		case "capacity":
			c.Labels["karpenter.sh/capacity-type"] = v
		case "grace":
			g := at(t, v).Sub(noon())
			c.TerminationGrace = &g
		case "deadline":
			c.Annotations[v1.AnnotationTerminationTimestamp] = at(t, v).Format(time.RFC3339)
		case "age":
			c.Created = noon().Add(-at(t, v).Sub(noon()))
		case "registered":
			c.Conditions = cluster.WithCondition(c.Conditions, cluster.Condition{Type: v1.ConditionRegistered, Status: "True"})
		case "initialized":
			c.Conditions = append(c.Conditions, cluster.Condition{Type: v1.ConditionInitialized, Status: "True"})
		case "drained":
			c.Conditions = append(c.Conditions, cluster.Condition{Type: v1.ConditionDrained, Status: "True"})
		case "terminating":
			c.Conditions = append(c.Conditions, cluster.Condition{Type: v1.ConditionInstanceTerminating, Status: "True"})
		case "stopping", "waits", "started":
			c.Annotations[v1.AnnotationStoppedCapacity] = "true"
			k := map[string]cluster.Condition{"stopping": {Status: "Unknown", Reason: v1.ReasonStopping}, "waits": {Status: "True"},
				"started": {Status: "False", Reason: v1.ReasonStarting}}[k]
			if k.Type = v1.ConditionStopped; v != "" {
				k.Since = at(t, v)
			}
			c.Conditions = append(c.Conditions, k)
		case "warming":
			c.Annotations[v1.AnnotationStoppedCapacity] = "true"
		case "leave":
			c.Annotations[v1.AnnotationReplaceRequested] = leave(t, v)
		default:
			t.Fatalf("claim %s: %v", f[0], syntax.UnknownWord("word", k, "id", "deleting", "type", "zone", "capacity", "grace", "deadline", "age", "registered", "initialized",
				"drained", "terminating", "leave", "warming", "stopping", "waits", "started"))
		}
	}
	return c
}

// leave is the annotation for CAUSE,SINCE,UNTIL; a text of another form is taken as it is.
func leave(t *testing.T, v string) string {
	f := strings.Split(v, ",")
	if len(f) != 3 {
		return v
	}
	return fmt.Sprintf("%s %s %s", f[0], at(t, f[1]).Format(time.RFC3339), at(t, f[2]).Format(time.RFC3339))
}

// show prints every field that asks for something.
func show(o interruption.Response) string {
	var b strings.Builder
	say := func(ok bool, format string, args ...any) {
		if ok {
			fmt.Fprintf(&b, format+"\n", args...)
		}
	}
	say(!o.Found && o.Final, "not ours for ever")
	say(!o.Found && !o.Final, "not ours yet: %s", o.Why)
	say(o.Later, "  decide again later")
	say(o.Found, "claim %s: %s", o.Claim.Name, o.Why)
	for _, u := range o.Unavailable {
		say(true, "  unavailable: %s (%s)", u.OfferingKey, u.Why)
	}
	say(!o.Deadline.IsZero(), "  deadline %s", o.Deadline.Format(time.RFC3339))
	say(!o.First.IsZero(), "  replacement first, until %s", o.First.Format(time.RFC3339))
	say(o.Leave.Cause != "", "  leave: %s", o.Leave)
	say(o.DeleteClaim, "  delete claim")
	say(o.Provide, "  wake provision")
	say(o.Pods == interruption.EndPods, "  end the pods")
	say(o.Pods == interruption.ForgetPods, "  remove the pods")
	say(o.Release, "  release node and claim")
	say(o.Drain, "  wake lifecycle")
	for _, e := range o.Tell {
		say(true, "  tell %s: %s (warning: %t)", e.Reason, e.Message, e.Warning)
	}
	return b.String()
}

func TestChosen(t *testing.T) {
	for _, c := range []struct {
		annotation string
		stack      interruption.RebalanceChoice
		want       interruption.RebalanceChoice
	}{
		{"", interruption.Tell, interruption.Tell}, {"replace", interruption.Tell, interruption.Replace}, {"ignore", interruption.Replace, interruption.Ignore},
		{"event", interruption.Replace, interruption.Tell}, {"Replace!", interruption.Ignore, interruption.Ignore},
		{"Ignore", interruption.Replace, interruption.Tell}, {"False", interruption.Tell, interruption.Tell},
	} {
		if got := interruption.ChoiceFor(map[string]string{"joiner.sh/rebalance": c.annotation}, c.stack); got != c.want {
			t.Errorf("%q over %s: %s, want %s", c.annotation, c.stack, got, c.want)
		}
	}
}

// TestLeavingIsLookedAtLessOftenInTheEnd: a node that has to wait for weeks costs a look every ten minutes.
func TestLeavingIsLookedAtLessOftenInTheEnd(t *testing.T) {
	for _, c := range []struct {
		claim string
		after string
		want  bool
	}{
		{"a", "0s", false},
		{"a leave=nonsense", "0s", false},
		{"a leave=spot_interrupted,0s,1h", "0s", false},
		{"a leave=rebalance_recommendation,0s,15m", "1m", true},
		{"a leave=rebalance_recommendation,0s,15m", "15m", false},
		{"a leave=rebalance_recommendation,0s,15m deleting", "1m", false},
		{"a leave=scheduled_change,0s,72h", "14m", true},
		{"a leave=scheduled_change,0s,72h", "16m", false},
		{"a leave=scheduled_change,0s,72h", "20m", true},
		{"a leave=scheduled_change,0s,72h", "70h59m", false},
		{"a leave=scheduled_change,0s,72h", "71h1m", true},
		{"a leave=scheduled_change,0s,72h", "100h1m", true},
	} {
		if got := interruption.HasReplaceRequest(claim(t, c.claim), at(t, c.after)); got != c.want {
			t.Errorf("%q after %s: %t, want %t", c.claim, c.after, got, c.want)
		}
	}
}
