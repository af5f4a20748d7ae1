package stack_test

import (
	"bytes"
	"log"
	"maps"
	"os"
	"strings"
	"testing"

	"github.com/aws/aws-cdk-go/awscdk/v2/assertions"
	"github.com/aws/jsii-runtime-go"
	"github.com/google/go-cmp/cmp"
)

const vpc, subnetA, subnetB, cluster = "vpc-0123456789abcdef0", "subnet-0123456789abcdef0", "subnet-0123456789abcdef1", "sg-0123456789abcdef0"

func inside(t *testing.T, more map[string]any) assertions.Template {
	t.Helper()
	context := map[string]any{"clusterName": "demo", "distFolder": placeholders(t), "vpcID": vpc, "subnetIDs": []any{subnetA, subnetB}}
	maps.Copy(context, more)
	return mustSynth(t, context)
}

func TestFunctionsInAVPC(t *testing.T) {
	tmpl := inside(t, map[string]any{"clusterSecurityGroupID": cluster})
	w := words(t, tmpl)
	w.each("AWS::Lambda::Function", func(id string, p map[string]any) {
		want := "{SecurityGroupIds=${FunctionsGroup.GroupId}, SubnetIds=" + subnetA + " " + subnetB + "}"
		if id == "Preflight" { // which answers while there is no network yet
			want = text(nil)
		}
		if got := text(p["VpcConfig"]); got != want {
			t.Errorf("%s runs in %s, want %s", id, got, want)
		}
	})
	tmpl.HasResourceProperties(jsii.String("AWS::EC2::SecurityGroup"), map[string]any{"VpcId": vpc,
		"SecurityGroupEgress": []any{map[string]any{"CidrIp": "0.0.0.0/0", "FromPort": 443, "ToPort": 443, "IpProtocol": "tcp", "Description": "API server and AWS"}}})
	tmpl.HasResourceProperties(jsii.String("AWS::EC2::SecurityGroupIngress"), map[string]any{"GroupId": cluster, "FromPort": 443, "ToPort": 443, "IpProtocol": "tcp"})
	tmpl.ResourceCountIs(jsii.String("AWS::EC2::VPCEndpoint"), jsii.Number(0))
	if got := w.permissions("Rebalance"); !strings.Contains(got, "UseNetwork: ec2:CreateNetworkInterface") {
		t.Errorf("Lambda may not make the network interface of rebalance:\n%s", got)
	}
	if got := w.order(); !strings.Contains(got, "SubnetIds="+subnetA+","+subnetB+", VpcId="+vpc) || !strings.Contains(got, "SetupResource: {ClusterName=demo, Inside=true") {
		t.Errorf("setup is not told that a private endpoint will do:\n%s", got)
	}
}

func TestGivenSecurityGroupsAndEndpoints(t *testing.T) {
	var said bytes.Buffer
	log.SetOutput(&said)
	t.Cleanup(func() { log.SetOutput(os.Stderr) })
	tmpl := inside(t, map[string]any{"securityGroupIDs": []any{"sg-0aaaaaaaaaaaaaaa0"}, "vpcEndpoints": true})
	words(t, tmpl).each("AWS::Lambda::Function", func(id string, p map[string]any) {
		want := map[string]any{"SecurityGroupIds": []any{"sg-0aaaaaaaaaaaaaaa0"}, "SubnetIds": []any{subnetA, subnetB}}
		if id == "Preflight" {
			want = nil
		}
		if got, _ := p["VpcConfig"].(map[string]any); !cmp.Equal(want, got) {
			t.Errorf("%s runs in %v, want %v", id, got, want)
		}
	})
	tmpl.AllResourcesProperties(jsii.String("AWS::EC2::VPCEndpoint"), map[string]any{"VpcId": vpc, "VpcEndpointType": "Interface", "PrivateDnsEnabled": true,
		"SubnetIds": []any{subnetA, subnetB}})
	tmpl.ResourceCountIs(jsii.String("AWS::EC2::VPCEndpoint"), jsii.Number(4))
	tmpl.HasResourceProperties(jsii.String("AWS::EC2::SecurityGroup"), map[string]any{"SecurityGroupIngress": []any{map[string]any{
		"SourceSecurityGroupId": "sg-0aaaaaaaaaaaaaaa0", "FromPort": 443, "ToPort": 443, "IpProtocol": "tcp", "Description": "Functions of Joiner"}}})
	tmpl.AllResourcesProperties(jsii.String("AWS::Lambda::Function"), map[string]any{"Environment": map[string]any{"Variables": map[string]any{"ISOLATED_VPC": "true"}}})
	if want := "4 interface endpoints in 2 subnets cost about 58.40 USD a month (4 × 2 × 730 h × 0.01 USD)"; !strings.Contains(said.String(), want) {
		t.Errorf("said %q, want %q", said.String(), want)
	}
}

