package settings_test

import (
	"encoding/base64"
	"errors"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"joiner.sh/pkg/settings"
	"joiner.sh/pkg/testing/readme"
)

// env answers lookups from a map, as a process environment would.
func env(m map[string]string) func(string) string { return func(k string) string { return m[k] } }

func TestDefaultsAreWhatTheSpecSays(t *testing.T) {
	got, err := settings.ParseSettings(env(map[string]string{"CLUSTER_NAME": "demo"}))
	if err != nil {
		t.Fatal(err)
	}
	want := settings.Values{
		ClusterName:             "demo",
		NominatedPodsOnly:       true,
		Rebalance:               settings.RebalanceEvent,
		RebalanceMinAge:         15 * time.Minute,
		Disruption:              settings.DisruptionAct,
		PodEvictionCostUSD:      0.0012,
		DriftedPerCommand:       1,
		WatchDuration:           50 * time.Second,
		Trigger:                 settings.TriggerSchedule,
		BatchIdle:               time.Second,
		VMMemoryOverheadPercent: 0.075,
		PerNodeOverheadUSD:      0,
		MaxNodeClaimsPerPass:    100,
		SpotToSpotConsolidation: true,
		PreferencePolicy:        settings.PreferenceRespect,
		MinValuesPolicy:         settings.MinValuesStrict,
		Mode:                    "act",
		Manifests:               "install",
		KarpenterNamespaces:     []string{"kube-system"},
		ReservedCapacity:        true,
		DryRunValidation:        true,
		DecisionLog:             "log",
		LogLevel:                "info",
		RemoteWrite:             settings.RemoteWrite{Detail: "nodes"},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("defaults (-want +got):\n%s", d)
	}
}

func TestEverySettingReachesItsField(t *testing.T) {
	ca := base64.StdEncoding.EncodeToString([]byte("-----BEGIN CERTIFICATE-----\nMAA=\n-----END CERTIFICATE-----\n"))
	got, err := settings.ParseSettings(env(map[string]string{
		"CLUSTER_NAME": "blue", "CLUSTER_ENDPOINT": "https://api.example:443", "CLUSTER_CA_BUNDLE": ca,
		"CATALOG_BUCKET": "bucket", "PROVISION_FUNCTION": "p", "LIFECYCLE_FUNCTION": "l",
		"WATCH_DURATION": "0s", "BATCH_IDLE_DURATION": "2s", "TRIGGER": "push", "PUSH_PATH": "abcdefghijklmnopqrstuvwxyz012345", "NOMINATED_PODS_ONLY": "false",
		"NODE_REPAIR":                "true",
		"VM_MEMORY_OVERHEAD_PERCENT": "0", "RESERVED_ENIS": "2", "MAX_NODE_CLAIMS_PER_PASS": "7", "PER_NODE_OVERHEAD_USD": "0.01",
		"COMMITMENTS":       "0.5",
		"PREFERENCE_POLICY": "Ignore", "MIN_VALUES_POLICY": "BestEffort", "ISOLATED_VPC": "true", "ENABLE_ZONAL_SHIFT": "true", "DRY_RUN_VALIDATION": "false", "LOG_LEVEL": "debug", "DECISION_LOG": "store",
		"REBALANCE": "replace", "REBALANCE_MIN_AGE": "5m",
		"MODE": "observe", "MANIFESTS": "external", "KARPENTER_NAMESPACES": "infra",
		"DISRUPTION": "report", "POD_EVICTION_COST_USD": "0.01", "MAX_DRIFTED_NODES_PER_COMMAND": "6",
		"SPOT_TO_SPOT_CONSOLIDATION": "false", "RESERVED_CAPACITY": "false",
		"REMOTE_WRITE_URL": "https://grafana.example/push", "REMOTE_WRITE_SECRET": "arn:aws:secretsmanager:us-west-2:111122223333:secret:a-b", "REMOTE_WRITE_DETAIL": "all",
	}))
	if err != nil {
		t.Fatal(err)
	}
	want := settings.Values{
		ClusterName: "blue", ClusterEndpoint: "https://api.example:443", ClusterCABundle: ca,
		CatalogBucket: "bucket", ProvisionFunction: "p", LifecycleFunction: "l",
		Trigger: "push", PushPath: "abcdefghijklmnopqrstuvwxyz012345",
		NodeRepair:   true,
		ReservedENIs: 2, MaxNodeClaimsPerPass: 7, PerNodeOverheadUSD: 0.01, Commitments: 0.5, PreferencePolicy: settings.PreferenceIgnore, MinValuesPolicy: settings.MinValuesBestEffort,
		IsolatedVPC: true, ZonalShift: true, DecisionLog: "store", LogLevel: "debug",
		Rebalance: settings.RebalanceReplace, RebalanceMinAge: 5 * time.Minute,
		Mode: "observe", Manifests: "external", KarpenterNamespaces: []string{"infra"},
		Disruption: settings.DisruptionReport, PodEvictionCostUSD: 0.01, DriftedPerCommand: 6, BatchIdle: 2 * time.Second,
		RemoteWrite: settings.RemoteWrite{URL: "https://grafana.example/push", Secret: "arn:aws:secretsmanager:us-west-2:111122223333:secret:a-b", Detail: "all"},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("values (-want +got):\n%s", d)
	}
}

