package accept_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"joiner.sh/events"
	"joiner.sh/pkg/cli/accept"
	"joiner.sh/pkg/cli/doctor"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
)

var noon = time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)

func run() accept.Run {
	return accept.Run{Cluster: "demo", ID: accept.NewID("demo", noon), Types: []string{"t3.medium"}, Nodes: 5, Like: "default",
		Spec: map[string]any{"role": "nodes", "tags": map[string]any{"team": "a"}}}
}

func TestIDsTellClustersApart(t *testing.T) {
	if got, want := run().ID, "2a97516c-20261129-120000"; got != want {
		t.Errorf("id %s, want %s", got, want)
	}
	if accept.Owner("demo") == accept.Owner("demo2") {
		t.Error("two clusters have the same marks")
	}
}

// What a node may cost bounds how many there may be; unknown prices and large types are refused.
func TestTheLimitInUSDBoundsTheNodes(t *testing.T) {
	load := instancetypes.Catalog{Types: []instancetypes.Facts{{Name: "large", VCPU: 8, OnDemandUSD: 0.1}, {Name: "small", VCPU: 2, OnDemandUSD: 0.1},
		{Name: "smaller", VCPU: 2, OnDemandUSD: 0.04}, {Name: "unpriced", VCPU: 2}}}
	for _, c := range []struct {
		types   string
		usd     float64
		nodes   int
		dearest float64
		why     string
	}{
		{"small smaller", 1, 6, 0.1, ""},
		{"small smaller", 0.59, 5, 0.1, ""},
		{"small smaller", 0.49, 0, 0, "raise --max-usd"},
		{"large", 10, 0, 0, "large has 8 vCPU"},
		{"unpriced", 10, 0, 0, "the price of unpriced is not known"},
		{"nothing", 10, 0, 0, "the price of nothing is not known"},
	} {
		nodes, dearest, err := accept.LimitNodes(load, strings.Fields(c.types), c.usd)
		said := ""
		if err != nil {
			said = err.Error()
		}
		if nodes != c.nodes || dearest != c.dearest || !strings.Contains(said, c.why) || (c.why == "") != (err == nil) {
			t.Errorf("%s for USD %v: %d nodes of %v, %v", c.types, c.usd, nodes, dearest, err)
		}
	}
}

// The class keeps what the user's has, and both carry the mark; the user's is not touched.
func TestTheClassIsLikeTheUsersWithTheMark(t *testing.T) {
	r := run()
	spec := r.Class()["spec"].(map[string]any)
	if d := cmp.Diff(map[string]any{"role": "nodes", "tags": map[string]any{"team": "a", "joiner.sh/accept": r.ID}}, spec); d != "" {
		t.Errorf("class (-want +got):\n%s", d)
	}
	if d := cmp.Diff(map[string]any{"team": "a"}, r.Spec["tags"]); d != "" {
		t.Errorf("the user's tags (-want +got):\n%s", d)
	}
}

