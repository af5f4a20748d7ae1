package doctor

import (
	"strings"
	"testing"

	"joiner.sh/pkg/model/findings"
	"joiner.sh/pkg/settings"
)

func TestRemoteWriteIsLookedAt(t *testing.T) {
	const workspace = "https://aps-workspaces.us-west-2.amazonaws.com/workspaces/ws-12ab/api/v1/remote_write"
	for _, c := range []struct {
		set   settings.RemoteWrite
		level findings.Level
		says  string
	}{
		{settings.RemoteWrite{}, "", ""},
		{settings.RemoteWrite{URL: workspace}, findings.Fine, "metrics go to aps-workspaces.us-west-2.amazonaws.com"},
		{settings.RemoteWrite{URL: strings.TrimSuffix(workspace, "/api/v1/remote_write")}, findings.Broken, "no workspace's"},
		{settings.RemoteWrite{URL: "https://%"}, findings.Broken, "no URL"},
		{settings.RemoteWrite{URL: "http://metrics.example/push", Secret: "arn"}, findings.Broken, "use https"},
	} {
		e := examination{f: Facts{Functions: Functions{List: []Function{{Name: "joiner-shop-lifecycle", Found: true, RemoteWrite: c.set}}}}}
		e.checkRemoteWrite()
		switch {
		case c.says == "" && len(e.List) == 0:
		case len(e.List) != 1 || e.List[0].Level != c.level || !strings.Contains(e.List[0].What, c.says):
			t.Errorf("%+v: %+v; want %s %q", c.set, e.List, c.level, c.says)
		}
	}
}

// TestTheSecretIsLookedAt: whether it is there and may be read by what its description says.
func TestTheSecretIsLookedAt(t *testing.T) {
	const arn = "arn:aws:secretsmanager:us-west-2:111122223333:secret:grafana-AbCdEf"
	for _, c := range []struct {
		secret Secret
		level  findings.Level
		says   string
	}{
		{Secret{}, findings.Fine, "metrics go to metrics.example"},
		{Secret{ARN: arn, Found: true}, findings.Fine, "metrics go to metrics.example"},
		{Secret{ARN: arn}, findings.Broken, "there is no secret " + arn},
		{Secret{ARN: arn, Found: true, Deleted: true}, findings.Broken, "is being deleted"},
		{Secret{ARN: arn, Found: true, Key: "arn:aws:kms:us-west-2:111122223333:key/k"}, findings.Warning, "is encrypted with arn:aws:kms"},
		{Secret{ARN: arn, Unknown: "AccessDeniedException"}, findings.Unknown, "cannot be described: AccessDeniedException"},
	} {
		set := settings.RemoteWrite{URL: "https://metrics.example/push", Secret: arn}
		e := examination{f: Facts{Secret: c.secret, Functions: Functions{List: []Function{{Name: "joiner-shop-lifecycle", Found: true, RemoteWrite: set}}}}}
		e.checkRemoteWrite()
		if len(e.List) != 1 || e.List[0].Level != c.level || !strings.Contains(e.List[0].What, c.says) {
			t.Errorf("%+v: %+v; want %s %q", c.secret, e.List, c.level, c.says)
		}
	}
}
