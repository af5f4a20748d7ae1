package e2e_test

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"joiner.sh/infra/local/env"
	"joiner.sh/pkg/testing/shortrun"
)

func TestAClassThatBecomesUnusableTakesNobodyElseAlong(t *testing.T) {
	w := start(t)
	image := w.Cloud.PutImage("our-own", "x86_64", nil)
	w.apply(text(pool("good")), class{name: "good"})
	w.tick("refresh")
	team := w.subnetOf("good")
	w.Cloud.TagSubnet(team, "team", "a")
	w.apply(
		text(pool("no-image")), class{name: "no-image", images: "amiFamily: AL2023\n  amiSelectorTerms: [{id: " + image + "}]"},
		text(pool("no-subnet")), class{name: "no-subnet", subnets: `[{tags: {team: a}}]`})
	w.tick("refresh")
	for _, name := range []string{"good", "no-image", "no-subnet"} {
		if got := w.condition(env.NodeClasses(), name, "Ready"); got["status"] != "True" {
			t.Fatalf("class %s: Ready is %v to begin with", name, got)
		}
	}

	w.Cloud.RemoveImage(image)
	w.Cloud.TagSubnet(team, "team", "b")
	w.tick("refresh")
	for name, says := range map[string][2]string{"no-image": {"AMIsReady", "AMINotFound"}, "no-subnet": {"SubnetsReady", "SubnetsNotFound"}} {
		if got := w.condition(env.NodeClasses(), name, says[0]); got["status"] != "False" || got["reason"] != says[1] || got["message"] == "" {
			t.Errorf("class %s: %s is %v, want False with reason %s and a message", name, says[0], got, says[1])
		}
		got := w.condition(env.NodeClasses(), name, "Ready")
		if got["status"] != "False" || !strings.Contains(fmt.Sprint(got["message"]), says[0]) {
			t.Errorf("class %s: Ready is %v, want False and %s named", name, got, says[0])
		}
		if got := w.condition(env.NodePools(), name, "Ready"); got["status"] != "False" {
			t.Errorf("pool %s: Ready is %v, want False", name, got)
		}
	}
	if got := w.condition(env.NodePools(), "good", "Ready"); got["status"] != "True" {
		t.Errorf("pool good: Ready is %v", got)
	}

	for _, name := range []string{"good", "no-image", "no-subnet"} {
		w.apply(deployment{name: "on-" + name, replicas: 1, spec: "\n      nodeSelector: {karpenter.sh/nodepool: " + name + "}"})
		w.exist("on-"+name, 1)
	}
	w.serve("on-good", 1)
	w.started(1)
	for _, name := range []string{"no-image", "no-subnet"} {
		w.until("the pod that needs pool "+name+" is told of that pool and of what ails its class", func() (string, bool) {
			message := w.told("on-" + name)
			return message, strings.Contains(message, "pool "+name+": ") && strings.Contains(message, "EC2NodeClass "+name)
		}, "provision")
		if n := w.up("on-" + name); n != 0 {
			t.Errorf("%d pods of pool %s are up", n, name)
		}
	}

	w.Cloud.TagSubnet(team, "team", "a") // and back
	w.tick("refresh")
	w.serve("on-no-subnet", 1)
	w.started(2)
}

func TestAPodThatNothingFitsIsToldWhyByEveryPool(t *testing.T) {
	shortrun.Skip(t)
	w := start(t)
	w.apply(text(pool("small", `{key: karpenter.k8s.aws/instance-cpu, operator: Lt, values: ["5"]}`)), class{name: "small"},
		text(pool("zone-b", `{key: topology.kubernetes.io/zone, operator: In, values: [us-west-2b]}`)), class{name: "zone-b"})
	w.tick("refresh")
	for app, c := range map[string]struct {
		pods  deployment
		words []string
	}{
		"giant":    {deployment{cpu: "100000"}, []string{"pool small: ", "pool zone-b: ", "cpu"}},
		"nowhere":  {deployment{spec: "\n      nodeSelector: {topology.kubernetes.io/zone: us-west-2c, karpenter.k8s.aws/instance-cpu: \"96\"}"}, []string{"pool small: ", "pool zone-b: ", "us-west-2c"}},
		"unlabled": {deployment{spec: "\n      nodeSelector: {disk: ssd}"}, []string{"pools zone-b, small: ", "disk"}},
		"choosy":   {deployment{spec: "\n      nodeSelector: {kubernetes.io/hostname: ip-10-0-0-1}"}, []string{"kubernetes.io/hostname, which no new node can promise"}},
	} {
		c.pods.name, c.pods.replicas = app, 1
		w.apply(c.pods)
		w.exist(app, 1)
		w.until(app+" is told", func() (string, bool) { m := w.told(app); return m, m != "" }, "provision")
		message := w.told(app)
		for _, word := range c.words {
			if !strings.Contains(message, word) {
				t.Errorf("pod %s is told %q, want %q in it", app, message, word)
			}
		}
	}
	w.tick("provision", "lifecycle")
	if n := len(w.claims()); n != 0 {
		t.Errorf("%d NodeClaims for pods that fit nowhere", n)
	}
	w.started(0)
	// The pools are not the reason.
	w.run(deployment{name: "fits", replicas: 1})
}

// subnetOf is the first subnet of a class.
func (w *world) subnetOf(class string) string {
	w.t.Helper()
	obj, err := w.Kube.Dynamic.Resource(env.NodeClasses()).Get(w.ctx, class, metav1.GetOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	subnets, _, err := unstructured.NestedSlice(obj.Object, "status", "subnets")
	if err != nil || len(subnets) == 0 {
		w.t.Fatalf("class %s has no subnets, %v", class, err)
	}
	id, _, err := unstructured.NestedString(subnets[0].(map[string]any), "id")
	if err != nil {
		w.t.Fatal(err)
	}
	return id
}
