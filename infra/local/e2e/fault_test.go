package e2e_test

import (
	"fmt"
	"testing"

	"joiner.sh/infra/local/awsemulator"
)

// One environment meets one fault after the other. Each time a pod waits; the pass that meets the fault ends with an
// error that names the call and leaves nothing half done, and the passes after it serve the pod with one instance more.
func TestAPassThatMeetsAFaultNamesItAndTheNextOneCompletesIt(t *testing.T) {
	w := start(t)
	w.ready()
	faults := []struct {
		name     string
		function string
		cause    func()
		says     []string
		gone     func()
	}{
		{"CreateFleet is throttled", "provision",
			func() { w.fault(awsemulator.Fault{Action: "CreateFleet", Kind: awsemulator.Throttle}) },
			[]string{"create fleet", "RequestLimitExceeded"}, w.Cloud.ClearFaults},
		{"the launch template cannot be made", "provision",
			func() {
				w.fault(awsemulator.Fault{Action: "*LaunchTemplate*", Kind: awsemulator.FailBefore, Code: "UnauthorizedOperation"})
				w.forget()
			},
			[]string{"launch template", "UnauthorizedOperation"}, w.Cloud.ClearFaults},
		{"DescribeInstances is throttled", "lifecycle",
			func() { w.fault(awsemulator.Fault{Action: "DescribeInstances", Kind: awsemulator.Throttle}) },
			[]string{"describe instances", "RequestLimitExceeded"}, w.Cloud.ClearFaults},
		{"the credentials have expired", "provision",
			func() { w.Cloud.ExpireCredentials("") },
			[]string{"create fleet", "expired"}, w.forget},
		{"the API server cannot be reached", "provision",
			func() { w.moveCluster("https://127.0.0.1:1") },
			[]string{"get the version of the cluster", "connection refused"},
			func() { w.moveCluster(w.Plane.ServerURL()) }},
	}
	for i, f := range faults {
		w.apply(deployment{name: fmt.Sprint("web-", i), replicas: 1, alone: true})
		w.exist(fmt.Sprint("web-", i), 1)
		f.cause()
		w.fails(f.function, f.says...)
		w.started(i)
		if n := len(w.claims()); n > i+1 {
			t.Errorf("%s: %d NodeClaims, want at most one more than %d", f.name, n, i)
		}
		if i == 0 {
			w.fails(f.function, f.says...) // still the same, and still nothing piles up
			w.started(i)
			w.oneClaim()
		}
		f.gone()
		w.serve(fmt.Sprint("web-", i), 1)
		w.started(i + 1)
		if t.Failed() {
			t.Fatal("while ", f.name)
		}
	}
}

// moveCluster has EKS say that the API server is elsewhere, and the stack deployed again, so that all functions know.
func (w *world) moveCluster(endpoint string) {
	w.t.Helper()
	w.Cloud.SetCluster(endpoint, w.Plane.CA(), "10.100.0.0/16")
	if a, err := w.RequestResource(w.ctx, "Update", "Custom::JoinerPreflight", map[string]any{"Deployment": endpoint}); err != nil || a.Status != "SUCCESS" {
		w.t.Fatalf("deploy again: %+v, %v", a, err)
	}
}

// forget ends all warm processes, so that the next ones start with the credentials of now.
func (w *world) forget() {
	w.t.Helper()
	for _, f := range []string{"provision", "lifecycle", "disrupt", "refresh", "spotinterruption",
		"reservationinterruption", "rebalance", "scheduledchange", "statechange", "preflight", "setup"} {
		w.until(f+" has ended", func() (string, bool) {
			n, err := w.Host.KillFunction(w.FunctionName(f))
			return fmt.Sprint(n, " processes, ", err), n == 0 && err == nil
		})
	}
}
