package doctor

import (
	"strings"
	"testing"

	"joiner/pkg/settings"
)

func TestRemoteWriteIsLookedAt(t *testing.T) {
	const workspace = "https://aps-workspaces.us-west-2.amazonaws.com/workspaces/ws-12ab/api/v1/remote_write"
	for _, c := range []struct {
		set   settings.RemoteWrite
		level Level
		says  string
	}{
		{settings.RemoteWrite{}, "", ""},
		{settings.RemoteWrite{URL: workspace, Auth: "sigv4"}, Fine, "metrics go to aps-workspaces.us-west-2.amazonaws.com"},
		{settings.RemoteWrite{URL: strings.TrimSuffix(workspace, "/api/v1/remote_write"), Auth: "sigv4"}, Broken, "no workspace's"},
		{settings.RemoteWrite{URL: "https://%", Auth: "none"}, Broken, "no URL"},
		{settings.RemoteWrite{URL: "https://metrics.example/push", Auth: "secret"}, Broken, "set remoteWriteSecret"},
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
