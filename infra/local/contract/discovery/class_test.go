package discovery

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/google/go-cmp/cmp"

	"joiner.sh/infra/local/awsemulator"
	awsv1 "joiner.sh/pkg/api/aws/v1"
	"joiner.sh/pkg/nodeclass"
)

// look looks everything up and returns the class with its new status, and what could not be looked up.
func (r *rig) look(t *testing.T, c *awsv1.EC2NodeClass) error {
	t.Helper()
	found := r.finder.FindAll(t.Context(), c)
	nodeclass.UpdateStatus(c, found, r.now)
	return found.JoinErrors()
}

// condition prints a condition of the class.
func condition(c *awsv1.EC2NodeClass, name string) string {
	k, _ := c.StatusConditions().Get(name)
	return fmt.Sprintf("%s %s: %s", k.Status, k.Reason, k.Message)
}

func names(c *awsv1.EC2NodeClass) []string {
	var out []string
	for _, a := range c.Status.AMIs {
		out = append(out, a.Name)
	}
	return out
}

func TestAClassOfTheAccountBecomesReady(t *testing.T) {
	r, c := start(t), class()
	if err := r.look(t, c); err != nil {
		t.Fatal(err)
	}
	if got := condition(c, "Ready"); got != "True Ready: " {
		t.Errorf("Ready is %s", got)
	}
	if len(c.Status.Subnets) != 4 || c.Status.Subnets[0].ZoneID == "" || c.Status.Subnets[0].Zone == "" {
		t.Errorf("subnets %v", c.Status.Subnets)
	}
	if len(c.Status.SecurityGroups) != 1 || c.Status.SecurityGroups[0].Name != "demo-node" {
		t.Errorf("security groups %v", c.Status.SecurityGroups)
	}
	images := map[string]int{}
	for _, n := range names(c) {
		images[n]++
	}
	want := map[string]int{}
	for _, v := range []string{"x86_64-standard", "x86_64-nvidia", "x86_64-neuron", "arm64-standard", "arm64-nvidia"} {
		want["amazon-eks-node-al2023-"+v+"-1.36-v20261109"] = 1
	}
	if diff := cmp.Diff(want, images); diff != "" {
		t.Errorf("images (-want +got):\n%s", diff)
	}
}

func TestASubnetThatLosesItsTagIsNotFound(t *testing.T) {
	r, c := start(t), class()
	if err := r.look(t, c); err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, s := range c.Status.Subnets {
		ids = append(ids, s.ID)
	}
	_, err := r.finder.EC2.CreateTags(t.Context(), &ec2.CreateTagsInput{Resources: ids,
		Tags: []types.Tag{{Key: aws.String("karpenter.sh/discovery"), Value: aws.String("other")}}})
	if err != nil {
		t.Fatal(err)
	}
	if err := r.look(t, c); err != nil {
		t.Errorf("what was not found is an error: %v", err)
	}
	want := "False SubnetsNotFound: no subnet in us-west-2 matches subnetSelectorTerms (tag karpenter.sh/discovery=demo): tag a subnet or change the terms"
	if got := condition(c, awsv1.ConditionSubnetsReady); got != want || len(c.Status.Subnets) > 0 {
		t.Errorf("subnets %v\n got %s\nwant %s", c.Status.Subnets, got, want)
	}
	if got := condition(c, "Ready"); !strings.HasPrefix(got, "False UnhealthyDependents") {
		t.Errorf("Ready is %s", got)
	}
}

