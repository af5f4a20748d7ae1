package whatif

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	"joiner.sh/pkg/disruption"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/lists"
	"joiner.sh/pkg/testing/scenario"
)

// Nothing is asked about what is not there, needs nothing, or nobody can help: and no answer is made up.
func TestQuestionsWithoutAnAnswer(t *testing.T) {
	for name, c := range map[string]struct {
		about  string
		change func(s *cluster.Snapshot)
	}{
		"a pod that is gone":       {"default/none-1", func(*cluster.Snapshot) {}},
		"a pod that has a node":    {"default/old-1", func(*cluster.Snapshot) {}},
		"a pod that has ended":     {"default/x-1", func(s *cluster.Snapshot) { s.Pods[1].Phase = "Succeeded" }},
		"a pod that goes":          {"default/x-1", func(s *cluster.Snapshot) { s.Pods[1].Deleting = s.Now.Add(-time.Second) }},
		"a pod nobody tried":       {"default/x-1", func(s *cluster.Snapshot) { s.Pods[1].Unscheduled = false }},
		"room to be kept free":     {"default/x-1", func(s *cluster.Snapshot) { s.Pods[1].Virtual = true }},
		"a pod that gets a node":   {"default/x-1", func(s *cluster.Snapshot) { s.Pools[0].Taints = nil }},
		"no work":                  {"", nil},
		"a node that is gone":      {"", func(s *cluster.Snapshot) { s.Nodes, s.Claims = nil, nil }},
		"a node that leaves":       {"", func(s *cluster.Snapshot) { s.Claims[0].Deleting = s.Now }},
		"a claim without its node": {"", func(s *cluster.Snapshot) { s.Nodes = nil }},
	} {
		w := scenario.Scripted(t, "type m.l cpu=2000 mem=8192 milliusd=96", "pool p\ntaint team=a:NoSchedule", "node n type=m.l zone=a pool=p",
			"pods old on=n cpu=500 mem=512", "pods x cpu=500 mem=512")
		most := Limits{}
		if c.change == nil {
			most.Work = -1
		} else {
			c.change(&w.Snapshot)
		}
		var got []Answer
		if c.about != "" || c.change == nil {
			got = append(got, ForPod(w.Snapshot, w.Market, c.about, most), ForPod(w.Snapshot, w.Market, "default/x-1", Limits{Work: -1}))
		}
		if c.about == "" {
			got = append(got, ForNode(w.Snapshot, disruption.Memory{}, w.Market, "claim-n", most))
		}
		for _, a := range got {
			if a.Questions > 0 || len(a.Changes) > 0 || a.Unasked > 0 {
				t.Errorf("%s: %+v", name, a)
			}
		}
	}
	w := scenario.Scripted(t, "type m.l cpu=2000 mem=8192 milliusd=96", "pods x cpu=500 mem=512")
	if a := ForPod(w.Snapshot, w.Market, "default/x-1", Limits{}); len(a.Changes) > 0 {
		t.Errorf("without a NodePool: %v", a.Changes)
	}
}

// A pod that nobody models for its claims gets no node by a selector that is called as one of them; what the selector
// or the node affinity itself is refused for goes with it.
func TestRefusedSelectors(t *testing.T) {
	for pod, want := range map[string][]string{
		"select gpu=true\nunmodelled ResourceClaimTemplate gpu: request g has selectors of its own": nil,
		"select gpu=true\nunmodelled node selector: the label gpu is restricted, nodes do not carry it": {
			"remove spec.nodeSelector.gpu true from Pod default/x-1"},
		"unmodelled node affinity: the label karpenter.sh/initialized is restricted, pods may not ask for it": {
			"remove spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution all terms from Pod default/x-1"},
		"unmodelled node affinity by field (metadata.name in matchFields) is not supported": {
			"remove spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution all terms from Pod default/x-1"},
	} {
		w := scenario.Scripted(t, "type m.l cpu=2000 mem=8192 milliusd=96", "pool p", "pods x cpu=500 mem=512\n"+pod)
		a := ForPod(w.Snapshot, w.Market, "default/x-1", Limits{})
		if got := lists.Of(a.Changes, func(c Change) string { return c.Edits[0].String() }); !slices.Equal(got, want) {
			t.Errorf("%s: got %q, want %q", pod, got, want)
		}
	}
}

