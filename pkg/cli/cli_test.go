package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"sigs.k8s.io/yaml"

	corev1 "k8s.io/api/core/v1"

	"joiner.sh/pkg/model/instancetypes/builtin"
	"joiner.sh/pkg/testing/plancheck"
	"joiner.sh/pkg/workload"
	"joiner.sh/pkg/workload/manifest"
)

// run is the command line with what it printed.
func run(args ...string) (code int, out, progress string) {
	var o, p bytes.Buffer
	code = Run(args, &o, &p)
	return code, o.String(), p.String()
}

func wanted() workload.Placement {
	return workload.Placement{
		Tool: "joiner", Workload: "shop", Pods: 7, HourlyUSD: 0.096,
		NodeClaims: []workload.NodeClaim{{NodePool: "general", InstanceType: "m5.large", Zone: "us-west-2a", CapacityType: "on-demand",
			HourlyUSD: 0.096, TypeOptions: []string{"m5.large"}, Pods: map[string]int{"web": 2}}},
		OnExisting: []workload.OnNode{{Node: "node-1", Pods: map[string]int{"web": 2}}},
		Unplaced: []workload.Unplaced{
			{Group: "giant", Count: 2, Reasons: []string{"pool general: no instance type is big enough for cpu=64"}},
			{Group: "default/broken", Count: 1, Reasons: []string{"container a requests -1 of cpu; it cannot be negative"}},
		},
	}
}

func TestPlan(t *testing.T) {
	measured := cmpopts.IgnoreFields(workload.Placement{}, "PlanSeconds", "PlanUserSeconds", "MaxRSSMiB", "LowerBoundUSD", "Gap")
	options := cmpopts.IgnoreFields(workload.NodeClaim{}, "TypeOptions") // the packer's affair, and the checker's
	for output, read := range map[string]func([]byte, any) error{
		"json": json.Unmarshal,
		"yaml": func(b []byte, into any) error { return yaml.Unmarshal(b, into) },
	} {
		code, out, progress := run("plan", "-f", "testdata/shop.yaml", "--prices", "instances", "--output", output)
		if code != 0 || !strings.Contains(progress, "7 pods in 3 groups, 1 existing nodes") {
			t.Fatalf("exit %d, says %s", code, progress)
		}
		var got workload.Placement
		if err := read([]byte(out), &got); err != nil {
			t.Fatalf("%s on standard output: %v", output, err)
		}
		for i := range got.Unplaced { // what would help has tests of its own
			got.Unplaced[i].Pod, got.Unplaced[i].WouldHelp = "", nil
		}
		if why := got.Unplaced[0].Reasons; len(why) == 1 && strings.HasPrefix(why[0], wanted().Unplaced[0].Reasons[0]) {
			got.Unplaced[0].Reasons = wanted().Unplaced[0].Reasons // what else it says is the packer's affair
		}
		if diff := cmp.Diff(wanted(), got, measured, options); diff != "" {
			t.Errorf("%s (-want +got):\n%s", output, diff)
		}
		if got.PlanSeconds <= 0 || got.MaxRSSMiB <= 0 {
			t.Errorf("not measured: %+v", got)
		}
		f, err := workload.LoadWorkload(os.ReadFile, "testdata/shop.yaml", "")
		if err != nil {
			t.Fatal(err)
		}
		if r := plancheck.CheckPlacement(f, market(t), got); len(r.Violations) > 0 {
			t.Errorf("the checker says %v", r.Violations)
		}
	}
}

