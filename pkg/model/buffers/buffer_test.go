package buffers_test

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	v1beta1 "joiner.sh/pkg/api/autoscaling/v1beta1"
	"joiner.sh/pkg/model/buffers"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/plan"
	"joiner.sh/pkg/model/resources"
)

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// given is a buffer whose template asks for 500m of cpu and 1 GiB, and whose workload has scale pods.
func given(t *testing.T, spec string, scale int32) buffers.Buffer {
	t.Helper()
	o := &v1beta1.CapacityBuffer{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web", UID: "u", Generation: 3, CreationTimestamp: metav1.NewTime(noon)}}
	if err := yaml.UnmarshalStrict([]byte(spec), &o.Spec); err != nil {
		t.Fatal(err)
	}
	return buffers.Buffer{Object: o, Generation: 7, Scale: scale, Template: &cluster.Pod{Namespace: "ns", Name: "t", NodeName: "n", Priority: 5, Critical: true,
		Owner: cluster.OwnerStatefulSet, Labels: map[string]string{"app": "web"}, Phase: "Running", DoNotDisrupt: "true", GraceSec: 30,
		VolumeZones: nil, Volumes: []cluster.Volume{{Driver: "d", ID: "v"}}, Need: resources.List{CPU: 500, Memory: 1 << 30, Pods: 1}}}
}

func TestPods(t *testing.T) {
	got := buffers.VirtualPods([]buffers.Buffer{given(t, `{podTemplateRef: {name: t}, replicas: 2}`, 0)})
	one := cluster.Pod{Namespace: "ns", Name: "capacity-buffer-web-1", UID: "u-1", Labels: map[string]string{"app": "web"}, Created: noon,
		Priority: math.MinInt32, GraceSec: 30, Unscheduled: true, Virtual: true, Need: resources.List{CPU: 500, Memory: 1 << 30, Pods: 1}}
	two := one
	two.Name, two.UID = "capacity-buffer-web-2", "u-2"
	if d := cmp.Diff([]cluster.Pod{one, two}, got); d != "" {
		t.Errorf("pods (-want +got):\n%s", d)
	}
	if !got[0].Provisionable() {
		t.Error("nobody would look for room for a virtual pod")
	}
}

func TestCount(t *testing.T) {
	for _, c := range []struct {
		spec  string
		scale int32
		want  int
	}{
		{`{podTemplateRef: {name: t}, replicas: 3}`, 0, 3},
		{`{podTemplateRef: {name: t}, replicas: 0}`, 0, 0},
		{`{scalableRef: {kind: Deployment, name: w}, percentage: 10}`, 25, 3},
		{`{scalableRef: {kind: Deployment, name: w}, percentage: 1}`, 1, 1},
		{`{scalableRef: {kind: Deployment, name: w}, percentage: 0}`, 100, 0},
		{`{scalableRef: {kind: Deployment, name: w}, percentage: 50}`, 0, 0},
		{`{scalableRef: {apiGroup: apps, kind: StatefulSet, name: w}, percentage: 10, replicas: 5}`, 20, 5},
		{`{scalableRef: {kind: ReplicaSet, name: w}, percentage: 50, replicas: 5}`, 20, 10},
		{`{scalableRef: {kind: ReplicaSet, name: w}}`, 20, 0},
		{`{podTemplateRef: {name: t}, limits: {cpu: "2"}}`, 0, 4},
		{`{podTemplateRef: {name: t}, limits: {cpu: "2", memory: 3500Mi, nvidia.com/gpu: 0}}`, 0, 3},
		{`{podTemplateRef: {name: t}, limits: {cpu: 499m}}`, 0, 0},
		{`{podTemplateRef: {name: t}, limits: {nvidia.com/gpu: 4}}`, 0, 0},
		{`{podTemplateRef: {name: t}, replicas: 5, limits: {nvidia.com/gpu: 4}}`, 0, 5},
		{`{podTemplateRef: {name: t}, replicas: 5, limits: {cpu: "1"}}`, 0, 2},
		{`{podTemplateRef: {name: t}, replicas: 1, limits: {cpu: "10"}}`, 0, 1},
		{`{podTemplateRef: {name: t}, limits: {cpu: 1G}}`, 0, 10_000},
		{`{podTemplateRef: {name: t}, replicas: 2147483647}`, 0, 10_000},
		{`{provisioningStrategy: buffer.x-k8s.io/active-capacity, podTemplateRef: {name: t}, replicas: 1}`, 0, 1},
		{`{provisioningStrategy: somebody.example/standby, podTemplateRef: {name: t}, replicas: 1}`, 0, 0},
		{`{provisioningStrategy: joiner.sh/stopped-capacity, podTemplateRef: {name: t}, replicas: 1}`, 0, 0},
		{`{replicas: 1}`, 0, 0},
		{`{scalableRef: {apiGroup: example.com, kind: Deployment, name: w}, replicas: 1}`, 0, 0},
		{`{scalableRef: {kind: Job, name: w}, replicas: 1}`, 0, 0},
	} {
		if got := len(buffers.VirtualPods([]buffers.Buffer{given(t, c.spec, c.scale)})); got != c.want {
			t.Errorf("%s at scale %d: %d pods, want %d", c.spec, c.scale, got, c.want)
		}
	}
}

func TestStatus(t *testing.T) {
	all := map[string]bool{"ns/capacity-buffer-web-1": true, "ns/capacity-buffer-web-2": true}
	for _, c := range []struct {
		name, spec string
		missing    bool // the template
		placed     map[string]bool
		want       string
	}{
		{"room", `{podTemplateRef: {name: t}, replicas: 2}`, false, all, "ReadyForProvisioning=True Resolved: \nProvisioning=True FitsExistingCapacity: \nfor 2, t of 7"},
		{"no room", `{podTemplateRef: {name: t}, replicas: 6}`, false, all,
			"ReadyForProvisioning=True Resolved: \nProvisioning=False RequiresNewCapacity: no room yet for capacity-buffer-web-3, capacity-buffer-web-4, capacity-buffer-web-5, capacity-buffer-web-6\nfor 6, t of 7"},
		{"not packed", `{podTemplateRef: {name: t}, replicas: 2}`, false, nil, "ReadyForProvisioning=True Resolved: \nfor 2, t of 7"},
		{"empty", `{scalableRef: {kind: Deployment, name: w}, replicas: 0}`, false, nil, "ReadyForProvisioning=True Resolved: \nProvisioning=False BufferEmpty: \nfor 0"},
		{"no template", `{podTemplateRef: {name: t}, replicas: 2}`, true, all,
			"ReadyForProvisioning=False PodTemplateNotFound: there is no PodTemplate ns/t\nProvisioning=False NotReadyForProvisioning: there is no PodTemplate ns/t\n"},
		{"no workload", `{scalableRef: {kind: Deployment, name: w}, replicas: 2}`, true, all,
			"ReadyForProvisioning=False ScalableRefNotFound: there is no Deployment ns/w\nProvisioning=False NotReadyForProvisioning: there is no Deployment ns/w\n"},
		{"stopped", `{provisioningStrategy: joiner.sh/stopped-capacity, podTemplateRef: {name: t}, replicas: 2}`, false, all, "ReadyForProvisioning=True Resolved: \nProvisioning=True FitsExistingCapacity: \nfor 2, t of 7"},
		{"too few stopped", `{provisioningStrategy: joiner.sh/stopped-capacity, podTemplateRef: {name: t}, replicas: 3}`, false, all,
			"ReadyForProvisioning=True Resolved: \nProvisioning=False RequiresNewCapacity: no stopped node yet for capacity-buffer-web-3\nfor 3, t of 7"},
		{"an unknown strategy of ours", `{provisioningStrategy: joiner.sh/hibernated-capacity, podTemplateRef: {name: t}, replicas: 2}`, false, all,
			"ReadyForProvisioning=False UnknownStrategy: spec.provisioningStrategy \"joiner.sh/hibernated-capacity\" is none of buffer.x-k8s.io/active-capacity and joiner.sh/stopped-capacity\n" +
				"Provisioning=False NotReadyForProvisioning: spec.provisioningStrategy \"joiner.sh/hibernated-capacity\" is none of buffer.x-k8s.io/active-capacity and joiner.sh/stopped-capacity\n"},
		{"no reference", `{replicas: 2}`, true, all, "ReadyForProvisioning=False ResolutionFailed: it names neither a podTemplateRef nor a scalableRef\n" +
			"Provisioning=False NotReadyForProvisioning: it names neither a podTemplateRef nor a scalableRef\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := given(t, c.spec, 0)
			if c.missing {
				b.Template = nil
			}
			if !buffers.UpdateStatus(b, c.placed, noon) {
				t.Error("nothing changed")
			}
			if d := cmp.Diff(c.want, words(b.Object.Status)); d != "" {
				t.Errorf("status (-want +got):\n%s", d)
			}
			if buffers.UpdateStatus(b, c.placed, noon.Add(time.Hour)) {
				t.Error("the same again is a change")
			}
		})
	}
}

