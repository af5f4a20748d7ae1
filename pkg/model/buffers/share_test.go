package buffers_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"joiner.sh/pkg/model/buffers"
)

// All buffers together stand for 10,000 pods. A namespace that wants little gets it, however much another wants in
// however many buffers.
func TestBuffersShareWhatTheyMayStandFor(t *testing.T) {
	var all []buffers.Buffer
	add := func(ns, name, replicas string) {
		b := given(t, "{podTemplateRef: {name: t}, replicas: "+replicas+"}", 0)
		b.Object.Namespace, b.Object.Name = ns, name
		all = append(all, b)
	}
	for i := range 40 {
		add("evil", fmt.Sprintf("b%02d", i), "2147483647")
	}
	add("shop", "small", "300")
	add("shop", "large", "9000")
	add("blog", "web", "50")
	buffers.ShareOut(all)
	count := map[string]int{}
	for _, p := range buffers.VirtualPods(all) {
		count[p.Namespace]++
	}
	if d := cmp.Diff(map[string]int{"evil": 4975, "shop": 4975, "blog": 50}, count); d != "" {
		t.Errorf("virtual pods (-want +got):\n%s", d)
	}
	for i, want := range map[int]string{
		0:  "it stands for 2147483647 pods, of which 124 are kept room for: all buffers together may stand for 10000, shared out by namespace",
		40: "", 42: "",
		41: "it stands for 9000 pods, of which 4675 are kept room for: all buffers together may stand for 10000, shared out by namespace",
	} {
		buffers.UpdateStatus(all[i], nil, noon)
		if got := all[i].Object.Status.Conditions[0]; got.Message != want || got.Status != "True" {
			t.Errorf("%s/%s: %s %q, want %q", all[i].Object.Namespace, all[i].Object.Name, got.Status, got.Message, want)
		}
	}
}

// What buffers name is read of 500 at most, of each namespace of those that are first by name. The others say so.
func TestBuffersShareWhatIsReadOfThem(t *testing.T) {
	var all []buffers.Buffer
	for i := range 1000 {
		b := given(t, "{podTemplateRef: {name: t}, replicas: 1}", 0)
		b.Object.Namespace, b.Object.Name = "evil", fmt.Sprintf("b%03d", 999-i)
		all = append(all, b)
	}
	web := given(t, "{podTemplateRef: {name: t}, replicas: 1}", 0)
	web.Object.Namespace = "shop"
	all = append(all, web)
	read, count := buffers.ShareReads(all), map[string]int{}
	for i, yes := range read {
		if yes {
			count[all[i].Object.Namespace]++
		}
	}
	if d := cmp.Diff(map[string]int{"evil": 499, "shop": 1}, count); d != "" || !read[999] || read[0] {
		t.Errorf("the first by name is read: %t, the last: %t (-want +got):\n%s", read[999], read[0], d)
	}
	buffers.UpdateStatus(all[0], nil, noon)
	want := "namespace evil has 1000 buffers, of which the first 499 count: all together may be 500, shared out by namespace"
	if got := all[0].Object.Status.Conditions[0]; got.Message != want || got.Status != "False" {
		t.Errorf("%s %q, want %q", got.Status, got.Message, want)
	}
	if n := len(buffers.VirtualPods(all)); n != 500 {
		t.Errorf("%d virtual pods, want 500", n)
	}
}