func TestSettingsOfTheNetworkBelongTogether(t *testing.T) {
	for want, more := range map[string]map[string]any{
		"vpcID and subnetIDs belong together":                            {"vpcID": vpc},
		"are for functions in a VPC":                                     {"vpcEndpoints": true},
		"remove one of the two":                                          {"vpcID": vpc, "subnetIDs": subnetA, "securityGroupIDs": "sg-0aaaaaaaaaaaaaaa0", "clusterSecurityGroupID": cluster},
		`vpcID is "vpc-x"; allowed: an id such as vpc-0123456789abcdef0`: {"vpcID": "vpc-x", "subnetIDs": subnetA},
	} {
		context := map[string]any{"clusterName": "demo", "distFolder": "none"}
		maps.Copy(context, more)
		if _, err := synth(t, context); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}

// TestAVPCAddsWhatLambdaNeedsForIt: with the functions in a VPC the permissions are those that infra/local/contract/iam
// proves outside of one, and what Lambda itself needs for network interfaces; nothing for the functions that stay
// outside.
func TestAVPCAddsWhatLambdaNeedsForIt(t *testing.T) {
	const changes = "ec2:CreateNetworkInterface ec2:DeleteNetworkInterface ec2:AssignPrivateIpAddresses ec2:UnassignPrivateIpAddresses"
	network := func(function string) string {
		arn := "arn:${AWS::Partition}:lambda:${AWS::Region}:${AWS::AccountId}:function:joiner-demo-" + strings.ToLower(function)
		return "UseNetwork: " + changes + " ec2:DescribeNetworkInterfaces ec2:DescribeSubnets\n  on *\n" +
			"Deny LeaveNetworkToLambda: " + changes + "\n  on *\n  if ArnEquals lambda:SourceFunctionArn = " + arn + " " + arn + ":*\n"
	}
	outside := words(t, mustSynth(t, map[string]any{"clusterName": "demo", "distFolder": placeholders(t), "trigger": "push"}))
	in := words(t, inside(t, map[string]any{"clusterSecurityGroupID": cluster, "vpcEndpoints": true, "trigger": "push"}))
	n := 0
	in.each("AWS::Lambda::Function", func(id string, p map[string]any) {
		n++
		want, there := outside.permissions(id), 1
		if id == "Wake" || id == "Preflight" {
			there = 0
		}
		got := in.permissions(id)
		if c := strings.Count(got, network(id)); c != there || (p["VpcConfig"] != nil) != (there == 1) {
			t.Errorf("%s: %d times the statements for the network, want %d; runs in %s", id, c, there, text(p["VpcConfig"]))
		}
		if id == "Preflight" { // which looks how the others get to S3
			const look = "DescribeNetwork: ec2:DescribeSubnets ec2:DescribeRouteTables ec2:DescribePrefixLists ec2:DescribeVpcEndpoints\n"
			if !strings.Contains(got, look) || strings.Count(want, "ec2:") != strings.Count(want, "ec2:DescribeInstances") {
				t.Errorf("the preflight may not look at the network, or may outside of one:\n%s", got)
			}
			return
		}
		if diff := cmp.Diff(want, strings.Replace(got, network(id), "", 1)); diff != "" {
			t.Errorf("%s may more or less in a VPC (-outside +inside):\n%s", id, diff)
		}
	})
	if n != 12 {
		t.Errorf("%d functions, want 12", n)
	}
}
