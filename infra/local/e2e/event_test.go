package e2e_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"joiner.sh/events"
	"joiner.sh/infra/local/env"
	"joiner.sh/infra/local/lambdahost"
)

// short makes the minutes of retries last three seconds.
func short(o *env.Options) { o.Minute = 3 * time.Second }

// warning is the event about an instance.
func warning(t *testing.T, instance string) []byte {
	t.Helper()
	sample, err := events.KindSpotInterruption.Sample()
	if err != nil {
		t.Fatal(err)
	}
	var e map[string]any
	if err := json.Unmarshal(sample, &e); err != nil {
		t.Fatal(err)
	}
	e["detail"] = map[string]string{"instance-id": instance, "instance-action": "terminate"}
	b, err := json.Marshal(e)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// image is what a wrong reaction to an event would change, at rest.
func (w *world) image() map[string]string {
	w.t.Helper()
	w.settled()
	out := map[string]string{}
	for _, c := range w.claims() {
		out["claim "+c.GetName()] = c.GetResourceVersion()
	}
	for _, n := range w.nodes() {
		out["node "+n.Name] = fmt.Sprint(n.Spec.Taints, n.DeletionTimestamp)
	}
	maps, err := w.Kube.CoreV1().ConfigMaps("joiner-system").List(w.ctx, metav1.ListOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	for _, m := range maps.Items {
		out["data "+m.Name] = m.ResourceVersion
	}
	for _, i := range w.Cloud.DescribedInstances() {
		out["instance "+i.ID] = i.State
	}
	return out
}

func TestEventsThatAreNoneOfOursAreLoggedOnceAndChangeNothing(t *testing.T) {
	w := start(t, short)
	w.ready()
	w.run(deployment{name: "web", replicas: 1})
	w.tick("lifecycle", "provision")
	name := w.FunctionName("spotinterruption")
	before := w.image()
	for _, event := range []string{
		`{}`, `[1,2]`, `"text"`, `{"source":5}`,
		`{"source":"aws.ec2","detail-type":"EC2 Spot Instance Interruption Warning"}`,
		`{"source":"aws.ec2","detail-type":"EC2 Spot Instance Interruption Warning","detail":{"instance-id":"../../secret"}}`,
		strings.Replace(string(warning(t, w.living()[0].ID)), "aws.ec2", "com.example", 1),
	} {
		said, ran := strings.Count(w.logs.String(), "ignored event"), w.Host.CurrentStats().Functions[name].Invocations
		w.send(name, []byte(event))
		if n := strings.Count(w.logs.String(), "ignored event") - said; n != 1 {
			t.Errorf("event %s was logged %d times, want once", event, n)
		}
		if n := w.Host.CurrentStats().Functions[name].Invocations - ran; n != 1 {
			t.Errorf("event %s was handled %d times, want once", event, n)
		}
	}
	// Well-formed, about an instance of somebody else.
	w.send(name, warning(t, "i-0123456789abcdef0"))
	if !strings.Contains(w.logs.String(), "notice about an instance that is not ours") {
		t.Error("a notice about a foreign instance was not logged")
	}
	stats := w.Host.CurrentStats().Functions[name]
	if stats.Errors != 0 || len(stats.DeadLetters) != 0 || stats.Invocations != 8 {
		t.Errorf("%d attempts, %d errors, %d dead letters, want 8, 0, 0", stats.Invocations, stats.Errors, len(stats.DeadLetters))
	}
	if diff := cmp.Diff(before, w.image()); diff != "" {
		t.Errorf("something changed (-before +after):\n%s", diff)
	}
	// The rule lets no other event through.
	for _, source := range []string{"com.example", "aws.s3"} {
		got, err := w.Host.DeliverEvent([]byte(strings.Replace(string(warning(t, "i-0123456789abcdef0")), "aws.ec2", source, 1)))
		if len(got) != 0 || err != nil {
			t.Errorf("an event from %s was delivered to %v, %v", source, got, err)
		}
	}
	// And the same words about our instance do change things, or all of the above proves nothing.
	w.send(name, warning(t, w.living()[0].ID))
	if cmp.Equal(before, w.image()) {
		t.Error("a notice about our instance changed nothing")
	}
}

// send gives the function an event and waits until it is done with, retries included.
func (w *world) send(function string, event []byte) {
	w.t.Helper()
	if _, err := w.Host.InvokeFunction(w.ctx, function, lambdahost.Event, event); err != nil {
		w.t.Fatal(err)
	}
	w.settled()
}

// The three attempts take three of the five minutes that an event may be old: a minute must leave a slow machine time
// for them.
func TestAnEventThatCannotBeHandledEndsInTheDeadLetterQueue(t *testing.T) {
	w := start(t, func(o *env.Options) { o.Minute = 10 * time.Second })
	w.moveCluster("https://127.0.0.1:1")
	event := warning(t, "i-0123456789abcdef0")
	delivered, err := w.Host.DeliverEvent(event)
	if err != nil || len(delivered) != 1 || delivered[0].Failed != "" {
		t.Fatalf("delivered %v, %v", delivered, err)
	}
	w.settled()
	stats := w.Host.CurrentStats().Functions[w.FunctionName("spotinterruption")]
	if stats.Invocations != 3 || stats.Errors != 3 || len(stats.DeadLetters) != 1 || stats.DeadLetters[0].Lost != "" {
		t.Fatalf("%d attempts, %d errors, dead letters %v; want three attempts and a dead letter", stats.Invocations, stats.Errors, stats.DeadLetters)
	}
	letters := w.Cloud.QueuedMessages(stats.DeadLetters[0].QueueARN[strings.LastIndex(stats.DeadLetters[0].QueueARN, ":")+1:])
	if len(letters) != 1 {
		t.Fatalf("%d messages in the queue, want 1", len(letters))
	}
	var letter struct {
		RequestContext  struct{ Condition string }
		RequestPayload  json.RawMessage
		ResponsePayload struct{ ErrorMessage string }
	}
	if err := json.Unmarshal([]byte(letters[0]), &letter); err != nil {
		t.Fatal(err)
	}
	if letter.RequestContext.Condition != "RetriesExhausted" || !strings.Contains(letter.ResponsePayload.ErrorMessage, "nodeclaims") ||
		!strings.Contains(letter.ResponsePayload.ErrorMessage, "connection refused") {
		t.Errorf("the letter says %+v; want the call that failed", letter)
	}
	// What the queue holds can be handled once the cause is gone.
	w.moveCluster(w.Plane.ServerURL())
	w.send(w.FunctionName("spotinterruption"), letter.RequestPayload)
	if n := w.Host.CurrentStats().Functions[w.FunctionName("spotinterruption")].Errors; n != 3 {
		t.Errorf("%d errors after the letter was sent again, want no more than 3", n)
	}
}
