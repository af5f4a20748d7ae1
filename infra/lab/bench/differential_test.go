package main

import (
	"context"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"joiner.sh/infra/lab/bench/karpenter"
	"joiner.sh/pkg/cli"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/instancetypes/builtin"
	"joiner.sh/pkg/testing/plancheck"
	"joiner.sh/pkg/workload"
)

// tolerance is how much dearer than Karpenter's fleet Joiner's may be, as a part of its price.
const tolerance = 0.3

// pick returns one of the words by chance.
func pick(r *rand.Rand, words ...string) string { return words[r.IntN(len(words))] }

// randomPools are NodePools of a few instance types, with what Karpenter supports.
func randomPools(r *rand.Rand) string {
	var b strings.Builder
	for i := range 1 + r.IntN(3) {
		requirements := "{key: node.kubernetes.io/instance-type, operator: In, values: [" +
			pick(r, "m5.large, m5.xlarge, m5.2xlarge, c5.large, c5.2xlarge, r5.large", "m6g.large, m6g.2xlarge, c6g.xlarge, m5.xlarge", "c6i.large, c6i.xlarge, c6i.2xlarge, c6i.4xlarge, m6i.large, m6i.2xlarge, r6i.xlarge") + "]}"
		extra, labels, taints := "", "", ""
		if r.IntN(3) == 0 {
			extra += ", {key: karpenter.sh/capacity-type, operator: In, values: [" + pick(r, "on-demand", "spot", "spot, on-demand") + "]}"
		}
		if r.IntN(4) == 0 {
			extra += ", {key: topology.kubernetes.io/zone, operator: In, values: [us-west-2a, us-west-2b]}"
		}
		if r.IntN(3) == 0 {
			labels = "tier: " + pick(r, "web", "db")
		}
		if r.IntN(4) == 0 {
			taints = "taints: [{key: dedicated, value: x, effect: NoSchedule}], "
		}
		fmt.Fprintf(&b, "apiVersion: karpenter.sh/v1\nkind: NodePool\nmetadata: {name: pool-%d}\nspec: {weight: %d, template: {metadata: {labels: {%s}}, spec: {%snodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}, requirements: [%s%s]}}}\n---\n",
			i, 1+r.IntN(2), labels, taints, requirements, extra)
	}
	return b.String()
}

// randomPod is the template of a group.
func randomPod(r *rand.Rand, name string) string {
	spec := fmt.Sprintf("containers: [{name: a, resources: {requests: {cpu: %dm, memory: %dMi}}}]", 100+r.IntN(30)*100, 128+r.IntN(40)*128)
	own := "labelSelector: {matchLabels: {app: " + name + "}}"
	add := func(chance int, text string) {
		if r.IntN(chance) == 0 {
			spec += ", " + text
		}
	}
	switch r.IntN(6) {
	case 0:
		add(1, "nodeSelector: {topology.kubernetes.io/zone: "+pick(r, "us-west-2a", "us-west-2b", "us-west-2c")+"}")
	case 1:
		add(1, "nodeSelector: {karpenter.sh/capacity-type: "+pick(r, "spot", "on-demand")+"}")
	case 2:
		add(1, "nodeSelector: {tier: "+pick(r, "web", "db")+"}")
	}
	add(3, "tolerations: [{key: dedicated, operator: Exists}]")
	var affinity []string
	if r.IntN(5) == 0 {
		affinity = append(affinity, "nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: ["+
			pick(r, "{key: kubernetes.io/arch, operator: In, values: [amd64]}", "{key: karpenter.k8s.aws/instance-cpu, operator: Gt, values: ['3']}",
				"{key: topology.kubernetes.io/zone, operator: NotIn, values: [us-west-2a]}", "{key: karpenter.k8s.aws/instance-category, operator: In, values: [m, r]}")+"]}]}}")
	}
	switch r.IntN(8) {
	case 0:
		affinity = append(affinity, "podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: kubernetes.io/hostname, "+own+"}]}")
	case 1:
		affinity = append(affinity, "podAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: topology.kubernetes.io/zone, "+own+"}]}")
	case 2:
		add(1, "topologySpreadConstraints: [{maxSkew: "+pick(r, "1", "2")+", topologyKey: topology.kubernetes.io/zone, whenUnsatisfiable: DoNotSchedule, "+own+"}]")
	case 3:
		add(1, "topologySpreadConstraints: [{maxSkew: "+pick(r, "1", "3")+", topologyKey: kubernetes.io/hostname, whenUnsatisfiable: DoNotSchedule, "+own+"}]")
	case 4:
		add(1, "topologySpreadConstraints: [{maxSkew: 1, topologyKey: topology.kubernetes.io/zone, whenUnsatisfiable: ScheduleAnyway, "+own+"}]")
	}
	if len(affinity) > 0 {
		spec += ", affinity: {" + strings.Join(affinity, ", ") + "}"
	}
	return "{metadata: {labels: {app: " + name + "}}, spec: {" + spec + "}}"
}

