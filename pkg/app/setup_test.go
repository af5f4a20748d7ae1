package app_test

import (
	"testing"

	"github.com/aws/aws-lambda-go/cfn"

	"joiner/pkg/app"
)

// TestSetupKeepsPhysicalIDs: an id that changes has CloudFormation delete what had the one before, and a rollback deletes what
// never came into being.
func TestSetupKeepsPhysicalIDs(t *testing.T) {
	const installed, never = "joiner-setup-demo", "joiner-setup-not-installed"
	for name, c := range map[string]struct {
		cluster string
		event   cfn.Event
		id      string
		fails   bool
	}{
		"a creation without a cluster": {"", cfn.Event{RequestType: cfn.RequestCreate, ResourceType: "Custom::JoinerSetup"}, never, true},
		"an update without a cluster": {"", cfn.Event{RequestType: cfn.RequestUpdate, ResourceType: "Custom::JoinerSetup", PhysicalResourceID: installed},
			installed, true},
		"an unknown resource":            {"demo", cfn.Event{RequestType: cfn.RequestCreate, ResourceType: "Custom::Other"}, never, true},
		"deleting what never came to be": {"demo", cfn.Event{RequestType: cfn.RequestDelete, ResourceType: "Custom::JoinerSetup", PhysicalResourceID: never}, never, false},
		"deleting the preflight": {"demo", cfn.Event{RequestType: cfn.RequestDelete, ResourceType: "Custom::JoinerPreflight", PhysicalResourceID: "joiner-preflight-demo"},
			"joiner-preflight-demo", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("CLUSTER_NAME", c.cluster)
			id, _, err := app.Setup(t.Context(), c.event)
			if id != c.id || (err != nil) != c.fails {
				t.Errorf("id %s, error %v; want %s, failure %t", id, err, c.id, c.fails)
			}
		})
	}
}
