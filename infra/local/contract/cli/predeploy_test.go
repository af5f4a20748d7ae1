package cli_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"joiner.sh/infra/local/awsemulator"
	"joiner.sh/infra/local/cloudtest"
	"joiner.sh/pkg/cli"
	"joiner.sh/pkg/cli/recording"
	"joiner.sh/pkg/install/preflight"
	"joiner.sh/pkg/model/findings"
)

// template writes what a synthesis would of the preflight of a plan, and returns its folder.
func template(t *testing.T, p preflight.StackPlan) string {
	t.Helper()
	text, err := json.Marshal(map[string]any{"Resources": map[string]any{
		"Topic":             map[string]any{"Type": "AWS::SNS::Topic", "Properties": map[string]any{"ClusterName": "demo"}},
		"PreflightResource": map[string]any{"Type": "Custom::JoinerPreflight", "Properties": p.Properties()}}})
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "joiner-demo.template.json"), text, 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

// beforeDeploy is what doctor says from a laptop that no cluster's API server can be reached from.
func beforeDeploy(t *testing.T, wantCode int, arguments ...string) []finding {
	t.Helper()
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	var out, progress bytes.Buffer
	code := cli.Run(append([]string{"doctor", "--before-deploy", "--cluster", "demo", "-o", "json"}, arguments...), &out, &progress)
	var all []finding
	if err := json.Unmarshal(out.Bytes(), &all); err != nil || code != wantCode {
		t.Fatalf("exit %d, want %d, %v: %s%s", code, wantCode, err, out.String(), progress.String())
	}
	return all
}

// What would stop a deployment beside Karpenter, in a VPC that has endpoints, is told from a laptop, all of it at once,
// and so is that nothing does any more.
func TestDoctorKnowsWhetherADeploymentGetsThrough(t *testing.T) {
	c := account(t)
	c.PutRole("KarpenterNodeRole-demo")
	c.SetClusterAccess("CONFIG_MAP", true)
	c.SetConcurrency(10)
	awsemulator.SetAutoMode(c, true)
	awsemulator.SetIPv6(c, true)
	awsemulator.PutVPCEndpoint(c, "ec2", false)
	plan := preflight.StackPlan{Cluster: "demo", MadeNodeRoles: []string{"KarpenterNodeRole-demo"}, Subnets: []string{"subnet-0aaaaaaaaaaaaaaa0"},
		Endpoints: []string{"ec2", "ssm"}, Reserved: 204, ForNotices: 200}
	awsemulator.SetRoutes(c, awsemulator.Route{To: "0.0.0.0/0", Via: "igw-0a1b2c3d4e5f67890"})
	vpc := awsemulator.VPCID(c)
	plan.VPC = vpc
	all := beforeDeploy(t, 3, "--template", template(t, plan))
	for _, want := range []struct {
		level        findings.Level
		check, words string
	}{
		{findings.Broken, "cluster", "authentication mode CONFIG_MAP"},
		{findings.Broken, "node role", "the role KarpenterNodeRole-demo exists already"},
		{findings.Broken, "VPC endpoints", vpc + " has interface endpoints already for ec2"},
		{findings.Broken, "subnets", "subnetIDs names subnet-0aaaaaaaaaaaaaaa0, which does not exist"},
		{findings.Broken, "Lambda", "the account may run 10 Lambda invocations at once"},
		{findings.Warning, "EKS Auto Mode", "EKS Auto Mode is on"},
		{findings.Warning, "IPv6", "the cluster uses IPv6"},
		{findings.Broken, "way to S3", "functions in subnet-0aaaaaaaaaaaaaaa0 cannot reach S3"},
	} {
		wantFinding(t, all, want.level, want.check, want.words)
	}
	for action := range c.CallCounts() {
		if name := action[strings.Index(action, ":")+1:]; !strings.HasPrefix(name, "Describe") && !strings.HasPrefix(name, "Get") && !strings.HasPrefix(name, "List") {
			t.Errorf("doctor calls %s, which may change something", action)
		}
	}

	c.SetClusterAccess("API", true)
	c.SetConcurrency(1000)
	awsemulator.SetAutoMode(c, false)
	awsemulator.SetIPv6(c, false)
	c.PutAccessEntry(awsemulator.AccessEntry{PrincipalARN: "arn:aws:iam::111122223333:role/KarpenterNodeRole-demo", Type: "EC2_LINUX"})
	plan = preflight.StackPlan{Cluster: "demo", NodeRole: "KarpenterNodeRole-demo", Reserved: 204, ForNotices: 200}
	all = beforeDeploy(t, 0, "--template", template(t, plan))
	if len(all) != 1 || all[0].Level != findings.Fine {
		t.Errorf("everything is mended, and doctor says %+v", all)
	}
}