func TestWhatIsRefused(t *testing.T) {
	everywhere := []cluster.Toleration{{Operator: "Exists"}}
	fine := accept.Facts{Functions: []doctor.Function{{Name: "a", Found: true, Mode: "act", State: "Active"}}, Stack: "joiner-demo", StackStatus: "UPDATE_COMPLETE",
		Pods: []accept.Pod{
			{Name: "shop/web"}, {Name: "kube-system/proxy", OfNode: true, Tolerations: everywhere}, {Name: "shop/done", Ended: true, Tolerations: everywhere},
			{Name: "shop/elsewhere", Tolerations: everywhere, Selector: map[string]string{"karpenter.sh/nodepool": "default"}},
			{Name: "shop/labelled", Tolerations: everywhere, Selector: map[string]string{"team": "a"}},
			{Name: "shop/keyed", Tolerations: []cluster.Toleration{{Key: "gpu", Operator: "Exists"}}},
		}}
	for name, c := range map[string]struct {
		change func(f *accept.Facts)
		want   []string
	}{
		"nothing":      {func(*accept.Facts) {}, nil},
		"mode observe": {func(f *accept.Facts) { f.Functions[0].Mode = "observe" }, []string{"mode observe"}},
		"a deployment": {func(f *accept.Facts) { f.StackStatus = "UPDATE_IN_PROGRESS" }, []string{"stack joiner-demo is UPDATE_IN_PROGRESS"}},
		"a stack that failed": {func(f *accept.Facts) { f.StackStatus = "UPDATE_ROLLBACK_FAILED" },
			[]string{"stack joiner-demo is UPDATE_ROLLBACK_FAILED"}},
		"no stack":       {func(f *accept.Facts) { f.StackStatus = "" }, []string{"there is no stack joiner-demo"}},
		"not deployed":   {func(f *accept.Facts) { f.Functions[0] = doctor.Function{Name: "a"} }, []string{"Joiner is not deployed for cluster demo"}},
		"a function":     {func(f *accept.Facts) { f.Functions[0].State = "Pending" }, []string{"function a is Pending"}},
		"Karpenter":      {func(f *accept.Facts) { f.Leader = "karpenter-1" }, []string{"karpenter-1 holds Karpenter's leader lease"}},
		"an earlier run": {func(f *accept.Facts) { f.Existing = []string{"volume vol-1"} }, []string{"volume vol-1 is there already: joiner accept --cluster demo --clean"}},
		"a pod that tolerates everything": {func(f *accept.Facts) {
			f.Pods = append(f.Pods, accept.Pod{Name: "shop/agent", Tolerations: everywhere, Selector: map[string]string{"kubernetes.io/os": "linux"}})
		}, []string{"could go onto the nodes of the run: shop/agent;"}},
	} {
		f := fine
		f.Functions = append([]doctor.Function{}, fine.Functions...)
		c.change(&f)
		got := accept.Refusals(f, run())
		if len(got) != len(c.want) {
			t.Errorf("%s: %q", name, got)
			continue
		}
		for i := range got {
			if !strings.Contains(got[i], c.want[i]) {
				t.Errorf("%s: %q, want %q", name, got[i], c.want[i])
			}
		}
	}
}

func TestTheClassThatTheRunsOwnIsLike(t *testing.T) {
	all := []accept.Class{{Name: "z", Ready: true}, {Name: "b", Ready: true}, {Name: "a"}}
	for name, want := range map[string]string{"": "b", "z": "z", "a": "", "none": ""} {
		got, err := accept.ChooseClass(all, name)
		if got.Name != want || (err == nil) != (want != "") {
			t.Errorf("%q: %q, %v", name, got.Name, err)
		}
	}
}

// A notice is sent about an instance of which the cluster and EC2 both say that it is the run's own.
func TestANoticeIsForTheRunsOwnInstance(t *testing.T) {
	r := run()
	victim := accept.Claim{Name: "c1", Instance: "i-1"}
	own := func() accept.Target {
		return accept.Target{Instance: "i-1", Mark: r.ID, Claims: []string{"c0", "c1"}, State: "running", Spot: true,
			Tags: map[string]string{"joiner.sh/accept": r.ID, "karpenter.sh/nodepool": "joiner-accept", "eks:eks-cluster-name": "demo"}}
	}
	if why := accept.TargetProblems(own(), r, victim); len(why) > 0 {
		t.Errorf("its own: %q", why)
	}
	for want, spoil := range map[string]func(t *accept.Target){
		`instance "i-2" is not the one`:            func(t *accept.Target) { t.Instance = "i-2" },
		"NodeClaim c1 is not among":                func(t *accept.Target) { t.Claims = []string{"c0"} },
		`NodePool joiner-accept carries`:           func(t *accept.Target) { t.Mark = "other" },
		`carries the tag joiner.sh/accept="other"`: func(t *accept.Target) { t.Tags["joiner.sh/accept"] = "other" },
		`the instance is of NodePool "default"`:    func(t *accept.Target) { t.Tags["karpenter.sh/nodepool"] = "default" },
		`the instance is of cluster "prod"`:        func(t *accept.Target) { t.Tags["eks:eks-cluster-name"] = "prod" },
		"the instance is shutting-down":            func(t *accept.Target) { t.State = "shutting-down" },
		"it is no spot instance":                   func(t *accept.Target) { t.Spot = false },
	} {
		target := own()
		spoil(&target)
		if why := accept.TargetProblems(target, r, victim); len(why) != 1 || !strings.Contains(why[0], want) {
			t.Errorf("%q, want %q", why, want)
		}
	}
	if why := accept.TargetProblems(accept.Target{}, r, accept.Claim{}); len(why) < 6 {
		t.Errorf("nothing is known, and only %q is wrong", why)
	}
}

