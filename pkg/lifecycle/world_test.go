package lifecycle_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	awsv1 "joiner/pkg/api/aws/v1"
	v1 "joiner/pkg/api/v1"
	"joiner/pkg/cluster"
	"joiner/pkg/resource"
)

// start is when every scenario begins. Durations in scenario files are ages: "launched=5m" was five minutes ago, and a
// negative one lies ahead.
func start() time.Time { return time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC) }

func rules() cluster.Rules {
	return cluster.Rules{LaunchTimeout: 5 * time.Minute, RegistrationTimeout: 15 * time.Minute, InitializationTimeout: 30 * time.Minute,
		MinLeakAge: 30 * time.Second}
}

// args are the words of one directive: key, key=value or key=(value,value).
type args struct {
	t     *testing.T
	name  string
	words []datadriven.CmdArg
	lines []string
}

func newArgs(t *testing.T, d *datadriven.TestData) args {
	a := args{t: t, words: d.CmdArgs}
	if d.Input != "" {
		a.lines = strings.Split(strings.TrimSpace(d.Input), "\n")
	}
	if len(a.words) > 0 && len(a.words[0].Vals) == 0 {
		a.name = a.words[0].Key
	}
	return a
}

func (a args) get(key string) (string, bool) {
	for _, w := range a.words {
		if w.Key == key {
			return strings.Join(w.Vals, ","), true
		}
	}
	return "", false
}

func (a args) has(key string) bool { _, ok := a.get(key); return ok }

func (a args) str(key, otherwise string) string {
	if v, ok := a.get(key); ok {
		return v
	}
	return otherwise
}

func (a args) duration(key string) time.Duration {
	v, ok := a.get(key)
	if !ok || v == "" {
		return 0
	}
	d, err := time.ParseDuration(v)
	if err != nil {
		a.t.Fatalf("%s: %v", a.name, err)
	}
	return d
}

// ago is the time of an age, zero when the word is missing.
func (a args) ago(key string) time.Time {
	if !a.has(key) {
		return time.Time{}
	}
	return start().Add(-a.duration(key))
}

func (a args) only(keys ...string) {
	a.t.Helper()
	for i, w := range a.words {
		known := i == 0 && w.Key == a.name
		for _, k := range keys {
			known = known || k == w.Key
		}
		if !known {
			a.t.Fatalf("%s: unknown word %q", a.name, w.Key)
		}
	}
}

// claimFrom reads "claim c1 id=i-1 age=10m launched=9m registered=8m initialized=7m deleting=5s no-finalizer expire=1h grace=1m
// uid=u node=n1 deadline=-1m tagged" with lines "startup T", "request NAME AMOUNT" and "condition TYPE=STATUS REASON AGE MESSAGE".
func claimFrom(a args) cluster.Claim {
	a.only("id", "age", "launched", "registered", "initialized", "deleting", "no-finalizer", "expire", "grace", "uid", "node", "deadline", "tagged")
	c := cluster.Claim{Name: a.name, UID: a.str("uid", "uid-"+a.name), Pool: "p", Class: "default", Created: start().Add(-a.duration("age")),
		Deleting: a.ago("deleting"), Finalizer: !a.has("no-finalizer"), ExpireAfter: a.duration("expire"), NodeName: a.str("node", ""),
		Labels: map[string]string{v1.LabelNodePool: "p", awsv1.LabelEC2NodeClass: "default"}, Annotations: map[string]string{}}
	if id := a.str("id", ""); id != "" {
		c.ProviderID = providerID(id)
	}
	if a.has("grace") {
		g := a.duration("grace")
		c.TerminationGrace = &g
	}
	if a.has("deadline") {
		c.Annotations[v1.AnnotationTerminationTimestamp] = a.ago("deadline").Format(time.RFC3339)
	}
	if a.has("tagged") {
		c.Annotations["karpenter.k8s.aws/tagged"] = "true"
	}
	for _, k := range []struct{ word, condition string }{
		{"initialized", v1.ConditionInitialized}, {"launched", v1.ConditionLaunched}, {"registered", v1.ConditionRegistered},
	} {
		if a.has(k.word) {
			c.Conditions = append(c.Conditions, cluster.Condition{Type: k.condition, Status: "True", Reason: k.condition, Since: a.ago(k.word)})
		}
	}
	for _, l := range a.lines {
		f := strings.Fields(l)
		switch f[0] {
		case "startup":
			c.StartupTaints = append(c.StartupTaints, taintFrom(f[1]))
		case "request":
			c.Requests = amount(a.t, c.Requests, f)
		case "condition":
			kind, status, _ := strings.Cut(f[1], "=")
			d, err := time.ParseDuration(f[3])
			if err != nil {
				a.t.Fatal(err)
			}
			c.Conditions = append(c.Conditions, cluster.Condition{Type: kind, Status: status, Reason: f[2], Since: start().Add(-d),
				Message: strings.Join(f[4:], " ")})
		default:
			a.t.Fatalf("claim %s: unknown line %q", a.name, l)
		}
	}
	return c
}

