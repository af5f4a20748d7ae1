package stack_test

import (
	"fmt"
	"maps"
	"regexp"
	"strings"
	"testing"

	"github.com/aws/jsii-runtime-go"
	"github.com/google/go-cmp/cmp"
)

func TestRefreshMayDoWhatItsSettingsSay(t *testing.T) {
	for _, test := range []struct {
		more          map[string]any
		with, without string
	}{
		{map[string]any{"imageParameters": []any{"/golden/*", "al2"}},
			"  on arn:${AWS::Partition}:ssm:${AWS::Region}::parameter/aws/service/*\n  on arn:${AWS::Partition}:ssm:${AWS::Region}:${AWS::AccountId}:parameter/golden/*\n" +
				"  on arn:${AWS::Partition}:ssm:${AWS::Region}:${AWS::AccountId}:parameter/al2\n", "no such thing"},
		{map[string]any{"dryRunValidation": "true"}, "LaunchTagged: ec2:RunInstances ec2:CreateFleet ec2:CreateLaunchTemplate\n", "no such thing"},
		{map[string]any{"commitments": "true"}, "DescribeReservedAndRunning: ec2:DescribeReservedInstances ec2:DescribeInstances\n", "no such thing"},
		{map[string]any{"commitments": "true"}, "DescribeSavingsPlans: savingsplans:DescribeSavingsPlans savingsplans:DescribeSavingsPlanRates\n", "no such thing"},
		{map[string]any{"commitments": "false"}, "PassNodeRole: iam:PassRole\n", "savingsplans:"},
		{map[string]any{"commitments": "false"}, "PassNodeRole: iam:PassRole\n", "ec2:DescribeReservedInstances"},
		{map[string]any{"dryRunValidation": "false"}, "PassNodeRole: iam:PassRole\n", "ec2:RunInstances"},
	} {
		given := map[string]any{"clusterName": "demo", "distFolder": placeholders(t)}
		maps.Copy(given, test.more)
		got := words(t, mustSynth(t, given)).permissions("Refresh")
		if !strings.Contains(got, test.with) || strings.Contains(got, test.without) {
			t.Errorf("with %v refresh may\n%s", test.more, got)
		}
	}
}

func TestZonalShiftsAreReadOnlyIfSet(t *testing.T) {
	const want = "ReadZonalShifts: arc-zonal-shift:GetManagedResource\n  on *\n" +
		"  if StringEquals arc-zonal-shift:ResourceIdentifier = arn:${AWS::Partition}:eks:${AWS::Region}:${AWS::AccountId}:cluster/demo\n"
	for _, on := range []bool{true, false} {
		tmpl := words(t, mustSynth(t, map[string]any{"clusterName": "demo", "zonalShift": fmt.Sprint(on), "distFolder": placeholders(t)}))
		for _, function := range []string{"Provision", "Disrupt", "Lifecycle"} {
			if got := tmpl.permissions(function); strings.Contains(got, want) != on {
				t.Errorf("with zonalShift %t %s may\n%s", on, function, got)
			}
		}
	}
}

// TestRemoteWriteIsAllowedAsFarAsItIsSet: one workspace or one secret, and the object that remembers what was counted.
func TestRemoteWriteIsAllowedAsFarAsItIsSet(t *testing.T) {
	const aps = "https://aps-workspaces.eu-west-1.amazonaws.com/workspaces/ws-12345678-abcd/api/v1/remote_write"
	const secret = "arn:aws:secretsmanager:us-west-2:111122223333:secret:grafana-AbCdEf"
	const send = "SendMetrics: aps:RemoteWrite\n  on arn:${AWS::Partition}:aps:eu-west-1:${AWS::AccountId}:workspace/ws-12345678-abcd\n"
	const read = "ReadSecret: secretsmanager:GetSecretValue\n  on " + secret + "\n"
	for _, c := range []struct {
		set           map[string]any
		with, without []string
	}{
		{map[string]any{}, nil, []string{"aps:", "secretsmanager:", "metrics.json.gz"}},
		{map[string]any{"remoteWriteURL": aps}, []string{send, "metrics.json.gz"}, []string{"secretsmanager:"}},
		{map[string]any{"remoteWriteURL": "https://grafana.example/push", "remoteWriteSecret": secret}, []string{read, "metrics.json.gz"}, []string{"aps:"}},
		{map[string]any{"remoteWriteURL": "http://prometheus.example:9090/api/v1/write"}, []string{"metrics.json.gz"}, []string{"aps:", "secretsmanager:"}},
	} {
		given := map[string]any{"clusterName": "demo", "distFolder": placeholders(t)}
		maps.Copy(given, c.set)
		tmpl := words(t, mustSynth(t, given))
		got := tmpl.permissions("Lifecycle")
		for _, text := range c.with {
			if !strings.Contains(got, text) {
				t.Errorf("with %v lifecycle may not %s:\n%s", c.set, text, got)
			}
		}
		for _, text := range c.without {
			if strings.Contains(got, text) {
				t.Errorf("with %v lifecycle may %s:\n%s", c.set, text, got)
			}
		}
		if strings.Contains(tmpl.permissions("Provision"), "metrics.json.gz") {
			t.Error("provision may touch what is remembered of metrics")
		}
	}
}

