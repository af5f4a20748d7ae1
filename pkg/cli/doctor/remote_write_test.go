package doctor

import (
	"strings"
	"testing"

	"joiner.sh/pkg/settings"
)

func TestRemoteWriteIsLookedAt(t *testing.T) {
	const workspace = "https://aps-workspaces.us-west-2.amazonaws.com/workspaces/ws-12ab/api/v1/remote_write"
	for _, c := range []struct {
		set   settings.RemoteWrite
		level Level
		says  string
	}{
		{settings.RemoteWrite{}, "", ""},
		{settings.RemoteWrite{URL: workspace}, Fine, "metrics go to aps-workspaces.us-west-2.amazonaws.com"},
		{settings.RemoteWrite{URL: strings.TrimSuffix(workspace, "/api/v1/remote_write")}, Broken, "no workspace's"},
		{settings.RemoteWrite{URL: "https://%"}, Broken, "no URL"},
		{settings.RemoteWrite{URL: "http://metrics.example/push", Secret: "arn"}, Broken, "use https"},
	} {
		e := examination{f: Facts{Functions: Functions{List: []Function{{Name: "joiner-shop-lifecycle", Found: true, RemoteWrite: c.set}}}}}
		e.checkRemoteWrite()
		switch {
		case c.says == "" && len(e.found) == 0:
		case len(e.found) != 1 || e.found[0].Level != c.level || !strings.Contains(e.found[0].What, c.says):
			t.Errorf("%+v: %+v; want %s %q", c.set, e.found, c.level, c.says)
		}
	}
}

// TestTheSecretIsLookedAt: whether it is there and may be read by what its description says.
func TestTheSecretIsLookedAt(t *testing.T) {
	const arn = "arn:aws:secretsmanager:us-west-2:111122223333:secret:grafana-AbCdEf"
	for _, c := range []struct {
		secret Secret
		level  Level
		says   string
	}{
		{Secret{}, Fine, "metrics go to metrics.example"},
		{Secret{ARN: arn, Found: true}, Fine, "metrics go to metrics.example"},
		{Secret{ARN: arn}, Broken, "there is no secret " + arn},
		{Secret{ARN: arn, Found: true, Deleted: true}, Broken, "is being deleted"},
		{Secret{ARN: arn, Found: true, Key: "arn:aws:kms:us-west-2:111122223333:key/k"}, Warning, "is encrypted with arn:aws:kms"},
		{Secret{ARN: arn, Unknown: "AccessDeniedException"}, Unknown, "cannot be described: AccessDeniedException"},
	} {
		set := settings.RemoteWrite{URL: "https://metrics.example/push", Secret: arn}
		e := examination{f: Facts{Secret: c.secret, Functions: Functions{List: []Function{{Name: "joiner-shop-lifecycle", Found: true, RemoteWrite: set}}}}}
		e.checkRemoteWrite()
		if len(e.found) != 1 || e.found[0].Level != c.level || !strings.Contains(e.found[0].What, c.says) {
			t.Errorf("%+v: %+v; want %s %q", c.secret, e.found, c.level, c.says)
		}
	}
}
