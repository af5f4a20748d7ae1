package cli

import (
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
	"/api/v1/namespaces/default/pods/x-1":               `{metadata: {name: x-1, namespace: default, ownerReferences: [{kind: ReplicaSet, name: x-77, controller: true}]}}`,
	"/apis/apps/v1/namespaces/default/replicasets/x-77": `{metadata: {name: x-77, namespace: default, ownerReferences: [{kind: Deployment, name: x, controller: true}]}}`,
	"/apis/apps/v1/namespaces/default/deployments/x":    `{metadata: {name: x, namespace: default}}`,
	"/api/v1/namespaces/default/pods/init-1":            `{metadata: {name: init-1, namespace: default}, spec: {containers: [{resources: {requests: {cpu: 1}}}], initContainers: [{resources: {requests: {cpu: 64}}}]}}`,
	"/api/v1/namespaces/default/pods/job-1":             `{metadata: {name: job-1, namespace: default, ownerReferences: [{kind: Job, name: j, controller: true}]}}`,
	"/apis/batch/v1/namespaces/default/jobs/j":          `{metadata: {name: j, namespace: default}}`,
	"/api/v1/namespaces/default/pods/own-1":             `{metadata: {name: own-1, namespace: default, ownerReferences: [{kind: Runner, name: r, controller: true}]}}`,
	"/api/v1/namespaces/default/pods/circle-1":          `{metadata: {name: circle-1, namespace: default, ownerReferences: [{kind: Job, name: a, controller: true}]}}`,
	"/apis/batch/v1/namespaces/default/jobs/a":          `{metadata: {name: a, namespace: default, ownerReferences: [{kind: CronJob, name: b, controller: true}]}}`,
	"/apis/batch/v1/namespaces/default/cronjobs/b":      `{metadata: {name: b, namespace: default, ownerReferences: [{kind: Job, name: a, controller: true}]}}`,
}

func editPlacesOf(t *testing.T) editPlaces {
	t.Helper()
	judge, err := crdcheck.NewJudge()
	if err != nil {
		t.Fatal(err)
	}
	return editPlaces{judge: judge, get: func(path string) *unstructured.Unstructured {
		text, found := storedYAML[path]
		if !found {
			return nil
		}
		o := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(text), &o.Object); err != nil {
			t.Fatal(err)
		}
		return o
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
			"manifest of Deployment default/x: spec.template.spec.tolerations\n", "manifest of NodePool p: spec.template.spec.taints"}, ""},
		{"a label", "x", []string{"pool p\nlabel team=a", "pods x n=1 cpu=500 mem=512\nselect team=b"}, []string{
			`kubectl patch nodepool p --type=merge -p '{"spec":{"template":{"metadata":{"labels":{"team":"b"}}}}}'`,
			`kubectl patch deployment x -n default --type=merge -p '{"spec":{"template":{"spec":{"nodeSelector":{"team":"a"}}}}}'`}, ""},
		{"a label that nobody has", "x", []string{"pool p\nrequire team DoesNotExist", "pods x n=1 cpu=500 mem=512\nselect team=b"}, []string{
			`kubectl patch deployment x -n default --type=merge -p '{"spec":{"template":{"spec":{"nodeSelector":{"team":null}}}}}'`}, ""},
		{"a type", "x", []string{"pool p\nrequire type In m.l", "pods x n=1 cpu=3900 mem=512"}, []string{
			"manifest of NodePool p: spec.template.spec.requirements[key=node.kubernetes.io/instance-type]",
			"manifest of Deployment default/x: spec.template.spec.containers[*].resources.requests.cpu"}, ""},
		{"a limit", "x", []string{"pool p\nlimit cpu 4000", "node n type=m.xl zone=a pool=p", "pods old on=n cpu=3500 mem=512", "pods x n=1 cpu=3900 mem=512"}, []string{
			`kubectl patch nodepool p --type=merge -p '{"spec":{"limits":{"cpu":"8"}}}'`}, ""},
		{"a request of an init container", "init", []string{"pool p", "pods init n=1 cpu=64000 mem=512"}, []string{
			"manifest of Pod default/init-1: spec.initContainers[*].resources.requests.cpu"}, "spec.containers"},
		{"a Job", "job", []string{"pool p\nlabel team=a", "pods job n=1 cpu=500 mem=512\nselect team=b"}, []string{
			"manifest of Job default/j: spec.template.spec.nodeSelector.team"}, "kubectl patch job"},
		{"a kind of its own", "own", []string{"pool p\nlabel team=a", "pods own n=1 cpu=500 mem=512\nselect team=b"}, []string{
			"manifest of Runner default/r: spec.nodeSelector.team"}, "kubectl patch runner"},
		{"owners in a circle", "circle", []string{"pool p\nlabel team=a", "pods circle n=1 cpu=500 mem=512\nselect team=b"}, []string{
			"manifest of Job default/a: spec.template.spec.nodeSelector.team"}, "manifest of Pod"},
		{"a label that no NodePool may have", "x", []string{"pool p", "pods x n=1 cpu=500 mem=512\nselect karpenter.sh/initialized=never"}, nil, "NodePool"},
	} {
		w := scenario.Scripted(t, append([]string{"type m.l cpu=2000 mem=8192 milliusd=96", "type m.xl cpu=4000 mem=16384 milliusd=192"}, c.lines...)...)
		at := editPlacesOf(t)
		a := whatif.ForPod(w.Snapshot, w.Market, "default/"+c.pod+"-1", whatif.Limits{Accept: at.accept})
		at.addPlaces(a.Changes)
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