func market(t *testing.T) plancheck.Market {
	t.Helper()
	resolved, err := os.ReadFile("../model/instancetypes/testdata/resolved-types.json.gz")
	if err != nil {
		t.Fatal(err)
	}
	m, err := plancheck.NewMarket(builtin.Data(), resolved)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestTable(t *testing.T) {
	p := wanted()
	p.PlanSeconds = 0.25
	p.SetBound(0.08)
	p.Unplaced[0].Reasons = append(p.Unplaced[0].Reasons, "pool other: "+strings.Repeat("long words ", 11))
	var b bytes.Buffer
	if err := showTable(terminalOutput{out: &b}, p); err != nil {
		t.Fatal(err)
	}
	want := `┌───────────┬──────────┬───────────────┬────────────┬─────────┬────────┬──────┬───────┐
│ new nodes │ type     │ capacity type │ zone       │ pool    │ USD/h  │ pods │ of    │
├───────────┼──────────┼───────────────┼────────────┼─────────┼────────┼──────┼───────┤
│         1 │ m5.large │ on-demand     │ us-west-2a │ general │ 0.0960 │    2 │ web 2 │
└───────────┴──────────┴───────────────┴────────────┴─────────┴────────┴──────┴───────┘

┌───────────────┬──────┬───────┐
│ existing node │ pods │ of    │
├───────────────┼──────┼───────┤
│ node-1        │    2 │ web 2 │
└───────────────┴──────┴───────┘

┌────────────────┬──────┬────────────────────────────────────────────────────────────────────────────────────────────────────────────────┐
│ unschedulable  │ pods │ why                                                                                                            │
├────────────────┼──────┼────────────────────────────────────────────────────────────────────────────────────────────────────────────────┤
│ giant          │    2 │ pool general: no instance type is big enough for cpu=64                                                        │
│                │      │ pool other: long words long words long words long words long words long words long words long words long words │
│                │      │ long words long words                                                                                          │
│ default/broken │    1 │ container a requests -1 of cpu; it cannot be negative                                                          │
└────────────────┴──────┴────────────────────────────────────────────────────────────────────────────────────────────────────────────────┘

shop: 7 pods, 1 new nodes, 0.0960 USD/h, 3 unschedulable; packed in 0.250 s; lower bound 0.0800 USD/h (gap 20.0 %)
`
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Errorf("table (-want +got):\n%s", diff)
	}
}

