package workload

import (
	"bytes"
	"compress/gzip"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/plan"
)

const pools = `# a comment first
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: general}
spec:
  template:
    spec:
      nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}
      requirements: []
--- # another one
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: gpu}
spec: {template: {spec: {nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}, requirements: []}}}
---
`

const web = `
name: w
nodePools: ../pools/mixed.yaml
unknown: {field: ignored}
groups:
- name: web
  count: 3
  pod: {metadata: {namespace: shop, labels: {app: web}}, spec: {containers: [{name: a, resources: {requests: {cpu: 1500m}}}]}}
pods:
- metadata: {name: once}
  spec: {containers: [{name: a}]}
`

// folder opens files from a map.
func folder(files map[string]string) Opener {
	return func(path string) ([]byte, error) {
		text, ok := files[path]
		if !ok {
			return nil, errors.New("no file " + path)
		}
		return []byte(text), nil
	}
}

func packed(text string) string {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	w.Write([]byte(text))
	w.Close()
	return b.String()
}

func TestLoad(t *testing.T) {
	for _, open := range []Opener{
		folder(map[string]string{"/a/b/w.yaml": web, "/a/pools/mixed.yaml": pools}),
		folder(map[string]string{"/a/b/w.yaml": packed(web), "/a/pools/mixed.yaml": packed(pools)}),
	} {
		f, err := LoadWorkload(open, "/a/b/w.yaml", "")
		if err != nil {
			t.Fatal(err)
		}
		if f.Pending() != 4 || len(f.Pools) != 2 || f.Pools[0].Name != "general" || f.Pools[1].Name != "gpu" {
			t.Errorf("%d pods, pools %v", f.Pending(), f.Pools)
		}
		if q := f.Groups[0].Pod.Spec.Containers[0].Resources.Requests.Cpu(); q.MilliValue() != 1500 || f.Groups[0].Namespace() != "shop" {
			t.Errorf("group read wrongly: %+v", f.Groups[0])
		}
	}
	other := folder(map[string]string{"w.yaml": web, "mine.yaml": pools})
	if _, err := LoadWorkload(other, "w.yaml", "mine.yaml"); err != nil {
		t.Errorf("with other NodePools: %v", err)
	}
	if _, err := LoadWorkload(other, "w.yaml", ""); err == nil || !strings.Contains(err.Error(), "../pools/mixed.yaml") {
		t.Errorf("missing NodePools: %v", err)
	}
}

// The page of the format gives the rule; the id is computed by `printf pod/default/web-0 | sha256sum`.
func TestUID(t *testing.T) {
	if got := PodUID("default", "web-0"); got != "8880860d-c2d3-a0bc-06d2-8a048747bf06" {
		t.Errorf("UID is %s", got)
	}
}

