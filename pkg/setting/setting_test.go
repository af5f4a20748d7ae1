package setting_test

import (
	"encoding/base64"
	"errors"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"joiner/pkg/setting"
)

// env answers lookups from a map, as a process environment would.
func env(m map[string]string) func(string) string { return func(k string) string { return m[k] } }

func TestDefaultsAreWhatTheSpecSays(t *testing.T) {
	got, err := setting.Parse(env(map[string]string{"CLUSTER_NAME": "demo"}))
	if err != nil {
		t.Fatal(err)
	}
	want := setting.Values{
		ClusterName:             "demo",
		HoldNodes:               true,
		SoldOutFor:              3 * time.Minute,
		Rebalance:               setting.RebalanceEvent,
		RebalanceQuarantine:     30 * time.Minute,
		RebalanceMinAge:         15 * time.Minute,
		RebalancesPerHour:       20,
		Disruption:              setting.DisruptionAct,
		PaybackTime:             time.Hour,
		PodMoveUSD:              0.0012,
		DisruptionSteps:         24,
		DisruptionWaves:         1,
		DriftedPerCommand:       1,
		Stay:                    50 * time.Second,
		BatchIdle:               time.Second,
		BatchMax:                10 * time.Second,
		LaunchTimeout:           5 * time.Minute,
		RegistrationTimeout:     15 * time.Minute,
		InitializationTimeout:   30 * time.Minute,
		DetachTimeout:           30 * time.Minute,
		MinLeakAge:              30 * time.Second,
		VMMemoryOverheadPercent: 0.075,
		MaxClaimsPerTick:        100,
		SearchSteps:             400,
		NodeCostUSD:             0.0002,
		PriceMargin:             1.2,
		SpotTypes:               15,
		SpotPoolShare:           0.8,
		SavingsPlanShare:        1,
		PreferencePolicy:        setting.PreferenceRespect,
		MinValuesPolicy:         setting.MinValuesStrict,
		CatalogMaxAge:           24 * time.Hour,
		Mode:                    "act",
		KarpenterNamespaces:     []string{"kube-system", "karpenter"},
		RehearseLaunches:        true,
		DecisionLog:             "log",
		LogLevel:                "info",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("defaults (-want +got):\n%s", d)
	}
}

func TestEverySettingReachesItsField(t *testing.T) {
	ca := base64.StdEncoding.EncodeToString([]byte("-----BEGIN CERTIFICATE-----\nMAA=\n-----END CERTIFICATE-----\n"))
	got, err := setting.Parse(env(map[string]string{
		"CLUSTER_NAME": "blue", "CLUSTER_ENDPOINT": "https://api.example:443", "CLUSTER_CA_BUNDLE": ca,
		"CATALOG_BUCKET": "bucket", "PROVISION_FUNCTION": "p", "LIFECYCLE_FUNCTION": "l",
		"SOLD_OUT_FOR": "1m", "STAY": "0s", "BATCH_IDLE_DURATION": "2s", "BATCH_MAX_DURATION": "20s", "ALWAYS_WATCH": "true", "PUSH": "true", "PUSH_PATH": "abcdefghijklmnopqrstuvwxyz012345", "HOLD_NODES": "false", "LAUNCH_TIMEOUT": "2m",
		"REGISTRATION_TIMEOUT": "3m", "INITIALIZATION_TIMEOUT": "4m", "MIN_LEAK_AGE": "1m30s", "DETACH_TIMEOUT": "0s", "NODE_REPAIR": "true",
		"VM_MEMORY_OVERHEAD_PERCENT": "0", "RESERVED_ENIS": "2", "MAX_CLAIMS_PER_TICK": "7", "SEARCH_STEPS": "90",
		"NODE_COST_USD": "0.01", "PRICE_MARGIN": "1.5", "SPOT_TYPES": "9", "SPOT_POOL_SHARE": "0.4", "COMMITMENTS": "true", "SAVINGS_PLAN_SHARE": "0.5",
		"PREFERENCE_POLICY": "Ignore", "MIN_VALUES_POLICY": "BestEffort", "CATALOG_MAX_AGE": "1h", "ISOLATED_VPC": "true", "ENABLE_ZONAL_SHIFT": "true", "REHEARSE_LAUNCHES": "false", "LOG_LEVEL": "debug", "DECISION_LOG": "store",
		"REBALANCE": "replace", "REBALANCE_QUARANTINE": "10m", "REBALANCE_MIN_AGE": "5m", "REBALANCES_PER_HOUR": "3",
		"MODE": "observe", "KARPENTER_NAMESPACES": "infra",
		"DISRUPTION": "report", "PAYBACK_TIME": "2h", "POD_MOVE_USD": "0.01", "DISRUPTION_STEPS": "5", "DISRUPTION_WAVES": "4", "MAX_DRIFTED_NODES_PER_COMMAND": "6",
	}))
	if err != nil {
		t.Fatal(err)
	}
	want := setting.Values{
		ClusterName: "blue", ClusterEndpoint: "https://api.example:443", ClusterCABundle: ca,
		CatalogBucket: "bucket", ProvisionFunction: "p", LifecycleFunction: "l",
		SoldOutFor: time.Minute, AlwaysWatch: true, Push: true, PushPath: "abcdefghijklmnopqrstuvwxyz012345", LaunchTimeout: 2 * time.Minute,
		RegistrationTimeout: 3 * time.Minute, InitializationTimeout: 4 * time.Minute, MinLeakAge: 90 * time.Second, NodeRepair: true,
		ReservedENIs: 2, MaxClaimsPerTick: 7, SearchSteps: 90, NodeCostUSD: 0.01, PriceMargin: 1.5, SpotTypes: 9, SpotPoolShare: 0.4, Commitments: true, SavingsPlanShare: 0.5, PreferencePolicy: setting.PreferenceIgnore, MinValuesPolicy: setting.MinValuesBestEffort,
		CatalogMaxAge: time.Hour, IsolatedVPC: true, ZonalShift: true, DecisionLog: "store", LogLevel: "debug",
		Rebalance: setting.RebalanceReplace, RebalanceQuarantine: 10 * time.Minute, RebalanceMinAge: 5 * time.Minute, RebalancesPerHour: 3,
		Mode: "observe", KarpenterNamespaces: []string{"infra"},
		Disruption: setting.DisruptionReport, PaybackTime: 2 * time.Hour, PodMoveUSD: 0.01, DisruptionSteps: 5, DisruptionWaves: 4, DriftedPerCommand: 6, BatchIdle: 2 * time.Second, BatchMax: 20 * time.Second,
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("values (-want +got):\n%s", d)
	}
}

