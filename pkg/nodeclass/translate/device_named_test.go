package translate_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	resourcev1 "k8s.io/api/resource/v1"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/requirements"
	"joiner.sh/pkg/model/resources"
	"joiner.sh/pkg/nodeclass/translate"
)

// A ResourceClaim that a pod names counts for the oldest pod that waits for it while nobody has it. Once it is
// allocated pods follow it to its node, and who has it alone takes it along; nobody else moves.
func TestClaimsThatPodsName(t *testing.T) {
	const spec = `spec: {devices: {requests: [{name: r, exactly: {deviceClassName: gpu.nvidia.com, count: 2}}]}}`
	const on = `, allocation: {devices: {results: [{request: r, driver: gpu.nvidia.com, pool: n1, device: a}]}, nodeSelector: {nodeSelectorTerms: [{matchFields: [{key: metadata.name, operator: In, values: [n1]}]}]}}}`
	const two = "deviceclass.resource.kubernetes.io/gpu.nvidia.com"
	free := resources.List{CPU: 100, Pods: 1}
	follows := [][]requirements.Requirement{{requirements.Of("kubernetes.io/hostname", "n1")}}
	for name, c := range map[string]struct {
		claim string
		pod   cluster.Pod
		want  cluster.Pod
	}{
		"waits first":  {`{metadata: {name: c, namespace: default}, ` + spec + `}`, cluster.Pod{Name: "a"}, cluster.Pod{Need: free.With(two, 2)}},
		"waits second": {`{metadata: {name: c, namespace: default}, ` + spec + `}`, cluster.Pod{Name: "z"}, cluster.Pod{Need: free, Affinity: []cluster.AffinityTerm{{Key: "kubernetes.io/hostname", Selector: &cluster.Selector{Requirements: []requirements.Requirement{requirements.Any("resourceclaim.joiner.sh/c")}}}}}},
		"follows":      {`{metadata: {name: c, namespace: default}, ` + spec + `, status: {reservedFor: [{resource: pods, name: other, uid: u-other}]` + on + `}`, cluster.Pod{Name: "a"}, cluster.Pod{Need: free, VolumeZones: follows}},
		"has it alone": {`{metadata: {name: c, namespace: default}, ` + spec + `, status: {reservedFor: [{resource: pods, name: a, uid: u-a}]` + on + `}`, cluster.Pod{Name: "a", NodeName: "n1"}, cluster.Pod{Need: free, NeedAnew: free.With(two, 2)}},
		"shares it": {`{metadata: {name: c, namespace: default}, ` + spec + `, status: {reservedFor: [{resource: pods, name: a, uid: u-a}, {resource: pods, name: b, uid: u-b}]` + on + `}`, cluster.Pod{Name: "a", NodeName: "n1"},
			cluster.Pod{Need: free, Unmodelled: []string{"ResourceClaim c: pod b has its devices too and stays, so that this pod does not move"}}},
		"shares it with no pod": {`{metadata: {name: c, namespace: default}, ` + spec + `, status: {reservedFor: [{apiGroup: x.example, resource: jobs, name: a, uid: u-a}]` + on + `}`, cluster.Pod{Name: "a", NodeName: "n1"},
			cluster.Pod{Need: free, Unmodelled: []string{"ResourceClaim c: job a has its devices too and stays, so that this pod does not move"}}},
		"is not there":    {`{metadata: {name: other, namespace: default}}`, cluster.Pod{Name: "a"}, cluster.Pod{Need: free, Unmodelled: []string{"ResourceClaim c: it does not exist"}}},
		"of somebody":     {`{metadata: {name: c, namespace: default, annotations: {resource.kubernetes.io/pod-claim-name: g}}, ` + spec + `}`, cluster.Pod{Name: "a"}, cluster.Pod{Need: free, Unmodelled: []string{"ResourceClaim c: it does not exist"}}},
		"goes":            {`{metadata: {name: c, namespace: default, deletionTimestamp: "2026-01-01T00:00:00Z"}, ` + spec + `}`, cluster.Pod{Name: "a"}, cluster.Pod{Need: free, Unmodelled: []string{"ResourceClaim c: it is being deleted"}}},
		"cannot be read":  {`{metadata: {name: c, namespace: default}, spec: {devices: {requests: [{name: r, firstAvailable: [{name: x, deviceClassName: y}]}]}}}`, cluster.Pod{Name: "a"}, cluster.Pod{Need: free, Unmodelled: []string{"ResourceClaim c: request r is firstAvailable"}}},
		"is anywhere":     {`{metadata: {name: c, namespace: default}, ` + spec + `, status: {allocation: {devices: {}}}}`, cluster.Pod{Name: "a"}, cluster.Pod{Need: free}},
		"is nobody knows": {`{metadata: {name: c, namespace: default}, ` + spec + `, status: {allocation: {nodeSelector: {nodeSelectorTerms: [{matchFields: [{key: metadata.uid, operator: In, values: [x]}]}]}}}}`, cluster.Pod{Name: "a"}, cluster.Pod{Need: free, Unmodelled: []string{"ResourceClaim c: where its devices are is not known: node affinity by field (metadata.uid in matchFields) is not supported"}}},
	} {
		named := translate.NewClaimedDevices()
		in := read[resourcev1.ResourceClaim](t, c.claim)
		named.AddClaim(&in)
		claims := translate.NewDeviceClaims(translate.UsualDeviceClasses(), named)
		p, created := c.pod, time.Unix(1, 0)
		p.Namespace, p.UID, p.Created, p.Need, p.DeviceClaims = "default", "u-"+p.Name, created, free, []string{"c"}
		p.Unscheduled = p.NodeName == ""
		other := cluster.Pod{Namespace: "default", Name: "other", Created: created, Unscheduled: true, DeviceClaims: []string{"c"}}
		claims.NoteSharing([]*cluster.Pod{&other, &p})
		claims.FillPod(&p)
		c.want.Namespace, c.want.UID, c.want.Created, c.want.Name, c.want.NodeName = "default", p.UID, created, p.Name, p.NodeName
		c.want.Unscheduled = p.Unscheduled
		if p.Name == "a" && p.Unscheduled && !strings.Contains(c.claim, "allocation") {
			c.want.Labels = map[string]string{"resourceclaim.joiner.sh/c": "first"}
		}
		if d := cmp.Diff(c.want, p); d != "" {
			t.Errorf("%s (-want +got):\n%s", name, d)
		}
	}
}

