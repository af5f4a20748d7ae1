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

// TestWhatIsDeployedIsNotRefused: after an update that failed CloudFormation asks for the properties of before, and a
// refusal would leave the stack in UPDATE_ROLLBACK_FAILED.
func TestWhatIsDeployedIsNotRefused(t *testing.T) {
	for name, c := range map[string]struct {
		request     cfn.RequestType
		now, before map[string]any
		nothing     bool
	}{
		"an older deployment":               {cfn.RequestUpdate, map[string]any{"Deployment": "2026-01-01T10:00:00Z", "Manifests": "a"}, map[string]any{"Deployment": "2026-01-02T10:00:00Z", "Manifests": "b"}, true},
		"a newer one":                       {cfn.RequestUpdate, map[string]any{"Deployment": "2026-01-02T10:00:00Z", "Manifests": "b"}, map[string]any{"Deployment": "2026-01-01T10:00:00Z", "Manifests": "a"}, false},
		"a newer one of the same":           {cfn.RequestUpdate, map[string]any{"Deployment": "2026-01-02T10:00:00Z", "Manifests": "a"}, map[string]any{"Deployment": "2026-01-01T10:00:00Z", "Manifests": "a"}, true},
		"from a stack that did not name it": {cfn.RequestUpdate, map[string]any{"Deployment": "2026-01-02T10:00:00Z", "Manifests": "a"}, map[string]any{"Manifests": "b"}, false},
		"back to one that did not name it":  {cfn.RequestUpdate, map[string]any{"Manifests": "a"}, map[string]any{"Deployment": "2026-01-02T10:00:00Z", "Manifests": "b"}, true},
		"a creation":                        {cfn.RequestCreate, map[string]any{"Deployment": "2026-01-01T10:00:00Z"}, nil, false},
	} {
		if got := asksForNothingNew(cfn.Event{RequestType: c.request, ResourceProperties: c.now, OldResourceProperties: c.before}); got != c.nothing {
			t.Errorf("%s: asks for nothing new: %t", name, got)
		}
	}
}