func TestEveryBadValueIsNamedWithWhatIsAllowed(t *testing.T) {
	_, err := settings.ParseSettings(env(map[string]string{
		"CLUSTER_ENDPOINT": "http://api.example", "CLUSTER_CA_BUNDLE": "bm90IHBlbQ==", "WATCH_DURATION": "2m", "TRIGGER": "yes", "PUSH_PATH": "short",
		"BATCH_IDLE_DURATION": "3 seconds", "COMMITMENTS": "2", "VM_MEMORY_OVERHEAD_PERCENT": "NaN", "RESERVED_ENIS": "-1",
		"MAX_NODE_CLAIMS_PER_PASS": "0", "PREFERENCE_POLICY": "ignore", "MIN_VALUES_POLICY": "best",
	}))
	var invalid *settings.InvalidError
	if !errors.As(err, &invalid) {
		t.Fatalf("got error %v, want *InvalidError", err)
	}
	want := []string{
		`clusterName (CLUSTER_NAME) is required; allowed: the name of the EKS cluster, 1 to 100 letters, digits, - and _, starting with a letter or a digit`,
		`clusterEndpoint (CLUSTER_ENDPOINT) is "http://api.example"; allowed: an https URL`,
		`clusterCABundle (CLUSTER_CA_BUNDLE) is "bm90IHBlbQ=="; allowed: the certificate authority of the cluster as eks:DescribeCluster prints it, base64 of a PEM certificate`,
		`pushPath (PUSH_PATH) is "short"; allowed: at least 32 letters and digits`,
		`watchDuration (WATCH_DURATION) is "2m"; allowed: a duration such as 90s, 3m or 1h30m, from 0s to 55s`,
		`batchIdle (BATCH_IDLE_DURATION) is "3 seconds"; allowed: a duration such as 90s, 3m or 1h30m, from 0s to 10s`,
		`trigger (TRIGGER) is "yes"; allowed: schedule, watch or push`,
		`vmMemoryOverheadPercent (VM_MEMORY_OVERHEAD_PERCENT) is "NaN"; allowed: a number from 0 to 0.99, where 0.075 means 7.5 %`,
		`reservedENIs (RESERVED_ENIS) is "-1"; allowed: a whole number from 0 to 100`,
		`maxNodeClaimsPerPass (MAX_NODE_CLAIMS_PER_PASS) is "0"; allowed: a whole number from 1 to 1000`,
		`commitments (COMMITMENTS) is "2"; allowed: true, false or a number from 0.01 to 1`,
		`preferencePolicy (PREFERENCE_POLICY) is "ignore"; allowed: Respect or Ignore`,
		`minValuesPolicy (MIN_VALUES_POLICY) is "best"; allowed: Strict or BestEffort`,
	}
	if d := cmp.Diff(want, invalid.Problems); d != "" {
		t.Errorf("problems (-want +got):\n%s", d)
	}
}

