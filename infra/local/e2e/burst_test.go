package e2e_test

import (
	"testing"

	"joiner/infra/local/cloud"
)

// Eight nodes that are alike are one request, made under the rights of the stack. Its answer is lost, to the SDK and to the function that
// asked; the next pass repeats it, and shares out what it brings. Afterwards every instance says whose it is.
func TestABurstIsOneRequestThatSurvivesALostAnswer(t *testing.T) {
	w := start(t)
	w.ready()
	w.Cloud.ForgetCalls()
	w.fault(cloud.Fault{Action: "CreateFleet", Kind: cloud.LoseReply, Times: 4})
	w.apply(deployment{name: "web", replicas: 8, alone: true})
	w.exist("web", 8)
	w.fails("provision", "create fleet")
	w.started(8)
	w.serve("web", 8)
	w.started(8)
	if n := w.Cloud.CallCounts()["ec2:CreateFleet"]; n != 5 {
		t.Errorf("%d calls of CreateFleet, want four that were lost and one that was heard", n)
	}
	named := map[string]bool{}
	w.until("every instance is named", func() (string, bool) {
		for _, i := range w.living() {
			if claim := i.Tags["karpenter.sh/nodeclaim"]; claim != "" && i.Tags["Name"] != "" {
				named[claim] = true
			}
		}
		return "", len(named) == 8
	}, "lifecycle")
	for _, c := range w.claims() {
		if !named[c.GetName()] {
			t.Errorf("no instance says that it is of claim %s", c.GetName())
		}
	}
}
