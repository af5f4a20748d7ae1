package provision_test

import (
	"strings"
	"testing"
	"time"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/plan"
	"joiner.sh/pkg/model/requirements"
	"joiner.sh/pkg/testing/controllertest"
	"joiner.sh/pkg/testing/fake"
)

// refusing is a world whose pool leaves a label to pods, and whose API server refuses NodeClaims with one value of it.
func refusing(tried *int) *fake.World {
	w := controllertest.NewWorld()
	w.ChangePool(func(p *cluster.Pool) { p.Requirements = p.Requirements.And(requirements.Any("team")) })
	w.RefuseClaim = func(l plan.Launch) string {
		if l.Labels["team"] == "bad" {
			*tried++
			return "team"
		}
		return ""
	}
	return w
}

// A preference that makes the API server refuse a NodeClaim is left out, and the pods beside it get their node.
func TestPreferenceThatMakesAClaimInvalid(t *testing.T) {
	tried := 0
	w := refusing(&tried)
	wishes := controllertest.PodOf(500, 500)
	wishes.NodePrefers = []cluster.WeightedRequirements{{Weight: 1,
		Requirements: []requirements.Requirement{requirements.Of("team", "bad")}}}
	w.RunApp("wishes", 1, wishes)
	w.RunApp("beside", 1, controllertest.PodOf(500, 500))
	p, err := controllertest.InvokeProvision(t, w, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	if tried != 1 || len(w.Instances()) != 1 {
		t.Errorf("%d refused claims, %d instances; calls %v", tried, len(w.Instances()), p.Calls())
	}
}

// A pod whose demands make the API server refuse a NodeClaim says so, is not tried again, and costs the pods beside it
// nothing.
func TestDemandThatMakesAClaimInvalid(t *testing.T) {
	tried := 0
	w := refusing(&tried)
	demands := controllertest.PodOf(500, 500)
	demands.NodeSelector = map[string]string{"team": "bad"}
	w.RunApp("demands", 1, demands)
	w.RunApp("beside", 1, controllertest.PodOf(500, 500))
	p, err := controllertest.InvokeProvision(t, w, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	if tried != 1 || len(w.Instances()) != 1 {
		t.Errorf("%d refused claims, %d instances; calls %v", tried, len(w.Instances()), p.Calls())
	}
	const want = "FailedScheduling: the API server refuses a NodeClaim for it: labels team: Invalid value"
	if got := strings.Join(w.Events("Pod"), "\n"); !strings.Contains(got, want) {
		t.Errorf("events on pods:\n%s", got)
	}
}

// Where nobody knows which pod gave the value, all of them say so, once their preferences did not help.
func TestClaimThatIsInvalidForNoKnownReason(t *testing.T) {
	tried := 0
	w := controllertest.NewWorld()
	w.RefuseClaim = func(plan.Launch) string { tried++; return "example.com/unknown" }
	wishes := controllertest.PodOf(500, 500)
	wishes.NodePrefers = []cluster.WeightedRequirements{{Weight: 1,
		Requirements: []requirements.Requirement{requirements.Any("team")}}}
	w.RunApp("wishes", 1, wishes)
	w.RunApp("beside", 1, controllertest.PodOf(500, 500))
	if _, err := controllertest.InvokeProvision(t, w, time.Minute); err != nil {
		t.Fatal(err)
	}
	told := 0
	for _, e := range w.Events("Pod") {
		if strings.Contains(e, "the API server refuses a NodeClaim for it") {
			told++
		}
	}
	if tried != 2 || told < 2 {
		t.Errorf("%d claims were tried, events on pods: %q", tried, w.Events("Pod"))
	}
}
