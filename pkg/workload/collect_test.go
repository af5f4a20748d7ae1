package workload

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"joiner.sh/pkg/workload/manifest"
)

// What another file says about devices takes the place of what has the same name, as with NodePools.
func TestDevicesAreMergedByName(t *testing.T) {
	read := func(text string) Manifests {
		t.Helper()
		m, err := ParseManifests([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	m := read(`{apiVersion: resource.k8s.io/v1, kind: DeviceClass, metadata: {name: gpu}}
---
{apiVersion: resource.k8s.io/v1, kind: ResourceClaimTemplate, metadata: {name: t, namespace: a}}
---
{apiVersion: resource.k8s.io/v1, kind: ResourceClaim, metadata: {name: c}}`)
	m.MergeOver(read(`{apiVersion: resource.k8s.io/v1, kind: DeviceClass, metadata: {name: gpu}, spec: {extendedResourceName: a.b/c}}
---
{apiVersion: resource.k8s.io/v1, kind: ResourceClaimTemplate, metadata: {name: t, namespace: b}}
---
{apiVersion: resource.k8s.io/v1, kind: ResourceClaim, metadata: {name: c}, spec: {devices: {requests: [{name: r}]}}}
---
{apiVersion: resource.k8s.io/v1beta2, kind: DeviceTaintRule, metadata: {name: broken}, spec: {taint: {effect: NoSchedule}}}`))
	d := m.Devices
	if len(d.Classes) != 1 || d.Classes[0].Spec.ExtendedResourceName == nil || len(d.Templates) != 2 ||
		len(d.Claims) != 1 || len(d.Claims[0].Spec.Devices.Requests) != 1 || len(d.TaintRules) != 1 {
		t.Errorf("merged to %+v", d)
	}
}

// collect reads manifests beside a NodePool.
func collect(t *testing.T, text string) (File, []string, error) {
	t.Helper()
	docs, err := manifest.ParseManifests("f.yaml", []byte(text+"\n---\n"+pools))
	if err != nil {
		t.Fatal(err)
	}
	return CollectManifests(docs, "f.yaml")
}

const deployment = `
apiVersion: apps/v1
kind: %K
metadata: {name: %N, namespace: %S}
spec: {replicas: %R, template: {spec: {containers: [{name: c, image: x}]}}}
---
`

func object(kind, namespace, name, replicas string) string {
	return strings.NewReplacer("%K", kind, "%S", namespace, "%N", name, "%R", replicas).Replace(deployment)
}

// A buffer means the object of its kind, name and namespace, whatever the groups of others with the name are called.
func TestABufferMeansOneOfNamesakes(t *testing.T) {
	text := object("Deployment", "shop", "web", "3") + object("Deployment", "bank", "web", "5") + object("StatefulSet", "bank", "web", "7")
	for _, c := range []struct {
		namespace, kind string
		want            int
	}{{"shop", "Deployment", 3}, {"bank", "Deployment", 5}, {"bank", "StatefulSet", 7}, {"shop", "StatefulSet", 0}} {
		f, _, err := collect(t, text+`
apiVersion: autoscaling.x-k8s.io/v1beta1
kind: CapacityBuffer
metadata: {name: b, namespace: `+c.namespace+`}
spec: {percentage: 100, scalableRef: {apiGroup: apps, kind: `+c.kind+`, name: web}}
`)
		if err != nil {
			t.Fatal(err)
		}
		template, scale := f.BufferTemplate(&f.Buffers[0])
		if scale != c.want || (template != nil) != (c.want > 0) {
			t.Errorf("%s web of %s: %d pods, want %d", c.kind, c.namespace, scale, c.want)
		}
	}
}

// Devices of manifests need a limit, as the API server wants it.
func TestADeviceOfAManifestNeedsALimit(t *testing.T) {
	text := strings.Replace(object("Deployment", "shop", "web", "3"), "image: x}", "image: x, resources: {requests: {nvidia.com/gpu: 1}}}", 1)
	f, _, err := collect(t, text)
	if err != nil || len(f.Groups) != 1 {
		t.Fatalf("%d groups, %v", len(f.Groups), err)
	}
	got := strings.Join(SpecRefusals(f.Groups[0].Pod.Spec), "; ")
	if want := "requests 1 of nvidia.com/gpu without a limit; the API server wants the same as limit"; !strings.Contains(got, want) {
		t.Errorf("refused with %q, want %q", got, want)
	}
}

// The pods of a Deployment have other names in a cluster than here, so that one of the name may be there beside them.
func TestAPodMayBeCalledLikeOneOfAGroup(t *testing.T) {
	f, _, err := collect(t, object("Deployment", "default", "redis", "2")+`
apiVersion: v1
kind: Pod
metadata: {name: redis-1}
spec: {containers: [{name: c, image: x}]}
`)
	if err != nil {
		t.Fatal(err)
	}
	names := f.IndexNames()
	got := []string{f.Groups[0].Name, names.GroupOf("default/" + f.Groups[0].PodName(1)), names.GroupOf("default/redis-1")}
	if diff := cmp.Diff([]string{"redis.deployment", "redis.deployment", "default/redis-1"}, got); diff != "" {
		t.Errorf("group, its pod and the other one (-want +got):\n%s", diff)
	}
}

// A buffer of a version that the CRD does not serve is told of with the one that it serves, and not left out in silence.
func TestABufferOfAnotherVersion(t *testing.T) {
	_, _, err := collect(t, `
apiVersion: autoscaling.x-k8s.io/v1alpha1
kind: CapacityBuffer
metadata: {name: b}
spec: {replicas: 1, scalableRef: {kind: Deployment, name: web}}
`)
	want := `f.yaml:2: CapacityBuffer b: apiVersion: "autoscaling.x-k8s.io/v1alpha1" is not known for kind CapacityBuffer; autoscaling.x-k8s.io/v1beta1 is`
	if err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}

// A Rollout that refers to a Deployment makes its pods, and the Deployment is scaled to 0.
func TestARolloutOfADeployment(t *testing.T) {
	text := object("Deployment", "shop", "web", "0") + "---\napiVersion: argoproj.io/v1alpha1\nkind: Rollout\nmetadata: {name: web, namespace: shop}\n" +
		"spec: {replicas: 4, workloadRef: {apiVersion: apps/v1, kind: Deployment, name: web}}\n"
	docs, err := manifest.ParseManifests("f.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	w, _, err := CollectManifests(docs, "f.yaml")
	if err != nil || w.Pending() != 4 {
		t.Errorf("%d pods, want 4: %v", w.Pending(), err)
	}
}

// Objects that the API server is to name are as many as stand there, whatever else is called alike.
func TestObjectsWithoutANameOfTheirOwn(t *testing.T) {
	const spec = `{restartPolicy: Never, containers: [{name: c, image: x}]}`
	job := "\n---\napiVersion: batch/v1\nkind: Job\nmetadata: {%}\nspec: {template: {spec: " + spec + "}}"
	pod := "\n---\napiVersion: v1\nkind: Pod\nmetadata: {%}\nspec: " + spec
	text := ""
	for _, kind := range []string{job, pod} {
		for _, name := range []string{"generateName: run-", "generateName: run-", "name: run", "generateName: run-"} {
			text += strings.Replace(kind, "%", name, 1)
		}
	}
	f, _, err := collect(t, text)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, g := range f.Groups {
		got = append(got, g.Name)
	}
	for _, p := range f.Pods {
		got = append(got, "pod "+p.Name)
	}
	if diff := cmp.Diff([]string{"run-2", "run-3", "run", "run-4", "pod run-2", "pod run-3", "pod run", "pod run-4"}, got); diff != "" {
		t.Errorf("names (-want +got):\n%s", diff)
	}
}

// Pods of hooks that no installation runs are no pods of a release.
func TestHooksOfHelm(t *testing.T) {
	for hooks, want := range map[string]int{"test": 0, "post-delete, pre-delete": 0, "pre-install,pre-upgrade": 1, "post-install,test": 1, "": 1} {
		f, notes, err := collect(t, `
apiVersion: v1
kind: Pod
metadata: {name: p, annotations: {helm.sh/hook: "`+hooks+`"}}
spec: {containers: [{name: c, image: x}]}`)
		if err != nil || len(f.Pods) != want {
			t.Errorf("hooks %q: %d pods, want %d; %v", hooks, len(f.Pods), want, err)
		}
		if told := strings.Contains(strings.Join(notes, "; "), "a hook of Helm that no installation runs"); told != (want == 0) {
			t.Errorf("hooks %q: told %t in %q", hooks, told, notes)
		}
	}
}