func TestEveryBadValueIsNamedWithWhatIsAllowed(t *testing.T) {
	_, err := setting.Parse(env(map[string]string{
		"CLUSTER_ENDPOINT": "http://api.example", "CLUSTER_CA_BUNDLE": "bm90IHBlbQ==", "STAY": "2m", "ALWAYS_WATCH": "yes", "PUSH_PATH": "short",
		"SOLD_OUT_FOR": "3 minutes", "VM_MEMORY_OVERHEAD_PERCENT": "NaN", "RESERVED_ENIS": "-1",
		"MAX_CLAIMS_PER_TICK": "0", "SEARCH_STEPS": "many", "PRICE_MARGIN": "0.9", "SPOT_POOL_SHARE": "NaN", "PREFERENCE_POLICY": "ignore", "MIN_VALUES_POLICY": "best",
	}))
	var invalid *setting.InvalidError
	if !errors.As(err, &invalid) {
		t.Fatalf("got error %v, want *InvalidError", err)
	}
	want := []string{
		`clusterName (CLUSTER_NAME) is required; allowed: the name of the EKS cluster, 1 to 40 letters, digits, - and _, starting with a letter`,
		`clusterEndpoint (CLUSTER_ENDPOINT) is "http://api.example"; allowed: an https URL`,
		`clusterCABundle (CLUSTER_CA_BUNDLE) is "bm90IHBlbQ=="; allowed: the certificate authority of the cluster as eks:DescribeCluster prints it, base64 of a PEM certificate`,
		`pushPath (PUSH_PATH) is "short"; allowed: at least 32 letters and digits`,
		`stay (STAY) is "2m"; allowed: a duration such as 90s, 3m or 1h30m, from 0s to 55s`,
		`alwaysWatch (ALWAYS_WATCH) is "yes"; allowed: true or false`,
		`soldOutFor (SOLD_OUT_FOR) is "3 minutes"; allowed: a duration such as 90s, 3m or 1h30m, from 10s to 1h`,
		`vmMemoryOverheadPercent (VM_MEMORY_OVERHEAD_PERCENT) is "NaN"; allowed: a number from 0 to 0.99, where 0.075 means 7.5 %`,
		`reservedENIs (RESERVED_ENIS) is "-1"; allowed: a whole number from 0 to 100`,
		`maxClaimsPerTick (MAX_CLAIMS_PER_TICK) is "0"; allowed: a whole number from 1 to 1000`,
		`searchSteps (SEARCH_STEPS) is "many"; allowed: a whole number from 0 to 100000`,
		`priceMargin (PRICE_MARGIN) is "0.9"; allowed: a number from 1 to 10`,
		`spotPoolShare (SPOT_POOL_SHARE) is "NaN"; allowed: a number from 0.05 to 1`,
		`preferencePolicy (PREFERENCE_POLICY) is "ignore"; allowed: Respect or Ignore`,
		`minValuesPolicy (MIN_VALUES_POLICY) is "best"; allowed: Strict or BestEffort`,
	}
	if d := cmp.Diff(want, invalid.Problems); d != "" {
		t.Errorf("problems (-want +got):\n%s", d)
	}
}

