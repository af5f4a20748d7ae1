package e2e_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"joiner.sh/infra/local/env"
	"joiner.sh/pkg/testing/shortrun"
)

const (
	setupType = "Custom::JoinerSetup"
	webhook   = "joiner-push"
)

// push lets the API server announce, and whoever is woken stay as long as there is work. No schedule helps.
func push(o *env.Options) {
	o.Push, o.Minute, o.Env["WATCH_DURATION"] = true, time.Minute, "50s"
}

// called is how often the API server has called the function.
func (w *world) called() int {
	return w.Host.CurrentStats().Functions[w.FunctionName("wake")].Invocations
}

// insist waits for what a call of the API server leads to, and has it call again as long as nothing comes of it: the
// API server waits for a second and then goes on, and what a busy machine has not begun by then is left to the
// schedule.
func (w *world) insist(what string, again func(), look func() (saw string, ok bool)) {
	w.t.Helper()
	called := time.Now()
	w.until(what, func() (string, bool) {
		saw, ok := look()
		if !ok && time.Since(called) > lost {
			again()
			called = time.Now()
		}
		return saw, ok
	})
}

// lost is how long a call of the API server may lead to nothing until it counts as lost.
const lost = 15 * time.Second

// understood waits until the API server has taken an answer to a call of the webhook.
func (w *world) understood(webhook string, again func()) {
	w.t.Helper()
	w.insist("the API server takes an answer to "+webhook, again, func() (saw string, ok bool) {
		raw, err := w.Kube.CoreV1().RESTClient().Get().AbsPath("/metrics").DoRaw(w.ctx)
		if err != nil {
			w.t.Fatal(err)
		}
		for line := range strings.Lines(string(raw)) {
			if strings.HasPrefix(line, "apiserver_admission_webhook_request_total{") && strings.Contains(line, fmt.Sprintf("name=%q", webhook)) {
				saw += line
				ok = ok || strings.Contains(line, `code="200"`) && strings.Contains(line, `rejected="false"`)
			}
		}
		return saw, ok
	})
}

// failedScheduling makes an event as the scheduler does about a pod that it finds no node for.
func failedScheduling(ctx context.Context, k *env.Kube, reason string, o metav1.CreateOptions) error {
	_, err := k.CoreV1().Events("default").Create(ctx, &corev1.Event{ObjectMeta: metav1.ObjectMeta{GenerateName: "web-"},
		InvolvedObject: corev1.ObjectReference{Kind: "Pod", Namespace: "default", Name: "web"},
		Reason:         reason, Type: "Warning", Message: "0/0 nodes are available"}, o)
	return err
}

// announceEvent has the API server call about an event.
func (w *world) announceEvent() {
	w.t.Helper()
	if err := failedScheduling(w.ctx, w.Kube, "FailedScheduling", metav1.CreateOptions{}); err != nil {
		w.t.Fatal(err)
	}
}

// announceDeletion has the API server call about the deletion of a node, which is nobody's.
func (w *world) announceDeletion() {
	w.t.Helper()
	n, err := w.Kube.CoreV1().Nodes().Create(w.ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{GenerateName: "nobodys-"}}, metav1.CreateOptions{})
	if err == nil {
		err = w.Kube.CoreV1().Nodes().Delete(w.ctx, n.Name, metav1.DeleteOptions{})
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

// lone makes a pod that shares its node with no other lone one, and says when.
func (w *world) lone(name, cpu string) time.Time {
	w.t.Helper()
	began := time.Now()
	_, err := w.Kube.CoreV1().Pods("default").Create(w.ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"lone": "true"}},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "pause",
			Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse(cpu)}}}},
			Affinity: &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
				TopologyKey: "kubernetes.io/hostname", LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"lone": "true"}}}}}}}}, metav1.CreateOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	return began
}

// fleets is when CreateFleet was called, for real.
func (w *world) fleets() (at []time.Time) {
	for _, c := range w.Cloud.LoggedCalls() {
		if c.Service == "ec2" && c.Action == "CreateFleet" && !c.DryRun {
			at = append(at, c.Time)
		}
	}
	return at
}

