package app

import (
	"context"
	"crypto/x509"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/aws/aws-lambda-go/cfn"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/lambda/types"

	"joiner/pkg/install/setup"
	"joiner/pkg/settings"
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

// accountOf answers with the limits of an account.
type accountOf struct {
	limit *types.AccountLimit
	err   error
}

func (a accountOf) GetAccountSettings(context.Context, *lambda.GetAccountSettingsInput, ...func(*lambda.Options)) (*lambda.GetAccountSettingsOutput, error) {
	if a.err != nil {
		return nil, a.err
	}
	return &lambda.GetAccountSettingsOutput{AccountLimit: a.limit}, nil
}

// TestWhatTheStackMayReserve: what cannot be known is not checked.
func TestWhatTheStackMayReserve(t *testing.T) {
	limit := &types.AccountLimit{ConcurrentExecutions: 1000, UnreservedConcurrentExecutions: aws.Int32(796)}
	now := map[string]any{"Reserved": "204", "ReservedForNotices": "200"}
	for name, c := range map[string]struct {
		account accountOf
		event   cfn.Event
		want    setup.ConcurrencyRoom
	}{
		"create":                  {accountOf{limit: limit}, cfn.Event{RequestType: cfn.RequestCreate, ResourceProperties: now}, setup.ConcurrencyRoom{Limit: 1000, Unreserved: 796, Wanted: 204, ForNotices: 200}},
		"update":                  {accountOf{limit: limit}, cfn.Event{RequestType: cfn.RequestUpdate, ResourceProperties: now, OldResourceProperties: map[string]any{"Reserved": "4"}}, setup.ConcurrencyRoom{Limit: 1000, Unreserved: 796, Wanted: 204, ForNotices: 200, Had: 4}},
		"update of an older one":  {accountOf{limit: limit}, cfn.Event{RequestType: cfn.RequestUpdate, ResourceProperties: now, OldResourceProperties: map[string]any{}}, setup.ConcurrencyRoom{}},
		"nobody may ask":          {accountOf{err: errors.New("AccessDenied")}, cfn.Event{RequestType: cfn.RequestCreate, ResourceProperties: now}, setup.ConcurrencyRoom{}},
		"an answer without limit": {accountOf{}, cfn.Event{RequestType: cfn.RequestCreate, ResourceProperties: now}, setup.ConcurrencyRoom{}},
	} {
		if got := concurrencyLeft(t.Context(), c.account, c.event, slog.New(slog.DiscardHandler)); got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
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
