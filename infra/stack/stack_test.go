package stack_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/aws/aws-cdk-go/awscdk/v2/assertions"
	"github.com/aws/jsii-runtime-go"
	"github.com/cockroachdb/datadriven"
	"github.com/google/go-cmp/cmp"

	"joiner.sh/pkg/testing/syntax"
)

// TestTemplate shows the template in words. Read testdata as the review of the stack: who may do what, what wakes whom.
func TestTemplate(t *testing.T) {
	stacks := map[string]template{
		"testdata": words(t, mustSynth(t, map[string]any{"clusterName": "demo", "distFolder": placeholders(t), "batchIdle": "2s", "trigger": "watch"})),
		"testdata/push": words(t, mustSynth(t, map[string]any{"clusterName": "demo", "distFolder": placeholders(t), "trigger": "push",
			"vpcID": "vpc-0123456789abcdef0", "subnetIDs": "subnet-0123456789abcdef0"})),
	}
	known := syntax.NewGrammar(nil, "resources about=", "functions about=", "rules about=", "access about=", "storage about=", "order about=", "alarms about=",
		"environment about=", "permissions role= about=")
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		demo := stacks[filepath.Dir(path)]
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			if err := known.Check(d); err != nil {
				d.Fatalf(t, "%v", err)
			}
			show := map[string]func() string{
				"resources": demo.resources, "functions": demo.functions, "rules": demo.rules, "access": demo.access,
				"storage": demo.storage, "order": demo.order, "alarms": func() string { return demo.alarms(t) }, "environment": demo.environment,
				"permissions": func() string {
					var id string
					d.ScanArgs(t, "role", &id)
					return demo.permissions(id)
				},
			}[d.Cmd]
			var about string
			if d.HasArg("about") {
				d.ScanArgs(t, "about", &about)
			}
			return matching(show(), about)
		})
	})
}

// matching leaves of a text the lines that name something, with the indented ones below them.
func matching(text, name string) string {
	var b strings.Builder
	kept := false
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, "  ") {
			kept = strings.Contains(strings.ToLower(line), name)
		}
		if kept {
			b.WriteString(line)
		}
	}
	return b.String()
}

func TestX8664UsesTheOtherBinaries(t *testing.T) {
	tmpl := mustSynth(t, map[string]any{"clusterName": "demo", "architecture": "x86_64", "distFolder": placeholders(t)})
	tmpl.AllResourcesProperties(jsii.String("AWS::Lambda::Function"), map[string]any{"Architectures": []string{"x86_64"}})
}

func TestAGivenNodeRoleIsPassedAndNotMade(t *testing.T) {
	tmpl := mustSynth(t, map[string]any{"clusterName": "demo", "nodeRole": "workers", "distFolder": placeholders(t)})
	tmpl.ResourcePropertiesCountIs(jsii.String("AWS::EKS::AccessEntry"), map[string]any{"Type": "EC2_LINUX"}, jsii.Number(0))
	tmpl.ResourcePropertiesCountIs(jsii.String("AWS::IAM::Role"),
		map[string]any{"RoleName": "KarpenterNodeRole-demo"}, jsii.Number(0))
	got := words(t, tmpl).permissions("Provision")
	want := "PassNodeRole: iam:PassRole\n  on arn:${AWS::Partition}:iam::${AWS::AccountId}:role/workers\n"
	if !strings.Contains(got, want) {
		t.Errorf("permissions of provision lack\n%s\nthey are\n%s", want, got)
	}
}