func TestClusterNamesThatEKSRefusesAreRefused(t *testing.T) {
	for name, ok := range map[string]bool{
		"demo": true, "Prod_eu-1": true, strings.Repeat("a", 100): true, "1st": true,
		strings.Repeat("a", 101): false, "-a": false, "_a": false, "a.b": false, "a b": false,
	} {
		_, err := settings.ParseSettings(env(map[string]string{"CLUSTER_NAME": name}))
		if (err == nil) != ok {
			t.Errorf("cluster name %q: error %v, want accepted %t", name, err, ok)
		}
	}
}

func TestStackSettings(t *testing.T) {
	got, err := settings.ParseStack(env(nil))
	if err != nil {
		t.Fatal(err)
	}
	want := settings.StackValues{Architecture: "arm64", LogRetentionDays: 14, OnDelete: "keep", Tracing: true, Dashboard: true, FunctionMemory: settings.Auto, InterruptionHandling: true, InterruptionConcurrency: settings.Auto, TerminationProtection: true, RolePath: "/", Alarms: "all"}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("defaults (-want +got):\n%s", d)
	}
	_, err = settings.ParseStack(env(map[string]string{"architecture": "amd64", "nodeRole": "a/b", "logRetentionDays": "2", "functionMemory": "511", "interruptionConcurrency": "-1"}))
	wantErr := "settings: architecture is \"amd64\"; allowed: arm64 or x86_64\n" +
		"settings: nodeRole is \"a/b\"; allowed: the name, without path, of an IAM role that exists, at most 64 letters, digits and _+=,.@-\n" +
		"settings: logRetentionDays is \"2\"; allowed: 1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365, 400, 545, 731, 1096, 1827, 2192, 2557, 2922, 3288 or 3653\n" +
		"settings: functionMemory is \"511\"; allowed: a whole number from 512 to 10240, or auto\n" +
		"settings: interruptionConcurrency is \"-1\"; allowed: a whole number from 0 to 1000, or auto"
	if err == nil || err.Error() != wantErr {
		t.Errorf("got error\n%v\nwant\n%s", err, wantErr)
	}
}

// TestSwitches: true, false, or more closely what is switched on.
func TestSwitches(t *testing.T) {
	all := []string{"ec2", "ssm", "eks", "lambda"}
	for _, c := range []struct {
		windows, endpoints string
		want               settings.StackValues
	}{
		{"", "", settings.StackValues{}},
		{"false", "false", settings.StackValues{}},
		{"true", "true", settings.StackValues{WindowsNodes: true, VPCEndpoints: all}},
		{"nodes", "ssm, eks", settings.StackValues{WindowsNodeRole: "nodes", VPCEndpoints: []string{"ssm", "eks"}}},
	} {
		got, err := settings.ParseStack(env(map[string]string{"windowsNodes": c.windows, "vpcEndpoints": c.endpoints}))
		if err != nil {
			t.Fatal(err)
		}
		got = settings.StackValues{WindowsNodes: got.WindowsNodes, WindowsNodeRole: got.WindowsNodeRole,
			VPCEndpoints: got.VPCEndpoints}
		if d := cmp.Diff(c.want, got); d != "" {
			t.Errorf("windowsNodes %q, vpcEndpoints %q (-want +got):\n%s", c.windows, c.endpoints, d)
		}
	}
	for name, text := range map[string]string{"windowsNodes": "a/b", "vpcEndpoints": "s3"} {
		if _, err := settings.ParseStack(env(map[string]string{name: text})); err == nil {
			t.Errorf("%s %q was accepted", name, text)
		}
	}
	for text, want := range map[string]float64{"": 0, "false": 0, "true": 1, "0.8": 0.8} {
		got, err := settings.ParseSettings(env(map[string]string{"CLUSTER_NAME": "demo", "COMMITMENTS": text}))
		if err != nil || got.Commitments != want {
			t.Errorf("commitments %q: %v, %v", text, got.Commitments, err)
		}
	}
}

