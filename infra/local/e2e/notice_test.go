package e2e_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"joiner.sh/events"
	"joiner.sh/infra/local/awsemulator"
	"joiner.sh/infra/local/env"
	"joiner.sh/pkg/testing/shortrun"
)

// hearing has events about states delivered, and functions stay as they do: nobody ticks. A wake-up then waits for
// whoever stays before it is too old, which takes a minute that is one.
func hearing(o *env.Options) { o.Lose, o.Minute, o.Env["WATCH_DURATION"] = nil, time.Minute, "50s" }

// about is the sample of a kind with another instance and time, and more changes by JSON path of the detail.
func about(t *testing.T, kind events.Kind, instance string, detail map[string]any) []byte {
	t.Helper()
	sample, err := kind.Sample()
	if err != nil {
		t.Fatal(err)
	}
	var e map[string]any
	if err := json.Unmarshal(sample, &e); err != nil {
		t.Fatal(err)
	}
	e["time"] = time.Now().UTC().Format(time.RFC3339)
	d := e["detail"].(map[string]any)
	if kind == events.KindScheduledChange {
		d["affectedEntities"] = []map[string]string{{"entityValue": "arn:aws:ec2:us-west-2:111122223333:instance/" + instance}}
	} else {
		d["instance-id"] = instance
	}
	for k, v := range detail {
		d[k] = v
	}
	b, err := json.Marshal(e)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// deliver gives an event to the rules of the stack, wants one to take it, and waits until it is handled.
func (w *world) deliver(event []byte) {
	w.t.Helper()
	got, err := w.Host.DeliverEvent(event)
	if err != nil || len(got) != 1 || got[0].Failed != "" {
		w.t.Fatalf("delivered %v, %v; want one delivery of %s", got, err, event)
	}
	w.settled()
}

// quiet waits until a function has run so often, and fails if it had an error or gave up an event.
func (w *world) quiet(function string, atLeast int) {
	w.t.Helper()
	w.until(fmt.Sprintf("%s has run %d times", function, atLeast), func() (string, bool) { // its queue gathers events first
		n := w.Host.CurrentStats().Functions[w.FunctionName(function)].Invocations
		return fmt.Sprint(n), n >= atLeast
	})
	s := w.Host.CurrentStats().Functions[w.FunctionName(function)]
	if s.Errors != 0 || s.GaveUp() != 0 || s.Invocations < atLeast {
		w.t.Errorf("%s: %d invocations, %d errors, dead letters %+v; want at least %d, 0 and none", function, s.Invocations, s.Errors, s.DeadLetters, atLeast)
	}
}

// TestRunningBringsTheNodeIntoService: from the launch on nobody ticks any more.
func TestRunningBringsTheNodeIntoService(t *testing.T) {
	w := start(t, hearing)
	w.ready()
	w.apply(deployment{name: "web", replicas: 1})
	w.exist("web", 1)
	w.tick("provision")
	running, bound := time.Time{}, time.Time{}
	w.until("the node is in service", func() (string, bool) {
		if l := w.living(); running.IsZero() && len(l) == 1 && l[0].State == "running" {
			running = time.Now()
		}
		if bound.IsZero() && w.up("web") == 1 {
			bound = time.Now()
		}
		c := w.oneClaim()
		return fmt.Sprint(status(*c, "Registered"), status(*c, "Initialized")), status(*c, "Initialized")["status"] == "True" && !bound.IsZero()
	})
	t.Logf("pod ready %s after the instance was seen running, node in service after %s", bound.Sub(running).Round(time.Millisecond),
		time.Since(running).Round(time.Millisecond))
	w.quiet("statechange", 1)
}

// TestAnEndedInstanceIsLetGoOfWithoutATick: neither lifecycle's schedule nor provision's is needed.
func TestAnEndedInstanceIsLetGoOfWithoutATick(t *testing.T) {
	for name, end := range map[string]func(w *world, id string) error{
		"terminated": func(w *world, id string) error { return w.Cloud.KillInstance(id) },
		"stopped":    func(w *world, id string) error { return w.Cloud.StopInstance(id) },
	} {
		t.Run(name, func(t *testing.T) {
			if name == "stopped" {
				shortrun.Skip(t)
			}
			w := start(t, hearing)
			w.ready()
			w.run(deployment{name: "web", replicas: 3})
			claim, old := w.oneClaim().GetName(), w.living()[0]
			w.settled()
			began := time.Now()
			if err := end(w, old.ID); err != nil {
				t.Fatal(err)
			}
			w.until("the instance is replaced", func() (string, bool) { return w.replaced(claim, old.ID, 3) })
			t.Logf("replaced, and let go of, %s after it was %s", time.Since(began).Round(time.Millisecond), name)
			w.quiet("statechange", 1)
			w.quiet("lifecycle", 1)
			w.quiet("provision", 1)
		})
	}
}

// replaced reports whether a claim is gone, its instance runs no more, and so many pods are up on others: on one, or on
// two if their owner made them one by one. The name of its node may be in use again, because its address is.
func (w *world) replaced(claim, instance string, pods int) (string, bool) {
	w.t.Helper()
	left := slices.ContainsFunc(w.claims(), func(c unstructured.Unstructured) bool { return c.GetName() == claim })
	living, up := w.living(), w.up("web")
	return fmt.Sprintf("claim left: %t, instances %v, %d pods up", left, living, up),
		!left && len(living) > 0 && len(living) <= pods && up == pods && len(w.nodes()) == len(living) &&
			!slices.ContainsFunc(living, func(i awsemulator.Instance) bool { return i.ID == instance })
}

// annotatePool writes onto the NodePool itself.
func (w *world) annotatePool(key, value string) {
	w.t.Helper()
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, key, value)
	if _, err := w.Kube.Dynamic.Resource(env.NodePools()).Patch(w.ctx, "default", types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		w.t.Fatal(err)
	}
}

