package e2e_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"joiner.sh/infra/local/awsemulator"
	"joiner.sh/infra/local/cloudtest"
	"joiner.sh/infra/local/env"
	"joiner.sh/infra/local/kubelet"
	"joiner.sh/pkg/install"
	"joiner.sh/pkg/testing/shortrun"
)

func capacityBuffers() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "autoscaling.x-k8s.io", Version: "v1beta1", Resource: "capacitybuffers"}
}

// readyForBuffers is ready in a cluster that knows CapacityBuffers, whose definition another project installs.
func (w *world) readyForBuffers() {
	w.t.Helper()
	all, err := install.Borrowed()
	if err != nil {
		w.t.Fatal(err)
	}
	for _, o := range all {
		definition, err := json.Marshal(o)
		if err != nil {
			w.t.Fatal(err)
		}
		w.apply(text(definition))
	}
	w.ready()
}

// buffer is the text of a CapacityBuffer for one pod of 500m.
func buffer(name, strategy string) text { return text(cloudtest.CapacityBuffer(name, strategy)) }

// bufferSays is status, reason and message of a condition of the buffer.
func (w *world) bufferSays(name, kind string) string {
	w.t.Helper()
	b, err := w.Kube.Dynamic.Resource(capacityBuffers()).Namespace("default").Get(w.ctx, name, metav1.GetOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	k := status(*b, kind)
	return fmt.Sprint(k["status"], " ", k["reason"], ": ", k["message"])
}

// waiting are the claims whose instances are stopped.
func (w *world) waiting() []unstructured.Unstructured {
	w.t.Helper()
	return slices.DeleteFunc(w.claims(), func(c unstructured.Unstructured) bool { return status(c, "Stopped")["status"] != "True" })
}

// full waits until one claim waits, and so many others have a node in service.
func (w *world) full(others int) unstructured.Unstructured {
	w.t.Helper()
	var one unstructured.Unstructured
	w.until("the buffer is full", func() (string, bool) {
		waiting, all, serving := w.waiting(), w.claims(), 0
		for _, c := range all {
			if status(c, "Initialized")["status"] == "True" {
				serving++
			}
		}
		if len(waiting) > 0 {
			one = waiting[0]
		}
		return fmt.Sprintf("%d of %d claims wait, %d serve, nodes %d", len(waiting), len(all), serving, len(w.nodes())),
			len(waiting) == 1 && len(all) == 1+others && serving == others && len(w.nodes()) == others
	}, "provision", "lifecycle")
	w.settled()
	return one
}

// capacityOf says that the offering of the instance is unavailable.
func capacityOf(w *world, id string) (c awsemulator.Capacity) {
	for _, i := range w.Cloud.DescribedInstances() {
		if i.ID == id {
			c = awsemulator.Capacity{CapacityType: i.CapacityType, InstanceType: i.Type, Zone: i.Zone}
		}
	}
	return c
}

func instanceOfClaim(c unstructured.Unstructured) string { return c.GetLabels()["joiner.sh/instance"] }

// stateOfInstance is EC2's word, empty for an instance that it does not know.
func (w *world) stateOfInstance(id string) string {
	for _, i := range w.Cloud.DescribedInstances() {
		if i.ID == id {
			return i.State
		}
	}
	return ""
}

// A buffer of stopped capacity has a node booted and stopped. Pods that wait have it started, by its kubelet it is a
// node anew, and the buffer is filled again. What somebody else does to a stopped instance ends its claim.
func TestStoppedCapacity(t *testing.T) {
	w := start(t, func(o *env.Options) { o.Lose = nil })
	w.readyForBuffers()
	w.apply(buffer("spare", "joiner.sh/stopped-capacity"))
	kept := w.full(0)
	id := instanceOfClaim(kept)
	if s := w.stateOfInstance(id); s != "stopped" {
		t.Errorf("the instance that waits is %s", s)
	}
	if n, _, _ := unstructured.NestedString(kept.Object, "status", "nodeName"); n != "" {
		t.Errorf("the claim names node %s, which is gone", n)
	}
	w.tick("provision")
	if got := w.bufferSays("spare", "Provisioning"); got != "True FitsExistingCapacity: " {
		t.Errorf("the buffer says %s", got)
	}

	launched := len(w.Cloud.DescribedInstances())
	w.apply(deployment{name: "web", replicas: 1})
	w.exist("web", 1)
	began := time.Now()
	w.tick("provision")
	if s, n := w.stateOfInstance(id), len(w.Cloud.DescribedInstances()); n != launched || s == "stopped" {
		t.Errorf("%d instances were launched, and the one that waited is %s", n-launched, s)
	}
	w.until("the pod is up on it", func() (string, bool) { n := w.up("web"); return fmt.Sprint(n), n == 1 }, "lifecycle")
	t.Logf("up %s after the pass began", time.Since(began).Round(time.Millisecond))
	if pods, nodes := w.pods("web"), w.nodes(); pods[0].Spec.NodeName == "" || nodes[0].Spec.Unschedulable || len(nodes[0].Spec.Taints) > 0 {
		t.Errorf("pod on %q, node cordoned %t with taints %v", pods[0].Spec.NodeName, nodes[0].Spec.Unschedulable, nodes[0].Spec.Taints)
	}

	other := w.full(1)
	if other.GetName() == kept.GetName() {
		t.Error("the claim that runs waits as well")
	}
	for name, change := range map[string]func(id string) error{
		"terminated": func(id string) error { return w.Cloud.KillInstance(id) },
		"started":    func(id string) error { return w.Cloud.StartStopped(id) },
		"changed":    func(id string) error { return w.Cloud.ChangeType(id, "m5.24xlarge") },
	} {
		was := w.full(1)
		if name == "started" { // what EC2 lists may be from before the stop for so long
			w.age(was.GetName(), "Stopped", time.Hour)
		}
		if err := change(instanceOfClaim(was)); err != nil {
			t.Fatal(err)
		}
		w.until("the claim of the instance that was "+name+" is gone", func() (string, bool) {
			left := slices.ContainsFunc(w.claims(), func(c unstructured.Unstructured) bool { return c.GetName() == was.GetName() })
			return "it is there", !left
		}, "lifecycle")
	}
	w.full(1)
	if w.up("web") != 1 {
		t.Error("the pod is down")
	}
	if err := w.Kube.Dynamic.Resource(capacityBuffers()).Namespace("default").Delete(w.ctx, "spare", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	w.until("the node of the pod is all that is left", func() (string, bool) {
		n := len(w.claims())
		return fmt.Sprintf("%d claims", n), n == 1 && len(w.living()) == 1
	}, "provision", "lifecycle")
}

// EC2 has no capacity for the start: the pass launches, and the instance stays stopped.
func TestAStoppedInstanceThatCannotStart(t *testing.T) {
	shortrun.Skip(t)
	w := start(t)
	w.readyForBuffers()
	w.apply(buffer("spare", "joiner.sh/stopped-capacity"), buffer("odd", "joiner.sh/other"))
	kept := w.full(0)
	w.tick("refresh")
	if got := w.bufferSays("odd", "ReadyForProvisioning"); got != `False UnknownStrategy: spec.provisioningStrategy "joiner.sh/other" is none of buffer.x-k8s.io/active-capacity and joiner.sh/stopped-capacity` {
		t.Errorf("the buffer of another strategy says %s", got)
	}
	w.Cloud.LimitCapacity(capacityOf(w, instanceOfClaim(kept)))
	w.apply(deployment{name: "web", replicas: 1})
	w.exist("web", 1)
	launched := len(w.Cloud.DescribedInstances())
	w.tick("provision")
	if s, n := w.stateOfInstance(instanceOfClaim(kept)), len(w.Cloud.DescribedInstances()); n != launched+1 || s != "stopped" {
		t.Errorf("%d instances were launched in the pass that could not start one, which is %s", n-launched, s)
	}
	w.until("the pod is up", func() (string, bool) { n := w.up("web"); return fmt.Sprint(n), n == 1 }, "lifecycle")
}

// A kubelet whose serving certificate ran out while its instance was stopped asks for another one. Joiner does nothing
// for that, and nothing waits for it: the node is initialized and the pod runs, and only its logs and exec have to wait
// for the approval.
func TestAStoppedNodeWhoseServingCertificateRanOut(t *testing.T) {
	shortrun.Skip(t)
	w := start(t, func(o *env.Options) { o.ServingFor = 45 * 24 * time.Hour })
	w.readyForBuffers()
	w.apply(buffer("spare", "joiner.sh/stopped-capacity"))
	id := instanceOfClaim(w.full(0))
	if w.Kubelets.ServingCertificate(id) == nil {
		t.Fatal("the node that was warmed had no serving certificate")
	}
	w.Kubelets.AgeServingCertificate(id, 46*24*time.Hour)
	w.Kubelets.SetBehavior(func(i kubelet.Instance) kubelet.Behavior { return kubelet.Behavior{Unapproved: i.ID == id} })
	w.apply(deployment{name: "web", replicas: 1})
	w.exist("web", 1)
	w.tick("provision")
	w.until("the pod is up on it", func() (string, bool) { n := w.up("web"); return fmt.Sprint(n), n == 1 }, "lifecycle")
	w.until("the claim is initialized", func() (string, bool) {
		ready := slices.ContainsFunc(w.claims(), func(c unstructured.Unstructured) bool {
			return instanceOfClaim(c) == id && status(c, "Initialized")["status"] == "True"
		})
		return fmt.Sprintf("%d claims", len(w.claims())), ready
	}, "lifecycle")
	if w.Kubelets.ServingCertificate(id) != nil {
		t.Error("its kubelet has a serving certificate that nobody approved")
	}
	requests := w.Kube.CertificatesV1().CertificateSigningRequests()
	all, err := requests.List(w.ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	user, waiting := "system:node:"+w.pods("web")[0].Spec.NodeName, 0
	for _, r := range all.Items {
		if r.Spec.Username != user || len(r.Status.Conditions) > 0 {
			continue
		}
		waiting++
		r.Status.Conditions = append(r.Status.Conditions, certificatesv1.CertificateSigningRequestCondition{Type: certificatesv1.CertificateApproved, Status: "True", Reason: "ByHand"})
		if _, err := requests.UpdateApproval(w.ctx, r.Name, &r, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	if waiting != 1 {
		t.Errorf("%d requests of %s wait for approval, want 1", waiting, user)
	}
	w.until("its kubelet has a serving certificate", func() (string, bool) { return "it has none", w.Kubelets.ServingCertificate(id) != nil })
}

// TestMeasureStoppedCapacity measures how long a pod waits from the scheduler's verdict until it runs: for a launch
// that takes so long until the instance runs, and for a stopped node whose instance takes ten seconds.
func TestMeasureStoppedCapacity(t *testing.T) {
	if !*measure {
		t.Skip("it takes minutes: -measure")
	}
	for _, launch := range []time.Duration{10 * time.Second, 30 * time.Second, time.Minute} {
		t.Run(launch.String(), func(t *testing.T) {
			w := start(t, func(o *env.Options) { o.Lose, o.PendingFor, o.StartFor = nil, launch, 10*time.Second })
			w.readyForBuffers()
			wait := func(app string) time.Duration {
				w.apply(deployment{name: app, replicas: 1, alone: true})
				w.exist(app, 1)
				began := time.Now()
				w.tick("provision")
				w.until(app+" is up", func() (string, bool) { n := w.up(app); return fmt.Sprint(n), n == 1 }, "lifecycle")
				return time.Since(began).Round(100 * time.Millisecond)
			}
			launched := wait("launched")
			w.apply(buffer("spare", "joiner.sh/stopped-capacity"))
			w.full(1)
			t.Logf("launch delay %s: a pod waits %s for a launch and %s for a stopped node", launch, launched, wait("started"))
		})
	}
}
