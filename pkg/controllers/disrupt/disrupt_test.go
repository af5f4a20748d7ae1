package disrupt_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"joiner.sh/pkg/controllers/disrupt"
	"joiner.sh/pkg/disruption"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/requirements"
	"joiner.sh/pkg/testing/controllertest"
	"joiner.sh/pkg/testing/fake"
)

var (
	_ disrupt.NodeTainter      = (*fake.Ports)(nil)
	_ disrupt.DisruptionMemory = (*fake.Ports)(nil)
)

func TestDisruptMakesAClusterCheaper(t *testing.T) {
	f := controllertest.HalfEmpty(t)
	before := f.World.FleetPrice()
	f.Consolidate(t, 12)
	controllertest.NoProblems(t, f.World)
	if after := f.World.FleetPrice(); after > before*0.65 {
		t.Errorf("%.4f USD/h after %.4f USD/h", after, before)
	}
	calls := f.World.Ports(fake.Fault{})
	if err := f.Disrupt(calls).Run(context.Background(), f.Once()); err != nil {
		t.Fatal(err)
	}
	if c := controllertest.FirstChange(calls.Calls()); c != "" {
		t.Errorf("at rest it still makes the call %s", c)
	}
}

// Whatever call of whichever pass fails, before or after the deed and with or without the invocation: in the end every
// pod runs, no node is tainted for nothing, nothing is left over, and the cluster is as cheap as without the fault.
func TestDisruptSurvivesEveryFault(t *testing.T) {
	for _, pass := range []int{1, 3} { // in which it begins and ends
		controllertest.EachFault(t,
			func(t *testing.T) *controllertest.Functions {
				f := controllertest.HalfEmpty(t)
				f.Consolidate(t, pass)
				return f
			},
			func(f *controllertest.Functions, p *fake.Ports) error {
				return f.Disrupt(p).Run(context.Background(), f.Once())
			},
			func(t *testing.T, f *controllertest.Functions) {
				f.World.Advance(20 * time.Second) // the lease of an invocation that died runs out
				f.Consolidate(t, 12)
				f.World.Advance(2 * time.Hour) // what failed once may be tried again
				f.Consolidate(t, 12)
				controllertest.NoProblems(t, f.World)
				if name := disruptedNode(f.World); name != "" {
					t.Errorf("node %s stays tainted", name)
				}
				if got := f.World.FleetPrice(); got > 0.65*0.2668 {
					t.Errorf("pass %d: it still costs %.4f USD/h, before 0.2668", pass, got)
				}
			})
	}
}

// A replacement that EC2 does not sell is given up: taint, marks and its NodeClaim are gone, the pod stays, and it is
// not tried again at once. Later, when EC2 has some, it works out.
func TestDisruptTakesBackWhatCannotBeReplaced(t *testing.T) {
	f := controllertest.FreeToDisrupt(t, "WhenEmptyOrUnderutilized", 2)
	w := f.World
	w.ScaleApp("web", 1)
	before, price := w.Nodes(), w.FleetPrice()
	w.Refuse = func(instancetypes.OfferingKey) bool { return true }
	f.Consolidate(t, 8)
	if failed := strings.Count(strings.Join(w.Events("NodeClaim"), "\n"), "DisruptionFailed"); failed != 1 {
		t.Errorf("it was begun and taken back %d times, want once: %q", failed, w.Events("NodeClaim"))
	}
	if got := w.Nodes(); got != before || len(w.Claims()) != 1 {
		t.Errorf("%d claims, nodes %s, before %s", len(w.Claims()), got, before)
	}
	for _, c := range w.Claims() {
		if c.Annotations[disruption.AnnotationMark] != "" || c.Is("DisruptionReason") {
			t.Errorf("claim %s is marked still: %v", c.Name, c.Annotations)
		}
	}
	controllertest.NoProblems(t, w)
	w.Refuse = nil
	w.Advance(2 * time.Hour)
	f.Consolidate(t, 12)
	controllertest.NoProblems(t, w)
	if w.FleetPrice() >= price {
		t.Errorf("it costs %.4f USD/h, before %.4f", w.FleetPrice(), price)
	}
}