func TestSeveralClusters(t *testing.T) {
	context := func(more map[string]any) map[string]any {
		out := map[string]any{"distFolder": placeholders(t), "logRetentionDays": 30,
			"clusters": []any{map[string]any{"clusterName": "blue"}, map[string]any{"clusterName": "green", "logRetentionDays": 7}}}
		maps.Copy(out, more)
		return out
	}
	all, err := synthAll(t, context(nil))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, s := range all {
		logs := words(t, assertions.Template_FromStack(s, nil))
		logs.each("AWS::Logs::LogGroup", func(id string, p map[string]any) {
			if id == "RefreshLogs" {
				got = append(got, fmt.Sprintf("%s %v %v", *s.StackName(), p["LogGroupName"], p["RetentionInDays"]))
			}
		})
	}
	want := []string{"joiner-blue /aws/lambda/joiner-blue-refresh 30", "joiner-green /aws/lambda/joiner-green-refresh 7"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("stacks (-want +got):\n%s", diff)
	}
	one, err := synthAll(t, context(map[string]any{"clusterName": "green"}))
	if err != nil || len(one) != 1 || *one[0].StackName() != "joiner-green" {
		t.Errorf("with -c clusterName=green: %d stacks, error %v; want joiner-green alone", len(one), err)
	}
	for want, more := range map[string]map[string]any{
		"find cluster red: the key clusters of cdk.json has only blue, green":               {"clusterName": "red"},
		"key clusters: want a list of objects":                                              {"clusters": "blue"},
		"clusters[1]: clusterName a is there twice":                                         {"clusters": []any{map[string]any{"clusterName": "a"}, map[string]any{"clusterName": "a"}}},
		"clusters[0]:\ncontext key stai: there is no such setting; settings.md lists the s": {"clusters": []any{map[string]any{"clusterName": "a", "stai": "1s"}}},
		"clusters[0]: want an object with the settings of one cluster":                      {"clusters": []any{"blue"}},
	} {
		if _, err := synthAll(t, context(more)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got error %v, want %q", err, want)
		}
	}
}

func TestNodeRolesAreAsTheSettingsSay(t *testing.T) {
	tmpl := mustSynth(t, map[string]any{"clusterName": "demo", "distFolder": placeholders(t), "windowsNodes": true,
		"nodePolicies": []any{"CloudWatchAgentServerPolicy", "arn:aws:iam::123456789012:policy/team/own"}, "tags": map[string]any{"team": "red", "cost": "7"}})
	got := words(t, tmpl).access()
	for _, want := range []string{
		"NodeAccess: cluster demo, ${NodeRole.Arn} as EC2_LINUX in groups <nil>\n",
		"WindowsNodeAccess: cluster demo, ${WindowsNodeRole.Arn} as EC2_WINDOWS in groups <nil>\n",
		"WindowsNodeRole: name=KarpenterNodeRole-demo-windows ",
		"arn:${AWS::Partition}:iam::aws:policy/CloudWatchAgentServerPolicy arn:aws:iam::123456789012:policy/team/own\n",
		"WindowsNodeProfile: instance profile KarpenterNodeRole-demo-windows of WindowsNodeRole\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("access lacks\n%s\nit is\n%s", want, got)
		}
	}
	tmpl.HasResourceProperties(jsii.String("AWS::IAM::Role"), map[string]any{"RoleName": "KarpenterNodeRole-demo",
		"Tags": []any{map[string]any{"Key": "cost", "Value": "7"}, map[string]any{"Key": "team", "Value": "red"}}})
	if got := words(t, tmpl).permissions("Provision"); !strings.Contains(got, "iam:PassRole\n  on ${NodeRole.Arn}\n  on ${WindowsNodeRole.Arn}\n") {
		t.Errorf("provision may not pass both roles:\n%s", got)
	}
}

func TestAlarmsAreAsTheSettingsSay(t *testing.T) {
	tmpl := mustSynth(t, map[string]any{"clusterName": "demo", "distFolder": placeholders(t), "priceAlarmUSD": 12.5, "maxNodes": 500,
		"alarmEmail": "ops@example.com", "dashboard": false})
	tmpl.HasResourceProperties(jsii.String("AWS::CloudWatch::Alarm"), map[string]any{"AlarmName": "joiner-demo-Price", "Threshold": 12.5})
	words(t, tmpl).each("AWS::CloudWatch::Alarm", func(id string, p map[string]any) {
		of, limited := p["DatapointsToAlarm"].(float64)
		from, ok := p["EvaluationPeriods"].(float64)
		if limited && of > from || !ok {
			t.Errorf("%s asks for %v of %v periods, which CloudWatch refuses", id, of, from)
		}
	})
	tmpl.HasResourceProperties(jsii.String("AWS::SNS::Subscription"), map[string]any{"Protocol": "email", "Endpoint": "ops@example.com"})
	tmpl.ResourceCountIs(jsii.String("AWS::CloudWatch::Dashboard"), jsii.Number(0))
}

