package cli

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"joiner.sh/pkg/workload"
)

const plainPool = "apiVersion: karpenter.sh/v1\nkind: NodePool\nmetadata: {name: general}\nspec: {template: {spec: {nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}, requirements: []}}}\n"

// written puts the files into a folder and returns the path of the workload.
func written(t *testing.T, w, pools string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{"w.yaml": w, "pools.yaml": pools} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(dir, "w.yaml")
}

// grouped is a workload of one pod with the spec.
func grouped(spec string) string {
	return "name: bad\nnodePools: pools.yaml\ngroups:\n- {name: g, count: 1, pod: {metadata: {labels: {app: g}}, spec: {" + spec + "}}}\n"
}

const small = "containers: [{name: a, resources: {requests: {cpu: 100m, memory: 64Mi}}}]"

// A pod that cannot be meant, or that nothing can hold, stays unschedulable and says why. Nothing is launched for it.
func TestPodsThatMakeNoSense(t *testing.T) {
	term := func(kind, term string) string {
		return small + ", affinity: {" + kind + ": {requiredDuringSchedulingIgnoredDuringExecution: " + term + "}}"
	}
	for name, c := range map[string]struct{ spec, why string }{
		"negative":             {`containers: [{name: a, resources: {requests: {memory: "-1Gi"}}}]`, "container a requests -1Gi of memory; it cannot be negative"},
		"absurd":               {`containers: [{name: a, resources: {requests: {cpu: 1e15}}}]`, "nothing has that much"},
		"larger than any type": {`containers: [{name: a, resources: {requests: {cpu: "5000"}}}]`, "no instance type is big enough for cpu=5000"},
		"unknown resource":     {`containers: [{name: a, resources: {limits: {example.com/warp: 1}}}]`, "example.com/warp"},
		"unknown operator":     {term("nodeAffinity", "{nodeSelectorTerms: [{matchExpressions: [{key: a, operator: Near, values: [b]}]}]}"), `unknown operator "Near"`},
		"empty In":             {term("nodeAffinity", "{nodeSelectorTerms: [{matchExpressions: [{key: a, operator: In}]}]}"), "In needs at least one value"},
		"no term":              {term("nodeAffinity", "{nodeSelectorTerms: []}"), "node"},
		"toleration":           {small + ", tolerations: [{key: a, operator: Perhaps}]", `unknown operator "Perhaps"`},
		"selector operator":    {term("podAffinity", "[{topologyKey: zone, labelSelector: {matchExpressions: [{key: a, operator: Like}]}}]"), "Like"},
		"preferred operator":   {small + ", affinity: {podAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 1, podAffinityTerm: {topologyKey: zone, labelSelector: {matchExpressions: [{key: a, operator: Like}]}}}]}}", "Like"},
		"nobody to be near to": {term("podAffinity", "[{topologyKey: topology.kubernetes.io/zone, labelSelector: {matchLabels: {app: nobody}}}]"), "pod affinity over topology.kubernetes.io/zone"},
		"selector of no node":  {small + ", nodeSelector: {disk: fast}", "gives its nodes no label disk"},
		"contradiction":        {small + ", nodeSelector: {kubernetes.io/arch: amd64}, affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: kubernetes.io/arch, operator: In, values: [arm64]}]}]}}}", "contradict each other"},
		"spread of no skew":    {small + ", topologySpreadConstraints: [{maxSkew: -1, topologyKey: zone, whenUnsatisfiable: DoNotSchedule}]", "maxSkew is -1"},
		"spread over no label": {small + ", topologySpreadConstraints: [{maxSkew: 1, topologyKey: no.such/label, whenUnsatisfiable: DoNotSchedule, labelSelector: {}}]", "no.such/label"},
		"claim of a device":    {small + ", resourceClaims: [{name: gpu}]", "its claim gpu names neither a ResourceClaim nor a ResourceClaimTemplate"},
	} {
		code, out, progress := run("plan", "-f", written(t, grouped(c.spec), plainPool), "-o", "json")
		var p workload.Placement
		if err := json.Unmarshal([]byte(out), &p); code != 0 || err != nil {
			t.Errorf("%s: exit %d, %v, says %s", name, code, err, progress)
			continue
		}
		if len(p.NodeClaims) > 0 || len(p.Unplaced) != 1 || !strings.Contains(strings.Join(p.Unplaced[0].Reasons, "; "), c.why) {
			t.Errorf("%s: want the reason %q, got %s", name, c.why, out)
		}
	}
}