// TestRemovedSettings are none any more, and their names say what there is instead.
func TestRemovedSettings(t *testing.T) {
	for _, s := range settings.AllSettings() {
		if _, removed := settings.Removed(s.Name); removed && !s.ByTests {
			t.Errorf("%s is a setting that is refused as removed", s.Name)
		}
	}
	for name, want := range map[string]string{"tracesURL": "decisionLog", "tracesSecret": "decisionLog", "decisionLogDays": "logRetentionDays",
		"podInterruptionCostUSD": "price-capacity-optimized", "spotRecordBucket": "spot-pools/", "packingIterations": "--search-steps",
		"garbageCollectionMinAge": "30s"} {
		if instead, removed := settings.Removed(name); !removed || !strings.Contains(instead, want) {
			t.Errorf("%s: %t, %q", name, removed, instead)
		}
	}
}

func TestListsInSettings(t *testing.T) {
	got, err := settings.ParseStack(env(map[string]string{"nodePolicies": "A, arn:aws:iam::123456789012:policy/b/c", "tags": "team=red, cost center=", "imageParameters": "/golden/*, al2"}))
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]string{"A", "arn:aws:iam::123456789012:policy/b/c"}, got.NodePolicies); d != "" {
		t.Errorf("nodePolicies (-want +got):\n%s", d)
	}
	if d := cmp.Diff([]settings.Pair{{Key: "team", Value: "red"}, {Key: "cost center", Value: ""}}, got.Tags); d != "" {
		t.Errorf("tags (-want +got):\n%s", d)
	}
	if d := cmp.Diff([]string{"/golden/*", "al2"}, got.ImageParameters); d != "" {
		t.Errorf("imageParameters (-want +got):\n%s", d)
	}
	for name, bad := range map[string][]string{"nodePolicies": {"A,A", "A,,B", "a b"}, "tags": {"team", "aws:x=1", "a=1,a=2", "=1"},
		"imageParameters": {"a b", "/a//b", "arn:aws:ssm:us-west-2:111122223333:parameter/a", "a,a"}} {
		for _, text := range bad {
			if _, err := settings.ParseStack(env(map[string]string{name: text})); err == nil {
				t.Errorf("%s %q was accepted", name, text)
			}
		}
	}
}

func TestEverySettingIsDescribedOnce(t *testing.T) {
	names, envs := map[string]bool{}, map[string]bool{}
	camel := regexp.MustCompile(`^[a-z][A-Za-z]+$`)
	upper := regexp.MustCompile(`^[A-Z][A-Z_]+$`)
	for _, s := range settings.AllSettings() {
		if !camel.MatchString(s.Name) || names[s.Name] {
			t.Errorf("name %q is not camelCase or not unique", s.Name)
		}
		if s.Env != "" && (!upper.MatchString(s.Env) || envs[s.Env]) {
			t.Errorf("%s: environment variable %q is not upper case or not unique", s.Name, s.Env)
		}
		if s.Unit == "" || s.Allowed == "" || !strings.HasSuffix(s.Doc, ".") {
			t.Errorf("%s lacks a unit, what is allowed, or a sentence: %+v", s.Name, s)
		}
		if s.Required && s.Default != "" {
			t.Errorf("%s is required and has a default", s.Name)
		}
		names[s.Name], envs[s.Env] = true, true
		if found, ok := settings.FindSetting(s.Name); !ok || found != s {
			t.Errorf("Find(%q) does not find it", s.Name)
		}
		if (s.Group == "") != s.ByStack {
			t.Errorf("%s is in the group %q", s.Name, s.Group)
		}
		if long := readme.LongSentences(s.Doc); len(long) > 0 {
			t.Errorf("%s: %s", s.Name, long)
		}
	}
}