// TestTheDashboardShowsEachFunction, and searches for metrics of this cluster alone.
func TestTheDashboardShowsEachFunction(t *testing.T) {
	tmpl := words(t, mustSynth(t, map[string]any{"clusterName": "demo", "distFolder": placeholders(t)}))
	var seen strings.Builder
	tmpl.each("AWS::CloudWatch::Dashboard", func(_ string, p map[string]any) { seen.WriteString(text(p["DashboardBody"])) })
	seen.WriteString(tmpl.alarms(t))
	functions := 0
	tmpl.each("AWS::Lambda::Function", func(string, map[string]any) { functions++ })
	for _, name := range []string{"Errors", "Duration"} {
		if got := strings.Count(seen.String(), `"AWS/Lambda","`+name+`"`); got != functions {
			t.Errorf("%s of %d functions on the dashboard, want all %d", name, got, functions)
		}
	}
	if !strings.Contains(seen.String(), `cluster=\"demo\"`) && !strings.Contains(seen.String(), `cluster="demo"`) {
		t.Error("the searches are not limited to the cluster")
	}
}

// TestConcurrencyIsReservedForNotices, and for nobody else who may run more than once; preflight is told of all of it.
func TestConcurrencyIsReservedForNotices(t *testing.T) {
	for given, want := range map[string]struct{ spot, reservation, all, notices any }{"0": {nil, nil, "4", "0"}, "7": {7.0, 7.0, "18", "14"}, "": {100.0, 10.0, "114", "110"}} {
		tmpl := words(t, mustSynth(t, map[string]any{"clusterName": "demo", "interruptionConcurrency": given, "distFolder": placeholders(t)}))
		got := map[string]any{}
		tmpl.each("AWS::Lambda::Function", func(id string, p map[string]any) { got[id] = p["ReservedConcurrentExecutions"] })
		if d := cmp.Diff(map[string]any{"Provision": 1.0, "Lifecycle": 1.0, "Disrupt": 1.0, "Refresh": 1.0, "SpotInterruption": want.spot, "ReservationInterruption": want.reservation,
			"StateChange": nil, "Rebalance": nil, "ScheduledChange": nil, "Preflight": nil, "Setup": nil}, got); d != "" {
			t.Errorf("interruptionConcurrency %s (-want +got):\n%s", given, d)
		}
		tmpl.each("Custom::JoinerPreflight", func(_ string, p map[string]any) {
			if p["Reserved"] != want.all || p["ReservedForNotices"] != want.notices {
				t.Errorf("interruptionConcurrency %s: preflight is told of %v, and of %v for notices", given, p["Reserved"], p["ReservedForNotices"])
			}
		})
	}
}

// TestMemoryOfFunctionsThatDecide: a large cluster gives them more, and the others nothing. Be it given or chosen, it is what
// the preflight answers, so that a number which was chosen already changes no template. It is told whose memory to read.
func TestMemoryOfFunctionsThatDecide(t *testing.T) {
	const chosen, fixed = "${PreflightResource.FunctionMemory} ${PreflightResource.MemoryLimit}", "512 333MiB"
	for _, given := range []string{"auto", "1769"} {
		tmpl := words(t, mustSynth(t, map[string]any{"clusterName": "demo", "functionMemory": given, "distFolder": placeholders(t)}))
		got := map[string]string{}
		tmpl.each("AWS::Lambda::Function", func(id string, p map[string]any) {
			got[id] = text(p["MemorySize"]) + " " + text(p["Environment"].(map[string]any)["Variables"].(map[string]any)["GOMEMLIMIT"])
		})
		if d := cmp.Diff(map[string]string{"Provision": chosen, "Lifecycle": chosen, "Disrupt": chosen, "Refresh": chosen, "SpotInterruption": fixed,
			"ReservationInterruption": fixed, "StateChange": fixed, "Rebalance": fixed, "ScheduledChange": fixed, "Preflight": fixed, "Setup": fixed}, got); d != "" {
			t.Errorf("memory (-want +got):\n%s", d)
		}
		tmpl.each("Custom::JoinerPreflight", func(_ string, p map[string]any) {
			if p["FunctionMemory"] != given || p["MemoryLike"] != "joiner-demo-provision" {
				t.Errorf("the preflight is told of %v, like %v", p["FunctionMemory"], p["MemoryLike"])
			}
		})
	}
}

func TestUnderscoresMakeALegalStackName(t *testing.T) {
	s, err := synth(t, map[string]any{"clusterName": "blue_green", "distFolder": placeholders(t)})
	if err != nil {
		t.Fatal(err)
	}
	if got := *s.StackName(); got != "joiner-blue-green" {
		t.Errorf("stack name %q, want joiner-blue-green", got)
	}
}