func TestWhatIsRefused(t *testing.T) {
	group := func(field, text string) string {
		return field + ": [{name: g, count: 1, pod: {spec: {containers: [{name: a}]}}" + text + "}]"
	}
	for _, c := range []struct{ in, want string }{
		{"]", "neither JSON nor YAML"},
		{"schema: 2", "schema: it is 2"},
		{"groups: 3", "groups: a number does not belong here"},
		{"groups: [{name: g, count: many}]", "count: a string does not belong here"},
		{"groups: [{name: no}]", "groups.name: a bool does not belong here; in YAML a bare n"},
		{"groups: [{count: 1}]", "groups[0].name is missing"},
		{"groups: [{name: a/b}]", "may not contain a slash"},
		{"groups: [{name: g, count: -1}]", "groups[0] (g).count is -1"},
		{"groups: [{name: g, count: 99999999}]", "groups[0] (g).count is 99999999"},
		{"groups: [{name: g, count: 1}]", "groups[0] (g).pod.spec.containers is empty"},
		{group("groups", "") + "\n" + `pods: [{metadata: {name: g-0}, spec: {containers: [{name: a}]}}]`, "pods[0] (default/g-0): another pod has this"},
		{`pods: [{metadata: {name: p}, spec: {nodeName: node, containers: [{name: a}]}}]`, "spec.nodeName is set"},
		{"daemonSets: [{name: d, pod: {spec: {containers: [{name: a, resources: {requests: {cpu: 1..5}}}]}}}]",
			"daemonSets[0] (d): pod.spec.containers[0].resources.requests.cpu: 1..5 is no quantity; write it like 500m or 2Gi"},
		{"nodes: [{name: node}]", "nodes[0] (node): instanceType, zone and capacityType are needed"},
		{"nodes: [{name: node, instanceType: t, zone: z, capacityType: spot, pods: {g: 1}}]", "nodes[0] (node).pods: no boundGroup is named g"},
		{group("boundGroups", "") + "\nnodes: [{name: node, instanceType: t, zone: z, capacityType: spot, pods: {g: -1}}]", "nodes[0] (node).pods.g is -1"},
	} {
		_, err := ParseWorkload([]byte(c.in))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s\n gives %v\n want %s", c.in, err, c.want)
		}
	}
	for _, c := range []struct{ in, want string }{
		{"kind: Pod", "is no NodePool"},
		{strings.Replace(pools, "gpu", "general", 1), "line 11: NodePool general: metadata.name: a NodePool general was given before"},
		{strings.Replace(pools, "{name: gpu}", "{}", 1), "line 11: NodePool: metadata.name is missing"},
		{"apiVersion: karpenter.sh/v1\nkind: NodePool\nmetadata: {name: a}", "nodeClassRef is missing"},
	} {
		if _, err := ParseManifests([]byte(c.in)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s\n gives %v\n want %s", c.in, err, c.want)
		}
	}
	node := "nodePools: p\nnodes: [{name: node, nodePool: gone, instanceType: t, zone: z, capacityType: spot}]"
	if _, err := LoadWorkload(folder(map[string]string{"w": node, "p": pools}), "w", ""); err == nil || !strings.Contains(err.Error(), "no NodePool gone was given") {
		t.Errorf("a node of an unknown pool: %v", err)
	}
}