// randomFile is a workload of the seed: its text, and that of its NodePools.
func randomFile(seed uint64) (text, pools string) {
	r := rand.New(rand.NewPCG(seed, 3))
	pools = randomPools(r)
	var b strings.Builder
	fmt.Fprintf(&b, "name: seed-%d\nnodePools: pools\ngroups:\n", seed)
	for i := range 1 + r.IntN(8) {
		name := fmt.Sprintf("app-%d", i)
		fmt.Fprintf(&b, "- {name: %s, count: %d, pod: %s}\n", name, 1+r.IntN(20), randomPod(r, name))
	}
	if r.IntN(2) == 0 {
		b.WriteString("daemonSets:\n- {name: agent, pod: {spec: {tolerations: [{operator: Exists}], containers: [{name: a, resources: {requests: {cpu: 100m, memory: 128Mi}}}]}}}\n")
	}
	if n := r.IntN(4); n > 0 && strings.Contains(pools, "m5.large") {
		b.WriteString("boundGroups:\n- {name: old, pod: {metadata: {labels: {app: app-0}}, spec: {containers: [{name: a, resources: {requests: {cpu: 300m, memory: 512Mi}}}]}}}\nnodes:\n")
		for i := range n {
			fmt.Fprintf(&b, "- {name: node-%d, nodePool: pool-0, instanceType: %s, zone: us-west-2%s, capacityType: on-demand, pods: {old: %d}}\n",
				i, pick(r, "m5.large", "m5.xlarge"), pick(r, "a", "b"), r.IntN(3))
		}
	}
	return b.String(), pools
}

var differential = struct {
	seeds *int
	first *uint64
}{flag.Int("seeds", 40, "random workloads to plan with both"), flag.Uint64("first-seed", 0, "seed of the first")}

// judges has what the test needs of the world outside.
type judges struct {
	catalog instancetypes.Catalog
	market  plancheck.Market
}

func newJudges(t *testing.T) judges {
	c, err := instancetypes.DecodeCatalog(builtin.Data())
	if err != nil {
		t.Fatal(err)
	}
	resolved, err := os.ReadFile("../../../pkg/model/instancetypes/testdata/resolved-types.json.gz")
	if err != nil {
		t.Fatal(err)
	}
	m, err := plancheck.NewMarket(builtin.Data(), resolved)
	if err != nil {
		t.Fatal(err)
	}
	karpenter.PrepareProcess()
	return judges{c, m}
}

