package iam

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	awsiam "github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/lambda"

	"joiner.sh/infra/local/lambdahost/assembly"
	"joiner.sh/pkg/install/preflight"
	"joiner.sh/pkg/providers/discovery"
)

// What the preflight asks about the plan of a stack, its role in that stack may ask: it waits a minute and a half for a
// permission that never comes, and then knows less than it should.
func TestThePreflightMayAskWhatItAsks(t *testing.T) {
	for name, stack := range map[string]*assembly.Assembly{"outside": load(t), "in a VPC": inVPC(t)} {
		t.Run(name, func(t *testing.T) {
			r := start(t, stack)
			facts, denied, err := r.preflight().ReadFacts(t.Context(), r.plan(t))
			if err != nil || denied || len(facts.Unknown) != 0 || !facts.Cluster.Found || facts.Limit == 0 {
				t.Errorf("denied %t, %v: %+v", denied, err, facts)
			}
		})
	}
}

// Each action of the statements that only a VPC brings is needed there.
func TestEachActionOfThePreflightInAVPCIsNeeded(t *testing.T) {
	for topic, action := range map[string]string{preflight.TopicSubnets: "ec2:DescribeSubnets", preflight.TopicEndpoints: "ec2:DescribeVpcEndpoints", preflight.TopicZones: "ec2:DescribeVpcEndpointServices",
		preflight.TopicWays: "ec2:DescribeRouteTables", preflight.TopicLambda: "lambda:GetAccountSettings",
		preflight.TopicNodes: "ec2:DescribeInstances", preflight.TopicMemory: "lambda:GetFunctionConfiguration"} {
		r := start(t, changedIn(t, inVPC(t), "preflight", func(all []statement) []statement {
			for i := range all {
				all[i].Action = slices.DeleteFunc(all[i].list("action"), func(a any) bool { return a == action })
			}
			return slices.DeleteFunc(all, func(s statement) bool { return len(s.list("action")) == 0 })
		}))
		plan := r.plan(t)
		plan.Endpoints = []string{"ec2"}
		facts, denied, err := r.preflight().ReadFacts(t.Context(), plan)
		if err != nil || !denied || len(facts.Unknown) != 1 || facts.Unknown[0].Topic != topic {
			t.Errorf("without %s: denied %t, %v, unknown %+v; want %s", action, denied, err, facts.Unknown, topic)
		}
	}
}

// preflight asks with the role of the stack's preflight.
func (r *rig) preflight() discovery.Preflight {
	c := r.of("preflight")
	return discovery.Preflight{EKS: eks.NewFromConfig(c), IAM: awsiam.NewFromConfig(c), EC2: ec2.NewFromConfig(c), Lambda: lambda.NewFromConfig(c)}
}

// plan is what the stack tells its preflight.
func (r *rig) plan(t *testing.T) preflight.StackPlan {
	t.Helper()
	for _, c := range r.stack.CustomResources {
		if c.Type != "Custom::JoinerPreflight" {
			continue
		}
		var properties map[string]any
		if err := json.Unmarshal(c.Properties, &properties); err != nil {
			t.Fatal(err)
		}
		p, whole := preflight.ReadPlan(properties, region)
		if !whole {
			t.Fatalf("the stack does not say everything to its preflight: %s", c.Properties)
		}
		return p
	}
	t.Fatal("the stack has no preflight")
	return preflight.StackPlan{}
}