// Where a service has no endpoints in the zone of a subnet, EC2 would refuse the endpoint in the middle of a
// deployment.
func TestDoctorKnowsWhereServicesHaveEndpoints(t *testing.T) {
	c := account(t)
	const vpc, first, second = "vpc-0123456789abcdef0", "subnet-0123456789abcdef0", "subnet-0123456789abcdef1"
	awsemulator.NameNetwork(c, vpc, first, second)
	plan := template(t, preflight.StackPlan{Cluster: "demo", VPC: vpc, Subnets: []string{first, second}, Endpoints: []string{"ec2", "ssm"}, Reserved: 4})
	if all := beforeDeploy(t, 0, "--template", plan); len(all) != 1 || all[0].Level != findings.Fine {
		t.Errorf("each service has endpoints everywhere, and doctor says %+v", all)
	}
	awsemulator.SetZonesOfEndpoints(c, "ssm", "us-west-2b")
	wantFinding(t, beforeDeploy(t, 3, "--template", plan), findings.Broken, "zones of VPC endpoints", "AWS has no endpoints for ssm in us-west-2a, where "+first+" of subnetIDs is")
}

// A recording of an account, played by the emulator, makes doctor say what it said of the account.
func TestARecordedAccountIsPlayedAgain(t *testing.T) {
	c := account(t)
	c.PutRole("KarpenterNodeRole-demo")
	c.PutAccessEntry(awsemulator.AccessEntry{PrincipalARN: "arn:aws:iam::111122223333:role/KarpenterNodeRole-demo", Type: "STANDARD"})
	c.SetClusterAccess("API", false)
	c.SetConcurrency(42)
	plan := template(t, preflight.StackPlan{Cluster: "demo", NodeRole: "KarpenterNodeRole-demo", Reserved: 204, ForNotices: 200})
	folder := filepath.Join(t.TempDir(), "recorded")
	want := beforeDeploy(t, 3, "--template", plan, "--record", folder)

	calls, err := recording.Read(folder)
	if err != nil || len(calls) < 4 {
		t.Fatalf("%d calls are recorded, %v", len(calls), err)
	}
	other, url := cloudtest.Start(t, awsemulator.Options{Recorded: calls})
	keys := other.IssueCredentials("somebody", "terminal", 0)
	for name, value := range map[string]string{"AWS_ENDPOINT_URL": url, "AWS_ACCESS_KEY_ID": keys.AccessKeyID, "AWS_SECRET_ACCESS_KEY": keys.SecretAccessKey, "AWS_SESSION_TOKEN": keys.SessionToken} {
		t.Setenv(name, value)
	}
	if diff := cmp.Diff(want, beforeDeploy(t, 3, "--template", plan)); diff != "" {
		t.Errorf("said of the account and of its recording (-account +recording):\n%s", diff)
	}
	var out, progress bytes.Buffer
	if code := cli.Run([]string{"doctor", "--before-deploy", "--cluster", "demo", "--template", plan, "--record", folder}, &out, &progress); code != 2 {
		t.Errorf("a second recording in the same folder: exit %d: %s", code, progress.String())
	}
}
