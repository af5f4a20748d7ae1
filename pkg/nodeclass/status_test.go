package nodeclass_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	awsv1 "joiner.sh/pkg/api/aws/v1"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/nodeclass"
)

func noon() time.Time { return time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC) }

func class() *awsv1.EC2NodeClass {
	discovery := map[string]string{"karpenter.sh/discovery": "demo"}
	return &awsv1.EC2NodeClass{
		ObjectMeta: metav1.ObjectMeta{Name: "default", Generation: 3, CreationTimestamp: metav1.NewTime(noon().Add(-time.Hour))},
		Spec: awsv1.EC2NodeClassSpec{
			SubnetSelectorTerms:        []awsv1.SubnetSelectorTerm{{Tags: discovery}, {ID: "subnet-1"}},
			SecurityGroupSelectorTerms: []awsv1.SecurityGroupSelectorTerm{{Tags: discovery}, {Name: "nodes"}},
			AMISelectorTerms:           []awsv1.AMISelectorTerm{{Alias: "al2023@latest"}},
			Role:                       "node",
		},
	}
}

func found() nodeclass.Resolved {
	return nodeclass.Resolved{
		Images:         []nodeclass.Image{{ID: "ami-1", Name: "one", Arch: "amd64", Created: noon()}},
		Subnets:        []nodeclass.Subnet{{ID: "subnet-1", Zone: "a", ZoneID: "z-a", Free: 5}},
		SecurityGroups: []awsv1.SecurityGroup{{ID: "sg-1", Name: "nodes"}},
		Profile:        "profile", ServiceCIDR: "10.100.0.0/16", Region: "us-west-2",
	}
}

// conditions prints conditions that are not simply True.
func conditions(list []metav1.Condition) []string {
	var out []string
	for _, k := range list {
		if k.Status != metav1.ConditionTrue {
			out = append(out, fmt.Sprintf("%s=%s %s: %s", k.Type, k.Status, k.Reason, k.Message))
		}
	}
	slices.Sort(out)
	return out
}

func TestAClassWithAllThingsFoundIsReady(t *testing.T) {
	c := class()
	if !nodeclass.UpdateStatus(c, found(), noon()) {
		t.Error("nothing changed")
	}
	if got := conditions(c.Status.Conditions); got != nil || !nodeclass.IsReady(c) || len(c.Status.Conditions) != 8 {
		t.Errorf("%d conditions, not True: %v", len(c.Status.Conditions), got)
	}
	for _, k := range c.Status.Conditions {
		if k.ObservedGeneration != 3 {
			t.Errorf("%s speaks of generation %d", k.Type, k.ObservedGeneration)
		}
	}
	if nodeclass.UpdateStatus(c, found(), noon().Add(time.Hour)) {
		t.Error("the second update changed something")
	}
}

// A class whose user data was written for another family is Ready, because its nodes may join all the same, and says it.
func TestMisreadUserDataIsToldByAReadyClass(t *testing.T) {
	c, text := class(), "apiVersion: node.eks.aws/v1alpha1\nkind: NodeConfig\n"
	c.Spec.AMIFamily, c.Spec.UserData = new(awsv1.AMIFamilyAL2), &text
	nodeclass.UpdateStatus(c, found(), noon())
	k, _ := c.StatusConditions().Get(awsv1.ConditionValidationSucceeded)
	if want := "spec.userData: it is a NodeConfig"; !nodeclass.IsReady(c) || !strings.HasPrefix(k.Message, want) {
		t.Errorf("ready: %v, validation says %q, want it to begin with %q", nodeclass.IsReady(c), k.Message, want)
	}
	c.Spec.UserData = nil
	nodeclass.UpdateStatus(c, found(), noon())
	if k, _ := c.StatusConditions().Get(awsv1.ConditionValidationSucceeded); k.Message != "" {
		t.Errorf("without user data it says %q", k.Message)
	}
}

