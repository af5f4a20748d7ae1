package cli_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/net/html"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"joiner.sh/pkg/cli/status"
)

// standing is a node of a pool as its maker leaves it, with a pod on it.
const standing = `apiVersion: karpenter.sh/v1
kind: NodeClaim
metadata:
  name: %[1]s-claim
  labels: {karpenter.sh/nodepool: %[1]s, karpenter.k8s.aws/ec2nodeclass: %[1]s, node.kubernetes.io/instance-type: m5.xlarge, topology.kubernetes.io/zone: us-west-2a, karpenter.sh/capacity-type: on-demand}
  annotations: {karpenter.k8s.aws/tagged: "true"}
  finalizers: [karpenter.sh/termination]
spec:
  nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: %[1]s}
  requirements: [{key: node.kubernetes.io/instance-type, operator: In, values: [m5.xlarge]}]
---
apiVersion: v1
kind: Node
metadata:
  name: %[1]s-node
  labels: {karpenter.sh/nodepool: %[1]s, karpenter.sh/registered: "true", karpenter.sh/initialized: "true", node.kubernetes.io/instance-type: m5.xlarge, topology.kubernetes.io/zone: us-west-2a, karpenter.sh/capacity-type: on-demand}
spec: {providerID: "aws:///us-west-2a/i-%[1]s"}
---
apiVersion: v1
kind: Pod
metadata: {name: %[1]s-web, namespace: default, annotations: {karpenter.sh/do-not-disrupt: "true"}}
spec: {nodeName: %[1]s-node, containers: [{name: a, image: a, resources: {requests: {cpu: 1, memory: 4Gi}}}]}
`

const claimStatus = `providerID: aws:///us-west-2a/i-%[1]s
nodeName: %[1]s-node
capacity: {cpu: "4", memory: 16Gi}
allocatable: {cpu: "4", memory: 16Gi}
conditions:
- {type: Launched, status: "True", reason: Launched, message: "", lastTransitionTime: "2026-01-01T00:00:00Z"}
- {type: Registered, status: "True", reason: Registered, message: "", lastTransitionTime: "2026-01-01T00:00:00Z"}
- {type: Initialized, status: "True", reason: Initialized, message: "", lastTransitionTime: "2026-01-01T00:00:00Z"}
- {type: Ready, status: "True", reason: Ready, message: "", lastTransitionTime: "2026-01-01T00:00:00Z"}
`

const nodeStatus = `capacity: {cpu: "4", memory: 16Gi, pods: "58"}
allocatable: {cpu: "4", memory: 16Gi, pods: "58"}
conditions: [{type: Ready, status: "True", reason: KubeletReady, message: "", lastTransitionTime: "2026-01-01T00:00:00Z", lastHeartbeatTime: "2026-01-01T00:00:00Z"}]
`

func nodes() schema.GroupVersionResource {
	return schema.GroupVersionResource{Version: "v1", Resource: "nodes"}
}

// node makes a pool with one node and a pod on it.
func (e env) node(t *testing.T, name string) {
	t.Helper()
	e.pool(t, name, "m5.xlarge")
	t.Cleanup(func() { e.letGo(t, name+"-claim") })
	e.applyAll(t, fmt.Sprintf(standing, name))
	e.status(t, claims(), name+"-claim", fmt.Sprintf(claimStatus, name))
	e.status(t, nodes(), name+"-node", nodeStatus)
}

// letGo takes the finalizer off a claim, which no lifecycle does here.
func (e env) letGo(t *testing.T, claim string) {
	ctx := t.Context()
	if ctx.Err() != nil {
		return
	}
	_, _ = e.dynamic.Resource(claims()).Patch(ctx, claim, "application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
}

func TestStatusOfACluster(t *testing.T) {
	e := newEnv(t)
	e.node(t, "full")
	code, out, progress := e.joiner("status", "-o", "json")
	var v status.View
	if err := json.Unmarshal([]byte(out), &v); code != 0 || err != nil {
		t.Fatalf("exit %d, %v: %s%s", code, err, out, progress)
	}
	var got status.Node
	for _, p := range v.Pools {
		if p.Name == "full" && len(p.Nodes) == 1 {
			got = p.Nodes[0]
		}
	}
	if got.Name != "full-node" || got.Type != "m5.xlarge" || got.HourlyUSD-got.NodeUSD != 0.192 || got.NodeUSD == 0 || got.Phase != "ready" || got.CPU != (status.FillLevel{Used: 1000, Room: 4000}) ||
		got.MayGo || !strings.Contains(got.Why, "pod default/full-web carries karpenter.sh/do-not-disrupt") {
		t.Errorf("node: %+v\n%s", got, out)
	}
	code, out, progress = e.joiner("status")
	for _, want := range []string{"\nUSD per hour: instance ", "full: 1 nodes, 1 pods, 0.1942 USD/h, cpu 25%, memory 25%", "full-node", "██▌·······  25% of 4", "stays: pod default/full-web carries"} {
		if code != 0 || !strings.Contains(out, want) {
			t.Errorf("exit %d, the table lacks %q:\n%s%s", code, want, out, progress)
		}
	}
}

// The page is well-formed HTML with a row for the node, and loads nothing.
func TestStatusPageOfACluster(t *testing.T) {
	e := newEnv(t)
	e.node(t, "paged")
	path := filepath.Join(t.TempDir(), "page.html")
	if code, out, progress := e.joiner("status", "--html", path); code != 0 || out != "" || !strings.Contains(progress, "wrote "+path) {
		t.Fatalf("exit %d, %s%s", code, out, progress)
	}
	page, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, outside := range []string{"http:", "https:", "<script", "src=", "@import", "url("} {
		if strings.Contains(string(page), outside) {
			t.Errorf("the page has %q", outside)
		}
	}
	depth, found := 0, false
	z := html.NewTokenizer(strings.NewReader(string(page)))
	for kind := z.Next(); kind != html.ErrorToken; kind = z.Next() {
		name, _ := z.TagName()
		switch {
		case string(name) == "meta":
		case kind == html.StartTagToken:
			depth++
		case kind == html.EndTagToken:
			depth--
		case kind == html.TextToken:
			found = found || strings.TrimSpace(string(z.Raw())) == "paged-node"
		}
	}
	if depth != 0 || !found {
		t.Errorf("%d elements are not closed, node found: %t\n%s", depth, found, page)
	}
	if code, _, progress := e.joiner("status", "--html", filepath.Join(path, "below", "a.html")); code != 2 || !strings.Contains(progress, "a.html") {
		t.Errorf("a page that cannot be written: exit %d, %s", code, progress)
	}
}