func TestAnObserverMayOnlyLook(t *testing.T) {
	tmpl := words(t, mustSynth(t, map[string]any{"clusterName": "demo", "mode": "observe", "distFolder": placeholders(t)}))
	may := regexp.MustCompile(`^(ec2:Describe|cloudwatch:DescribeAlarms$|iam:(Get|List)|eks:Describe|s3:(GetObject|ListBucket|PutObject)$|ssm:Get|pricing:Get|logs:|xray:|sqs:(SendMessage|ReceiveMessage|DeleteMessage|GetQueueAttributes)$|lambda:(InvokeFunction|GetAccountSettings|GetFunctionConfiguration)$)`)
	n := 0
	tmpl.each("AWS::IAM::Role", func(id string, p map[string]any) {
		policies, _ := p["Policies"].([]any)
		for _, policy := range policies {
			for _, s := range policy.(map[string]any)["PolicyDocument"].(map[string]any)["Statement"].([]any) {
				if sid := s.(map[string]any)["Sid"]; sid == "UseNetwork" || sid == "LeaveNetworkToLambda" {
					continue // of Lambda alone: TestLambdaMayUseTheNetwork
				}
				for _, action := range list(s.(map[string]any)["Action"]) {
					if n++; !may.MatchString(action.(string)) {
						t.Errorf("%s may %s although nothing is to be changed", id, action)
					}
				}
			}
		}
	})
	if n < 20 {
		t.Errorf("only %d actions were looked at", n)
	}
	if got := tmpl.environment(); !strings.Contains(got, "MODE=observe") {
		t.Errorf("the functions are not told:\n%s", got)
	}
}

// TestOnlySetupAndRefreshMayAskEKS, beside the preflight. It throttles whoever asks it often: hundreds of notices may come at once.
func TestOnlySetupAndRefreshMayAskEKS(t *testing.T) {
	tmpl := words(t, mustSynth(t, map[string]any{"clusterName": "demo", "distFolder": placeholders(t), "trigger": "push", "zonalShift": true}))
	var may []string
	tmpl.each("AWS::IAM::Role", func(id string, p map[string]any) {
		if name := strings.TrimSuffix(id, "Role"); p["Policies"] != nil && strings.Contains(tmpl.permissions(name), ": eks:") {
			may = append(may, name)
		}
	})
	if d := cmp.Diff([]string{"Preflight", "Refresh", "Setup"}, may); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// TestProvisionIsGivenTheUsersStatements, in IAM's own words, and nobody else is; policies outside of the stack can name
// its role.
func TestProvisionIsGivenTheUsersStatements(t *testing.T) {
	given := []any{map[string]any{"Effect": "Allow", "Action": []any{"kms:CreateGrant", "kms:Decrypt"}, "Resource": "arn:aws:kms:us-west-2:111122223333:key/1",
		"Condition": map[string]any{"StringEquals": map[string]any{"kms:ViaService": "ec2.us-west-2.amazonaws.com"}}}}
	tmpl := mustSynth(t, map[string]any{"clusterName": "demo", "distFolder": placeholders(t), "provisionStatements": given})
	w := words(t, tmpl)
	want := "Given1: kms:CreateGrant kms:Decrypt\n  on arn:aws:kms:us-west-2:111122223333:key/1\n  if StringEquals kms:ViaService = ec2.us-west-2.amazonaws.com\n"
	if got := w.permissions("Provision"); !strings.Contains(got, want) {
		t.Errorf("provision may\n%s", got)
	}
	if got := w.permissions("Lifecycle"); strings.Contains(got, "kms:") {
		t.Errorf("lifecycle may\n%s", got)
	}
	tmpl.HasOutput(jsii.String("ProvisionRoleArn"), map[string]any{})
	given[0].(map[string]any)["Action"] = "kms:*"
	if _, err := synth(t, map[string]any{"clusterName": "demo", "distFolder": placeholders(t), "provisionStatements": given}); err == nil || !strings.Contains(err.Error(), "no service as a whole") {
		t.Errorf("a service as a whole: %v", err)
	}
}