func TestWhatIsNotReadyAndWhy(t *testing.T) {
	const unhealthy = "Ready=False UnhealthyDependents: "
	for _, test := range []struct {
		name   string
		change func(c *awsv1.EC2NodeClass, r *nodeclass.Resolved)
		want   []string
	}{
		{"images", func(_ *awsv1.EC2NodeClass, r *nodeclass.Resolved) { r.Images = nil }, []string{
			"AMIsReady=False AMINotFound: no image in us-west-2 matches amiSelectorTerms (alias al2023@latest): check that it exists there and may be used by this account, or change the terms",
			unhealthy + "AMIsReady=False, ValidationSucceeded=False",
			"ValidationSucceeded=False DependenciesNotReady: AMIsReady: no image in us-west-2 matches amiSelectorTerms (alias al2023@latest): check that it exists there and may be used by this account, or change the terms",
		}},
		{"alias", func(_ *awsv1.EC2NodeClass, r *nodeclass.Resolved) {
			r.ImagesErr = &nodeclass.AliasError{Why: "too new"}
		}, []string{
			"AMIsReady=False UnsupportedAlias: too new", unhealthy + "AMIsReady=False, ValidationSucceeded=False",
			"ValidationSucceeded=False DependenciesNotReady: AMIsReady: too new",
		}},
		{"subnets", func(_ *awsv1.EC2NodeClass, r *nodeclass.Resolved) { r.Subnets = nil }, []string{
			unhealthy + "SubnetsReady=False, ValidationSucceeded=False",
			"SubnetsReady=False SubnetsNotFound: no subnet in us-west-2 matches subnetSelectorTerms (tag karpenter.sh/discovery=demo; id subnet-1): tag a subnet or change the terms",
			"ValidationSucceeded=False DependenciesNotReady: SubnetsReady: no subnet in us-west-2 matches subnetSelectorTerms (tag karpenter.sh/discovery=demo; id subnet-1): tag a subnet or change the terms",
		}},
		{"groups", func(_ *awsv1.EC2NodeClass, r *nodeclass.Resolved) { r.SecurityGroups = nil }, []string{
			unhealthy + "SecurityGroupsReady=False, ValidationSucceeded=False",
			"SecurityGroupsReady=False SecurityGroupsNotFound: no security group in us-west-2 matches securityGroupSelectorTerms (tag karpenter.sh/discovery=demo; name nodes): tag a group or change the terms",
			"ValidationSucceeded=False DependenciesNotReady: SecurityGroupsReady: no security group in us-west-2 matches securityGroupSelectorTerms (tag karpenter.sh/discovery=demo; name nodes): tag a group or change the terms",
		}},
		{"terms without content", func(c *awsv1.EC2NodeClass, r *nodeclass.Resolved) {
			c.Spec.SubnetSelectorTerms, r.Subnets = []awsv1.SubnetSelectorTerm{{Tags: map[string]string{}}}, nil
		}, []string{
			unhealthy + "SubnetsReady=False, ValidationSucceeded=False",
			"SubnetsReady=False SubnetsNotFound: no subnet in us-west-2 matches subnetSelectorTerms (an empty term, which selects nothing): tag a subnet or change the terms",
			"ValidationSucceeded=False DependenciesNotReady: SubnetsReady: no subnet in us-west-2 matches subnetSelectorTerms (an empty term, which selects nothing): tag a subnet or change the terms",
		}},
		{"profile", func(_ *awsv1.EC2NodeClass, r *nodeclass.Resolved) {
			r.ProfileErr = &nodeclass.ProfileError{Reason: nodeclass.ReasonRoleNotFound, Why: "no role"}
		}, []string{
			"InstanceProfileReady=False RoleNotFound: no role", unhealthy + "InstanceProfileReady=False, ValidationSucceeded=False",
			"ValidationSucceeded=False DependenciesNotReady: InstanceProfileReady: no role",
		}},
		{"placement group that cannot be looked up", func(c *awsv1.EC2NodeClass, r *nodeclass.Resolved) {
			c.Spec.PlacementGroupSelector, r.PlacementErr = &awsv1.PlacementGroupSelector{Name: "pg"}, errors.New("throttled")
		}, []string{"PlacementGroupReady=False PlacementGroupResolutionFailed: throttled", unhealthy + "PlacementGroupReady=False"}},
		{"placement group", func(c *awsv1.EC2NodeClass, _ *nodeclass.Resolved) {
			c.Spec.PlacementGroupSelector = &awsv1.PlacementGroupSelector{Name: "pg"}
		}, []string{
			"PlacementGroupReady=False PlacementGroupNotFound: no placement group pg is available in us-west-2: make it or change placementGroupSelector",
			unhealthy + "PlacementGroupReady=False",
		}},
		{"tags", func(c *awsv1.EC2NodeClass, _ *nodeclass.Resolved) {
			c.Spec.Tags = map[string]string{"a": "b", "kubernetes.io/cluster/other": "owned"}
		}, []string{
			unhealthy + "ValidationSucceeded=False",
			"ValidationSucceeded=False TagValidationFailed: spec.tags may not hold kubernetes.io/cluster/other: Joiner sets it",
		}},
		{"service CIDR", func(_ *awsv1.EC2NodeClass, r *nodeclass.Resolved) { r.ServiceCIDR = "" }, []string{
			unhealthy + "ValidationSucceeded=False",
			"ValidationSucceeded=False ClusterCIDRResolutionFailed: the service CIDR of the cluster is not known: EKS tells it the stack when it is deployed; deploy it again",
		}},
		{"throttled at the first look", func(_ *awsv1.EC2NodeClass, r *nodeclass.Resolved) {
			r.ImagesErr, r.Images = errors.New("throttled"), nil
		}, []string{
			"AMIsReady=Unknown LookUpFailed: it could not be looked up, the next refresh tries again: no answer",
			"Ready=Unknown ReconcilingDependents: AMIsReady=Unknown, ValidationSucceeded=Unknown",
			"ValidationSucceeded=Unknown DependenciesNotReady: AMIsReady is not known yet",
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			c, r := class(), found()
			test.change(c, &r)
			nodeclass.UpdateStatus(c, r, noon())
			if diff := cmp.Diff(test.want, conditions(c.Status.Conditions)); diff != "" {
				t.Errorf("conditions that are not True (-want +got):\n%s", diff)
			}
		})
	}
}