// Huge pages are asked for in whole pages, so that a limit of them, which is the request, is cut to none.
func TestHugePagesAreDoneWithout(t *testing.T) {
	w := scenario.Scripted(t, "type m.l cpu=2000 mem=8192 milliusd=96", "pool p", "pods x cpu=500 mem=512\nresource hugepages-2Mi 104857600")
	a := ForPod(w.Snapshot, w.Market, "default/x-1", Limits{})
	want := "change spec.containers[*].resources.limits.hugepages-2Mi of Pod default/x-1 from 104857600 to 0"
	if len(a.Changes) != 1 || a.Changes[0].Edits[0].String() != want {
		t.Errorf("got %v, want %q", a.Changes, want)
	}
}

// NodePools that may launch many types make a question long, and so take of the work.
func TestManyNodePoolsAreMuchWork(t *testing.T) {
	w := scenario.Scripted(t, "type m.l cpu=2000 mem=8192 milliusd=96", "pool p\ntaint team=a:NoSchedule", "pods x cpu=500 mem=512")
	w.Snapshot.Catalog.Types = make([]instancetypes.Facts, 1200)
	w.Snapshot.Pools = slices.Repeat(w.Snapshot.Pools, 20)
	if got, want := WorkOf(w.Snapshot), 400+4+40+20*1200/40; got != want {
		t.Errorf("a question is %d, want %d", got, want)
	}
}

// What scripts read keeps its names.
func TestNamesOfTheAnswer(t *testing.T) {
	e := Edit{Kind: "Pod", Namespace: "shop", Name: "web", Field: "spec.tolerations", From: "a", To: "b", Place: "manifest"}
	got, err := json.Marshal([]any{Answer{Changes: []Change{{[]Edit{e}, ChangeEffect{Brings: "room", AddsUSD: 0.1, Others: []string{"shop/a"}}}},
		Tried: []Edit{e}, Unasked: 1, Questions: 2, Work: 3}, Protection{Guard: "g", Nodes: 1, DailyUSD: 2, Together: []string{"h"}}})
	edit := `{"kind":"Pod","namespace":"shop","name":"web","field":"spec.tolerations","from":"a","to":"b","place":"manifest"}`
	want := `[{"changes":[{"edits":[` + edit + `],"brings":"room","addsUSD":0.1,"others":["shop/a"]}],"tried":[` + edit + `],"unasked":1,"questions":2,"work":3},` +
		`{"guard":"g","nodes":1,"dailyUSD":2,"together":["h"]}]`
	if err != nil || string(got) != want {
		t.Errorf("%v\n%s\nwant\n%s", err, got, want)
	}
}

// A label may have an empty value: it is one more value to select, to give and to take away, and no edit changes
// nothing.
func TestLabelsWithAnEmptyValue(t *testing.T) {
	w := scenario.Scripted(t, "type m.l cpu=2000 mem=8192 milliusd=96", "pool p\nlabel team=", "pool q\nlabel rack=one\ntaint a:NoSchedule", "pods x cpu=500 mem=512\nselect rack=")
	said, patches := []string{}, []string{}
	for _, c := range ForPod(w.Snapshot, w.Market, "default/x-1", Limits{}).Changes {
		p, _ := c.Edits[0].MergePatch()
		said, patches = append(said, lists.Of(c.Edits, Edit.String)...), append(patches, p)
	}
	want := []string{`add spec.template.metadata.labels.rack "" to NodePool p`, `remove spec.nodeSelector.rack "" from Pod default/x-1`}
	wantPatches := []string{`{"spec":{"template":{"metadata":{"labels":{"rack":""}}}}}`, `{"spec":{"nodeSelector":{"rack":null}}}`}
	if !slices.Equal(said, want) || !slices.Equal(patches, wantPatches) {
		t.Errorf("%q\n%q", said, patches)
	}
	for _, f := range podFamilies(w.Snapshot, waitingAlike(w.Snapshot, 0)) {
		if e := f.widest(); f.count > 0 && e.From == e.To {
			t.Errorf("changes nothing: %+v", e)
		}
	}
}
