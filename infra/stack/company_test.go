package stack_test

import (
	"maps"
	"slices"
	"strings"
	"testing"
)

const (
	boundary = "arn:aws:iam::123456789012:policy/boundary"
	ownKey   = "arn:aws:kms:us-east-1:123456789012:key/1234abcd-12ab-34cd-56ef-1234567890ab"
)

func company(t *testing.T, more map[string]any) template {
	t.Helper()
	context := map[string]any{"clusterName": "demo", "distFolder": placeholders(t), "trigger": "push", "windowsNodes": true, "vpcID": vpc, "subnetIDs": subnetA, "vpcEndpoints": true,
		"namePrefix": "acme-", "rolePath": "/team/", "permissionsBoundary": boundary, "kmsKey": ownKey, "tags": map[string]any{"owner": "platform", "cost": "7"}}
	maps.Copy(context, more)
	return words(t, mustSynth(t, context))
}

// TestServiceControlPoliciesAreMet plays what organizations forbid: to make a thing without a tag, a role without the
// boundary or outside of the path, and to keep anything that their key does not encrypt.
func TestServiceControlPoliciesAreMet(t *testing.T) {
	w := company(t, nil)
	// Types whose tags an SCP can ask for, with the property that carries them; the others of the template know none.
	tagged := map[string]string{"AWS::Lambda::Function": "Tags", "AWS::IAM::Role": "Tags", "AWS::SQS::Queue": "Tags", "AWS::SNS::Topic": "Tags", "AWS::S3::Bucket": "Tags",
		"AWS::Logs::LogGroup": "Tags", "AWS::EC2::SecurityGroup": "Tags", "AWS::EKS::AccessEntry": "Tags", "AWS::SecretsManager::Secret": "Tags", "AWS::CloudWatch::Alarm": "Tags"}
	for kind, property := range tagged {
		n := 0
		w.each(kind, func(id string, p map[string]any) {
			n++
			have := map[string]string{}
			for _, tag := range list(p[property]) {
				if m, ok := tag.(map[string]any); ok {
					have[m["Key"].(string)] = m["Value"].(string)
				}
			}
			if have["owner"] != "platform" || have["cost"] != "7" {
				t.Errorf("%s %s: a policy that forbids untagged things refuses it, with tags %v", kind, id, have)
			}
		})
		if n == 0 {
			t.Errorf("no %s was looked at", kind)
		}
	}
	w.each("AWS::IAM::Role", func(id string, p map[string]any) {
		if p["Path"] != "/team/" || p["PermissionsBoundary"] != boundary {
			t.Errorf("role %s has path %v and boundary %v", id, p["Path"], p["PermissionsBoundary"])
		}
		if name, named := p["RoleName"].(string); named && !strings.HasPrefix(name, "acme-") {
			t.Errorf("role %s is called %s", id, name)
		}
	})
	for kind, property := range map[string]string{"AWS::SQS::Queue": "KmsMasterKeyId", "AWS::SNS::Topic": "KmsMasterKeyId", "AWS::Logs::LogGroup": "KmsKeyId", "AWS::Lambda::Function": "KmsKeyArn", "AWS::SecretsManager::Secret": "KmsKeyId", "AWS::S3::Bucket": "BucketEncryption"} {
		n := 0
		w.each(kind, func(id string, p map[string]any) {
			if n++; !strings.Contains(text(p[property]), ownKey) {
				t.Errorf("%s %s: a policy that asks for the key refuses it: %s is %v", kind, id, property, p[property])
			}
		})
		if n == 0 {
			t.Errorf("no %s was looked at", kind)
		}
	}
	want := "UseKey: kms:Decrypt kms:GenerateDataKey\n  on " + ownKey + "\n  if StringEquals kms:ViaService = lambda.${AWS::Region}.${AWS::URLSuffix} s3.${AWS::Region}.${AWS::URLSuffix} sqs.${AWS::Region}.${AWS::URLSuffix}\n"
	for _, function := range []string{"Provision", "SpotInterruption", "Setup"} {
		if got := w.permissions(function); !strings.Contains(got, want) {
			t.Errorf("%s may not use the key:\n%s", function, got)
		}
	}
	// what came into its queue under a key of before, and nothing else
	const older = "ReadOlderMessages: kms:Decrypt\n  on arn:${AWS::Partition}:kms:${AWS::Region}:${AWS::AccountId}:key/*\n  if StringEquals kms:ViaService = sqs.${AWS::Region}.${AWS::URLSuffix}\n"
	if got := w.permissions("StateChange"); !strings.Contains(got, older) {
		t.Errorf("statechange may not read older messages:\n%s", got)
	}
	if got := w.permissions("Wake"); !strings.Contains(got, "kms:ViaService = lambda.${AWS::Region}.${AWS::URLSuffix}\n") {
		t.Errorf("wake may use the key for more than its environment, or not for that:\n%s", got)
	}
	w.each("AWS::Lambda::Function", func(id string, p map[string]any) {
		if name, _ := p["FunctionName"].(string); !strings.HasPrefix(name, "acme-joiner-demo-") {
			t.Errorf("function %s is called %s", id, name)
		}
	})
}