func TestRestrictedTags(t *testing.T) {
	for _, key := range []string{"eks:eks-cluster-name", "karpenter.sh/nodepool", "karpenter.sh/nodeclaim", "karpenter.k8s.aws/ec2nodeclass", "kubernetes.io/cluster/demo"} {
		c := class()
		c.Spec.Tags = map[string]string{key: "x"}
		nodeclass.UpdateStatus(c, found(), noon())
		if k, _ := c.StatusConditions().Get(awsv1.ConditionValidationSucceeded); k.Reason != "TagValidationFailed" {
			t.Errorf("%s: reason %s", key, k.Reason)
		}
	}
	c := class()
	c.Spec.Tags = map[string]string{"Name": "x", "karpenter.sh/discovery": "demo"}
	if nodeclass.UpdateStatus(c, found(), noon()); !nodeclass.IsReady(c) {
		t.Errorf("%v", conditions(c.Status.Conditions))
	}
}

// Images of an alias that the cluster outgrew are not launched any more.
func TestAnUnsupportedAliasVoidsTheImages(t *testing.T) {
	c, r := class(), found()
	nodeclass.UpdateStatus(c, r, noon())
	r.ImagesErr = &nodeclass.AliasError{Why: "too new"}
	if nodeclass.UpdateStatus(c, r, noon()); len(c.Status.AMIs) != 0 {
		t.Errorf("images %v", c.Status.AMIs)
	}
}

func TestOnlyAL2023NeedsTheServiceCIDR(t *testing.T) {
	c, r := class(), found()
	c.Spec.AMISelectorTerms[0].Alias, r.ServiceCIDR = "bottlerocket@latest", ""
	if nodeclass.UpdateStatus(c, r, noon()); !nodeclass.IsReady(c) {
		t.Errorf("%v", conditions(c.Status.Conditions))
	}
}

func TestAFailedLookUpKeepsWhatWasFoundBefore(t *testing.T) {
	c := class()
	nodeclass.UpdateStatus(c, found(), noon())
	before := c.Status.DeepCopy()
	fault := errors.New("throttled")
	r := nodeclass.Resolved{ImagesErr: fault, SubnetsErr: fault, GroupsErr: fault, ProfileErr: fault, ServiceCIDR: "10.100.0.0/16"}
	if nodeclass.UpdateStatus(c, r, noon().Add(time.Hour)) {
		t.Errorf("status (-before +after):\n%s", cmp.Diff(before, &c.Status))
	}
	if got := r.JoinErrors().Error(); got != "throttled\nthrottled\nthrottled\nthrottled" {
		t.Errorf("error %q", got)
	}
	c.Generation = 4 // what was found speaks of an older spec, also where it was not found
	nodeclass.UpdateStatus(c, r, noon().Add(time.Hour))
	k, _ := c.StatusConditions().Get(awsv1.ConditionValidationSucceeded)
	if nodeclass.IsReady(c) || k.Status != metav1.ConditionUnknown {
		t.Errorf("ready of an older spec: %v, validation is %s", nodeclass.IsReady(c), k.Status)
	}
}

