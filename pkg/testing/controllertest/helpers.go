package controllertest

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	api "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/metrics"
	"joiner.sh/pkg/nodeclaim/interruption"
	"joiner.sh/pkg/testing/fake"
	"joiner.sh/pkg/testing/shortrun"
)

// EachFault runs the invocation on a fresh world with every fault it can have, and then hands the world on for the
// check. A short run has faults in every other call.
func EachFault(t *testing.T, prepare func(t *testing.T) *Functions, run func(f *Functions, p *fake.Ports) error,
	check func(t *testing.T, f *Functions)) {
	f := prepare(t)
	p := f.World.Ports(fake.Fault{})
	if err := run(f, p); err != nil {
		t.Fatalf("without a fault: %v", err)
	}
	check(t, f)
	calls := p.Calls()
	if len(calls) < 5 {
		t.Fatalf("only %d calls: %v", len(calls), calls)
	}
	// A fault may lead to more calls than there were without one.
	reached := true
	for n := 1; reached && n <= len(calls)+10; n += shortrun.Of(1, 2) {
		reached = false
		for _, fault := range faults(n) {
			f := prepare(t)
			p := f.World.Ports(fault)
			err := run(f, p)
			calls := p.Calls()
			if n > len(calls) {
				continue
			}
			reached = true
			if err == nil && fault.Fatal && !harmless(calls[n-1]) {
				t.Errorf("%s (%s): the invocation says all is well", fault, calls[n-1])
			}
			check(t, f)
			if t.Failed() {
				t.Fatalf("%s (%s); calls: %v", fault, calls[n-1], calls)
			}
		}
	}
}

// WaitingPods is a world with pods without a node in two zones.
func WaitingPods(t *testing.T) *Functions {
	t.Helper()
	w := NewWorld()
	w.RunApp("web", 3, InZone("us-west-2b", PodOf(1500, 3000)))
	w.RunApp("db", 1, InZone("us-west-2a", PodOf(1500, 3000)))
	return &Functions{World: w}
}

// RunningPods is a world in service.
func RunningPods(t *testing.T) *Functions {
	t.Helper()
	f := WaitingPods(t)
	f.Rest(t, 4)
	NoProblems(t, f.World)
	return f
}

// FreeToDisrupt is a world of so many pods whose nodes may all go at once, for what the policy lets them go.
func FreeToDisrupt(t *testing.T, policy string, pods int) *Functions {
	t.Helper()
	f := &Functions{World: NewWorld()}
	f.World.ChangePool(func(p *cluster.Pool) {
		p.Disruption = cluster.Disruption{Policy: policy, Budgets: []cluster.NodeBudget{{Every: true, Nodes: "100%"}}}
	})
	f.World.RunApp("web", pods, InZone("us-west-2b", PodOf(1500, 3000)))
	f.Rest(t, 4)
	return f
}

// HalfEmpty is a world whose pods became so few that their nodes are worth looking at: four nodes or one big one with a
// pod on each, and a budget that lets all of them go.
func HalfEmpty(t *testing.T) *Functions {
	t.Helper()
	f := FreeToDisrupt(t, "WhenEmptyOrUnderutilized", 8)
	NoProblems(t, f.World)
	f.World.ScaleApp("web", 3)
	f.World.Advance(time.Second)
	return f
}

// EventsWith are the events that begin so.
func EventsWith(events []string, begin string) []string {
	return slices.DeleteFunc(slices.Clone(events), func(e string) bool { return !strings.HasPrefix(e, begin) })
}

// HandleNotices delivers the notices once more, as Lambda does after an error, and fails on an error of its own.
func HandleNotices(t *testing.T, f *Functions, notices ...interruption.Notice) {
	t.Helper()
	if err := f.Interruption(f.World.Ports(fake.Fault{})).HandleNotices(context.Background(), notices...); err != nil {
		t.Fatal(err)
	}
}

// FirstInstance is the instance that web's notices are about.
func FirstInstance(f *Functions) string { return f.World.Instances()[0].ID }

// ClaimOf is the claim of an instance, without a name if there is none.
func ClaimOf(f *Functions, instance string) cluster.Claim {
	for _, c := range f.World.Claims() {
		if c.ProviderID != "" && c.InstanceID() == instance {
			return c
		}
	}
	return cluster.Claim{}
}

// Aged is a world in service whose nodes are old enough to be left, and whose pool replaces on recommendations.
func Aged(t *testing.T) *Functions {
	t.Helper()
	f := RunningPods(t)
	f.World.Quota = 5
	f.World.AnnotatePool(api.AnnotationRebalance, "replace")
	f.World.ProtectApp("web", 2)
	f.World.SkipTime(16 * time.Minute)
	return f
}

// HasReason matches events of that reason.
func HasReason(reason string) func(string) bool {
	return func(e string) bool { return strings.HasPrefix(e, reason+": ") }
}

// MetricLines keeps the lines of metrics without their heads.
type MetricLines struct{ All []string }

// Put keeps the records.
func (l *MetricLines) Put(records ...metrics.Record) {
	for _, r := range records {
		text, err := metrics.EMFLines(Noon(), "demo", r)
		if err != nil {
			panic(err)
		}
		for _, t := range text {
			_, after, _ := strings.Cut(string(t), "]}]},")
			l.All = append(l.All, after)
		}
	}
}

// SpotNotice is about the first instance that lives, by zone: instances launch side by side, so that the first ID is
// that of another one each time.
func SpotNotice(w *fake.World) interruption.Notice {
	one := slices.MinFunc(w.Instances(), func(a, b cluster.Instance) int { return strings.Compare(a.Zone, b.Zone) })
	return interruption.Notice{Kind: interruption.Spot, Instance: one.ID, Time: w.Now()}
}

// CheapestOffering refuses the first offering that anybody asks for, for ever.
func CheapestOffering(*fake.World) func(instancetypes.OfferingKey) bool {
	var first instancetypes.OfferingKey
	return func(o instancetypes.OfferingKey) bool {
		if first == (instancetypes.OfferingKey{}) {
			first = o
		}
		return o == first
	}
}

// InvokeProvision runs one invocation of provision that may stay for so long.
func InvokeProvision(t *testing.T, w *fake.World, stay time.Duration) (*fake.Ports, error) {
	t.Helper()
	f := Functions{World: w}
	p := w.Ports(fake.Fault{})
	return p, f.Provision(p).Run(context.Background(), w.Now().Add(stay))
}

// faults are the four ways in which the n-th call of an invocation can fail.
func faults(n int) []fake.Fault {
	return []fake.Fault{
		{Call: n}, {Call: n, Lost: true}, {Call: n, Fatal: true}, {Call: n, Lost: true, Fatal: true},
	}
}

// harmless calls are those whose failure the invocation may pass over: their loss costs nobody a pod.
func harmless(call string) bool {
	return call == "write event" || call == "wait" || call == "note spot events"
}