func words(s v1beta1.CapacityBufferStatus) string {
	out := ""
	for _, c := range s.Conditions {
		out += c.Type + "=" + string(c.Status) + " " + c.Reason + ": " + c.Message + "\n"
	}
	if s.Replicas != nil {
		out += "for " + string(rune('0'+*s.Replicas))
	}
	if s.PodTemplateRef != nil {
		out += ", " + s.PodTemplateRef.Name + " of " + string(rune('0'+*s.PodTemplateGeneration))
	}
	return out
}

// What nobody packed keeps the word of whoever did, and a buffer of another strategy is not written to.
func TestStatusStays(t *testing.T) {
	b := given(t, `{podTemplateRef: {name: t}, replicas: 1}`, 0)
	buffers.UpdateStatus(b, buffers.PlacedPods(plan.Plan{Existing: []plan.Placement{{Pod: "ns/capacity-buffer-web-1"}}}), noon)
	if buffers.UpdateStatus(b, nil, noon.Add(time.Hour)) || len(b.Object.Status.Conditions) != 2 || b.Object.Status.Conditions[1].Status != "True" {
		t.Errorf("status: %+v", b.Object.Status)
	}
	other := given(t, `{provisioningStrategy: somebody.example/standby, podTemplateRef: {name: t}, replicas: 1}`, 0)
	if buffers.UpdateStatus(other, nil, noon) || len(other.Object.Status.Conditions) != 0 {
		t.Errorf("a strategy that is not ours: %+v", other.Object.Status)
	}
}