// TestARecommendationIsTold: by default, and the node stays as it is.
func TestARecommendationIsTold(t *testing.T) {
	shortrun.Skip(t)
	w := start(t)
	w.ready()
	w.run(deployment{name: "web", replicas: 1})
	w.tick("lifecycle", "provision")
	before, id := w.image(), w.living()[0].ID
	w.deliver(about(t, events.KindRebalance, id, nil))
	w.tick("provision", "lifecycle")
	if after := w.image(); fmt.Sprint(before) != fmt.Sprint(after) {
		t.Errorf("before: %v\nafter: %v", before, after)
	}
	if told := w.said("SpotRebalanceRecommendation"); len(told) != 2 {
		t.Errorf("events %v, want one on the claim and one on the node", told)
	}
	w.quiet("rebalance", 1)
}

// TestARecommendationIsFollowedWhereThePoolWantsIt: in another pool of capacity, and once.
func TestARecommendationIsFollowedWhereThePoolWantsIt(t *testing.T) {
	w := start(t, func(o *env.Options) { o.Env["REBALANCE_MIN_AGE"] = "0s" })
	w.ready()
	w.annotatePool("joiner.sh/rebalance", "replace")
	w.run(deployment{name: "web", replicas: 3})
	claim, old := w.oneClaim().GetName(), w.living()[0]
	event := about(t, events.KindRebalance, old.ID, nil)
	w.deliver(event)
	w.deliver(event)
	w.until("the instance is replaced", func() (string, bool) { return w.replaced(claim, old.ID, 3) }, "provision", "lifecycle")
	w.started(2)
	fresh := w.living()[0]
	if fresh.Type == old.Type && fresh.Zone == old.Zone && fresh.CapacityType == old.CapacityType {
		t.Errorf("the replacement is %s %s in %s again", fresh.CapacityType, fresh.Type, fresh.Zone)
	}
	w.quiet("rebalance", 2)
}

// said lists the objects that events of a reason are about.
func (w *world) said(reason string) (out []string) {
	w.t.Helper()
	list, err := w.Kube.CoreV1().Events(metav1.NamespaceAll).List(w.ctx, metav1.ListOptions{FieldSelector: "reason=" + reason})
	if err != nil {
		w.t.Fatal(err)
	}
	for _, e := range list.Items {
		out = append(out, e.InvolvedObject.Kind+" "+e.InvolvedObject.Name+" "+e.Type)
	}
	slices.Sort(out)
	return out
}

// TestADateOfEC2HasTheNodeReplacedFirst: a far date, under the default budget of the pool.
func TestADateOfEC2HasTheNodeReplacedFirst(t *testing.T) {
	w := start(t)
	w.ready()
	w.run(deployment{name: "web", replicas: 3})
	old, claim, node := w.living()[0], w.oneClaim().GetName(), w.pods("web")[0].Spec.NodeName
	event := about(t, events.KindScheduledChange, old.ID, map[string]any{"startTime": time.Now().Add(72 * time.Hour).UTC().Format("Mon, 02 Jan 2006 15:04:05 GMT")})
	w.deliver(event)
	w.deliver(event) // at least once means twice at times
	w.until("the node is left", func() (string, bool) {
		deleted, served := false, false
		for _, c := range w.claims() {
			deleted = deleted || c.GetName() == claim && c.GetDeletionTimestamp() != nil
			served = served || c.GetName() != claim && status(c, "Initialized")["status"] == "True"
		}
		if deleted && !served {
			t.Fatal("the node was marked for deletion without a replacement in service")
		}
		return w.evacuated(node, claim, old)
	}, "provision", "lifecycle")
	w.started(2)
	w.quiet("scheduledchange", 2)
	if told := w.said("InstanceUnhealthy"); len(told) != 2 {
		t.Errorf("events %v", told)
	}
	// A date that is called off, and one of another region, concern nobody.
	for _, detail := range []map[string]any{{"statusCode": "closed"}, {"eventRegion": "eu-central-1"}} {
		before := w.image()
		w.deliver(about(t, events.KindScheduledChange, w.living()[0].ID, detail))
		if after := w.image(); fmt.Sprint(before) != fmt.Sprint(after) {
			t.Errorf("%v changed something: before %v, after %v", detail, before, after)
		}
	}
	if n := strings.Count(w.logs.String(), "dropped event"); n != 2 {
		t.Errorf("%d events were dropped, want 2", n)
	}
}