func TestOneNameInTwoPlacesIsTwoStacks(t *testing.T) {
	cluster := func(account, region string) map[string]any {
		return map[string]any{"clusterName": "prod", "account": account, "region": region}
	}
	all, err := synthAll(t, map[string]any{"distFolder": placeholders(t), "clusters": []any{
		cluster("111122223333", "eu-west-1"), cluster("111122223333", "us-east-1"), cluster("444455556666", "eu-west-1")}})
	if err != nil {
		t.Fatal(err)
	}
	var places []string
	for _, s := range all {
		places = append(places, *s.StackName()+" in "+*s.Account()+" "+*s.Region())
	}
	want := []string{"joiner-prod in 111122223333 eu-west-1", "joiner-prod in 111122223333 us-east-1", "joiner-prod in 444455556666 eu-west-1"}
	if !slices.Equal(places, want) {
		t.Errorf("stacks %q, want %q", places, want)
	}
	_, err = synthAll(t, map[string]any{"distFolder": placeholders(t), "clusters": []any{cluster("111122223333", "eu-west-1"), cluster("111122223333", "eu-west-1")}})
	if err == nil || !strings.Contains(err.Error(), "clusters[1]: clusterName prod is there twice in one account and region") {
		t.Errorf("one place twice: %v", err)
	}
}

func TestFewerAlarms(t *testing.T) {
	for choice, want := range map[string]int{"all": 0, "essential": 8, "none": 0} {
		w := words(t, mustSynth(t, map[string]any{"clusterName": "demo", "alarms": choice, "distFolder": placeholders(t)}))
		n := 0
		w.each("AWS::CloudWatch::Alarm", func(string, map[string]any) { n++ })
		if choice == "all" && n < 30 || choice != "all" && n != want {
			t.Errorf("alarms %s: %d are made, want %d", choice, n, want)
		}
	}
}

// TestFurtherNodeRolesArePassed, by name, path or ARN, and no others.
func TestFurtherNodeRolesArePassed(t *testing.T) {
	w := words(t, mustSynth(t, map[string]any{"clusterName": "demo", "distFolder": placeholders(t),
		"nodeRoles": []any{"gpu", "team/batch", "arn:aws:iam::123456789012:role/own/web"}}))
	want := "PassNodeRole: iam:PassRole\n  on ${NodeRole.Arn}\n  on arn:${AWS::Partition}:iam::${AWS::AccountId}:role/gpu\n" +
		"  on arn:${AWS::Partition}:iam::${AWS::AccountId}:role/team/batch\n  on arn:aws:iam::123456789012:role/own/web\n  if"
	for _, function := range []string{"Provision", "Refresh"} {
		if got := w.permissions(function); !strings.Contains(got, want) {
			t.Errorf("%s may pass\n%s", function, got)
		}
	}
}

// TestTheBucketKeepsItsPolicy: the bucket outlives the stack, so what refuses plain HTTP must too.
func TestTheBucketKeepsItsPolicy(t *testing.T) {
	w := words(t, mustSynth(t, map[string]any{"clusterName": "demo", "distFolder": placeholders(t)}))
	n := 0
	for id, r := range w.Resources {
		if r.Type == "AWS::S3::Bucket" || r.Type == "AWS::S3::BucketPolicy" {
			if n++; r.DeletionPolicy != "RetainExceptOnCreate" {
				t.Errorf("%s goes with the stack: %q", id, r.DeletionPolicy)
			}
		}
	}
	if n != 2 {
		t.Errorf("%d of bucket and policy were looked at", n)
	}
}

// TestNodesTrustEC2OfTheirPartition: the service is ec2.amazonaws.com.cn in China.
func TestNodesTrustEC2OfTheirPartition(t *testing.T) {
	w := words(t, mustSynth(t, map[string]any{"clusterName": "demo", "distFolder": placeholders(t)}))
	w.each("AWS::IAM::Role", func(id string, p map[string]any) {
		if got := text(p["AssumeRolePolicyDocument"]); id == "NodeRole" && !strings.Contains(got, "Service=ec2.${AWS::URLSuffix}") {
			t.Errorf("the node role trusts %s", got)
		}
	})
}

// TestPushNeedsFunctionURLs: in a region without them the deployment would fail halfway.
func TestPushNeedsFunctionURLs(t *testing.T) {
	for region, works := range map[string]bool{"eu-west-1": true, "eu-south-2": false, "us-gov-west-1": false} {
		_, err := synth(t, map[string]any{"clusterName": "demo", "distFolder": placeholders(t), "trigger": "push", "region": region})
		if (err == nil) != works || err != nil && !strings.Contains(err.Error(), "Lambda has none in "+region+": choose") {
			t.Errorf("push in %s: %v", region, err)
		}
	}
}
