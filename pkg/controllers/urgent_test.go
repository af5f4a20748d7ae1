package controllers_test

import (
	"context"
	"slices"
	"sync"
	"testing"

	"joiner/pkg/model/cluster"
	"joiner/pkg/model/requirements"
	"joiner/pkg/nodeclaim/interruption"
	"joiner/pkg/testing/fake"
)

// Where EC2 takes an instance back nothing keeps the taint of its node waiting, and none of what follows can fail
// before it.
func TestTheTaintComesFirst(t *testing.T) {
	for kind, first := range map[interruption.Kind]bool{interruption.Spot: true, interruption.Reservation: true, interruption.Ended: false} {
		f := running(t)
		p := f.w.Ports(fake.Fault{})
		n := notice(f.w)
		n.Kind = kind
		if err := f.interruption(p).HandleNotices(context.Background(), n); err != nil {
			t.Fatal(err)
		}
		calls := p.Calls()
		if got := slices.Equal(calls[:min(3, len(calls))], []string{"list claims", "get node", "condemn node"}); got != first {
			t.Errorf("%s: the calls are %q, want the taint first: %t", kind, calls, first)
		}
	}
	f := running(t)
	n := notice(f.w)
	if err := f.interruption(f.w.Ports(fake.Fault{Call: 4})).HandleNotices(context.Background(), n); err == nil {
		t.Error("a mark that is not written is no error")
	}
	if k := f.w.Taints(claimOf(f, n.Instance).NodeName); !slices.Contains(k, "karpenter.sh/disrupted:NoSchedule") {
		t.Errorf("taints of the node when the mark could not be written: %v", k)
	}
}

// What lifecycle writes onto a claim while provision launches does not keep the drain waiting that the launch lets
// begin.
func TestDrainsBeginWhateverIsWrittenMeanwhile(t *testing.T) {
	f := running(t)
	n := notice(f.w)
	again(t, f, n)
	if interruption.FirstUntil(claimOf(f, n.Instance)).IsZero() {
		t.Fatal("the pods do not stay for their replacement")
	}
	p := f.w.Ports(fake.Fault{})
	launched := false
	var mu sync.Mutex
	p.Before = func(call string) {
		mu.Lock()
		defer mu.Unlock()
		if launched = launched || call == "launch"; call != "annotate claim" || !launched {
			return
		}
		launched = false
		other := f.w.Ports(fake.Fault{})
		if _, err := other.WriteClaimStatus(context.Background(), claimOf(f, n.Instance)); err != nil {
			t.Error(err)
		}
	}
	if err := f.provision(p).Run(context.Background(), f.once()); err != nil {
		t.Fatal(err)
	}
	if until := interruption.FirstUntil(claimOf(f, n.Instance)); !until.IsZero() {
		t.Errorf("after %v the pods still stay until %s", p.Calls(), until)
	}
}

// Where many nodes are replaced at once the drains begin before what EC2 has accepted is written down claim by claim,
// and each once.
func TestDrainsBeginBeforeLaunchesAreWrittenDown(t *testing.T) {
	w := newWorld()
	web := pattern(1500, 3000)
	web.AntiAffinity = []cluster.AffinityTerm{{Key: "kubernetes.io/hostname", Selector: &cluster.Selector{Requirements: []requirements.Requirement{requirements.Of("app", "web")}}}}
	w.Run("web", 6, web)
	f := &functions{w: w, shared: 2}
	f.comeToRest(t)
	for _, i := range f.w.Instances() {
		again(t, f, interruption.Notice{Kind: interruption.Spot, Instance: i.ID, Time: f.w.Now()})
	}
	p := f.w.Ports(fake.Fault{})
	if err := f.provision(p).Run(context.Background(), f.once()); err != nil {
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
	f := running(t)
	leased := func() bool {
		p := f.w.Ports(fake.Fault{})
		if err := f.disrupt(p).Run(context.Background(), f.once()); err != nil {
			t.Fatal(err)
		}
		return slices.Contains(p.Calls(), "acquire lease")
	}
	if !leased() {
		t.Fatal("disrupt does not take the lease")
	}
	n := notice(f.w)
	again(t, f, n)
	if leased() {
		t.Error("disrupt takes the lease before the replacement is launched")
	}
	if err := f.provision(f.w.Ports(fake.Fault{})).Run(context.Background(), f.once()); err != nil {
		t.Fatal(err)
	}
	if !leased() {
		t.Error("disrupt does not take the lease when the replacement was launched")
	}
}
