package disrupt_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	v1 "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/testing/controllertest"
	"joiner.sh/pkg/testing/fake"
)

// placed says where instances are.
type placed func() ([]cluster.Instance, error)

func (p placed) ListInstances(context.Context, cluster.InstanceFilter) ([]cluster.Instance, error) {
	return p()
}

// What EC2 says about an instance makes it drift; while EC2 says nothing, what was found stays.
func TestDriftOfWhatEC2Tells(t *testing.T) {
	f := controllertest.FreeToDisrupt(t, "WhenEmpty", 1)
	f.World.ChangePool(func(p *cluster.Pool) { p.Disruption.Budgets = []cluster.NodeBudget{{Every: true, Nodes: "0"}} })
	all := f.World.Instances()
	right := all[0].SubnetID
	pass := func(subnet string, err error) string {
		t.Helper()
		c := f.Disrupt(f.World.Ports(fake.Fault{}))
		c.Placed = placed(func() ([]cluster.Instance, error) {
			out := f.World.Instances()
			for i := range out {
				out[i].SubnetID = subnet
			}
			return out, err
		})
		if err := c.Run(t.Context(), f.Once()); err != nil {
			t.Fatal(err)
		}
		return f.World.Claims()[0].Condition(v1.ConditionDrifted).Reason
	}
	for _, c := range []struct {
		name   string
		subnet string
		err    error
		want   string
	}{
		{"as the class has it", right, nil, ""},
		{"another", "subnet-other", nil, "SubnetDrift"},
		{"no answer", right, errors.New("throttled"), "SubnetDrift"},
		{"as the class has it again", right, nil, ""},
	} {
		if got := pass(c.subnet, c.err); got != c.want {
			t.Errorf("%s: drifted %q, want %q", c.name, got, c.want)
		}
	}
}

// A claim that somebody else changes while its drift is written is left to the next pass, and stops no other decision.
func TestAClaimThatChangesWhileItsDriftIsWritten(t *testing.T) {
	f := controllertest.FreeToDisrupt(t, "WhenEmpty", 1)
	f.World.ChangePool(controllertest.CapacityType("on-demand")) // the node is spot
	claim := f.World.Claims()[0]
	p := f.World.Ports(fake.Fault{})
	other, meddled := f.World.Ports(fake.Fault{}), false
	p.Before = func(call string) {
		if strings.HasPrefix(call, "write status") && !meddled {
			meddled = true
			if _, err := other.AnnotateClaim(t.Context(), claim, map[string]string{"note": "mine"}); err != nil {
				t.Error(err)
			}
		}
	}
	if err := f.Disrupt(p).Run(t.Context(), f.Once()); err != nil {
		t.Fatal(err)
	}
	if !meddled || f.World.Claims()[0].Is(v1.ConditionDrifted) {
		t.Errorf("meddled %t, conditions %v", meddled, f.World.Claims()[0].Conditions)
	}
	if err := f.Disrupt(f.World.Ports(fake.Fault{})).Run(t.Context(), f.Once()); err != nil {
		t.Fatal(err)
	}
	if !f.World.Claims()[0].Is(v1.ConditionDrifted) {
		t.Errorf("the next pass does not find it: %v", f.World.Claims()[0].Conditions)
	}
}

// Consolidatable and the time of the last pod event stand on the claim, and go when a pod comes.
func TestClaimsSayHowQuietTheirNodesAre(t *testing.T) {
	f := controllertest.FreeToDisrupt(t, "WhenEmpty", 1)
	w := f.World
	w.ChangePool(func(p *cluster.Pool) { p.Disruption.After = 5 * time.Minute })
	pass := func() cluster.Claim {
		t.Helper()
		if err := f.Disrupt(w.Ports(fake.Fault{})).Run(t.Context(), f.Once()); err != nil {
			t.Fatal(err)
		}
		return w.Claims()[0]
	}
	pass()
	w.Advance(6 * time.Minute)
	before := pass()
	if !before.Is(v1.ConditionConsolidatable) {
		t.Fatalf("after six quiet minutes: %v", before.Conditions)
	}
	w.RunApp("other", 1, controllertest.InZone("us-west-2b", controllertest.PodOf(100, 100)))
	w.Advance(20 * time.Second)
	if after := pass(); after.Is(v1.ConditionConsolidatable) || !after.LastPodEvent.After(before.LastPodEvent) {
		t.Errorf("a pod came: conditions %v, last pod event %v, before %v", after.Conditions, after.LastPodEvent, before.LastPodEvent)
	}
	w.Advance(6 * time.Minute)
	if after := pass(); !after.Is(v1.ConditionConsolidatable) {
		t.Errorf("it is quiet again: %v", after.Conditions)
	}
}

// Whoever is to launch and to drain is woken when there is something to.
func TestWhomDisruptWakes(t *testing.T) {
	f := controllertest.FreeToDisrupt(t, "WhenEmptyOrUnderutilized", 2)
	w := f.World
	w.ScaleApp("web", 1)
	w.Advance(time.Second)
	begun, finished := false, false
	for range 8 {
		p := w.Ports(fake.Fault{})
		provision, lifecycle := w.CountWakeups("provision"), w.CountWakeups("lifecycle")
		if err := f.Disrupt(p).Run(t.Context(), f.Once()); err != nil {
			t.Fatal(err)
		}
		calls := strings.Join(p.Calls(), "\n")
		creates, deletes := strings.Contains(calls, "create claim"), strings.Contains(calls, "delete claim")
		begun, finished = begun || creates, finished || deletes
		if creates && w.CountWakeups("provision") == provision || deletes && w.CountWakeups("lifecycle") == lifecycle {
			t.Errorf("nobody is woken:\n%s", calls)
		}
		f.Rest(t, 1)
	}
	if !begun || !finished {
		t.Errorf("begun %t, finished %t", begun, finished)
	}
}

// A pass about a quiet cluster writes no status: what it would write stands on the claims already.
func TestAQuietPassWritesNoStatus(t *testing.T) {
	f := controllertest.FreeToDisrupt(t, "WhenEmpty", 4)
	var written []int
	for range 4 {
		p := f.World.Ports(fake.Fault{})
		if err := f.Disrupt(p).Run(t.Context(), f.Once()); err != nil {
			t.Fatal(err)
		}
		n := 0
		for _, call := range p.Calls() {
			if strings.Contains(call, "write status of claim") {
				n++
			}
		}
		written = append(written, n)
		f.World.Advance(time.Minute)
	}
	if written[0] == 0 || written[1]+written[2]+written[3] > 0 {
		t.Errorf("statuses written by four passes: %v; want some by the first alone", written)
	}
}