func TestWhatIsForTheUserToMendIsNoError(t *testing.T) {
	r := nodeclass.Resolved{
		ImagesErr:  fmt.Errorf("images: %w", &nodeclass.AliasError{Why: "a"}),
		ProfileErr: fmt.Errorf("profile: %w", &nodeclass.ProfileError{Why: "p"}),
	}
	if err := r.JoinErrors(); err != nil {
		t.Error(err)
	}
}

func TestOrderOfSubnetsAndGroups(t *testing.T) {
	c, r := class(), found()
	r.Subnets = []nodeclass.Subnet{{ID: "s-2", Free: 1}, {ID: "s-1", Free: 1}, {ID: "s-9", Zone: "a", ZoneID: "z-a", Free: 7}}
	r.SecurityGroups = []awsv1.SecurityGroup{{ID: "sg-2"}, {ID: "sg-1"}}
	nodeclass.UpdateStatus(c, r, noon())
	if diff := cmp.Diff([]awsv1.Subnet{{ID: "s-9", Zone: "a", ZoneID: "z-a"}, {ID: "s-1"}, {ID: "s-2"}}, c.Status.Subnets); diff != "" {
		t.Errorf("subnets (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]awsv1.SecurityGroup{{ID: "sg-1"}, {ID: "sg-2"}}, c.Status.SecurityGroups); diff != "" {
		t.Errorf("groups (-want +got):\n%s", diff)
	}
}

func TestOneImageOfEachKindIsKept(t *testing.T) {
	old, recent := noon().Add(-48*time.Hour), noon()
	gpu := []corev1.NodeSelectorRequirement{{Key: instancetypes.LabelGPUCount, Operator: corev1.NodeSelectorOpExists}}
	accelerator := []corev1.NodeSelectorRequirement{{Key: instancetypes.LabelAccelCount, Operator: corev1.NodeSelectorOpExists}}
	images := []nodeclass.Image{
		{ID: "ami-deprecated", Name: "z", Arch: "amd64", Created: recent, Deprecated: true},
		{ID: "ami-older", Name: "z", Arch: "amd64", Created: old.Add(-time.Hour)},
		{ID: "ami-name-a", Name: "a", Arch: "amd64", Created: old},
		{ID: "ami-name-b", Name: "b", Arch: "amd64", Created: old},
		{ID: "ami-arm", Name: "arm", Arch: "arm64", Created: recent},
		{ID: "ami-two", Name: "two", Arch: "amd64", Created: recent, Needs: gpu},
		{ID: "ami-two", Name: "two", Arch: "amd64", Created: recent, Needs: accelerator},
		{ID: "ami-only-deprecated", Name: "x", Arch: "arm64", Created: old, Deprecated: true, Needs: gpu},
	}
	want := []string{
		"ami-arm arm false: arch In arm64",
		"ami-two two false: arch In amd64, instance-accelerator-count Exists",
		"ami-two two false: arch In amd64, instance-gpu-count Exists",
		"ami-name-b b false: arch In amd64",
		"ami-only-deprecated x true: arch In arm64, instance-gpu-count Exists",
	}
	for range len(images) {
		images = append(images[1:], images[0]) // whatever the order of the answer
		c, r := class(), found()
		r.Images = slices.Clone(images)
		nodeclass.UpdateStatus(c, r, noon())
		var got []string
		for _, a := range c.Status.AMIs {
			got = append(got, fmt.Sprintf("%s %s %v: %s", a.ID, a.Name, a.Deprecated, text(a.Requirements)))
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("images (-want +got):\n%s", diff)
		}
	}
}

func TestTermsInMessages(t *testing.T) {
	c, r := class(), found()
	r.Images = nil
	c.Spec.AMISelectorTerms = []awsv1.AMISelectorTerm{{ID: "ami-1"}, {SSMParameter: "/p"}, {Name: "n", Owner: "self", Tags: map[string]string{"b": "2", "a": "*"}}}
	nodeclass.UpdateStatus(c, r, noon())
	k, _ := c.StatusConditions().Get(awsv1.ConditionAMIsReady)
	if want := "(id ami-1; ssmParameter /p; name n and tag a=* and tag b=2 of owner self)"; !strings.Contains(k.Message, want) {
		t.Errorf("message %q, want %q in it", k.Message, want)
	}
}