// Where a command is taken back, here because somebody removed the taint, the replacement that nothing runs on goes
// too.
func TestDisruptDropsTheReplacementOfWhatItTakesBack(t *testing.T) {
	f := controllertest.FreeToDisrupt(t, "WhenEmptyOrUnderutilized", 2)
	w := f.World
	w.ScaleApp("web", 1)
	w.Advance(time.Second)
	pass := func() {
		t.Helper()
		if err := f.Disrupt(w.Ports(fake.Fault{})).Run(t.Context(), f.Once()); err != nil {
			t.Fatal(err)
		}
		w.Advance(20 * time.Second)
	}
	replacements := func() (names []string) {
		for _, c := range w.Claims() {
			if c.Annotations[disruption.AnnotationReplaces] != "" && c.Deleting.IsZero() {
				names = append(names, c.Name)
			}
		}
		return names
	}
	pass()
	pass()
	if len(replacements()) != 1 {
		t.Fatalf("replacements %q, want one", replacements())
	}
	ports := w.Ports(fake.Fault{})
	s, err := ports.ReadSnapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range s.Nodes {
		if err := ports.UntaintNode(t.Context(), n); err != nil {
			t.Fatal(err)
		}
	}
	pass()
	if got := replacements(); len(got) != 0 {
		t.Errorf("replacements %q are left", got)
	}
}

// deniesTaints is an API server whose admission denies the taint of disruptions.
type deniesTaints struct{ disrupt.NodeTainter }

func (deniesTaints) TaintNode(context.Context, cluster.Node) error {
	return errors.New("admission webhook denied the request")
}

// A node that may not be tainted is not replaced: no replacement is made, and what was begun is taken back with the
// reason.
func TestDeniedTaintLaunchesNothing(t *testing.T) {
	f := controllertest.FreeToDisrupt(t, "WhenEmptyOrUnderutilized", 2)
	w := f.World
	w.ScaleApp("web", 1)
	w.Advance(time.Second)
	denied := 0
	for range 4 {
		ports := w.Ports(fake.Fault{})
		controller := f.Disrupt(ports)
		controller.Moves = deniesTaints{ports}
		if err := controller.Run(t.Context(), f.Once()); err != nil {
			denied++
		}
		w.Advance(20 * time.Second)
		for _, c := range w.Claims() {
			if c.Annotations[disruption.AnnotationReplaces] != "" {
				t.Fatalf("claim %s was made to replace %s", c.Name, c.Annotations[disruption.AnnotationReplaces])
			}
		}
	}
	if denied != 1 {
		t.Errorf("%d passes were denied the taint, want one: it is left alone for an hour", denied)
	}
	if got := controllertest.EventsWith(w.Events("NodeClaim"), "DisruptionFailed: the disruption is taken back: node node-000005 was not tainted"); len(got) != 1 {
		t.Errorf("%q, want one event that says what failed", w.Events("NodeClaim"))
	}
	for _, c := range w.Claims() {
		if c.Annotations[disruption.AnnotationMark] != "" {
			t.Errorf("claim %s is marked still", c.Name)
		}
	}
}

func TestDisruptReplacesWhatHasDrifted(t *testing.T) {
	w := controllertest.NewWorld()
	budget := []cluster.NodeBudget{{Every: true, Nodes: "1"}}
	w.ChangePool(func(p *cluster.Pool) {
		p.Hash, p.Disruption = "1", cluster.Disruption{Policy: "WhenEmpty", Budgets: budget}
	})
	w.RunApp("web", 4, controllertest.InZone("us-west-2b", controllertest.PodOf(1500, 3000)))
	f := &controllertest.Functions{World: w}
	f.Rest(t, 4)
	old := map[string]bool{}
	for _, c := range w.Claims() {
		old[c.Name] = true
	}
	w.ChangePool(func(p *cluster.Pool) { p.Hash = "2" })
	f.Consolidate(t, 40)
	controllertest.NoProblems(t, w)
	for _, c := range w.Claims() {
		if old[c.Name] {
			t.Errorf("NodeClaim %s is of the old template still", c.Name)
		}
	}
	if len(controllertest.EventsWith(w.Events("Pod"), "Evicted: Evicted pod: Drifted")) == 0 {
		t.Errorf("no pod is told why it was evicted: %q", w.Events("Pod"))
	}
}

