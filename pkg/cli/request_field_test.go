package cli

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/workload"
	"joiner.sh/pkg/workload/manifest"
)

// A request is changed where it stands: in the pod as a whole, in an init container, in containers.
func TestRequestsAreChangedWhereTheyStand(t *testing.T) {
	const big, small = "resources: {requests: {cpu: 64}}", "resources: {requests: {cpu: 1}}"
	for spec, want := range map[string]string{
		"{containers: [{name: c, " + big + "}]}":                                                                    "spec.containers[*].resources.requests.cpu",
		"{containers: [{name: c, " + small + "}], initContainers: [{name: i, " + big + "}]}":                        "spec.initContainers[*].resources.requests.cpu",
		"{containers: [{name: c, " + small + "}], initContainers: [{name: i, restartPolicy: Always, " + big + "}]}": "spec.initContainers[*].resources.requests.cpu",
		"{containers: [{name: c, " + small + "}], " + big + "}":                                                     "spec.resources.requests.cpu",
	} {
		var s corev1.PodSpec
		if err := yaml.Unmarshal([]byte(spec), &s); err != nil {
			t.Fatal(err)
		}
		if got := requestFieldOf(&s, "spec.containers[*].resources.requests.cpu"); got != want {
			t.Errorf("%s: %s, want %s", spec, got, want)
		}
		docs, err := manifest.ParseManifests("", []byte("{apiVersion: karpenter.sh/v1, kind: NodePool, metadata: {name: p}, spec: {template: {spec: {nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: d}, "+
			"requirements: [{key: node.kubernetes.io/instance-type, operator: In, values: [m5.large]}]}}}}\n---\n"+
			"{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: "+spec+"}}}"))
		if err != nil {
			t.Fatal(err)
		}
		w, _, err := workload.CollectManifests(docs, "web")
		if err != nil {
			t.Fatal(err)
		}
		types, err := ReadCatalog("")
		if err != nil {
			t.Fatal(err)
		}
		p, err := planWithPreferences(w, types, cluster.Settings{})
		if err != nil || len(p.Unplaced) != 1 || !strings.Contains(strings.Join(p.Unplaced[0].WouldHelp, "\n"), "change "+want+" of the pods of web from ") {
			t.Errorf("%s: %v, %+v", spec, err, p.Unplaced)
		}
	}
}