func TestRefusals(t *testing.T) {
	for _, c := range []struct{ spec, want string }{
		{`containers: [{name: a, resources: {requests: {cpu: "-1"}}}]`, "container a requests -1 of cpu; it cannot be negative"},
		{`containers: [{name: a, resources: {requests: {memory: 1e30}}}]`, "nothing has that much"},
		{`containers: [{name: a, resources: {requests: {cpu: "9223372036854775807"}}}]`, "nothing has that much"},
		{`containers: [{name: a}], resources: {requests: {memory: 1e30}}`, "the pod requests 1e+30 of memory; nothing has that much"},
		{`containers: [{name: a, resources: {requests: {cpu: 2}, limits: {cpu: 1500m}}}]`, "container a requests 2 of cpu and is limited to 1500m; the API server refuses that"},
		{`containers: [{name: a}], resources: {requests: {memory: 2Gi}, limits: {memory: 1Gi}}`, "the pod requests 2Gi of memory and is limited to 1Gi"},
		{`containers: [{name: a, resources: {requests: {cpu: 2}, limits: {cpu: 2000m}}}]`, ""},
		{`containers: [{name: a, ports: [{containerPort: 1, hostPort: 65536}]}]`, "container a: hostPort is 65536"},
		{`containers: [{name: a}], tolerations: [{key: k, operator: Exists, effect: Never}]`, `toleration of k: unknown effect "Never"`},
		{`containers: [{name: a}], tolerations: [{key: k, operator: Exists, value: v}]`, "toleration of k: it has a value, and the operator Exists"},
		{`containers: [{name: a}], tolerations: [{key: k, operator: Exists, tolerationSeconds: 60}]`, "toleration of k: tolerationSeconds goes with effect NoExecute alone"},
		{`containers: [{name: a}], tolerations: [{key: k, operator: Exists, effect: NoSchedule, tolerationSeconds: 60}]`, "toleration of k: tolerationSeconds goes with"},
		{`containers: [{name: a}], topologySpreadConstraints: [{maxSkew: 1, topologyKey: z, whenUnsatisfiable: DoNotSchedule}, {maxSkew: 2, topologyKey: z, whenUnsatisfiable: DoNotSchedule}]`, "topology spread over z: there are two with DoNotSchedule"},
		{`containers: [{name: a}], tolerations: [{value: v}]`, "toleration of v: it has no key, and not the operator Exists"},
		{`containers: [{name: a}], tolerations: [{key: k, value: v}, {operator: Exists, effect: NoSchedule}]`, ""},
		{`containers: [{name: a}], tolerations: [{key: k, operator: Maybe}]`, `toleration of k: unknown operator "Maybe"`},
		{`containers: [{name: a}], topologySpreadConstraints: [{maxSkew: 0, topologyKey: z, whenUnsatisfiable: DoNotSchedule}]`, "maxSkew is 0"},
		{`containers: [{name: a}], topologySpreadConstraints: [{maxSkew: 1, topologyKey: z, whenUnsatisfiable: Never}]`, `whenUnsatisfiable is "Never"`},
		{`containers: [{name: a}], topologySpreadConstraints: [{maxSkew: 1, minDomains: 2, topologyKey: z, whenUnsatisfiable: ScheduleAnyway}]`,
			"minDomains goes with whenUnsatisfiable DoNotSchedule alone"},
		{`containers: [{name: a}], topologySpreadConstraints: [{maxSkew: 1, topologyKey: z, whenUnsatisfiable: DoNotSchedule, matchLabelKeys: [v]}]`,
			"matchLabelKeys go with a labelSelector"},
		{`containers: [{name: a}], topologySpreadConstraints: [{maxSkew: 1, topologyKey: z, whenUnsatisfiable: DoNotSchedule, nodeTaintsPolicy: honor}]`,
			`nodeTaintsPolicy is "honor", use Honor or Ignore`},
		{`containers: [{name: a}], affinity: {podAntiAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 0, podAffinityTerm: {topologyKey: z}}]}}`,
			"pod anti-affinity over z: weight is 0, it must be from 1 to 100"},
		{`containers: [{name: a}], affinity: {nodeAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 101, preference: {matchExpressions: [{key: z, operator: Exists}]}}]}}`,
			"node affinity: weight is 101, it must be from 1 to 100"},
		{`containers: [{name: a}], topologySpreadConstraints: [{maxSkew: 1, topologyKey: z, whenUnsatisfiable: DoNotSchedule, labelSelector: {matchExpressions: [{key: a, operator: Near}]}}]`, "Near"},
		{`containers: [{name: a}], affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{labelSelector: {}}]}}`, "pod anti-affinity: topologyKey is missing"},
		{`containers: [{name: a, resources: {limits: {nvidia.com/gpu: 500m}}}]`, "container a asks for 500m of nvidia.com/gpu; the API server takes whole devices only"},
		{`containers: [{name: a, resources: {requests: {nvidia.com/gpu: 1}}}]`, ""}, // a workload file says what pods need
		{`containers: [{name: a, resources: {requests: {nvidia.com/gpu: 1}, limits: {nvidia.com/gpu: 2}}}]`, "requests 1 of nvidia.com/gpu and is limited to 2; the API server wants both to be equal"},
		{`containers: [{name: a}], initContainers: [{name: i, resources: {requests: {aws.amazon.com/neuron: 2}, limits: {aws.amazon.com/neuron: 1}}}]`, "container i requests 2 of aws.amazon.com/neuron and is limited to 1"},
		{`containers: [{name: a, resources: {limits: {nvidia.com/gpu: 2}}}]`, ""},
		{`containers: [{name: a, resources: {limits: {hugepages-2Mi: 4Mi}}}]`, "asks for huge pages and for neither cpu nor memory"},
		{`containers: [{name: a, resources: {limits: {hugepages-2Mi: 3Mi, cpu: 1}}}]`, "asks for 3Mi of hugepages-2Mi, which is not a number of such pages"},
		{`containers: [{name: a, resources: {requests: {mem: 1Gi}}}]`, "container a asks for mem, which is no resource of a container"},
		{`containers: [{name: a, resources: {limits: {cpu: -1}, requests: {cpu: -2}}}]`, "is limited to -1 of cpu; it cannot be negative"},
		{`resources: {requests: {cpu: 1}}, containers: [{name: a, resources: {requests: {cpu: 2}}}]`, "its containers request 2 of cpu, and the pod as a whole of 1"},
		{`resources: {limits: {nvidia.com/gpu: 1}}, containers: [{name: a}]`, "the pod as a whole asks for nvidia.com/gpu: that is for containers"},
		{`containers: [{name: a}], volumes: [{name: v, persistentVolumeClaim: {claimName: c}}]`, "volume v"},
		{`containers: [{name: a}], schedulingGates: [{name: wait}]`, "scheduling gate wait"},
		{`containers: [{name: a}], schedulerName: fargate-scheduler`, "needs no node"},
		{`containers: [{name: a, resources: {requests: {cpu: 100m, memory: 1Gi}}}], tolerations: [{operator: Exists}]`, ""},
		{`containers: [{name: a, resources: {claims: [{name: gpus}]}}], resourceClaims: [{name: gpu, resourceClaimName: c}]`, "container a uses the claim gpus, which is not among the resourceClaims of the pod"},
		{`containers: [{name: a}], initContainers: [{name: i, resources: {claims: [{name: x}]}}]`, "container i uses the claim x"},
		{`containers: [{name: a}], resourceClaims: [{name: gpu, resourceClaimName: c, resourceClaimTemplateName: t}]`, "claim gpu names a ResourceClaim and a ResourceClaimTemplate; the API server takes one of them"},
		{`containers: [{name: a}], resourceClaims: [{name: gpu, resourceClaimName: c}, {name: gpu, resourceClaimName: d}]`, "claim gpu is given twice; give each its own name"},
		{`containers: [{name: a, resources: {claims: [{name: gpu}]}}], resourceClaims: [{name: gpu, resourceClaimName: c}]`, ""},
	} {
		f, err := ParseWorkload([]byte("groups: [{name: g, count: 1, pod: {spec: {" + c.spec + "}}}]"))
		if err != nil {
			t.Errorf("%s: %v", c.spec, err)
			continue
		}
		got := strings.Join(PodRefusals(f.Groups[0].Pod.Spec), "; ")
		if c.want == "" && got != "" || !strings.Contains(got, c.want) {
			t.Errorf("%s\n gives %q\n want %q", c.spec, got, c.want)
		}
	}
}