// A node that stays is told why once, however many passes find it so, and what is decided is counted.
func TestDisruptTellsOnceWhyANodeStays(t *testing.T) {
	f := controllertest.FreeToDisrupt(t, "WhenEmpty", 1)
	w := f.World
	got := &controllertest.MetricLines{}
	var said bytes.Buffer
	for range 3 {
		c := f.Disrupt(w.Ports(fake.Fault{}))
		c.Metrics, c.Log = got, slog.New(slog.NewTextHandler(&said, nil))
		if err := c.Run(t.Context(), f.Once()); err != nil {
			t.Fatal(err)
		}
	}
	var told []string
	for _, e := range slices.Concat(w.Events("NodeClaim"), w.Events("Node")) {
		if strings.Contains(e, "Unconsolidatable") {
			told = append(told, e)
		}
	}
	if len(told) != 2 || !strings.Contains(told[0], "its NodePool consolidates empty nodes only") {
		t.Errorf("not one event on the claim and one on the node: %q", told)
	}
	if !strings.Contains(said.String(), `its NodePool consolidates empty nodes only" claim=general-`) || !strings.Contains(said.String(), " nodepool=general reason=policy\n") {
		t.Errorf("no line of the log with the fields of the node: %s", said.String())
	}
	for _, want := range []string{`"joiner_disruption_ineligible_nodes":1,"reason":"policy"`, `"karpenter_voluntary_disruption_eligible_nodes":0,"reason":"underutilized"`} {
		if n := strings.Count(strings.Join(got.All, "\n"), want); n != 3 {
			t.Errorf("%s is there %d times in 3 passes: %s", want, n, got.All)
		}
	}
}

// Where a pool asks for it, nodes that have expired are replaced one by one within its budget, and lifecycle deletes
// none of them.
func TestExpirationWithinBudgets(t *testing.T) {
	w := controllertest.NewWorld()
	w.ChangePool(func(p *cluster.Pool) {
		p.ExpireAfter = time.Hour
		p.Disruption = cluster.Disruption{Policy: "WhenEmpty", ExpireGently: true, Budgets: []cluster.NodeBudget{{Every: true, Nodes: "1"}}}
	})
	w.RunApp("web", 4, controllertest.InZone("us-west-2b", cluster.Pod{Need: controllertest.PodOf(1500, 3000).Need, GraceSec: 5,
		AntiAffinity: []cluster.AffinityTerm{{Key: "kubernetes.io/hostname", Selector: &cluster.Selector{Requirements: []requirements.Requirement{requirements.Of("app", "web")}}}}}))
	f := &controllertest.Functions{World: w}
	f.Rest(t, 4)
	old := map[string]bool{}
	for _, c := range w.Claims() {
		old[c.Name] = true
	}
	w.Advance(time.Hour)
	f.Rest(t, 1)
	there := 0
	for _, c := range w.Claims() {
		if old[c.Name] && c.Deleting.IsZero() {
			there++
		}
	}
	if there != len(old) {
		t.Errorf("%d of %d claims were deleted by force", len(old)-there, len(old))
	}
	for range 30 {
		f.Consolidate(t, 1)
		going := 0
		for _, c := range w.Claims() {
			if old[c.Name] && !c.Deleting.IsZero() {
				going++
			}
		}
		if going > 1 {
			t.Fatalf("%d nodes go at a time", going)
		}
	}
	controllertest.NoProblems(t, w)
	for _, c := range w.Claims() {
		if old[c.Name] {
			t.Errorf("claim %s has expired and is still there", c.Name)
		}
	}
}
