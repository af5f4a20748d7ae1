package notices_test

import (
	"bytes"
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/requirements"
	"joiner.sh/pkg/nodeclaim/interruption"
	"joiner.sh/pkg/testing/controllertest"
	"joiner.sh/pkg/testing/fake"
)

// Where EC2 takes an instance back nothing keeps the taint of its node waiting, and none of what follows can fail
// before it.
func TestTheTaintComesFirst(t *testing.T) {
	for kind, first := range map[interruption.Kind]bool{interruption.Spot: true, interruption.Reservation: true, interruption.Ended: false} {
		f := controllertest.RunningPods(t)
		p := f.World.Ports(fake.Fault{})
		n := controllertest.SpotNotice(f.World)
		n.Kind = kind
		if err := f.Interruption(p).HandleNotices(context.Background(), n); err != nil {
			t.Fatal(err)
		}
		calls := p.Calls()
		if got := slices.Equal(calls[:min(3, len(calls))], []string{"list claims", "get node", "taint node for termination"}); got != first {
			t.Errorf("%s: the calls are %q, want the taint first: %t", kind, calls, first)
		}
	}
	f := controllertest.RunningPods(t)
	n := controllertest.SpotNotice(f.World)
	if err := f.Interruption(f.World.Ports(fake.Fault{Call: 4})).HandleNotices(context.Background(), n); err == nil {
		t.Error("a mark that is not written is no error")
	}
	if k := f.World.TaintsOf(controllertest.ClaimOf(f, n.Instance).NodeName); !slices.Contains(k, "karpenter.sh/disrupted:NoSchedule") {
		t.Errorf("taints of the node when the mark could not be written: %v", k)
	}
}

// A dry run tells what it leaves undone in the order in which it is done.
func TestADryRunTellsOfTheTaintFirst(t *testing.T) {
	f := controllertest.RunningPods(t)
	n := controllertest.SpotNotice(f.World)
	var log bytes.Buffer
	c := f.Interruption(f.World.Ports(fake.Fault{}))
	c.Log = slog.New(slog.NewTextHandler(&log, nil))
	c.Permission = func(context.Context) (bool, error) { return false, nil }
	if err := c.HandleNotices(context.Background(), n); err != nil {
		t.Fatal(err)
	}
	var told []string
	for line := range strings.Lines(log.String()) {
		if _, action, is := strings.Cut(line, "dry-run: "); is {
			told = append(told, strings.Trim(strings.Join(strings.Fields(action)[:2], " "), `"`))
		}
	}
	want := []string{"taint node", "mark 1", "annotate NodeClaim", "delete NodeClaim", "wake provision", "wake lifecycle",
		"record event", "record event"}
	if !slices.Equal(told, want) {
		t.Errorf("a dry run tells %q, want %q", told, want)
	}
}

// What lifecycle writes onto a claim while provision launches does not keep the drain waiting that the launch lets
// begin.
func TestDrainsBeginWhateverIsWrittenMeanwhile(t *testing.T) {
	f := controllertest.RunningPods(t)
	n := controllertest.SpotNotice(f.World)
	controllertest.HandleNotices(t, f, n)
	if interruption.FirstUntil(controllertest.ClaimOf(f, n.Instance)).IsZero() {
		t.Fatal("the pods do not stay for their replacement")
	}
	p := f.World.Ports(fake.Fault{})
	launched := false
	var mu sync.Mutex
	p.Before = func(call string) {
		mu.Lock()
		defer mu.Unlock()
		if launched = launched || call == "launch"; call != "annotate claim" || !launched {
			return
		}
		launched = false
		other := f.World.Ports(fake.Fault{})
		if _, err := other.WriteClaimStatus(context.Background(), controllertest.ClaimOf(f, n.Instance)); err != nil {
			t.Error(err)
		}
	}
	if err := f.Provision(p).Run(context.Background(), f.Once()); err != nil {
		t.Fatal(err)
	}
	if until := interruption.FirstUntil(controllertest.ClaimOf(f, n.Instance)); !until.IsZero() {
		t.Errorf("after %v the pods still stay until %s", p.Calls(), until)
	}
}

// Where many nodes are replaced at once the drains begin before what EC2 has accepted is written down claim by claim,
// and each once.
func TestDrainsBeginBeforeLaunchesAreWrittenDown(t *testing.T) {
	w := controllertest.NewWorld()
	web := controllertest.PodOf(1500, 3000)
	web.AntiAffinity = []cluster.AffinityTerm{{Key: "kubernetes.io/hostname", Selector: &cluster.Selector{Requirements: []requirements.Requirement{requirements.Of("app", "web")}}}}
	w.RunApp("web", 6, web)
	f := &controllertest.Functions{World: w, ShareFrom: 2}
	f.ComeToRest(t)
	for _, i := range f.World.Instances() {
		controllertest.HandleNotices(t, f, interruption.Notice{Kind: interruption.Spot, Instance: i.ID, Time: f.World.Now()})
	}
	p := f.World.Ports(fake.Fault{})
	if err := f.Provision(p).Run(context.Background(), f.Once()); err != nil {
		t.Fatal(err)
	}
	calls := p.Calls()
	after := slices.DeleteFunc(calls[slices.Index(calls, "launch batch"):], func(c string) bool { return c == "launch batch" })
	count := func(call string) (n int) {
		for _, c := range after {
			if c == call {
				n++
			}
		}
		return n
	}
	if after[0] != "annotate claim" || count("annotate claim") != 6 || count("label claim") != 6 {
		t.Errorf("want that six drains begin, each once, before the first of six launches is written down: %q", after)
	}
}

// Who disrupts by choice leaves the lease to provision while pods wait for replacements of what EC2 takes back.
func TestChoiceComesAfterWhatIsUrgent(t *testing.T) {
	f := controllertest.RunningPods(t)
	leased := func() bool {
		p := f.World.Ports(fake.Fault{})
		if err := f.Disrupt(p).Run(context.Background(), f.Once()); err != nil {
			t.Fatal(err)
		}
		return slices.Contains(p.Calls(), "acquire lease")
	}
	if !leased() {
		t.Fatal("disrupt does not take the lease")
	}
	n := controllertest.SpotNotice(f.World)
	controllertest.HandleNotices(t, f, n)
	if leased() {
		t.Error("disrupt takes the lease before the replacement is launched")
	}
	if err := f.Provision(f.World.Ports(fake.Fault{})).Run(context.Background(), f.Once()); err != nil {
		t.Fatal(err)
	}
	if !leased() {
		t.Error("disrupt does not take the lease when the replacement was launched")
	}
}