// both plans the workload of the seed with Joiner and with Karpenter.
func (j judges) both(t *testing.T, seed uint64) (f workload.File, ours, theirs workload.Placement) {
	text, pools := randomFile(seed)
	f, err := workload.LoadWorkload(func(path string) ([]byte, error) {
		return []byte(map[string]string{"w": text, "pools": pools}[path]), nil
	}, "w", "")
	if err != nil {
		t.Fatalf("seed %d: %v\n%s%s", seed, err, text, pools)
	}
	// Karpenter puts all spot capacity into one place if that is cheapest, so Joiner may too.
	if ours, err = cli.PlanBy(f, j.catalog, cluster.Settings{MaxSpotPoolFraction: 1, InstancePrices: true}); err != nil {
		t.Fatalf("seed %d: %v", seed, err)
	}
	in, err := karpenter.TranslateWorkload(f, j.catalog)
	if err != nil {
		t.Fatalf("seed %d: %v", seed, err)
	}
	r, err := in.Solve(context.Background())
	if err != nil {
		t.Fatalf("seed %d: %v", seed, err)
	}
	return f, ours, in.GroupedPlacement(r)
}

// What Karpenter places by the rules, Joiner places too, for no more money, and its plans have no fault.
func TestDifferential(t *testing.T) {
	j := newJudges(t)
	compared, faulty, logs, worst := 0, 0, 0.0, 0.0
	for i := range *differential.seeds {
		seed := *differential.first + uint64(i)
		f, ours, theirs := j.both(t, seed)
		if v := plancheck.CheckPlacement(f, j.market, ours).Violations; len(v) > 0 {
			t.Errorf("seed %d: %s", seed, strings.Join(v[:min(3, len(v))], "; "))
		}
		if v := plancheck.CheckPlacement(f, j.market, theirs).Violations; len(v) > 0 {
			faulty++
			continue // what it does against the rules is no yardstick
		}
		missing, same := fewer(ours, theirs)
		if missing != "" {
			t.Errorf("seed %d: %s", seed, missing)
		}
		if !same || theirs.HourlyUSD == 0 {
			continue
		}
		ratio := ours.HourlyUSD / theirs.HourlyUSD
		if ratio > 1+tolerance {
			t.Errorf("seed %d: %.4f USD/h, Karpenter needs %.4f; no plan is below %.4f", seed, ours.HourlyUSD, theirs.HourlyUSD, ours.LowerBoundUSD)
		}
		if ours.LowerBoundUSD > theirs.HourlyUSD*(1+1e-9) {
			t.Errorf("seed %d: the bound is %.6f USD/h, Karpenter needs %.6f", seed, ours.LowerBoundUSD, theirs.HourlyUSD)
		}
		if ratio > 0 {
			logs, worst, compared = logs+math.Log(ratio), max(worst, ratio), compared+1
		}
	}
	t.Logf("%d of %d seeds compared, Joiner's price in Karpenter's: geometric mean %.3f, worst %.3f; Karpenter broke a rule in %d",
		compared, *differential.seeds, math.Exp(logs/float64(max(1, compared))), worst, faulty)
	if mean := math.Exp(logs / float64(max(1, compared))); mean > 0.95 {
		t.Errorf("Joiner's fleets cost %.3f of Karpenter's, in the geometric mean", mean)
	}
	if compared < *differential.seeds/3 {
		t.Errorf("only %d of %d seeds could be compared", compared, *differential.seeds)
	}
}

// fewer says of which groups ours places fewer pods than theirs, and whether both place the same.
func fewer(ours, theirs workload.Placement) (missing string, same bool) {
	count := func(p workload.Placement) map[string]int {
		out := map[string]int{}
		for _, u := range p.Unplaced {
			out[u.Group] += u.Count
		}
		return out
	}
	a, b := count(ours), count(theirs)
	var bad []string
	same = len(a) == len(b)
	for _, u := range ours.Unplaced {
		same = same && a[u.Group] == b[u.Group]
		if a[u.Group] > b[u.Group] {
			bad = append(bad, fmt.Sprintf("%d of %s are unschedulable, with Karpenter %d: %s", a[u.Group], u.Group, b[u.Group], strings.Join(u.Reasons, "; ")))
		}
	}
	slices.Sort(bad)
	return strings.Join(bad, "; "), same
}