// Pods of stopped capacity are no pods that running nodes keep room for, and those of active capacity no others.
func TestStrategiesAreApart(t *testing.T) {
	all := []buffers.Buffer{given(t, `{podTemplateRef: {name: t}, replicas: 1}`, 0),
		given(t, `{provisioningStrategy: joiner.sh/stopped-capacity, podTemplateRef: {name: t}, replicas: 2}`, 0),
		given(t, `{provisioningStrategy: joiner.sh/other, podTemplateRef: {name: t}, replicas: 4}`, 0),
		given(t, `{provisioningStrategy: joiner.sh/stopped-capacity, podTemplateRef: {name: t}, replicas: 0}`, 0)}
	if n := len(buffers.VirtualPods(all)); n != 1 {
		t.Errorf("%d pods of active capacity, want 1", n)
	}
	stopped := buffers.Stopped(all)
	if len(stopped) != 1 || len(stopped[0].Pods) != 2 || !stopped[0].Pods[0].Virtual {
		t.Errorf("stopped capacity is %+v, want one buffer of 2 pods", stopped)
	}
}

// A node is room for stopped capacity once its instance is stopped; what the pass did not look for is left as it was.
func TestRoomOfStoppedCapacity(t *testing.T) {
	s := cluster.Snapshot{Claims: []cluster.Claim{{Name: "c1", Conditions: []cluster.Condition{{Type: "Stopped", Status: "True"}}}, {Name: "c2"}}}
	p := plan.Plan{Stopped: &plan.StoppedCapacity{Filled: true, Placed: []plan.Placement{{Pod: "ns/a", Node: "c1"}, {Pod: "ns/b", Node: "c2"}},
		Unplaced: []plan.Unplaced{{Pod: "ns/c", Why: []string{"why"}}}}}
	want := buffers.Room{Placed: map[string]bool{"ns/a": true, "ns/b": false}, Refusals: map[string]string{"ns/c": "why"}, Stopped: true}
	if d := cmp.Diff(want, buffers.RoomOf(s, p)); d != "" {
		t.Errorf("room (-want +got):\n%s", d)
	}
	p.Stopped.Filled = false
	if got := buffers.RoomOf(s, p); got.Stopped || len(got.Placed) > 0 {
		t.Errorf("room that nobody looked for: %+v", got)
	}
}
