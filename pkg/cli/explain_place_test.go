package cli

import (
	"encoding/json"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"joiner.sh/pkg/install/crdcheck"
	"joiner.sh/pkg/testing/scenario"
	"joiner.sh/pkg/whatif"
)

// storedYAML are objects as the API server would give them, by path.
var storedYAML = map[string]string{
	"/apis/karpenter.sh/v1/nodepools/p": `{apiVersion: karpenter.sh/v1, kind: NodePool, metadata: {name: p}, spec: {limits: {cpu: "4"}, template: {metadata: {labels: {team: a}}, spec: {
  nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}, taints: [{key: other, effect: NoSchedule}, {key: dedicated, value: x, effect: NoSchedule}],
  requirements: [{key: kubernetes.io/os, operator: In, values: [linux]}, {key: node.kubernetes.io/instance-type, operator: In, values: [m.l]}]}}}}`,
	"/api/v1/namespaces/default/pods/x-1":               `{apiVersion: v1, kind: Pod, metadata: {name: x-1, namespace: default, ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: x-77, uid: u, controller: true}]}, spec: {}}`,
	"/apis/apps/v1/namespaces/default/replicasets/x-77": `{apiVersion: apps/v1, kind: ReplicaSet, metadata: {name: x-77, namespace: default, ownerReferences: [{apiVersion: apps/v1, kind: Deployment, name: x, uid: d, controller: true}]}}`,
	"/apis/apps/v1/namespaces/default/deployments/x": `{apiVersion: apps/v1, kind: Deployment, metadata: {name: x, namespace: default}, spec: {template: {metadata: {}, spec: {nodeSelector: {team: b}, containers: [
  {name: small, resources: {requests: {cpu: 100m}}}, {name: main, resources: {requests: {cpu: "3900m", memory: 512Mi}}}]}}}}`,
	"/api/v1/namespaces/default/pods/job-1":    `{apiVersion: v1, kind: Pod, metadata: {name: job-1, namespace: default, ownerReferences: [{apiVersion: batch/v1, kind: Job, name: j, uid: u, controller: true}]}, spec: {}}`,
	"/apis/batch/v1/namespaces/default/jobs/j": `{apiVersion: batch/v1, kind: Job, metadata: {name: j, namespace: default}, spec: {template: {spec: {nodeSelector: {team: b}}}}}`,
}

func storedObjectsOf(t *testing.T) *editedObjects {
	t.Helper()
	judge, err := crdcheck.NewJudge()
	if err != nil {
		t.Fatal(err)
	}
	return &editedObjects{judge: judge, known: map[string]editedObject{}, get: func(path string) (*unstructured.Unstructured, bool) {
		text, found := storedYAML[path]
		if !found {
			return nil, false
		}
		o := &unstructured.Unstructured{}
		body, err := yaml.YAMLToJSON([]byte(text))
		if err == nil {
			err = json.Unmarshal(body, &o.Object)
		}
		if err != nil {
			t.Fatal(err)
		}
		return o, true
	}}
}

// Each edit has its command, or the place where it is made by hand where the API server takes no patch; what the CRD
// refuses is no answer.
func TestEditsHaveTheirPlace(t *testing.T) {
	for _, c := range []struct {
		name, pod string
		lines     []string
		want      []string // parts of places, each of some edit
		never     string
	}{
		{"a toleration", "x", []string{"pool p\ntaint dedicated=x:NoSchedule", "pods x n=1 cpu=500 mem=512"}, []string{
			`kubectl patch deployment x -n default --type=json -p '[{"op":"add","path":"/spec/template/spec/tolerations","value":[{"effect":"NoSchedule","key":"dedicated","operator":"Equal","value":"x"}]}]'`,
			`kubectl patch nodepool p --type=json -p '[{"op":"remove","path":"/spec/template/spec/taints/1"}]'`}, ""},
		{"a label", "x", []string{"pool p\nlabel team=a", "pods x n=1 cpu=500 mem=512\nselect team=b"}, []string{
			`kubectl patch nodepool p --type=json -p '[{"op":"add","path":"/spec/template/metadata/labels/team","value":"b"}]'`,
			`kubectl patch deployment x -n default --type=json -p '[{"op":"add","path":"/spec/template/spec/nodeSelector/team","value":"a"}]'`}, ""},
		{"a type", "x", []string{"pool p\nrequire type In m.l", "pods x n=1 cpu=3900 mem=512"}, []string{
			`{"key":"node.kubernetes.io/instance-type","operator":"In","values":["m.l","m.xl"]}]}]'`,
			`[{"op":"replace","path":"/spec/template/spec/containers/1/resources/requests/cpu","value":"`}, ""},
		{"a limit", "x", []string{"pool p\nlimit cpu 4000", "node n type=m.xl zone=a pool=p", "pods old on=n cpu=3500 mem=512", "pods x n=1 cpu=3900 mem=512"}, []string{
			`kubectl patch nodepool p --type=json -p '[{"op":"add","path":"/spec/limits/cpu","value":"8"}]'`}, ""},
		{"a Job", "job", []string{"pool p\nlabel team=a", "pods job n=1 cpu=500 mem=512\nselect team=b"}, []string{
			"manifest of Job default/j: spec.template.spec.nodeSelector.team"}, "kubectl patch job"},
		{"a label that no NodePool may have", "x", []string{"pool p", "pods x n=1 cpu=500 mem=512\nselect karpenter.sh/initialized=never"}, nil, "template/metadata/labels"},
	} {
		w := scenario.Scripted(t, append([]string{"type m.l cpu=2000 mem=8192 milliusd=96", "type m.xl cpu=4000 mem=16384 milliusd=192"}, c.lines...)...)
		stored := storedObjectsOf(t)
		a := whatif.ForPod(w.Snapshot, w.Market, "default/"+c.pod+"-1", whatif.Limits{Accept: stored.accept})
		stored.addPlaces(a.Changes)
		var places []string
		for _, x := range a.Changes {
			for _, e := range x.Edits {
				places = append(places, e.Place)
			}
		}
		all := strings.Join(places, "\n")
		for _, want := range c.want {
			if !strings.Contains(all, want) {
				t.Errorf("%s: want %s in\n%s", c.name, want, all)
			}
		}
		if c.never != "" && strings.Contains(all, c.never) {
			t.Errorf("%s: %q is in\n%s", c.name, c.never, all)
		}
	}
}