// Pods that have the devices of one ResourceClaim move together: the oldest takes the devices anew, the others go where
// it goes. Nobody moves if one of them stays.
func TestPodsThatHaveOneClaim(t *testing.T) {
	const two = "deviceclass.resource.kubernetes.io/gpu.nvidia.com"
	in := read[resourcev1.ResourceClaim](t, `{metadata: {name: c, namespace: default}, spec: {devices: {requests: [{name: r, exactly: {deviceClassName: gpu.nvidia.com, count: 2}}]}},
	  status: {allocation: {}, reservedFor: [{resource: pods, name: young, uid: u-young}, {resource: pods, name: old, uid: u-old}]}}`)
	for what, c := range map[string]struct {
		third cluster.Pod
		stays string
	}{
		"two pods":        {cluster.Pod{Name: "third"}, ""},
		"one more waits":  {cluster.Pod{Name: "third", Unscheduled: true, DeviceClaims: []string{"c"}}, ""},
		"one has ended":   {cluster.Pod{Name: "third", NodeName: "n1", Phase: "Succeeded", DeviceClaims: []string{"c"}}, ""},
		"one ends":        {cluster.Pod{Name: "third", NodeName: "n1", Deleting: time.Unix(9, 0), DeviceClaims: []string{"c"}}, ""},
		"a DaemonSet":     {cluster.Pod{Name: "third", NodeName: "n1", Owner: cluster.OwnerDaemonSet, DeviceClaims: []string{"c"}}, "pod third"},
		"a static pod":    {cluster.Pod{Name: "third", NodeName: "n1", Owner: cluster.OwnerNode, DeviceClaims: []string{"c"}}, "pod third"},
		"on another node": {cluster.Pod{Name: "third", NodeName: "n2", DeviceClaims: []string{"c"}}, "pod third on node n2"},
	} {
		named := translate.NewClaimedDevices()
		named.AddClaim(&in)
		claims := translate.NewDeviceClaims(translate.UsualDeviceClasses(), named)
		pods := []*cluster.Pod{{Name: "young", Created: time.Unix(2, 0), NodeName: "n1", DeviceClaims: []string{"c"}}, {Name: "old", Created: time.Unix(1, 0), NodeName: "n1", DeviceClaims: []string{"c"}}, &c.third}
		for _, p := range pods {
			p.Namespace, p.UID, p.Need = "default", "u-"+p.Name, resources.List{CPU: 100, Pods: 1}
		}
		claims.NoteSharing(pods)
		for _, p := range pods {
			claims.FillPod(p)
		}
		young, old := pods[0], pods[1]
		if c.stays != "" {
			want := []string{"ResourceClaim c: " + c.stays + " has its devices too and stays, so that this pod does not move"}
			if d := cmp.Diff(want, young.Unmodelled) + cmp.Diff(want, old.Unmodelled); d != "" {
				t.Errorf("%s (-want +got):\n%s", what, d)
			}
			continue
		}
		if len(young.Affinity) != 1 || young.Affinity[0].SharedClaim() != "c" || !young.NeedAnew.IsZero() || len(young.Labels)+len(young.Unmodelled) > 0 ||
			len(old.Affinity) > 0 || old.NeedAnew.Get(two) != 2 || old.Labels["resourceclaim.joiner.sh/c"] != "first" || len(old.Unmodelled) > 0 {
			t.Errorf("%s: young %+v, old %+v", what, young, old)
		}
	}
}

// Of a pod on a node those claims count that can be counted, so that nobody else takes their devices for free.
func TestPodsThatHaveMoreThanIsCounted(t *testing.T) {
	const gpus = "deviceclass.resource.kubernetes.io/gpu.nvidia.com"
	claims := translate.NewDeviceClaims(translate.UsualDeviceClasses(), translate.NewClaimedDevices())
	for name, request := range map[string]string{"two": `exactly: {deviceClassName: gpu.nvidia.com, count: 2}`, "first": `firstAvailable: [{name: x, deviceClassName: gpu.nvidia.com}]`, "none": `exactly: {deviceClassName: none}`} {
		in := read[resourcev1.ResourceClaimTemplate](t, `{metadata: {name: `+name+`, namespace: default}, spec: {spec: {devices: {requests: [{name: r, `+request+`}]}}}}`)
		claims.AddTemplate(&in)
	}
	for node, want := range map[string]int64{"n1": 2, "": 0} {
		p := cluster.Pod{Namespace: "default", Name: "a", UID: "u", NodeName: node, Need: resources.List{CPU: 100, Pods: 1}, DeviceTemplates: []string{"first", "none", "two"}}
		claims.FillPod(&p)
		if p.Need.Get(gpus) != want || len(p.Need.Extended) != int(want/2) || len(p.Unmodelled) != 2 {
			t.Errorf("on node %q it needs %s, %q", node, p.Need, p.Unmodelled)
		}
	}
}
