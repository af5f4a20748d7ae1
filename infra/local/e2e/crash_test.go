package e2e_test

import (
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"joiner.sh/infra/local/awsemulator"
	"joiner.sh/infra/local/env"
	"joiner.sh/infra/local/lambdahost"
)

// Provision dies after EC2 started the instance and before it knows. The pass after it adopts the instance: by the
// token when it asks for the same, by the tag when the class was changed meanwhile.
func TestProvisionKilledBetweenCreateFleetAndTheStatusWrite(t *testing.T) {
	for name, between := range map[string]func(*world){
		"same request": func(*world) {},
		"other request": func(w *world) {
			patch := []byte(`{"spec":{"tags":{"team":"b"}}}`)
			if _, err := w.Kube.Dynamic.Resource(env.NodeClasses()).Patch(w.ctx, "default", types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
				w.t.Fatal(err)
			}
			w.tick("refresh")
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := start(t)
			w.ready()
			w.fault(awsemulator.Fault{Action: "CreateFleet", Kind: awsemulator.LoseReply, Delay: awsemulator.Duration(time.Hour), Times: 1})
			w.apply(deployment{name: "web", replicas: 1})
			w.exist("web", 1)
			if _, err := w.Host.InvokeFunction(w.ctx, w.FunctionName("provision"), lambdahost.Event, nil); err != nil {
				t.Fatal(err)
			}
			w.until("an instance is started", func() (string, bool) { n := len(w.living()); return fmt.Sprint(n, " instances"), n == 1 })
			if n, err := w.Host.KillFunction(w.FunctionName("provision")); n != 1 || err != nil {
				t.Fatalf("killed %d processes, %v", n, err)
			}
			orphan := w.living()[0]
			if c := w.oneClaim(); providerID(c) != "" || c.GetName() != orphan.Tags["karpenter.sh/nodeclaim"] {
				t.Fatalf("claim %s knows %q; it must be stored and not know its instance yet", c.GetName(), providerID(c))
			}
			between(w)
			w.serve("web", 1)
			w.tick("lifecycle", "provision", "lifecycle")
			w.started(1)
			if c := w.oneClaim(); providerID(c) != "aws:///"+orphan.Zone+"/"+orphan.ID {
				t.Errorf("the claim has %s, want the instance %s", providerID(c), orphan.ID)
			}
			if n := len(w.living()); n != 1 {
				t.Errorf("%d instances run, want 1", n)
			}
		})
	}
}
