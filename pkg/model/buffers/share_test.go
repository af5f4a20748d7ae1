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