func TestClusterNamesThatMakeNoLegalResourceNamesAreRefused(t *testing.T) {
	for name, ok := range map[string]bool{
		"demo": true, "Prod_eu-1": true, strings.Repeat("a", 40): true,
		strings.Repeat("a", 41): false, "1st": false, "a.b": false, "a b": false,
	} {
		_, err := setting.Parse(env(map[string]string{"CLUSTER_NAME": name}))
		if (err == nil) != ok {
			t.Errorf("cluster name %q: error %v, want accepted %t", name, err, ok)
		}
	}
}

func TestStackSettings(t *testing.T) {
	got, err := setting.ParseStack(env(nil))
	if err != nil {
		t.Fatal(err)
	}
	want := setting.StackValues{Architecture: "arm64", LogRetentionDays: 14, DecisionLogDays: 14, OnDelete: "keep", SleepTimeZone: "UTC", DistFolder: ".local/dist", Tracing: true, Dashboard: true, FunctionMemory: 512, NoticeConcurrency: 100,
		UnplacedAlarm: 15 * time.Minute, CatalogAlarm: 6 * time.Hour}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("defaults (-want +got):\n%s", d)
	}
	_, err = setting.ParseStack(env(map[string]string{"architecture": "amd64", "nodeRole": "a/b", "logRetentionDays": "2", "functionMemory": "511", "noticeConcurrency": "-1"}))
	wantErr := "settings: architecture is \"amd64\"; allowed: arm64 or x86_64\n" +
		"settings: nodeRole is \"a/b\"; allowed: the name, without path, of an IAM role that exists, at most 64 letters, digits and _+=,.@-\n" +
		"settings: logRetentionDays is \"2\"; allowed: 1, 3, 5, 7, 14, 30, 60, 90, 180 or 365\n" +
		"settings: functionMemory is \"511\"; allowed: a whole number from 512 to 10240\n" +
		"settings: noticeConcurrency is \"-1\"; allowed: a whole number from 0 to 1000"
	if err == nil || err.Error() != wantErr {
		t.Errorf("got error\n%v\nwant\n%s", err, wantErr)
	}
}

func TestListsInSettings(t *testing.T) {
	got, err := setting.ParseStack(env(map[string]string{"nodePolicies": "A, arn:aws:iam::123456789012:policy/b/c", "nodeTags": "team=red, cost center=", "imageParameters": "/golden/*, al2"}))
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]string{"A", "arn:aws:iam::123456789012:policy/b/c"}, got.NodePolicies); d != "" {
		t.Errorf("nodePolicies (-want +got):\n%s", d)
	}
	if d := cmp.Diff([]setting.Pair{{Key: "team", Value: "red"}, {Key: "cost center", Value: ""}}, got.NodeTags); d != "" {
		t.Errorf("nodeTags (-want +got):\n%s", d)
	}
	if d := cmp.Diff([]string{"/golden/*", "al2"}, got.ImageParameters); d != "" {
		t.Errorf("imageParameters (-want +got):\n%s", d)
	}
	for name, bad := range map[string][]string{"nodePolicies": {"A,A", "A,,B", "a b"}, "nodeTags": {"team", "aws:x=1", "a=1,a=2", "=1"},
		"imageParameters": {"a b", "/a//b", "arn:aws:ssm:us-west-2:111122223333:parameter/a", "a,a"}} {
		for _, text := range bad {
			if _, err := setting.ParseStack(env(map[string]string{name: text})); err == nil {
				t.Errorf("%s %q was accepted", name, text)
			}
		}
	}
}

func TestEverySettingIsDescribedOnce(t *testing.T) {
	names, envs := map[string]bool{}, map[string]bool{}
	camel := regexp.MustCompile(`^[a-z][A-Za-z]+$`)
	upper := regexp.MustCompile(`^[A-Z][A-Z_]+$`)
	for _, s := range setting.All() {
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
		if found, ok := setting.Find(s.Name); !ok || found != s {
			t.Errorf("Find(%q) does not find it", s.Name)
		}
		if !strings.Contains(setting.Markdown(), "| `"+s.Name+"` |") {
			t.Errorf("%s is missing from the table", s.Name)
		}
	}
}