func TestFromPlan(t *testing.T) {
	f, err := ParseWorkload([]byte(web))
	if err != nil {
		t.Fatal(err)
	}
	got := FromPlan(f, plan.Plan{
		Launches: []plan.Launch{{
			Pool: "general", Pods: []string{"default/once", "shop/web-1"}, Types: []string{"m5.large", "m6i.large"},
			Choice: instancetypes.Offering{OfferingKey: instancetypes.OfferingKey{Type: "m5.large", Zone: "z", CapacityType: "spot"}, Price: 0.5},
		}},
		Existing:      []plan.Placement{{Pod: "shop/web-0", Node: "n"}},
		LowerBoundUSD: 0.4,
	})
	gap := got.Gap
	want := Placement{
		Tool: "joiner", Workload: "w", Pods: 4, HourlyUSD: 0.5, LowerBoundUSD: 0.4, Gap: gap,
		NodeClaims: []NodeClaim{{NodePool: "general", InstanceType: "m5.large", Zone: "z", CapacityType: "spot", HourlyUSD: 0.5,
			TypeOptions: []string{"m5.large", "m6i.large"}, Pods: map[string]int{"web": 1, "default/once": 1}}},
		OnExisting: []OnNode{{Node: "n", Pods: map[string]int{"web": 1}}},
		Unplaced:   []Unplaced{{Group: "web", Count: 1, Reasons: []string{notWaiting}}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("placement (-want +got):\n%s", diff)
	}
	if gap == nil || *gap < 0.2499 || *gap > 0.2501 {
		t.Errorf("gap %v, want 25 %%", gap)
	}
	got = FromPlan(f, plan.Plan{Unplaced: []plan.Unplaced{{Pod: "shop/web-2", Why: []string{"a", "b"}}, {Pod: "shop/web-1", Why: []string{"a"}}}})
	if diff := cmp.Diff([]Unplaced{
		{Group: "web", Count: 3, Reasons: []string{"a", "b", notWaiting}, Pod: "shop/web-2"}, {Group: "default/once", Count: 1, Reasons: []string{notWaiting}},
	}, got.Unplaced); diff != "" || got.Gap == nil || *got.Gap != 0 {
		t.Errorf("unplaced (-want +got), gap %v:\n%s", got.Gap, diff)
	}
}