func TestInputThatCannotBeUsed(t *testing.T) {
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	broken := filepath.Join(t.TempDir(), "types.json")
	if err := os.WriteFile(broken, []byte(`{"schema": 9}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"plan"}, "no workload given with -f, and no cluster given: there is no kubeconfig; name one with --kubeconfig or in KUBECONFIG, or make it: aws eks update-kubeconfig --name CLUSTER"},
		{[]string{"plan", "--kubeconfig", "testdata/none"}, "testdata/none: no such file"},
		{[]string{"plan", "-f", "testdata/shop.yaml", "--from-scratch"}, "--from-scratch is for clusters"},
		{[]string{"plan", "-f", "testdata/shop.yaml", "--search-steps", "-1"}, "--search-steps is -1"},
		{[]string{"plan", "-f", "testdata/shop.yaml", "--search-milliseconds", "-1"}, "--search-milliseconds is -1"},
		{[]string{"plan", "-f", "testdata/shop.yaml", "--types", "a", "--catalog-bucket", "b"}, "are both given"},
		{[]string{"plan", "-f", "testdata/none.json"}, "no such file"},
		{[]string{"plan", "testdata/shop.yaml"}, `"testdata/shop.yaml" is not expected`},
		{[]string{"plan", "-f", "testdata/shop.yaml", "--output", "xml"}, `invalid argument "xml" for "-o, --output" flag: use table, json or yaml`},
		{[]string{"plan", "-f", "testdata/shop.yaml", "--colour"}, "unknown flag: --colour"},
		{[]string{"plan", "-f", "testdata/pools.yaml"}, "there is no pod that waits"},
		{[]string{"plan", "-f", "testdata/shop.yaml", "--nodepools", "testdata/shop.yaml"}, "is no NodePool"},
		{[]string{"plan", "-f", "testdata/shop.yaml", "--types", broken}, "schema is 9"},
		{[]string{"plam"}, `unknown command "plam"`},
	} {
		code, out, progress := run(c.args...)
		if code != 2 || out != "" || !strings.Contains(progress, c.want) {
			t.Errorf("%v: exit %d, prints %q, says %q, want %q", c.args, code, out, progress, c.want)
		}
	}
}

// A catalog given unpacked replaces the one built in.
func TestTypes(t *testing.T) {
	text, err := manifest.Gunzip(builtin.Data())
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "types.json")
	if err := os.WriteFile(path, bytes.ReplaceAll(text, []byte(`"onDemandUSD":0.096,`), []byte(`"onDemandUSD":0.5,`)), 0o600); err != nil {
		t.Fatal(err)
	}
	code, out, progress := run("plan", "-f", "testdata/shop.yaml", "--types", path, "--prices", "instances", "-o", "json")
	if code != 0 || !strings.Contains(out, `"hourlyUSD": 0.192`) {
		t.Errorf("exit %d, %s%s", code, progress, out)
	}
}

// A node costs what the bill says, its volume included, unless instances alone are asked for; other words are refused.
func TestPricesOfAPlan(t *testing.T) {
	for prices, want := range map[string]string{"full": `"nodeUSD": 0.00219`, "instances": `"hourlyUSD": 0.096,`} {
		code, out, progress := run("plan", "-f", "testdata/shop.yaml", "--prices", prices, "-o", "json")
		if code != 0 || !strings.Contains(out, want) {
			t.Errorf("--prices %s: exit %d, want %s in %s%s", prices, code, want, out, progress)
		}
	}
	if code, _, says := run("plan", "-f", "testdata/shop.yaml", "--prices", "all"); code != 2 || !strings.Contains(says, `--prices is "all"; it can be full or instances`) {
		t.Errorf("exit %d, says %s", code, says)
	}
}

// The plan says what it costs that preferences are kept: here a second node, for pods that would rather not share one.
func TestPreferencesOfAPlan(t *testing.T) {
	for want, affinity := range map[string]string{
		"2 new nodes, 0.1964 USD/h (volumes and addresses: 0.0044), 0 unschedulable; preferences kept: 0.0982 USD/h": ratherAlone,
		"1 new nodes, 0.0982 USD/h (volumes and addresses: 0.0022), 0 unschedulable;":                                "",
	} {
		file := twoPods(t, affinity)
		code, out, progress := run("plan", "-f", file)
		out = strings.Replace(masked(out), "packed in ...; ", "", 1)
		if code != 0 || !strings.Contains(out, want) || affinity == "" && strings.Contains(out, "preferences") {
			t.Errorf("exit %d, want %q in %s%s", code, want, out, progress)
		}
		code, out, _ = run("plan", "-f", file, "--output", "json")
		if code != 0 || strings.Contains(out, `"preferencesUSD": 0.09819`) != (affinity != "") {
			t.Errorf("exit %d, preferences cost half a node if pods have any, %q: %s", code, affinity, out)
		}
	}
}

// What the preferences of a cluster's pods cost is told as for those of a file.
func TestPreferencesOfAClustersPlan(t *testing.T) {
	for want, affinity := range map[string]string{"0.0982": ratherAlone, "0.0000": ""} {
		p := planSnapshot(snapshotOf(t, twoPods(t, affinity)), "live", func(string) *corev1.PodSpec { return nil }, terminalOutput{out: io.Discard, progress: io.Discard})
		if got := fmt.Sprintf("%.4f", p.PreferencesUSD); got != want || p.CountUnplaced() > 0 || p.PlanSeconds <= 0 {
			t.Errorf("with %q preferences cost %s, want %s, and %d pods have no place", affinity, got, want, p.CountUnplaced())
		}
	}
}

// ratherAlone is a preference of pods for nodes without others of their kind.
const ratherAlone = "affinity: {podAntiAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 1, podAffinityTerm: {topologyKey: kubernetes.io/hostname, labelSelector: {matchLabels: {app: web}}}}]}}, "

// twoPods is a file of two small pods with that in their spec, on nodes that would hold both.
func twoPods(t *testing.T, affinity string) string {
	t.Helper()
	const pools = `
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: general}
spec: {template: {spec: {nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}, requirements: [{key: node.kubernetes.io/instance-type, operator: In, values: [m5.large]}, {key: karpenter.sh/capacity-type, operator: In, values: [on-demand]}]}}}
`
	return written(t, "nodePools: pools.yaml\ngroups:\n- {name: web, count: 2, pod: {metadata: {labels: {app: web}}, spec: {"+affinity+
		"containers: [{name: a, resources: {requests: {cpu: 100m}}}]}}}\n", pools)
}
