package stack

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awseks"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"
	"github.com/aws/jsii-runtime-go"

	"joiner.sh/pkg/install"
	"joiner.sh/pkg/settings"
)

// setupTimeout is CloudFormation's wait for an answer, in seconds: somewhat longer than the function may take.
const setupTimeout = 960

// addSetup makes the custom resources that setup answers for, and puts everything into the order that they need.
//
// Created: the preflight, before the bucket that stays, the node roles, the network, any access entry and any function
// that reserves concurrency, so that a cluster or an account that cannot have them is told from others by a message and
// not by a failure halfway; then these, and the other functions; then setup puts CRDs and RBAC into the cluster; then
// provision, refresh, all aliases and all rules, so that no code runs before the cluster has what it needs. Deleted,
// the other way round: nothing launches or fires any more when setup begins to drain, and lifecycle, which it wakes
// for that, is still there. So is what nodes belong to the cluster by, without which kubelets could end no pod, and the
// network of the functions.
func (s *joiner) addSetup() error {
	hash, err := manifestHash()
	if err != nil {
		return err
	}
	fn, preflight := s.made["setup"].fn, resourceOf(s.preflight)
	for _, r := range slices.Concat(s.ways, s.joining, []awscdk.CfnResource{resourceOf(s.bucket),
		resourceOf(s.ticks.group), resourceOf(s.ticks.role)}) {
		r.AddResourceDependency(preflight, nil)
	}
	for _, r := range s.entries {
		r.AddResourceDependency(preflight, nil)
	}
	for _, name := range sortedKeys(s.made) {
		if m := s.made[name]; s.props.reserved(m.function) > 0 {
			resourceOf(m.fn).AddResourceDependency(preflight, nil)
		}
	}
	asked := map[string]any{
		"ClusterName": s.cluster,
		"Manifests":   hash, // a change of it has CloudFormation call setup again
		"Inside":      strconv.FormatBool(s.net.vpc != nil),
		"Mode":        s.props.Functions.Mode,
		"NodeRoles":   strings.Join(s.madeRoles, ","),
		"OnDelete":    s.props.Stack.OnDelete,
		"RoleArn":     fn.Role().RoleArn(),
	}
	if d := s.props.Stack.Deployment; d != "" { // by which setup knows a rollback
		asked["Deployment"] = d
	}
	if cron, zone := s.props.Stack.Hibernation(); cron != "" {
		asked["Sleep"], asked["SleepFor"], asked["SleepTimeZone"] = cron,
			s.props.Stack.HibernationDuration.String(), zone
	}
	if s.secret != nil {
		asked["PushURL"] = s.addURL(s.made["wake"])
		asked["PushSecret"] = s.secret.SecretArn() // another secret, another address
	}
	if s.props.Functions.Manifests == settings.ManifestsExternal { // another one, and setup is asked again
		asked["InstalledBy"] = settings.ManifestsExternal
	}
	resource := s.customResource("Setup", fn, asked)
	s.addOutput("Manifests", *resource.GetAttString(jsii.String("Manifests")), "What the cluster lacks of CRDs and RBAC")
	setup := resourceOf(resource)
	setup.AddResourceDependency(s.made["setup"].entry, nil)
	setup.AddResourceDependency(s.made["lifecycle"].entry, nil)
	setup.AddResourceDependency(resourceOf(s.made["lifecycle"].fn), nil)
	for _, r := range slices.Concat(s.ways, s.joining) {
		setup.AddResourceDependency(r, nil)
	}
	// Their roles too, or one that runs still could launch or make an instance profile again while setup cleans up.
	for _, name := range []string{"provision", "refresh"} {
		resourceOf(s.made[name].role).AddResourceDependency(setup, nil)
	}
	for _, rule := range s.rules {
		rule.AddResourceDependency(setup, nil)
		// At its first tick refresh writes into the bucket, which no rollback can delete then: rules may fail before.
		if *rule.CfnResourceType() != "AWS::Scheduler::Schedule" {
			resourceOf(s.ticks.group).AddResourceDependency(rule, nil)
		}
	}
	for _, name := range sortedKeys(s.made) {
		if m := s.made[name]; m.inCluster() {
			resourceOf(m.entrance).AddResourceDependency(setup, nil)
		}
	}
	return nil
}

// addPreflight makes the resource that checks cluster and account before anything else is made, and whose attributes
// say how the functions reach the cluster. It is asked anew in each deployment.
func (s *joiner) addPreflight(functions []function) {
	s.preflight = s.customResource("Preflight", s.made["preflight"].fn, preflightPlan(s.scope, functions).Properties())
}

// reservedByAll returns the part of the account's concurrency that functions reserve, and that for notices.
func (p Props) reservedByAll(functions []function) (all, notices int) {
	for _, f := range functions {
		n := p.reserved(f)
		all += n
		if f.urgent > 0 {
			notices += n
		}
	}
	return all, notices
}

// customResource makes a resource of type Custom::Joiner<name> whose id in the template is name with Resource behind
// it.
func (s *joiner) customResource(name string, fn awslambda.Function, properties map[string]any) awscdk.CustomResource {
	return awscdk.NewCustomResource(s.Stack, jsii.String(name+"Resource"), &awscdk.CustomResourceProps{
		ServiceToken:   fn.FunctionArn(),
		ServiceTimeout: awscdk.Duration_Seconds(jsii.Number(setupTimeout)),
		ResourceType:   jsii.String("Custom::Joiner" + name),
		Properties:     &properties,
	})
}

// adminPolicy lets setup make CRDs, and roles with rights that it would have to hold itself otherwise. No other
// function has it.
func (s *joiner) adminPolicy() []*awseks.CfnAccessEntry_AccessPolicyProperty {
	return []*awseks.CfnAccessEntry_AccessPolicyProperty{{
		PolicyArn: jsii.String(fmt.Sprintf("arn:%s:eks::aws:cluster-access-policy/AmazonEKSClusterAdminPolicy",
			*s.Partition())),
		AccessScope: &awseks.CfnAccessEntry_AccessScopeProperty{Type: jsii.String("cluster")},
	}}
}

// manifestHash stands for all that setup installs.
func manifestHash() (string, error) {
	objects, err := install.External()
	if err != nil {
		return "", fmt.Errorf("read what setup installs: %w", err)
	}
	push, err := install.Push(install.Address{CA: install.AmazonRoots()})
	if err != nil {
		return "", fmt.Errorf("read what setup installs: %w", err)
	}
	text, err := json.Marshal(append(objects, push))
	if err != nil {
		return "", fmt.Errorf("encode what setup installs: %w", err)
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8]), nil
}
