package search_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"joiner.sh/pkg/testing/scenario"
)

// Pods that were evicted and come again under other names have the places on new nodes that their forerunners had: one
// pass has launched what all of them need, and the next launches nothing more.
func TestEvictedPodsComeToTheNodesOfTheirForerunners(t *testing.T) {
	t.Parallel()
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 1))
		lines := []string{"type m.l cpu=8000 mem=32768 milliusd=400 spot=120", "type m.m cpu=4000 mem=16384 milliusd=210 spot=65", "pool p"}
		for i := range 30 {
			lines = append(lines, fmt.Sprintf("pods d%d n=%d cpu=%d mem=%d", i, 1+rng.IntN(12), 100+rng.IntN(1900), 100+rng.IntN(6000)))
		}
		w := scenario.Scripted(t, lines...)
		p := decide(w)
		after := w.Launched(p)
		for i := range after.Snapshot.Pods {
			name := &after.Snapshot.Pods[i].Name
			*name = (*name)[:strings.LastIndexByte(*name, '-')+1] + fmt.Sprint("x", i)
		}
		again := decide(after)
		if len(again.Launches) > 0 || len(again.Unplaced) > 0 {
			t.Errorf("seed %d: %d nodes more, and %d pods without a place", seed, len(again.Launches), len(again.Unplaced))
		}
	}
}

// A place goes to a pod of the same controller that has none, where the one that it was for waits no more. Pods are
// tried on the other claim first as a rule.
func TestOnlySuccessorsHaveThePlacesOfOthers(t *testing.T) {
	claims := []string{"type m.l cpu=4000 mem=16384 milliusd=200", "type m.s cpu=2000 mem=8192 milliusd=100", "pool p",
		"claim c0 pool=p type=m.l zone=a"}
	for _, c := range []struct {
		name, claim, pods string
		want              string
	}{
		{"it came in the stead of another", "type=m.l nominated=(default/web-old)", "pods web n=1 cpu=1000 mem=100", "web-1 c1"},
		{"the other waits too", "type=m.l nominated=(default/web-2)", "pods web n=2 cpu=1000 mem=100", "web-1 c0, web-2 c1"},
		{"it is another's pod", "type=m.l nominated=(default/db-old)", "pods web n=1 cpu=1000 mem=100", "web-1 c0"},
		{"it is too large", "type=m.s nominated=(default/web-old)", "pods web n=1 cpu=3000 mem=100", "web-1 c0"},
		{"its name has one part", "type=m.l nominated=(default/web)", "pods web n=1 cpu=1000 mem=100", "web-1 c0"},
	} {
		p := decide(scenario.Scripted(t, append(slices.Clone(claims), "claim c1 pool=p zone=a "+c.claim, c.pods)...))
		var got []string
		for _, e := range p.Existing {
			got = append(got, strings.TrimPrefix(e.Pod, "default/")+" "+e.Node)
		}
		slices.Sort(got)
		if text := strings.Join(got, ", "); text != c.want {
			t.Errorf("%s: %s, want %s", c.name, text, c.want)
		}
	}
}