// TestAnUrgentDateDeletesAtOnce.
func TestAnUrgentDateDeletesAtOnce(t *testing.T) {
	shortrun.Skip(t)
	w := start(t)
	w.ready()
	w.run(deployment{name: "web", replicas: 1})
	id, claim := w.living()[0].ID, w.oneClaim()
	date := time.Now().Add(30 * time.Minute).UTC()
	w.deliver(about(t, events.KindScheduledChange, id, map[string]any{"startTime": date.Format("Mon, 02 Jan 2006 15:04:05 GMT")}))
	until := w.deletedClaim(claim).GetAnnotations()["karpenter.sh/nodeclaim-termination-timestamp"]
	if want := date.Add(-10 * time.Second).Format(time.RFC3339); until != want {
		t.Errorf("the claim's deadline is %q, want %q", until, want)
	}
	w.until("it is replaced", func() (string, bool) {
		l := w.living()
		return fmt.Sprint(len(l), " instances"), len(l) == 1 && l[0].ID != id && w.up("web") == 1
	}, "provision", "lifecycle")
	w.started(2)
}

// deletedClaim is a claim as it was when its deletion began, which may be long ago: it may be gone by now.
func (w *world) deletedClaim(claim *unstructured.Unstructured) *unstructured.Unstructured {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.ctx, patience)
	defer cancel()
	changes, err := w.Kube.Dynamic.Resource(env.NodeClaims()).Watch(ctx, metav1.ListOptions{
		FieldSelector: "metadata.name=" + claim.GetName(), ResourceVersion: claim.GetResourceVersion()})
	if err != nil {
		w.t.Fatal(err)
	}
	defer changes.Stop()
	for e := range changes.ResultChan() {
		if c, ok := e.Object.(*unstructured.Unstructured); ok && c.GetUID() == claim.GetUID() && c.GetDeletionTimestamp() != nil {
			return c
		}
	}
	w.t.Fatalf("claim %s was not marked for deletion", claim.GetName())
	return nil
}

// mostWait is how long the pods of an interrupted node wait for their replacement.
const mostWait = 20 * time.Second

// TestInterruptedPodsGetTheirGraceInTime: replacement capacity is asked for before the first pod is asked to go, and
// protected pods go in time, with their grace period.
func TestInterruptedPodsGetTheirGraceInTime(t *testing.T) {
	for name, event := range map[string]func(w *world, i awsemulator.Instance){
		"spot": func(w *world, i awsemulator.Instance) { w.deliver(about(t, events.KindSpotInterruption, i.ID, nil)) },
		"reservation": func(w *world, i awsemulator.Instance) {
			w.deliver(about(t, events.KindReservationInterruption, i.ID, map[string]any{"instance-termination-time": time.Now().Add(30 * time.Second).UTC().Format(time.RFC3339)}))
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := start(t)
			w.ready()
			w.run(deployment{name: "web", replicas: 1, spec: "\n      nodeSelector: {karpenter.sh/capacity-type: spot}"})
			claim, old := w.oneClaim(), w.living()[0]
			before := time.Now()
			event(w, old)
			until, err := time.Parse(time.RFC3339, w.deletedClaim(claim).GetAnnotations()["karpenter.sh/nodeclaim-termination-timestamp"])
			if want := map[string]time.Duration{"spot": 110 * time.Second, "reservation": 20 * time.Second}[name]; err != nil ||
				until.Before(before.Add(want-3*time.Second)) || until.After(time.Now().Add(want)) {
				t.Errorf("deadline %s, %v; want %s from now", until, err, want)
			}
			w.until("the pod runs elsewhere", func() (string, bool) { return w.replaced(claim.GetName(), old.ID, 1) }, "provision", "lifecycle")
			w.settled()
			// A reservation's deadline is too near here to wait for anything.
			ordered, asked := w.logs.first(before, "order spot for claim"), w.logs.first(before, "evict pod default/web")
			if ordered.IsZero() || name == "spot" && !asked.IsZero() && asked.Before(ordered) && asked.Before(before.Add(mostWait)) {
				t.Errorf("noticed after %s, capacity was asked for at %s and a pod to go at %s; want capacity first, for %s at least", before, ordered, asked, mostWait)
			}
			w.started(2)
			w.quiet(name+"interruption", 1)
		})
	}
}