func TestBadContextIsNamedByKey(t *testing.T) {
	_, err := synth(t, map[string]any{
		"@aws-cdk/core:anything": true, "loglevel": "info", "CLUSTER_NAME": "x", "nonsense": 1, "nodeTags": "a=b", "catalogBucket": "mine",
		"functonMemry": 1, "watchDuration": "50s", "reservedENIs": 2.5, "registrationTimeout": "20m", "maxNodeClaimsPerPass": 7, "batchIdle": []any{"50s"}, "architecture": "arm", "isolatedVPC": "maybe",
	})
	want := `check the settings of cdk.json, -c and --settings:
context key CLUSTER_NAME: there is no such setting; did you mean clusterName?
context key batchIdle: it is a list or an object, where a string, a number or a truth value belongs
context key catalogBucket: the stack sets it itself; remove it
context key functonMemry: there is no such setting; did you mean functionMemory?
context key loglevel: there is no such setting; did you mean logLevel?
context key maxNodeClaimsPerPass: there is no such setting any more: it is a constant now, 100; the rest waits for the next pass
context key nodeTags: there is no such setting any more: use tags, which are on the node role too
context key nonsense: there is no such setting; settings.md lists the settings
context key registrationTimeout: there is no such setting any more: it is a constant now, 15m, as in Karpenter
context key watchDuration: only tests change it; remove it
settings: clusterName (CLUSTER_NAME) is required; allowed: the name of the EKS cluster, 1 to 100 letters, digits, - and _, starting with a letter or a digit
settings: reservedENIs (RESERVED_ENIS) is "2.5"; allowed: a whole number from 0 to 100
settings: isolatedVPC (ISOLATED_VPC) is "maybe"; allowed: true or false
settings: architecture is "arm"; allowed: arm64 or x86_64`
	if err == nil || err.Error() != want {
		t.Errorf("got error\n%v\nwant\n%s", err, want)
	}
}

func TestAMissingBinaryIsNamed(t *testing.T) {
	dist := t.TempDir()
	if err := os.CopyFS(dist, os.DirFS(placeholders(t))); err != nil {
		t.Fatal(err)
	}
	missing := filepath.Join(dist, "arm64", "refresh", "bootstrap")
	if err := os.Remove(missing); err != nil {
		t.Fatal(err)
	}
	_, err := synth(t, map[string]any{"clusterName": "demo", "distFolder": dist})
	want := fmt.Sprintf("find function binary %s: build it first (make package for arm64, make build for x86_64; ", missing)
	if err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("got error %v, want it to start with %s", err, want)
	}
}

// TestTheStackIsProtectedFromDeletion unless a setting says otherwise.
func TestTheStackIsProtectedFromDeletion(t *testing.T) {
	for given, want := range map[any]bool{nil: true, "false": false} {
		context := map[string]any{"clusterName": "demo", "distFolder": placeholders(t)}
		if given != nil {
			context["terminationProtection"] = given
		}
		s, err := synth(t, context)
		if err != nil {
			t.Fatal(err)
		}
		if got := *s.TerminationProtection(); got != want {
			t.Errorf("terminationProtection %v: the stack is protected: %t", given, got)
		}
	}
}

// TestWhatThePreflightFindsReachesEveryVersion: an alias leads to a version, which keeps the environment it was made
// with. CDK does not see that an attribute changed, so the version's description holds it too: that makes another one.
func TestWhatThePreflightFindsReachesEveryVersion(t *testing.T) {
	tmpl := words(t, mustSynth(t, map[string]any{"clusterName": "demo", "distFolder": placeholders(t), "deployment": "7", "trigger": "push"}))
	n := 0
	tmpl.each("AWS::Lambda::Version", func(id string, p map[string]any) {
		n++
		want := "${PreflightResource.Reach}"
		switch id {
		case "ProvisionCurrentVersion", "LifecycleCurrentVersion", "DisruptCurrentVersion", "RefreshCurrentVersion":
			want = "${PreflightResource.Fingerprint}" // which changes with their memory, too
		case "WakeCurrentVersion":
			want = text(nil)
		}
		if got := text(p["Description"]); !strings.Contains(got, want) {
			t.Errorf("%s has the description %s, want %s", id, got, want)
		}
	})
	tmpl.each("Custom::JoinerPreflight", func(_ string, p map[string]any) {
		if p["Deployment"] != "7" {
			t.Errorf("the preflight is asked anew in no deployment: %v", p)
		}
	})
	if n != 10 {
		t.Errorf("%d versions", n)
	}
}
