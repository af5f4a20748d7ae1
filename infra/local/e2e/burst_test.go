package e2e_test

import (
	"testing"

	"joiner.sh/infra/local/awsemulator"
)

// Of eight nodes most are alike and share a request, made under the rights of the stack. Its answer is lost, to the SDK
// and to the function that asked; the next pass repeats it, and shares out what it brings. Afterwards every instance
// says whose it is.
func TestABurstSharesARequestThatSurvivesALostAnswer(t *testing.T) {
	w := start(t)
	w.ready()
	w.fault(awsemulator.Fault{Action: "CreateFleet", Kind: awsemulator.LoseReply})
	w.apply(deployment{name: "web", replicas: 8, alone: true})
	w.exist("web", 8)
	w.fails("provision", "create fleet")
	w.started(8)
	shared := 0
	for _, i := range w.living() {
		if i.Tags["joiner.sh/launch-batch"] != "" {
			shared++
		}
	}
	if shared < 5 {
		t.Errorf("%d instances share a request, want most of 8", shared)
	}
	w.Cloud.ClearFaults()
	w.serve("web", 8)
	w.started(8)
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
	w.onlyADeploymentAskedEKS()
}
