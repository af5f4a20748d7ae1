package cli

import (
	"io"
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
		if helps := helpsWeb(t, spec); !strings.Contains(helps, "change "+want+" of the pods of web from ") {
			t.Errorf("%s: %s", spec, helps)
		}
	}
}

// The pod as a whole asks for no less than its containers do together, or the API server refuses it. What its
// RuntimeClass adds is cut by nobody.
func TestRequestsAreCutAsFarAsTheyMay(t *testing.T) {
	for spec, want := range map[string]string{
		"{containers: [{name: c, resources: {requests: {cpu: 3}}}], resources: {requests: {cpu: 64}}}":                                           "",
		"{containers: [{name: c, resources: {requests: {cpu: 1, memory: 900Gi}}}], resources: {requests: {cpu: 1}}}":                             "spec.containers[*].resources.requests.memory of the pods of web from 921600Mi to ",
		"{containers: [{name: c, resources: {requests: {cpu: 1}}}], resources: {requests: {cpu: 64}}}":                                           "spec.resources.requests.cpu of the pods of web from 64 to 1930m:",
		"{containers: [{name: c, resources: {requests: {cpu: 64}}}], overhead: {cpu: 500m}}":                                                     "spec.containers[*].resources.requests.cpu of the pods of web from 64 to 1430m:",
		"{containers: [{name: c, resources: {requests: {cpu: 64}}}], overhead: {cpu: 2}}":                                                        "",
		"{containers: [{name: c, resources: {requests: {cpu: 1}}}], overhead: {cpu: 500m}, resources: {requests: {cpu: 64}}}":                    "spec.resources.requests.cpu of the pods of web from 64 to 1430m:",
		"{containers: [{name: c, resources: {requests: {cpu: 1500m}}}], overhead: {cpu: 500m}, resources: {requests: {cpu: 64, memory: 100Mi}}}": "",
	} {
		helps := helpsWeb(t, spec)
		if want == "" && strings.Contains(helps, "resources") || !strings.Contains(helps, want) {
			t.Errorf("%s: %s, want %q", spec, helps, want)
		}
	}
}

// A plan for the pods of a cluster says where their requests stand, too.
func TestPlanOfAClusterNamesRequestFields(t *testing.T) {
	const init = "initContainers: [{name: i, resources: {requests: {cpu: 6400}}}]"
	s := snapshotOf(t, written(t, grouped(small+", "+init), plainPool))
	p := planSnapshot(s, "live", func(string) (out *corev1.PodSpec) {
		if err := yaml.Unmarshal([]byte("{"+init+"}"), &out); err != nil {
			t.Error(err)
		}
		return out
	}, terminalOutput{out: io.Discard, progress: io.Discard})
	if len(p.Unplaced) != 1 || !strings.Contains(strings.Join(p.Unplaced[0].WouldHelp, "\n"), "change spec.initContainers[*].resources.requests.cpu of ") {
		t.Errorf("%+v", p.Unplaced)
	}
}

// helpsWeb is what would help the Deployment web with pods of the spec, where there are nodes of 2 CPU only.
func helpsWeb(t *testing.T, spec string) string {
	t.Helper()
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
	if err != nil || len(p.Unplaced) != 1 {
		t.Fatalf("%s: %v, %+v", spec, err, p.Unplaced)
	}
	return strings.Join(p.Unplaced[0].WouldHelp, "\n")
}
