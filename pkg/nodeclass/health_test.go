package nodeclass_test

import (
	"fmt"
	"strings"
	"testing"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/nodeclass"
)

// TestHealthOfRegistrations plays outcomes one after the other, f for a failure and o for a success.
func TestHealthOfRegistrations(t *testing.T) {
	for outcomes, want := range map[string]string{
		"o": "True", "f": "Unknown", "ff": "False", "of": "True", "off": "False", "ffo": "False", "ffoo": "False", "ffooo": "True",
		"fooof": "True", "fo": "True", "ofof": "False", "foof": "False",
	} {
		p := pool()
		nodeclass.UpdatePool(p, classes(), noon())
		p.Annotations = map[string]string{}
		for i, word := range outcomes {
			o := cluster.Registration{ClaimUID: fmt.Sprintf("uid-%d", i), OK: word == 'o', Reason: "RegistrationFailed", Message: "no node registered"}
			for try := range 2 { // a lost reply brings it again
				annotation, news := nodeclass.RecordRegistrations(p, []cluster.Registration{o}, noon())
				if news != (try == 0) {
					t.Fatalf("%s: outcome %d, try %d: news %t", outcomes, i, try, news)
				}
				p.Annotations["joiner.sh/registration-history"] = annotation
			}
		}
		k, _ := p.StatusConditions().Get("NodeRegistrationHealthy")
		if told := fmt.Sprintf("of the last %d nodes", min(4, strings.LastIndex(outcomes, "f")+1)); want == "False" && !strings.Contains(k.Message, told) {
			t.Errorf("%s: %s, want it %s", outcomes, k.Message, told)
		}
		if string(k.Status) != want || want == "False" && k.Reason != "RegistrationFailed" || !p.StatusConditions().IsTrue("Ready") {
			t.Errorf("%s: %s %s: %s, want %s", outcomes, k.Status, k.Reason, k.Message, want)
		}
	}
}

// TestARecordOfOldGenerationsIsForgotten: the next nodes may fare otherwise.
func TestARecordOfOldGenerationsIsForgotten(t *testing.T) {
	p := pool()
	nodeclass.UpdatePool(p, classes(), noon())
	fail := func(uid string) string {
		annotation, _ := nodeclass.RecordRegistrations(p, []cluster.Registration{{ClaimUID: uid, Reason: "LaunchFailed"}}, noon())
		p.Annotations = map[string]string{"joiner.sh/registration-history": annotation}
		return annotation
	}
	if got := fail("a") + ", " + fail("b"); got != "2/3 failed:a, 2/3 failed:a failed:b" {
		t.Errorf("recorded %s", got)
	}
	p.Generation++
	if got := fail("c"); got != "3/3 failed:c" {
		t.Errorf("of a new pool: %s", got)
	}
	p.Status.NodeClassObservedGeneration++
	if got := fail("d"); got != "3/4 failed:d" {
		t.Errorf("with a new class: %s", got)
	}
	for _, uid := range strings.Fields("e f g h") {
		fail(uid)
	}
	if got := p.Annotations["joiner.sh/registration-history"]; got != "3/4 failed:e failed:f failed:g failed:h" {
		t.Errorf("the last four are %s", got)
	}
}