func TestTermsOfSubnetsAndGroups(t *testing.T) {
	r, c := start(t), class()
	if err := r.look(t, c); err != nil {
		t.Fatal(err)
	}
	byZone := map[string]string{}
	for _, s := range c.Status.Subnets {
		byZone[s.Zone] = s.ID
	}
	r.LimitAddresses(byZone["us-west-2c"], 5)
	c.Spec.SubnetSelectorTerms = []awsv1.SubnetSelectorTerm{
		{ID: byZone["us-west-2a"], Tags: map[string]string{"Name": "none"}}, // an id beats tags
		{Tags: map[string]string{"Name": "*-us-west-2?", "karpenter.sh/discovery": "*", "none": "*"}},
		{Tags: map[string]string{"Name": "demo-private-us-west-2[c"}},
		{Tags: map[string]string{"Name": "*us-west-2c"}},
		{ID: byZone["us-west-2c"]},
	}
	c.Spec.SecurityGroupSelectorTerms = []awsv1.SecurityGroupSelectorTerm{
		{Name: "default", Tags: map[string]string{"none": "x"}}, // a name beats tags
		{Tags: map[string]string{"kubernetes.io/cluster/demo": "owned"}},
	}
	if err := r.look(t, c); err != nil {
		t.Fatal(err)
	}
	var zones, groups []string
	for _, s := range c.Status.Subnets {
		zones = append(zones, s.Zone)
	}
	for _, g := range c.Status.SecurityGroups {
		groups = append(groups, g.Name)
	}
	if diff := cmp.Diff([]string{"us-west-2a", "us-west-2c"}, zones); diff != "" {
		t.Errorf("subnets, most addresses first (-want +got):\n%s", diff)
	}
	if len(groups) != 2 || !strings.Contains(strings.Join(groups, " "), "default") || !strings.Contains(strings.Join(groups, " "), "eks-cluster-sg-demo") {
		t.Errorf("security groups %v", groups)
	}
	found := c.Status.SecurityGroups
	c.Spec.SecurityGroupSelectorTerms = []awsv1.SecurityGroupSelectorTerm{
		{ID: found[0].ID, Name: "none", Tags: map[string]string{"none": "x"}}, // an id beats both
		{ID: found[1].ID}, {Name: found[1].Name}, // the same twice
	}
	if err := r.look(t, c); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(found, c.Status.SecurityGroups); diff != "" {
		t.Errorf("security groups by id (-want +got):\n%s", diff)
	}
}

func TestTermsOfImages(t *testing.T) {
	r := start(t)
	own := r.PutImage("golden-1", "arm64", map[string]string{"use": "nodes"})
	r.PutImage("mac", "x86_64_mac", map[string]string{"use": "nodes"})
	r.PutParameter("/golden", own)
	r.PutParameter("/text", "not an image")
	for _, test := range []struct {
		name  string
		terms []awsv1.AMISelectorTerm
		want  []string
	}{
		{"id", []awsv1.AMISelectorTerm{{ID: own}}, []string{"golden-1"}},
		{"tags", []awsv1.AMISelectorTerm{{Tags: map[string]string{"use": "*"}}}, []string{"golden-1"}},
		{"name of ours or Amazon's", []awsv1.AMISelectorTerm{{Name: "*-x86_64-standard-1.36-*"}, {Name: "golden-?"}},
			[]string{"golden-1", "amazon-eks-node-al2023-x86_64-standard-1.36-v20261109"}},
		{"owner", []awsv1.AMISelectorTerm{{Name: "golden-1", Owner: "amazon"}}, nil},
		{"own account", []awsv1.AMISelectorTerm{{Name: "golden-1", Owner: "111122223333"}}, []string{"golden-1"}},
		{"parameter", []awsv1.AMISelectorTerm{{SSMParameter: "/golden"}}, []string{"golden-1"}},
		{"parameter of something else, and none", []awsv1.AMISelectorTerm{{SSMParameter: "/text"}, {SSMParameter: "/none"}}, nil},
		{"unknown id", []awsv1.AMISelectorTerm{{ID: "ami-0123"}}, nil},
		{"pinned alias", []awsv1.AMISelectorTerm{{Alias: "bottlerocket@v1.45.0"}}, []string{
			"bottlerocket-aws-k8s-1.36-arm64-v1.45.0-*", "bottlerocket-aws-k8s-1.36-nvidia-arm64-v1.45.0-*",
			"bottlerocket-aws-k8s-1.36-nvidia-x86_64-v1.45.0-*", "bottlerocket-aws-k8s-1.36-x86_64-v1.45.0-*", "bottlerocket-aws-k8s-1.36-x86_64-v1.45.0-*"}},
		{"alias of no release", []awsv1.AMISelectorTerm{{Alias: "al2023@v20200101"}}, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := class()
			c.Spec.AMIFamily, c.Spec.AMISelectorTerms = aws.String("Custom"), test.terms
			r.now = time.Now()
			if err := r.look(t, c); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, anyHash(names(c))); diff != "" {
				t.Errorf("images (-want +got):\n%s", diff)
			}
			if got := condition(c, awsv1.ConditionAMIsReady); test.want == nil && !strings.HasPrefix(got, "False AMINotFound: no image") {
				t.Errorf("condition is %s", got)
			}
		})
	}
}