// The schedules are paused: whatever happens, the webhook began it.
func TestPushBringsNodesAndTakesThemAway(t *testing.T) {
	w := start(t, push)
	w.ready()
	w.lone("web", "500m")
	w.insist("the pod runs on a node of ours", w.announceEvent, func() (string, bool) {
		p, err := w.Kube.CoreV1().Pods("default").Get(w.ctx, "web", metav1.GetOptions{})
		return fmt.Sprint(p.Status.Phase, err), err == nil && p.Status.Phase == corev1.PodRunning
	})
	w.settled()

	// The pod goes too, or its node would be replaced first.
	node := w.nodes()[0].Name
	if err := w.Kube.CoreV1().Pods("default").Delete(w.ctx, "web", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	before := w.called()
	if err := w.Kube.CoreV1().Nodes().Delete(w.ctx, node, metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}}); err != nil {
		t.Fatal(err)
	}
	if n := w.called(); n != before {
		t.Errorf("%d calls for a dry run, want none", n-before)
	}
	remove := func() {
		if err := w.Kube.CoreV1().Nodes().Delete(w.ctx, node, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
			t.Fatal(err)
		}
	}
	remove()
	w.insist("the deletion of the node is announced", remove, func() (string, bool) { return "no call", w.called() > before })
	w.insist("the node's claim and instance are gone", w.announceDeletion, func() (string, bool) {
		return fmt.Sprint(len(w.claims()), " claims, ", len(w.living()), " instances"), len(w.claims()) == 0 && len(w.living()) == 0
	})
	w.understood("pods.push.joiner.sh", w.announceEvent)
	w.understood("nodes.push.joiner.sh", w.announceDeletion)
}

// Provision says FailedScheduling too, of a pod that no pool can hold: that must not wake it again.
func TestPushHearsOthersAndNotItself(t *testing.T) {
	w := start(t, push)
	core := func(k *env.Kube, reason string, o metav1.CreateOptions) error {
		return failedScheduling(w.ctx, k, reason, o)
	}
	config := w.Plane.RESTConfig()
	config.Impersonate = rest.ImpersonationConfig{UserName: "somebody", Groups: []string{"joiner-provision"}}
	ours, err := env.NewKube(config)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		what string
		do   func() error
		want int
	}{
		{"an event of the scheduler, core/v1", func() error { return core(w.Kube, "FailedScheduling", metav1.CreateOptions{}) }, 1},
		{"an event of the scheduler, events.k8s.io/v1", func() error {
			_, err := w.Kube.EventsV1().Events("default").Create(w.ctx, &eventsv1.Event{ObjectMeta: metav1.ObjectMeta{GenerateName: "web-"},
				Regarding: corev1.ObjectReference{Kind: "Pod", Namespace: "default", Name: "web"},
				Reason:    "FailedScheduling", Action: "Scheduling", Type: "Warning", EventTime: metav1.NowMicro(),
				ReportingController: "default-scheduler", ReportingInstance: "default-scheduler-1"}, metav1.CreateOptions{})
			return err
		}, 1},
		{"another event", func() error { return core(w.Kube, "FailedMount", metav1.CreateOptions{}) }, 0},
		{"a dry run", func() error {
			return core(w.Kube, "FailedScheduling", metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		}, 0},
		{"an event of our own", func() error { return core(ours, "FailedScheduling", metav1.CreateOptions{}) }, 0},
	} {
		before, times := w.called(), 0
		do := func() {
			times++
			if err := c.do(); err != nil {
				t.Fatalf("%s: %v", c.what, err)
			}
		}
		do()
		w.insist(c.what, do, func() (string, bool) {
			n := w.called() - before
			return fmt.Sprint(n, " calls"), n >= c.want
		})
		if n := w.called() - before; n > c.want*times {
			t.Errorf("%s: %d calls for %d times, want %d for each", c.what, n, times, c.want)
		}
	}
	w.understood("pods.push.joiner.sh", w.announceEvent)
}

// Whoever has the address without its path can do nothing but be refused, ten times a second.
func TestPushIsFloodedInVain(t *testing.T) {
	shortrun.Skip(t)
	w := start(t, push)
	address, ca := w.Host.URL(w.FunctionName("wake"))
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca)
	c := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}}}
	w.Cloud.ForgetCalls()
	answers := map[int]int{}
	for _, path := range slices.Repeat([]string{"", "pods", strings.Repeat("a", 48) + "/pods"}, 20) {
		res, err := c.Post(address+path, "application/json", bytes.NewReader([]byte(`{"request":{"uid":"1"}}`)))
		if err != nil {
			t.Fatal(err)
		}
		_ = res.Body.Close()
		answers[res.StatusCode]++
	}
	if answers[404] == 0 || answers[404]+answers[429] != 60 {
		t.Errorf("answers %v, want 404 and 429 alone", answers)
	}
	if calls := w.Cloud.CallCounts(); len(calls) != 0 {
		t.Errorf("calls of AWS: %v, want none", calls)
	}
	if n := w.Host.CurrentStats().Functions[w.FunctionName("provision")].Invocations; n != 0 {
		t.Errorf("provision was woken %d times", n)
	}
}