// Pods that follow each other in a circle get nothing.
func TestAffinityInACircle(t *testing.T) {
	follow := func(name, whom string) string {
		return fmt.Sprintf("- {name: %s, count: 3, pod: {metadata: {labels: {app: %s}}, spec: {%s, affinity: {podAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: kubernetes.io/hostname, labelSelector: {matchLabels: {app: %s}}}]}}}}}\n",
			name, name, small, whom)
	}
	code, out, _ := run("plan", "-f", written(t, "nodePools: pools.yaml\ngroups:\n"+follow("a", "b")+follow("b", "c")+follow("c", "a"), plainPool), "-o", "json")
	if code != 0 || !strings.Contains(out, `"nodeClaims": []`) || strings.Count(out, "wait for others in turn") != 3 {
		t.Errorf("exit %d, %s", code, out)
	}
}

// Files that cannot be used end the program with 2, nothing on standard output, and words that say where the fault is.
func TestFilesThatMakeNoSense(t *testing.T) {
	good := grouped(small)
	for name, c := range map[string]struct{ w, pools, want string }{
		"broken JSON":          {`{"groups": [`, plainPool, "w.yaml:1: neither JSON nor YAML: "},
		"broken YAML":          {"groups:\n- {name: g\n  count: [", plainPool, "w.yaml:2: neither JSON nor YAML: "},
		"a list":               {"- a\n- b\n", plainPool, "w.yaml:1: it is no object"},
		"nothing":              {"", plainPool, "w.yaml: it holds no workload"},
		"two documents":        {good + "---\n" + good, plainPool, "w.yaml: it holds 2 documents, want one"},
		"a word for a number":  {"nodePools: pools.yaml\ngroups: [{name: g, count: many}]", plainPool, "w.yaml: groups"},
		"a broken number":      {grouped(`containers: [{name: a, resources: {requests: {cpu: lots}}}]`), plainPool, "groups[0] (g): pod.spec.containers[0].resources.requests.cpu: lots is no quantity"},
		"another schema":       {"schema: 7\n" + good, plainPool, "w.yaml: schema: it is 7"},
		"one name for two":     {good + "- {name: g, count: 1, pod: {spec: {" + small + "}}}\n", plainPool, "groups[1] (g).name was used before"},
		"too many pods":        {strings.Replace(good, "count: 1", "count: 2000001", 1), plainPool, "groups[0] (g).count is 2000001; allowed: 0 to 2000000"},
		"aliases without end":  {"a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c]\ne: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d]\nf: &f [*e,*e,*e,*e,*e,*e,*e,*e,*e]\ng: [*f,*f,*f,*f,*f,*f,*f,*f,*f]\n", plainPool, "excessive aliasing"},
		"broken pools":         {good, plainPool + "---\nkind: [", "pools.yaml:6: neither JSON nor YAML: "},
		"an unknown kind":      {good, "apiVersion: v1\nkind: Secret\nmetadata: {name: x}", `pools.yaml:1: Secret x: apiVersion, kind: "v1", "Secret" is no NodePool`},
		"an old version":       {good, strings.Replace(plainPool, "sh/v1", "sh/v1beta1", 1), `"karpenter.sh/v1beta1", "NodePool" is no NodePool of karpenter.sh/v1`},
		"one pool twice":       {good, plainPool + "---\n" + plainPool, "pools.yaml:6: NodePool general: metadata.name: a NodePool general was given before"},
		"no pool, no node":     {good, "\n", "there is neither a NodePool nor a node"},
		"two prices":           {good, plainPool + "---\napiVersion: karpenter.sh/v1alpha1\nkind: NodeOverlay\nmetadata: {name: o}\nspec: {price: '1', priceAdjustment: '+1%', requirements: []}", "pools.yaml:6: NodeOverlay o: spec.price and priceAdjustment are both given"},
		"a price in words":     {good, plainPool + "---\napiVersion: karpenter.sh/v1alpha1\nkind: NodeOverlay\nmetadata: {name: o}\nspec: {price: cheap, requirements: []}", `spec.price is "cheap"; write USD per hour like 0.05`},
		"a buffer of nothing":  {good, plainPool + "---\napiVersion: autoscaling.x-k8s.io/v1beta1\nkind: CapacityBuffer\nmetadata: {name: b}\nspec: {replicas: 1}", "pools.yaml:6: CapacityBuffer b: spec.podTemplateRef and scalableRef are both missing"},
		"a limit that is none": {good, strings.Replace(plainPool, "spec: {", "spec: {limits: {cpu: much}, ", 1), "much is no quantity"},
	} {
		code, out, progress := run("plan", "-f", written(t, c.w, c.pools), "-o", "json")
		if code != 2 || out != "" || !strings.Contains(progress, c.want) {
			t.Errorf("%s: exit %d, prints %q, says %q, want %q", name, code, out, progress, c.want)
		}
	}
	empty := filepath.Join(t.TempDir(), "types.json")
	if err := os.WriteFile(empty, []byte(`{"schema": 1, "types": []}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if code, out, progress := run("plan", "-f", written(t, good, plainPool), "--types", empty); code != 2 || out != "" || !strings.Contains(progress, "it holds no instance types") {
		t.Errorf("an empty catalog: exit %d, %s%s", code, out, progress)
	}
}

// A CapacityBuffer for which no room can be kept keeps nothing else from its plan, and is told with the reason.
func TestBuffersThatAreLeftOut(t *testing.T) {
	for name, c := range map[string]struct{ spec, want string }{
		"no workload":         {"replicas: 1, scalableRef: {kind: Deployment, name: ghost}", "there is no Deployment default/ghost"},
		"no PodTemplate":      {"replicas: 1, podTemplateRef: {name: ghost}", "there is no PodTemplate default/ghost"},
		"another kind":        {"replicas: 1, scalableRef: {apiGroup: argoproj.io, kind: Rollout, name: ghost}", "scalableRef names a Rollout of group"},
		"another controller":  {"replicas: 1, podTemplateRef: {name: spare}, provisioningStrategy: example.com/best-effort", `its provisioning strategy "example.com/best-effort" belongs to another controller`},
		"an unknown strategy": {"replicas: 1, podTemplateRef: {name: spare}, provisioningStrategy: joiner.sh/frozen", `"joiner.sh/frozen" is none of`},
		"stopped instances":   {"replicas: 1, podTemplateRef: {name: spare}, provisioningStrategy: joiner.sh/stopped-capacity", "it keeps stopped instances"},
	} {
		pools := plainPool + "---\napiVersion: v1\nkind: PodTemplate\nmetadata: {name: spare}\ntemplate: {spec: {" + small + "}}\n" +
			"---\napiVersion: autoscaling.x-k8s.io/v1beta1\nkind: CapacityBuffer\nmetadata: {name: b}\nspec: {" + c.spec + "}\n" +
			"---\napiVersion: autoscaling.x-k8s.io/v1beta1\nkind: CapacityBuffer\nmetadata: {name: whole}\nspec: {replicas: 1, podTemplateRef: {name: spare}}\n"
		code, out, progress := run("plan", "-f", written(t, grouped(small), pools), "-o", "json")
		if code != 0 || !strings.Contains(out, `"default/capacity-buffer-whole": 1`) || !strings.Contains(out, `"g": 1`) {
			t.Errorf("%s: the rest is not planned: exit %d, %s%s", name, code, out, progress)
		}
		if !strings.Contains(progress, "CapacityBuffer default/b is left out: ") || !strings.Contains(progress, c.want) ||
			strings.Contains(progress, "default/whole") {
			t.Errorf("%s: want %q, says %q", name, c.want, progress)
		}
	}
}

// What the API server would refuse is a field of the object that is made, whatever it is made of.
func TestRefusedFieldsOfWhatIsMade(t *testing.T) {
	const options, terms = "metadataOptions: {httpPutResponseHopLimit: 99}", "[{tags: {a: b}}]"
	file := filepath.Join(t.TempDir(), "old.yaml")
	if err := os.WriteFile(file, []byte("apiVersion: karpenter.k8s.aws/v1beta1\nkind: EC2NodeClass\nmetadata: {name: shared}\n"+
		"spec: {amiFamily: AL2023, role: nodes, subnetSelectorTerms: "+terms+", securityGroupSelectorTerms: "+terms+", "+options+"}\n"+
		"---\napiVersion: karpenter.sh/v1beta1\nkind: NodePool\nmetadata: {name: few}\n"+
		"spec: {template: {spec: {nodeClassRef: {name: shared}, requirements: [], kubelet: {maxPods: 20}}}}\n"+
		"---\napiVersion: karpenter.sh/v1beta1\nkind: NodePool\nmetadata: {name: many}\n"+
		"spec: {template: {spec: {nodeClassRef: {name: shared}, requirements: []}}}\n"+
		"---\napiVersion: karpenter.sh/v1alpha5\nkind: Provisioner\nmetadata: {name: inline}\n"+
		"spec: {provider: {amiFamily: AL2023, instanceProfile: nodes, subnetSelector: {a: b}, securityGroupSelector: {a: b}, "+options+"}}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	code, _, said := run("convert", "-f", file)
	for _, object := range []string{"EC2NodeClass shared", "EC2NodeClass shared-few, made of NodePool few",
		"EC2NodeClass inline, made of Provisioner inline"} {
		if !strings.Contains(said, ": "+object+": spec.metadataOptions.httpPutResponseHopLimit: the API server refuses it") {
			t.Errorf("exit %d, nothing is said of %s: %s", code, object, said)
		}
	}
}

// NodePools that break a rule are not used, and the pod says so.
func TestPoolsThatMakeNoSense(t *testing.T) {
	for name, c := range map[string]struct{ from, to, why string }{
		"unknown operator":    {"requirements: []", "requirements: [{key: a, operator: Near, values: [b]}]", `unknown operator "Near"`},
		"no class":            {"requirements: []", "requirements: [{key: karpenter.sh/capacity-type, operator: In, values: [free]}]", "karpenter.sh/capacity-type"},
		"nothing is left":     {"requirements: []", "requirements: [{key: kubernetes.io/arch, operator: In, values: [s390x]}]", "no instance type meets its requirements"},
		"static":              {"spec: {template", "spec: {replicas: 3, template", "it is static"},
		"taint twice":         {"requirements: []", "requirements: [], taints: [{key: a, effect: NoSchedule}, {key: a, effect: NoSchedule}]", "stands more than once"},
		"a limit of zero":     {"spec: {template", "spec: {limits: {cpu: 0}, template", "limit cpu 0 would be exceeded"},
		"a limit below zero":  {"spec: {template", "spec: {limits: {nodes: -1}, template", "limit nodes -1 would be exceeded"},
		"minValues too large": {"requirements: []", "requirements: [{key: kubernetes.io/arch, operator: Exists, minValues: 50}]", "minValues"},
	} {
		code, out, progress := run("plan", "-f", written(t, grouped(small), strings.Replace(plainPool, c.from, c.to, 1)), "-o", "json")
		if code != 0 || !strings.Contains(out, `"nodeClaims": []`) || !strings.Contains(out, strings.ReplaceAll(c.why, `"`, `\"`)) {
			t.Errorf("%s: exit %d, want the reason %q, got %s%s", name, code, c.why, out, progress)
		}
	}
}