// A deprecated image is used while there is no other, and says so; one that is not available yet is none.
func TestImagesThatAreDeprecatedOrNotThereYet(t *testing.T) {
	r, c := start(t), class()
	r.now = time.Now()
	old := r.PutImage("golden-1", "x86_64", map[string]string{"use": "nodes"})
	coming := r.PutImage("golden-2", "x86_64", map[string]string{"use": "nodes"})
	r.AgeImage(old, "", r.now.Add(-time.Hour))
	r.AgeImage(coming, "pending", r.now.AddDate(1, 0, 0))
	c.Spec.AMIFamily, c.Spec.AMISelectorTerms = aws.String("AL2023"), []awsv1.AMISelectorTerm{{Tags: map[string]string{"use": "nodes"}}}
	images := func() string {
		t.Helper()
		if err := r.look(t, c); err != nil {
			t.Fatal(err)
		}
		var out []string
		for _, a := range c.Status.AMIs {
			out = append(out, fmt.Sprint(a.Name, " deprecated ", a.Deprecated))
		}
		return strings.Join(out, ", ")
	}
	if got := images(); got != "golden-1 deprecated true" {
		t.Errorf("images %s", got)
	}
	r.AgeImage(coming, "available", r.now.AddDate(1, 0, 0))
	if got := images(); got != "golden-2 deprecated false" {
		t.Errorf("images %s", got)
	}
}

// anyHash sorts names of Bottlerocket and puts * for the build they end in.
func anyHash(names []string) []string {
	var out []string
	for _, n := range names {
		if strings.HasPrefix(n, "bottlerocket") {
			n = n[:strings.LastIndexByte(n, '-')] + "-*"
		}
		out = append(out, n)
	}
	if len(out) > 0 && strings.HasPrefix(out[0], "bottlerocket") {
		slices.Sort(out)
	}
	return out
}

func TestAThrottledCallLeavesTheStatusAsItWas(t *testing.T) {
	for _, action := range []string{"ssm/GetParameter", "ec2/DescribeImages", "ec2/DescribeSubnets", "ec2/DescribeSecurityGroups", "iam/GetInstanceProfile"} {
		t.Run(action, func(t *testing.T) {
			r, c := start(t), class()
			if err := r.look(t, c); err != nil {
				t.Fatal(err)
			}
			before := c.Status.DeepCopy()
			service, name, _ := strings.Cut(action, "/")
			r.AddFault(awsemulator.Fault{Service: service, Action: name, Kind: awsemulator.Throttle})
			r.now = r.now.Add(time.Minute)
			if err := r.look(t, c); err == nil {
				t.Error("no error")
			}
			if diff := cmp.Diff(before, &c.Status); diff != "" {
				t.Errorf("status (-before +after):\n%s", diff)
			}
		})
	}
}

func TestAnAliasThatDoesNotGoWithTheVersionIsAStatus(t *testing.T) {
	r, c := start(t), class()
	c.Spec.AMISelectorTerms[0].Alias = "al2@latest"
	found := r.finder.FindAll(t.Context(), c)
	if _, ok := errors.AsType[*nodeclass.AliasError](found.ImagesErr); !ok || found.JoinErrors() != nil {
		t.Errorf("errors %v and %v", found.ImagesErr, found.JoinErrors())
	}
	if n := r.made("ssm:GetParameter"); len(n) > 0 {
		t.Errorf("%v", n)
	}
}
