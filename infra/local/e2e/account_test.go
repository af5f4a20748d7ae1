package e2e_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"joiner.sh/events"
	"joiner.sh/infra/local/awsemulator"
	"joiner.sh/infra/local/env"
	"joiner.sh/pkg/testing/shortrun"
)

// foreign is the event that an instance of somebody else has a new state.
func foreign(t *testing.T, n int) []byte {
	t.Helper()
	state := []string{"pending", "running", "shutting-down", "terminated"}[n%4]
	return about(t, events.KindStateChange, fmt.Sprintf("i-0f%015x", n/4), map[string]any{"state": state})
}

// TestInstancesOfOthersDelayNoNotice: somebody in the account starts and ends 500 instances a second. The function that
// hears of them all takes four invocations at once at most, and a notice meanwhile finds what it needs.
func TestInstancesOfOthersDelayNoNotice(t *testing.T) {
	shortrun.Skip(t)
	w := start(t, hearing)
	w.ready()
	w.run(deployment{name: "web", replicas: 3})
	claim := w.oneClaim()
	victim := w.living()[0]
	w.settled()
	before := w.Host.CurrentStats().Functions[w.FunctionName("statechange")]
	const second, seconds = 500, 4
	all := make([][]byte, second*seconds)
	for i := range all {
		all[i] = foreign(t, i)
	}
	done := make(chan error, 1)
	go func() {
		pace := time.NewTicker(time.Second / second)
		defer pace.Stop()
		for i, event := range all {
			<-pace.C
			if _, err := w.Host.DeliverEvent(event); err != nil {
				done <- err
				return
			}
			if i == len(all)/2 {
				_, err := w.Host.DeliverEvent(about(t, events.KindSpotInterruption, victim.ID, nil))
				if err != nil {
					done <- err
					return
				}
			}
		}
		done <- nil
	}()
	w.until("the node of the notice is marked for deletion", func() (string, bool) {
		return "", !slices.ContainsFunc(w.claims(), func(c unstructured.Unstructured) bool {
			return c.GetName() == claim.GetName() && c.GetDeletionTimestamp() == nil
		})
	})
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	w.settled()
	after := w.Host.CurrentStats().Functions[w.FunctionName("statechange")]
	n := after.Invocations - before.Invocations
	if after.MostAtOnce > 4 || after.Throttles > 0 || after.Errors > 0 || after.GaveUp() > 0 || n > len(all)/10 {
		t.Errorf("statechange: %d invocations for %d events, %d at once, %d throttled, %d errors, %d given up", n, len(all), after.MostAtOnce,
			after.Throttles, after.Errors, after.GaveUp())
	}
	if s := w.Host.CurrentStats().Functions[w.FunctionName("spotinterruption")]; s.Invocations != 1 || s.Throttles > 0 || s.Errors > 0 {
		t.Errorf("spotinterruption: %d invocations, %d throttled, %d errors; want one", s.Invocations, s.Throttles, s.Errors)
	}
	t.Logf("%d events of others: %d invocations, %d at once", len(all), n, after.MostAtOnce)
	w.onlyADeploymentAskedEKS()
}

// onlyADeploymentAskedEKS fails if a function did that is not asked by CloudFormation: EKS throttles that, and a function that waits for it at its start
// keeps a notice waiting.
func (w *world) onlyADeploymentAskedEKS() {
	w.t.Helper()
	asked := 0
	for _, call := range w.Cloud.LoggedCalls() {
		if call.Service != "eks" {
			continue
		}
		if asked++; !strings.Contains(call.Session, "-setup") && !strings.Contains(call.Session, "-preflight") {
			w.t.Errorf("%s asked eks:%s", call.Session, call.Action)
		}
	}
	if asked == 0 {
		w.t.Error("nobody asked EKS, not even the preflight: nothing is shown")
	}
}

// TestInstancesThatEndAtOnceAreToldOf, in EC2's words, and are few. This is what a KMS key does that provision may not
// use.
func TestInstancesThatEndAtOnceAreToldOf(t *testing.T) {
	w := start(t, func(o *env.Options) { o.Env["TRIGGER"] = "schedule" })
	w.ready()
	w.Cloud.FailLaunches("*", "Client.InternalError", 0)
	w.apply(deployment{name: "web", replicas: 1})
	w.exist("web", 1)
	w.until("two instances ended and the class is left alone", func() (string, bool) {
		return w.told("web"), len(w.Cloud.DescribedInstances()) >= 2 && strings.Contains(w.told("web"), "left alone")
	}, "provision", "lifecycle")
	list, err := w.Kube.CoreV1().Events(metav1.NamespaceAll).List(w.ctx, metav1.ListOptions{FieldSelector: "reason=InternalError"})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(list.Items, func(e corev1.Event) bool {
		return e.InvolvedObject.Kind == "NodeClaim" && strings.Contains(e.Message, "Client.InternalError: Client error on launch")
	}) {
		t.Errorf("no NodeClaim says why its instance ended: %v", list.Items)
	}
	n := len(w.Cloud.DescribedInstances())
	for range 5 {
		w.tick("provision", "lifecycle")
	}
	w.started(n)
	w.Cloud.FailLaunches("", "", 0)
	if err := w.Kube.CoreV1().ConfigMaps("joiner-system").Delete(w.ctx, "joiner-sold-out", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	w.serve("web", 1)
}

// TestAThrottledEKSKeepsNobodyFromStarting: it refuses every call, and the functions, which do not ask it, work.
func TestAThrottledEKSKeepsNobodyFromStarting(t *testing.T) {
	shortrun.Skip(t)
	w := start(t)
	w.Cloud.AddFault(awsemulator.Fault{Service: "eks", Kind: awsemulator.Throttle})
	w.ready()
	w.run(deployment{name: "web", replicas: 1})
	w.onlyADeploymentAskedEKS()
}
