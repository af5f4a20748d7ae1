package stack_test

import (
	"bytes"
	"fmt"
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
	all := func(cidr, value string) map[string]any {
		return map[string]any{cidr: value, "FromPort": 443, "ToPort": 443, "IpProtocol": "tcp", "Description": "Everybody in the VPC"}
	}
	tmpl.HasResourceProperties(jsii.String("AWS::EC2::SecurityGroup"), map[string]any{"SecurityGroupIngress": []any{all("CidrIp", "0.0.0.0/0"), all("CidrIpv6", "::/0")}})
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

// TestNoEndpointTakesAServiceFromOthers: with private DNS an endpoint answers for its service to the whole VPC, to nodes
// above all, so its group admits more than one other group, in every form. Nodes use it when the stack is gone, as long as
// they stay themselves.
func TestNoEndpointTakesAServiceFromOthers(t *testing.T) {
	looked := 0
	for name, settings := range forms() {
		if settings["vpcEndpoints"] == nil {
			continue
		}
		context := map[string]any{"clusterName": "demo", "distFolder": placeholders(t)}
		maps.Copy(context, settings)
		w := words(t, mustSynth(t, context))
		for id, r := range w.Resources {
			if r.Type != "AWS::EC2::VPCEndpoint" && !strings.HasPrefix(id, "EndpointsGroup") {
				continue
			}
			looked++
			stays, replaced := "RetainExceptOnCreate", "Retain"
			if settings["onDelete"] == "drain" {
				stays, replaced = "", ""
			}
			if r.DeletionPolicy != stays || r.UpdateReplacePolicy != replaced {
				t.Errorf("%s: %s has the policies %q and %q", name, id, r.DeletionPolicy, r.UpdateReplacePolicy)
			}
			if r.Properties["PrivateDnsEnabled"] != true {
				continue
			}
			for _, group := range references(r.Properties["SecurityGroupIds"]) {
				admitted := text(w.Resources[group].Properties["SecurityGroupIngress"])
				if !strings.Contains(admitted, "CidrIp=0.0.0.0/0") || !strings.Contains(admitted, "CidrIpv6=::/0") {
					t.Errorf("%s: %s has private DNS and admits %s", name, id, admitted)
				}
			}
		}
	}
	if looked < 13 {
		t.Errorf("looked at %d resources", looked)
	}
}

// TestEndpointsHaveTheNamesOfTheirPartition: of those that Joiner uses, China calls three otherwise.
func TestEndpointsHaveTheNamesOfTheirPartition(t *testing.T) {
	for region, want := range map[string]string{
		"":           "com.amazonaws.${AWS::Region}.ec2 com.amazonaws.${AWS::Region}.eks com.amazonaws.${AWS::Region}.lambda com.amazonaws.${AWS::Region}.ssm",
		"eu-west-1":  "com.amazonaws.eu-west-1.ec2 com.amazonaws.eu-west-1.eks com.amazonaws.eu-west-1.lambda com.amazonaws.eu-west-1.ssm",
		"cn-north-1": "cn.com.amazonaws.cn-north-1.ec2 cn.com.amazonaws.cn-north-1.eks cn.com.amazonaws.cn-north-1.lambda com.amazonaws.cn-north-1.ssm",
	} {
		var got []string
		w := words(t, inside(t, map[string]any{"vpcEndpoints": true, "region": region}))
		w.each("AWS::EC2::VPCEndpoint", func(_ string, p map[string]any) { got = append(got, text(p["ServiceName"])) })
		if g := strings.Join(got, " "); g != want {
			t.Errorf("region %q: %s\nwant %s", region, g, want)
		}
		w.each("Custom::JoinerPreflight", func(_ string, p map[string]any) {
			if given, _ := p["GivenRegion"].(string); given != region {
				t.Errorf("region %q: the preflight is told of %q", region, given)
			}
		})
	}
}

// TestFunctionsReachTheURLsOfTheSettings: the stack's group lets the functions out to the ports of remoteWriteURL.
func TestFunctionsReachTheURLsOfTheSettings(t *testing.T) {
	w := words(t, inside(t, map[string]any{"remoteWriteURL": "http://mimir.example/api/v1/push"}))
	var got []string
	w.each("AWS::EC2::SecurityGroup", func(_ string, p map[string]any) {
		for _, rule := range p["SecurityGroupEgress"].([]any) {
			r := rule.(map[string]any)
			got = append(got, fmt.Sprintf("%v %v-%v %v", r["CidrIp"], r["FromPort"], r["ToPort"], r["Description"]))
		}
	})
	want := []string{"0.0.0.0/0 443-443 API server and AWS", "0.0.0.0/0 80-80 remoteWriteURL"}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("ways out (-want +got):\n%s", d)
	}
}

// TestAVPCCanBeLeft: versions of before stay with the network that they were made with, for which Lambda needs the rights of
// the role after the settings have left the VPC, too. Another VPC leaves the security group to them.
func TestAVPCCanBeLeft(t *testing.T) {
	out := words(t, mustSynth(t, map[string]any{"clusterName": "demo", "distFolder": placeholders(t)}))
	in := words(t, inside(t, map[string]any{"clusterSecurityGroupID": cluster}))
	for _, id := range []string{"Provision", "Rebalance", "Setup"} {
		if in.permissions(id) != out.permissions(id) {
			t.Errorf("%s loses rights with the VPC:\n%s", id, cmp.Diff(in.permissions(id), out.permissions(id)))
		}
	}
	for id, r := range in.Resources {
		if r.Type == "AWS::EC2::SecurityGroup" && (r.UpdateReplacePolicy != "Retain" || r.DeletionPolicy != "Delete") {
			t.Errorf("%s has the policies %q and %q", id, r.DeletionPolicy, r.UpdateReplacePolicy)
		}
	}
}

// TestLambdaMayUseTheNetwork: the functions that can be in a VPC have, beside what infra/local/contract/iam proves, what
// Lambda itself needs for network interfaces; those that stay outside have nothing of it.
func TestLambdaMayUseTheNetwork(t *testing.T) {
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
			const look = "DescribeNetwork: ec2:DescribeSubnets ec2:DescribeRouteTables ec2:DescribePrefixLists ec2:DescribeVpcEndpoints ec2:DescribeVpcEndpointServices\n"
			if !strings.Contains(got, look) || strings.Count(want, "ec2:") != strings.Count(want, "ec2:DescribeInstances") {
				t.Errorf("the preflight may not look at the network, or may outside of one:\n%s", got)
			}
			return
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s may more or less in a VPC (-outside +inside):\n%s", id, diff)
		}
	})
	if n != 12 {
		t.Errorf("%d functions, want 12", n)
	}
}
