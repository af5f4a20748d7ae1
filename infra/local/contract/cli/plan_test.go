package cli_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"joiner.sh/pkg/workload"
)

const burst = `apiVersion: apps/v1
kind: Deployment
metadata: {name: burst, namespace: default}
spec:
  replicas: 4
  selector: {matchLabels: {app: burst}}
  template:
    metadata: {labels: {app: burst}}
    spec:
      TOLERATION
      containers: [{name: a, image: a, resources: {requests: {cpu: 900m, memory: 1Gi}}}]
`

// What waits in a cluster is planned as provision would do it, and beside a changed pool.
func TestPlanOfACluster(t *testing.T) {
	e := newEnv(t)
	tolerate := e.pool(t, "plan", "m5.xlarge, m5.2xlarge")
	e.applyAll(t, strings.Replace(burst, "TOLERATION", tolerate, 1))
	var p workload.Placement
	e.eventually(t, "four pods that wait", func(context.Context) (string, bool) {
		code, out, progress := e.joiner("plan", "--prices", "instances", "-o", "json")
		p = workload.Placement{}
		err := json.Unmarshal([]byte(out), &p)
		return out + progress, code == 0 && err == nil && p.Pods == 4
	})
	want := []workload.NodeClaim{{NodePool: "plan", InstanceType: "m5.xlarge", Zone: "us-west-2a", CapacityType: "on-demand", HourlyUSD: 0.192,
		TypeOptions: []string{"m5.xlarge"}, Pods: map[string]int{"default/burst": 4}}}
	if diff := cmp.Diff(want, p.NodeClaims); diff != "" || len(p.Unplaced) > 0 {
		t.Errorf("claims (-want +got):\n%s%v", diff, p.Unplaced)
	}
	changed := filepath.Join(t.TempDir(), "pool.yaml")
	text := strings.Replace(strings.ReplaceAll(strings.SplitN(class, "---\n", 2)[1], "%[1]s", "plan"), "%s", "c5.xlarge", 1)
	if err := os.WriteFile(changed, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	code, out, progress := e.joiner("plan", "--prices", "instances", "--compare", changed)
	if code != 0 || !strings.Contains(out, "0.1920 USD/h before, 0.1700 after: -0.0220 USD/h") {
		t.Errorf("exit %d\n%s%s", code, out, progress)
	}
}

// A cluster that nobody answers for, and one that does not know us.
func TestClustersThatCannotBeRead(t *testing.T) {
	e := newEnv(t)
	config, err := os.ReadFile(e.plane.KubeconfigPath())
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ from, to, want string }{
		"nobody there":    {e.plane.ServerURL(), "https://127.0.0.1:1", "https://127.0.0.1:1 does not answer"},
		"no rights":       {"    client-certificate-data:", "    as: somebody\n    client-certificate-data:", "this identity has no right to read that; bind it to a ClusterRole"},
		"nobody knows us": {"    client-certificate-data:", "    token: stolen\n    not-a-certificate:", "the cluster does not know this identity; renew the credentials of context"},
	} {
		path := filepath.Join(t.TempDir(), "config")
		if err := os.WriteFile(path, []byte(strings.ReplaceAll(string(config), c.from, c.to)), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, command := range []string{"plan", "status", "migrate"} {
			if code, out, progress := run(command, "--kubeconfig", path); code != 1 || out != "" || !strings.Contains(progress, c.want) {
				t.Errorf("%s, %s: exit %d, %s%s", name, command, code, out, progress)
			}
		}
		if code, out, progress := run("doctor", "--kubeconfig", path); code != 3 || !strings.Contains(out+progress, "you may not") && !strings.Contains(out, c.want) {
			t.Errorf("%s, doctor: exit %d, %s%s", name, code, out, progress)
		}
	}
	code, _, progress := e.joiner("plan", "--context", "none")
	if code != 2 || !strings.Contains(progress, `context "none" does not exist`) {
		t.Errorf("exit %d, %s", code, progress)
	}
}