// The event differs from EC2's own in nothing but place, time and instance.
func TestTheNoticeIsAsEC2WritesIt(t *testing.T) {
	sample, err := events.KindSpotInterruption.Sample()
	if err != nil {
		t.Fatal(err)
	}
	got, err := accept.NoticeEvent(sample, accept.Place{Partition: "aws", Region: "eu-west-1", Account: "123456789012"}, "eu-west-1b", "i-1", noon)
	if err != nil {
		t.Fatal(err)
	}
	var e map[string]any
	if err := json.Unmarshal(got, &e); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{"version": "0", "id": e["id"], "detail-type": "EC2 Spot Instance Interruption Warning", "source": "aws.ec2",
		"account": "123456789012", "time": "2026-11-29T12:00:00Z", "region": "eu-west-1", "resources": []any{"arn:aws:ec2:eu-west-1b:instance/i-1"},
		"detail": map[string]any{"instance-id": "i-1", "instance-action": "terminate"}}
	if d := cmp.Diff(want, e); d != "" {
		t.Errorf("event (-want +got):\n%s", d)
	}
}

func TestTheWayOfANotice(t *testing.T) {
	const alias = "arn:aws:lambda:us-west-2:111122223333:function:joiner-demo-spotinterruption:live"
	const policy = `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":"*","Action":["a"]},{"Sid":"s","Effect":"Allow","Principal":{"Service":"events.amazonaws.com"},
		"Action":"lambda:InvokeFunction","Resource":"x","Condition":{"ArnLike":{"AWS:SourceArn":"arn:rule/spot"}}}]}`
	good := accept.Rule{Name: "spot", ARN: "arn:rule/spot", Enabled: true, Matches: true, Targets: []string{alias}}
	with := func(change func(r *accept.Rule)) []accept.Rule {
		r := good
		change(&r)
		return []accept.Rule{r}
	}
	for name, c := range map[string]struct {
		rules  []accept.Rule
		policy string
		want   string
	}{
		"right":           {[]accept.Rule{good}, policy, ""},
		"one of two":      {append(with(func(r *accept.Rule) { r.Matches = false }), good), policy, ""},
		"no rule":         {nil, policy, "no rule of EventBridge"},
		"disabled":        {with(func(r *accept.Rule) { r.Enabled = false }), policy, "rule spot is disabled"},
		"another pattern": {with(func(r *accept.Rule) { r.Matches = false }), policy, "does not match a spot notice"},
		"another target":  {with(func(r *accept.Rule) { r.Targets = nil }), policy, "has no target"},
		"another rule":    {with(func(r *accept.Rule) { r.ARN = "arn:rule/other" }), policy, "does not let rule spot in"},
		"no policy":       {[]accept.Rule{good}, "", "does not let rule spot in"},
	} {
		why := strings.Join(accept.RouteProblems(alias, c.rules, c.policy), ", ")
		if !strings.Contains(why, c.want) || (c.want == "") != (why == "") {
			t.Errorf("%s: %q, want %q", name, why, c.want)
		}
	}
}

// Instances come and go by themselves; NodePools, rules and policies do not.
func TestWhatWasThereBeforeIsCompared(t *testing.T) {
	before := []accept.Item{{Kind: "NodePool", ID: "a", State: "1"}, {Kind: "NodePool", ID: "b", State: "1"}, {Kind: "rule", ID: "r", State: "on"}, {Kind: "instance", ID: "i-1"}, {Kind: "instance", ID: "i-2"}}
	after := []accept.Item{{Kind: "NodePool", ID: "a", State: "1"}, {Kind: "NodePool", ID: "b", State: "2"}, {Kind: "instance", ID: "i-2"}, {Kind: "instance", ID: "i-3"}}
	changed, notes := accept.CompareInventories(before, after)
	if d := cmp.Diff([]string{"NodePool b is not as it was", "rule r is gone"}, changed); d != "" {
		t.Errorf("changed (-want +got):\n%s", d)
	}
	if d := cmp.Diff("of other NodePools went meanwhile: instance i-1", accept.GoneNote(notes)); d != "" {
		t.Errorf("note (-want +got):\n%s", d)
	}
}
