package loadtest

import (
	"sync"
	"testing"
	"time"

	"joiner.sh/infra/local/awsemulator"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/providers/fleet"
	"joiner.sh/pkg/testing/fake"
)

// parallelSteps is how many objects lifecycle works on side by side.
const parallelSteps = 10

// Others in the account leave next to nothing of the buckets, and no claims share a request: most calls are refused at
// first. All the same every claim gets its instance, one each, and no call is repeated before its pause is over.
func TestABurstThatIsThrottled(t *testing.T) {
	n := min(*claims, 30)
	w, p, c, seen := burst(t, n, busy())
	p.ShareFrom = n + 1
	rounds := 0
	for ; rounds < 20 && launched(w) < n; rounds++ {
		if err := p.Run(t.Context(), w.Now()); err != nil {
			t.Log(err) // claims that stay are launched by the next pass
		}
		w.Advance(time.Second)
	}
	if got := launched(w); got != n || len(c.DescribedInstances()) != n {
		t.Errorf("%d claims are launched by %d instances, want %d, after %d passes", got, len(c.DescribedInstances()), n, rounds)
	}
	report(t, c, 0)
	backedOff(t, c, seen, "ec2:CreateFleet", n)
}

func launched(w *fake.World) (n int) {
	for _, claim := range w.Claims() {
		if claim.ProviderID != "" {
			n++
		}
	}
	return n
}

// backedOff wants refusals of the action, fewer than attempts for each of the n deeds that there were, and pauses
// between them; the watch fails the test for a call within a pause.
func backedOff(t *testing.T, c *awsemulator.Cloud, seen *watch, action string, n int) {
	t.Helper()
	refused := 0
	for _, call := range c.LoggedCalls() {
		if call.Fault == awsemulator.Throttle && call.Service+":"+call.Action == action {
			refused++
		}
	}
	if refused == 0 || seen.retries == 0 {
		t.Errorf("%d calls of %s were refused and %d repeated: nothing is shown", refused, action, seen.retries)
	}
	if most := 4 * n; refused >= most {
		t.Errorf("%d calls of %s were refused, %d for each of %d", refused, action, refused/n, n)
	}
}

// Instances get their names when their nodes register: each a call of its own, since no two names are the same, while
// looking at what they are called so far and ending them is done for many at once.
func TestNamingAndEndingAtScale(t *testing.T) {
	for _, test := range []struct {
		name  string
		rates []rate
		most  int
	}{{"as documented", documented(), *claims}, {"with next to nothing left", busy(), 30}} {
		t.Run(test.name, func(t *testing.T) {
			n := min(*claims, test.most)
			w, p, c, seen := burst(t, n, documented())
			if err := p.Run(t.Context(), w.Now()); err != nil || len(c.DescribedInstances()) != n {
				t.Fatalf("%d instances, %v", len(c.DescribedInstances()), err)
			}
			c.ClearFaults()
			for _, r := range test.rates {
				c.AddFault(awsemulator.Fault{Service: "ec2", Action: r.action, Kind: awsemulator.Throttle, Burst: r.burst, PerSecond: r.perSecond, Each: r.each})
			}
			c.ForgetCalls()
			f := p.Fleet.(*fleet.Fleet)
			instances := c.DescribedInstances()
			look := passes(t, f)
			insist(t, instances, func(i awsemulator.Instance) error {
				look()
				return f.TagInstance(t.Context(), i.ID, "node-"+i.ID, "claim-"+i.ID)
			})
			for _, i := range c.DescribedInstances() {
				if i.Tags["Name"] != "node-"+i.ID {
					t.Errorf("%s is called %q", i.ID, i.Tags["Name"])
				}
			}
			calls := c.CallCounts()
			if test.name != "as documented" {
				backedOff(t, c, seen, "ec2:CreateTags", n)
			} else if calls["ec2:CreateTags"] != n {
				t.Errorf("%d calls of CreateTags for %d names", calls["ec2:CreateTags"], n)
			}
			if calls["ec2:DescribeInstances"] > n/parallelSteps+20 {
				t.Errorf("%d calls of DescribeInstances for %d names", calls["ec2:DescribeInstances"], n)
			}
			insist(t, instances, func(i awsemulator.Instance) error { return f.TerminateInstances(t.Context(), []string{i.ID}) })
			for _, i := range c.DescribedInstances() {
				if i.State != "shutting-down" {
					t.Errorf("%s is %s", i.ID, i.State)
				}
			}
			if calls := c.CallCounts()["ec2:TerminateInstances"]; calls > n/parallelSteps+20 {
				t.Errorf("%d calls of TerminateInstances for %d instances", calls, n)
			}
			report(t, c, 0)
		})
	}
}

// passes lists the instances as every pass of lifecycle does at its beginning, here every twenty seconds only.
func passes(t *testing.T, f *fleet.Fleet) (look func()) {
	var mu sync.Mutex
	var listed time.Time
	return func() {
		mu.Lock()
		defer mu.Unlock()
		if time.Since(listed) < 20*time.Second {
			return
		}
		listed = time.Now()
		if _, err := f.ListInstances(t.Context(), cluster.InstanceFilter{}); err != nil {
			t.Error(err)
		}
	}
}

// insist does the deed for all, as many side by side as lifecycle has, and as lifecycle does again for those that
// failed.
func insist(t *testing.T, all []awsemulator.Instance, do func(awsemulator.Instance) error) {
	t.Helper()
	for round := 0; len(all) > 0; round++ {
		if round == 30 {
			t.Fatalf("%d are still not done", len(all))
		}
		var mu sync.Mutex
		var failed []awsemulator.Instance
		var g sync.WaitGroup
		slots := make(chan struct{}, parallelSteps)
		for _, i := range all {
			g.Go(func() {
				slots <- struct{}{}
				defer func() { <-slots }()
				if err := do(i); err != nil {
					mu.Lock()
					defer mu.Unlock()
					failed = append(failed, i)
				}
			})
		}
		g.Wait()
		all = failed
	}
}
