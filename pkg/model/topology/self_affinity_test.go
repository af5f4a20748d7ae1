package topology_test

import (
	"testing"

	"joiner.sh/pkg/model/topology"
	"joiner.sh/pkg/testing/scenario"
)

// Pods ask for the domains of their kin as long as a budget keeps some of these there: not where all may go, and not
// where the affinity is about others.
func TestRestrictSelfAffinity(t *testing.T) {
	script := func(budget, lines string) []string {
		return []string{"type m.m cpu=4000 mem=16384", "pool default",
			"node n1 type=m.m zone=a pool=default", "node n2 type=m.m zone=b pool=default",
			"pods web n=2 on=n1 cpu=100 mem=64\nlabel app=web\n" + lines, "pods web-b on=n2 cpu=100 mem=64\nlabel app=web\n" + lines,
			budget + "\napp=web"}
	}
	for name, c := range map[string]struct {
		budget, lines string
		want          string // requirement of web-1, empty for none
	}{
		"the last while another waits": {"budget web allowed=0", "near zone app=web", "topology.kubernetes.io/zone in (a, b)"},
		"one by one":                   {"budget web allowed=1", "near zone app=web", "topology.kubernetes.io/zone in (a, b)"},
		"on one node":                  {"budget web allowed=2", "near host app=web", "kubernetes.io/hostname in (n1, n2)"},
		"all at once":                  {"budget web allowed=3", "near zone app=web", ""},
		"near others":                  {"budget web allowed=1", "near zone app=db", ""},
	} {
		s := scenario.Scripted(t, script(c.budget, c.lines)...).Snapshot
		before := len(s.Pods[0].NodeAffinity)
		got, why := topology.RestrictSelfAffinity(s)
		text := ""
		for _, p := range got.Pods {
			if p.Name == "web-1" && len(p.NodeAffinity) > 0 {
				text = p.NodeAffinity[0][0].String()
			}
		}
		if text != c.want || (why["default/web-1"] != "") != (c.want != "") {
			t.Errorf("%s: %q, want %q: %v", name, text, c.want, why)
		}
		if len(s.Pods[0].NodeAffinity) != before {
			t.Errorf("%s: the snapshot given is changed", name)
		}
	}
}