func TestPushComesAndGoes(t *testing.T) {
	shortrun.Skip(t)
	w := start(t, push)
	there := func() bool {
		_, err := w.Kube.AdmissionregistrationV1().ValidatingWebhookConfigurations().Get(w.ctx, webhook, metav1.GetOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			t.Fatal(err)
		}
		return err == nil
	}
	for _, step := range []struct {
		request string
		change  map[string]any
		want    bool
	}{
		{"Update", map[string]any{"PushURL": ""}, false},
		{"Update", nil, true},
		{"Update", map[string]any{"PushURL": "", "PushSecret": ""}, false},
		{"Update", nil, true},
		{"Delete", nil, false},
	} {
		if a, err := w.RequestResource(w.ctx, step.request, setupType, step.change); err != nil || a.Status != "SUCCESS" {
			t.Fatalf("%s: %+v, %v", step.request, a, err)
		}
		if got := there(); got != step.want {
			t.Errorf("after %s with %v the webhook is there: %t, want %t", step.request, step.change, got, step.want)
		}
	}
}

// Without its webhook, as when the API server cannot reach the function, the schedule does the work and says so.
func TestTheScheduleSaysWhatPushMissed(t *testing.T) {
	shortrun.Skip(t)
	w := start(t, push)
	if a, err := w.RequestResource(w.ctx, "Update", setupType, map[string]any{"PushURL": ""}); err != nil || a.Status != "SUCCESS" {
		t.Fatalf("%+v, %v", a, err)
	}
	w.ready()
	tick := func() {
		t.Helper()
		if res := w.invoke("provision", []byte(`{"source":"aws.events","detail-type":"Scheduled Event","detail":{}}`)); res.FunctionError != "" {
			t.Fatal(string(res.Payload))
		}
	}
	tick() // from now on the process knows when somebody looked
	w.lone("web", "500m")
	w.until("the scheduler found no node", func() (string, bool) {
		p, err := w.Kube.CoreV1().Pods("default").Get(w.ctx, "web", metav1.GetOptions{})
		return fmt.Sprint(err), err == nil && len(p.Status.Conditions) > 0 && time.Since(p.CreationTimestamp.Time) > 4*time.Second
	})
	tick()
	if said := w.logs.said(); !strings.Contains(said, `"joiner_push_missed_total":0`) || !strings.Contains(said, `"joiner_push_missed_total":1`) {
		t.Error("the first tick should have counted none and the second one")
	}
	if n := w.called(); n != 0 {
		t.Errorf("%d calls without a webhook", n)
	}
}

// TestMeasureHowLongAPodWaits measures from pod to CreateFleet, with push, with a watch that is always on, and with the
// schedule alone, whose minute is ten seconds here. Who is woken by push looks for two seconds, which is how long it
// may stay.
func TestMeasureHowLongAPodWaits(t *testing.T) {
	if !*measure {
		t.Skip("it takes minutes: -measure")
	}
	const pods, minute = 6, 10 * time.Second
	modes := []struct {
		name   string
		change func(o *env.Options)
		pause  func(i int) time.Duration // between two pods
	}{
		{"push", func(o *env.Options) { o.Push, o.Env["WATCH_DURATION"] = true, "2s" }, func(int) time.Duration { return 5 * time.Second }},
		{"watch", func(o *env.Options) {
			o.Paused, o.Minute, o.Env["WATCH_DURATION"], o.Env["TRIGGER"] = false, time.Minute, "50s", "watch"
		}, func(int) time.Duration { return 3 * time.Second }},
		{"schedule", func(o *env.Options) { o.Paused, o.Minute, o.Env["WATCH_DURATION"] = false, minute, "0s" },
			// another moment of the minute for each
			func(i int) time.Duration { return minute + minute*time.Duration(i)/pods }},
	}
	for _, m := range modes {
		t.Run(m.name, func(t *testing.T) {
			// which is the same in all of them
			w := start(t, m.change, func(o *env.Options) { o.Env["BATCH_IDLE_DURATION"] = "0s" })
			w.ready()
			if m.name == "watch" {
				if _, err := w.Host.InvokeFunction(w.ctx, w.FunctionName("provision"), "Event", nil); err != nil {
					t.Fatal(err)
				}
			}
			var took []time.Duration
			for n := range pods {
				timer := time.NewTimer(m.pause(n))
				<-timer.C
				began := w.lone(fmt.Sprintf("pod-%d", n), "500m")
				// as a schedule would, late
				w.insist("CreateFleet is called", func() { w.tick("provision") }, func() (string, bool) {
					at := w.fleets()
					return fmt.Sprint(len(at), " calls"), len(at) > n
				})
				took = append(took, w.fleets()[n].Sub(began))
			}
			slices.Sort(took)
			median := (took[pods/2-1] + took[pods/2]) / 2
			t.Logf("%s: median %s of %v", m.name, median.Round(time.Millisecond), took)
		})
	}
}
