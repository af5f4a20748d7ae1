package app

import (
	"crypto/x509"
	"strings"
	"testing"

	"github.com/aws/aws-lambda-go/cfn"

	"joiner.sh/pkg/settings"
)

// TestSetupKeepsPhysicalIDs: an id that changes has CloudFormation delete what had the one before, and a rollback
// deletes what never came into being.
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
			id, _, err := Setup(t.Context(), c.event)
			if id != c.id || (err != nil) != c.fails {
				t.Errorf("id %s, error %v; want %s, failure %t", id, err, c.id, c.fails)
			}
		})
	}
}

// TestPushNeedsItsSecret: the address of the webhook is made of a property and of what the environment alone holds.
func TestPushNeedsItsSecret(t *testing.T) {
	const secret = "abcdefghijklmnopqrstuvwxyz012345"
	for name, c := range map[string]struct {
		url, ca, path, want, fails string
	}{
		"push off":          {path: secret},
		"push on":           {url: "https://x.on.aws/", path: secret, want: "https://x.on.aws/" + secret},
		"without a secret":  {url: "https://x.on.aws/", fails: "PUSH_PATH is required beside PushURL"},
		"a CA that is none": {url: "https://x.on.aws/", ca: "?", path: secret, fails: "decode PushCABundle"},
	} {
		t.Run(name, func(t *testing.T) {
			to, err := pushAddress(settings.Values{PushPath: c.path}, cfn.Event{ResourceProperties: map[string]any{"PushURL": c.url, "PushCABundle": c.ca}})
			if to.URL != c.want || (c.want != "") != x509.NewCertPool().AppendCertsFromPEM(to.CA) || (err == nil) != (c.fails == "") || err != nil && !strings.Contains(err.Error(), c.fails) {
				t.Errorf("address %q, error %v; want %q, %q", to.URL, err, c.want, c.fails)
			}
		})
	}
}