// nodeFrom reads "node n1 id=i-1 not-ready deleting=5s ready=30s no-finalizer foreign" with lines "taint T" and "offer NAME AMOUNT". A
// node says 4 cpu and 8Gi unless it has offer lines.
func nodeFrom(a args) cluster.Node {
	a.only("id", "not-ready", "ready", "deleting", "no-finalizer", "foreign")
	n := cluster.Node{Name: a.name, UID: "uid-" + a.name, Ready: !a.has("not-ready"), Deleting: a.ago("deleting"),
		ReadySince: a.ago("ready"), Finalizer: !a.has("no-finalizer"), Labels: map[string]string{}}
	if id := a.str("id", ""); id != "" {
		n.ProviderID = providerID(id)
	}
	if !a.has("foreign") {
		n.Labels[awsv1.LabelEC2NodeClass] = "default"
	}
	for _, l := range a.lines {
		f := strings.Fields(l)
		switch f[0] {
		case "taint":
			n.Taints = append(n.Taints, taintFrom(f[1]))
		case "offer":
			n.Allocatable = amount(a.t, n.Allocatable, f)
		default:
			a.t.Fatalf("node %s: unknown line %q", a.name, l)
		}
	}
	if n.Allocatable.IsZero() {
		n.Allocatable = resource.List{CPU: 4000, Memory: 8192 * resource.MiB}
	}
	return n
}

// podFrom reads "pod web-1 on=n1 owner=DaemonSet critical deleting=5s grace=30 phase=Succeeded protect=true started=1m hold=h" with
// lines "tolerate T" or "tolerate all".
func podFrom(a args) cluster.Pod {
	a.only("on", "owner", "critical", "deleting", "grace", "phase", "protect", "started", "hold")
	grace, err := strconv.ParseInt(a.str("grace", "30"), 10, 64)
	if err != nil {
		a.t.Fatal(err)
	}
	p := cluster.Pod{Namespace: "default", Name: a.name, UID: "uid-" + a.name, NodeName: a.str("on", ""), Phase: a.str("phase", "Running"),
		Owner: cluster.Owner(a.str("owner", "Other")), Critical: a.has("critical"), Deleting: a.ago("deleting"), GraceSec: grace,
		DoNotDisrupt: a.str("protect", ""), Started: a.ago("started")}
	if a.has("hold") {
		p.Holds = []string{a.str("hold", "")}
	}
	for _, l := range a.lines {
		_, rest, _ := strings.Cut(l, " ")
		if rest == "all" {
			p.Tolerations = append(p.Tolerations, cluster.Toleration{Operator: "Exists"})
			continue
		}
		t := taintFrom(rest)
		p.Tolerations = append(p.Tolerations, cluster.Toleration{Key: t.Key, Value: t.Value, Effect: t.Effect, Operator: "Exists"})
	}
	return p
}

// instanceFrom reads "instance i-1 state=running age=1m claim=c1 uid=u".
func instanceFrom(a args) cluster.Instance {
	a.only("state", "age", "claim", "uid")
	i := cluster.Instance{ID: a.name, State: a.str("state", "running"), Type: "m5.large", Zone: "a", CapacityType: "spot",
		Launched: start().Add(-a.duration("age")), Claim: a.str("claim", "")}
	if i.Claim != "" {
		i.ClaimUID = a.str("uid", "uid-"+i.Claim)
	}
	return i
}

func providerID(id string) string { return "aws:///a/" + id }

func taintFrom(s string) cluster.Taint {
	var t cluster.Taint
	t.Key, t.Effect, _ = strings.Cut(s, ":")
	t.Key, t.Value, _ = strings.Cut(t.Key, "=")
	return t
}

// amount reads the words "request cpu 500"; memory is in MiB.
func amount(t *testing.T, l resource.List, f []string) resource.List {
	n, err := strconv.ParseInt(f[2], 10, 64)
	if err != nil {
		t.Fatal(fmt.Errorf("%v: %w", f, err))
	}
	if f[1] == resource.Memory {
		n *= resource.MiB
	}
	return l.With(f[1], n)
}