// Budgets that nobody understands stop no launch, and so a plan alone would not show them.
func TestBudgetsThatMakeNoSense(t *testing.T) {
	pool := strings.Replace(plainPool, "spec: {template", "spec: {disruption: {budgets: [{nodes: '0', schedule: 30 10 * * 1-7, duration: 22h}]}, template", 1)
	code, _, progress := run("plan", "-f", written(t, grouped(small), pool), "-o", "json")
	const want = `NodePool general: none of its nodes would be disrupted by choice: budget 1: schedule "30 10 * * 1-7": `
	if code != 0 || !strings.Contains(progress, want) {
		t.Errorf("exit %d, says %q, want %q", code, progress, want)
	}
}

// An object of an older version that cannot be converted is told and left out of a plan; a NodePool of somebody else's
// API is no reason to plan without one.
func TestObjectsBesideThoseOfAPlan(t *testing.T) {
	const pod = "\n---\napiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {containers: [{name: c, image: x, resources: {requests: {cpu: 1}}}]}\n"
	for name, c := range map[string]struct {
		beside, pool, want string
		code               int
	}{
		"a class of another cloud": {"apiVersion: karpenter.sh/v1beta1\nkind: NodePool\nmetadata: {name: azure}\nspec: {template: {spec: {nodeClassRef: {kind: AKSNodeClass, name: default}, requirements: []}}}",
			"general-purpose", "f.yaml:4: NodePool azure: spec.template.spec.nodeClassRef.kind: AKSNodeClass is not known; EC2NodeClass is", 3},
		"a Provisioner without a template": {"apiVersion: karpenter.sh/v1alpha5\nkind: Provisioner\nmetadata: {name: old}\nspec: {requirements: []}\n---\n" + plainPool,
			"general", "Provisioner old: spec.providerRef: neither provider nor providerRef is given", 3},
		"a NodePool of HyperShift": {"apiVersion: hypershift.openshift.io/v1beta1\nkind: NodePool\nmetadata: {name: workers}\nspec: {replicas: 2}",
			"general-purpose", "not read: 1 NodePool", 0},
	} {
		file := filepath.Join(t.TempDir(), "f.yaml")
		if err := os.WriteFile(file, []byte(c.beside+pod), 0o600); err != nil {
			t.Fatal(err)
		}
		code, out, progress := run("plan", "-f", file, "-o", "json")
		if code != c.code || !strings.Contains(out, `"nodePool": "`+c.pool+`"`) || !strings.Contains(progress, c.want) {
			t.Errorf("%s: exit %d, %s%s\nwant %d, a node of %s and %q", name, code, out, progress, c.code, c.pool, c.want)
		}
	}
}
