package discovery

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/google/go-cmp/cmp"

	"joiner.sh/infra/local/awsemulator"
	awsv1 "joiner.sh/pkg/api/aws/v1"
)

// profiles lists all instance profiles with their role.
func (r *rig) profiles(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	got, err := r.finder.IAM.ListInstanceProfiles(t.Context(), &iam.ListInstanceProfilesInput{})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range got.InstanceProfiles {
		out[*p.InstanceProfileName] = ""
		for _, role := range p.Roles {
			out[*p.InstanceProfileName] = *role.RoleName
		}
	}
	return out
}

func TestAProfileIsMadeOnceAndTagged(t *testing.T) {
	r, c := start(t), class()
	for range 2 {
		if err := r.look(t, c); err != nil {
			t.Fatal(err)
		}
	}
	name := c.Status.InstanceProfile
	if diff := cmp.Diff(map[string]string{name: nodeRole}, r.profiles(t)); diff != "" || !strings.HasPrefix(name, "demo_") {
		t.Errorf("profile %s (-want +got):\n%s", name, diff)
	}
	got, err := r.finder.IAM.GetInstanceProfile(t.Context(), &iam.GetInstanceProfileInput{InstanceProfileName: aws.String(name)})
	if err != nil {
		t.Fatal(err)
	}
	tags := map[string]string{}
	for _, tag := range got.InstanceProfile.Tags {
		tags[*tag.Key] = *tag.Value
	}
	want := map[string]string{"team": "a", "kubernetes.io/cluster/demo": "owned", "eks:eks-cluster-name": "demo",
		"karpenter.k8s.aws/ec2nodeclass": "default", "topology.kubernetes.io/region": "us-west-2"}
	if diff := cmp.Diff(want, tags); diff != "" {
		t.Errorf("tags (-want +got):\n%s", diff)
	}
	if path := *got.InstanceProfile.Path; path != "/karpenter/us-west-2/demo/11111111-2222-3333-4444-555555555555/" {
		t.Errorf("path is %s", path)
	}
}

// Somebody put another role into our profile: it is taken out, and the class's own put in. One that is right is not
// touched.
func TestAProfileWithAnotherRoleIsMended(t *testing.T) {
	r, c := start(t), class()
	r.PutRole("other")
	if err := r.look(t, c); err != nil {
		t.Fatal(err)
	}
	name := aws.String(c.Status.InstanceProfile)
	if _, err := r.finder.IAM.RemoveRoleFromInstanceProfile(t.Context(), &iam.RemoveRoleFromInstanceProfileInput{InstanceProfileName: name, RoleName: aws.String(nodeRole)}); err != nil {
		t.Fatal(err)
	}
	if _, err := r.finder.IAM.AddRoleToInstanceProfile(t.Context(), &iam.AddRoleToInstanceProfileInput{InstanceProfileName: name, RoleName: aws.String("other")}); err != nil {
		t.Fatal(err)
	}
	r.ForgetCalls()
	for _, want := range []map[string]int{{"iam:RemoveRoleFromInstanceProfile": 1, "iam:AddRoleToInstanceProfile": 1}, {}} {
		if err := r.look(t, c); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, r.made("iam:RemoveRoleFromInstanceProfile", "iam:AddRoleToInstanceProfile", "iam:CreateInstanceProfile")); diff != "" {
			t.Errorf("calls (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(map[string]string{*name: nodeRole}, r.profiles(t)); diff != "" {
			t.Errorf("profiles (-want +got):\n%s", diff)
		}
	}
}

// A role may be named with its path, of which IAM wants the last part, and a class without tags is fine.
func TestARoleNamedWithItsPath(t *testing.T) {
	r, c := start(t), class()
	c.Spec.Role, c.Spec.Tags = "teams/a/"+nodeRole, nil
	if err := r.look(t, c); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{c.Status.InstanceProfile: nodeRole}, r.profiles(t)); diff != "" {
		t.Errorf("profiles (-want +got):\n%s", diff)
	}
}

func TestDyingAfterAnyCallLeavesOneProfile(t *testing.T) {
	for _, action := range []string{"CreateInstanceProfile", "AddRoleToInstanceProfile"} {
		for _, kind := range []awsemulator.FaultKind{awsemulator.FailBefore, awsemulator.FailAfter, awsemulator.LoseReply} {
			t.Run(action+" "+string(kind), func(t *testing.T) {
				r, c := start(t), class()
				r.AddFault(awsemulator.Fault{Service: "iam", Action: action, Kind: kind, Status: 400, Code: "Broken", Times: 1})
				first := r.look(t, c) // a lost reply is tried again by the SDK
				if first == nil && kind != awsemulator.LoseReply {
					t.Error("the fault was not seen")
				}
				if err := r.look(t, c); err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(map[string]string{c.Status.InstanceProfile: nodeRole}, r.profiles(t)); diff != "" {
					t.Errorf("profiles (-want +got):\n%s", diff)
				}
			})
		}
	}
}

func TestAnotherRoleGetsAnotherProfile(t *testing.T) {
	r, c := start(t), class()
	r.PutRole("team/other")
	if err := r.look(t, c); err != nil {
		t.Fatal(err)
	}
	old := c.Status.InstanceProfile
	c.Spec.Role = "team/other"
	if err := r.look(t, c); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{old: nodeRole, c.Status.InstanceProfile: "other"}, r.profiles(t)); diff != "" {
		t.Errorf("profiles (-want +got):\n%s", diff)
	}
}

func TestAProfileThatKarpenterMadeIsKept(t *testing.T) {
	r, c := start(t), class()
	for name, path := range map[string]string{"demo_123": "/karpenter/us-west-2/demo/" + string(c.UID) + "/", "foreign": "/"} {
		_, err := r.finder.IAM.CreateInstanceProfile(t.Context(), &iam.CreateInstanceProfileInput{InstanceProfileName: aws.String(name), Path: aws.String(path)})
		if err != nil {
			t.Fatal(err)
		}
		_, err = r.finder.IAM.AddRoleToInstanceProfile(t.Context(), &iam.AddRoleToInstanceProfileInput{InstanceProfileName: aws.String(name), RoleName: aws.String(nodeRole)})
		if err != nil {
			t.Fatal(err)
		}
	}
	c.Status.InstanceProfile = "demo_123"
	if err := r.look(t, c); err != nil || c.Status.InstanceProfile != "demo_123" {
		t.Errorf("profile is %s, error %v", c.Status.InstanceProfile, err)
	}
	c.Status.InstanceProfile = "foreign" // which the class named itself before it named a role
	if err := r.look(t, c); err != nil || c.Status.InstanceProfile == "foreign" {
		t.Errorf("profile is %s, error %v", c.Status.InstanceProfile, err)
	}
}

func TestProfilesOfTheClusterAreListedAndDeleted(t *testing.T) {
	r, c := start(t), class()
	r.PutRole("other")
	if err := r.look(t, c); err != nil {
		t.Fatal(err)
	}
	old := c.Status.InstanceProfile
	c.Spec.Role = "other"
	if err := r.look(t, c); err != nil {
		t.Fatal(err)
	}
	for name, path := range map[string]string{"a": "/karpenter/us-west-2/demo2/x/", "b": "/karpenter/eu-west-1/demo/x/", "c": "/"} {
		_, err := r.finder.IAM.CreateInstanceProfile(t.Context(), &iam.CreateInstanceProfileInput{InstanceProfileName: aws.String(name), Path: aws.String(path)})
		if err != nil {
			t.Fatal(err)
		}
	}
	all, err := r.finder.ListProfiles(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, p := range all {
		got[p.Name] = p.ClassUID
		if p.Created.IsZero() {
			t.Errorf("%s has no date", p.Name)
		}
	}
	if diff := cmp.Diff(map[string]string{old: string(c.UID), c.Status.InstanceProfile: string(c.UID)}, got); diff != "" {
		t.Errorf("profiles (-want +got):\n%s", diff)
	}
	for range 2 {
		if err := r.finder.DeleteProfile(t.Context(), old); err != nil {
			t.Fatal(err)
		}
	}
	if _, there := r.profiles(t)[old]; there || len(r.profiles(t)) != 4 {
		t.Errorf("left: %v", r.profiles(t))
	}
	r.finder.Isolated = true
	r.made()
	if none, err := r.finder.ListProfiles(t.Context()); err != nil || none != nil || len(r.CallCounts()) > 0 {
		t.Errorf("isolated: %v, error %v, calls %v", none, err, r.CallCounts())
	}
}

func TestWhatTheUserHasToMendAboutTheRoleIsSaidOnTheClass(t *testing.T) {
	for _, test := range []struct {
		name, want string
		prepare    func(r *rig, c *awsv1.EC2NodeClass)
	}{
		{"unknown role", "False RoleNotFound: there is no IAM role nobody: create it or change spec.role",
			func(_ *rig, c *awsv1.EC2NodeClass) { c.Spec.Role = "nobody" }},
		{"role that may not be passed", "False RoleNotAllowed: IAM does not let refresh give role " + nodeRole, func(r *rig, _ *awsv1.EC2NodeClass) {
			r.AddFault(awsemulator.Fault{Service: "iam", Action: "AddRoleToInstanceProfile", Kind: awsemulator.FailBefore, Status: 403, Code: "AccessDenied"})
		}},
		{"isolated", "False NoProfileInIsolatedVPC: the setting isolatedVPC rules out IAM calls: give spec.instanceProfile instead of spec.role",
			func(r *rig, _ *awsv1.EC2NodeClass) { r.finder.Isolated = true }},
	} {
		t.Run(test.name, func(t *testing.T) {
			r, c := start(t), class()
			test.prepare(r, c)
			for range 2 {
				if err := r.look(t, c); err != nil {
					t.Fatal(err)
				}
			}
			if got := condition(c, awsv1.ConditionInstanceProfileReady); !strings.HasPrefix(got, test.want) {
				t.Errorf("condition is %s, want %s", got, test.want)
			}
			if n := len(r.profiles(t)); n > 1 {
				t.Errorf("%d profiles for one class", n)
			}
		})
	}
}

func TestAProfileOfTheUserIsTakenAsItIs(t *testing.T) {
	r, c := start(t), class()
	c.Spec.Role, c.Spec.InstanceProfile = "", aws.String("mine")
	r.made()
	if err := r.look(t, c); err != nil || c.Status.InstanceProfile != "mine" {
		t.Errorf("profile is %s, error %v", c.Status.InstanceProfile, err)
	}
	for action := range r.CallCounts() {
		if strings.HasPrefix(action, "iam:") {
			t.Errorf("%s was called", action)
		}
	}
}

func TestForgettingAClassDeletesItsProfilesAndTemplates(t *testing.T) {
	r, c, other := start(t), class(), class()
	other.Name, other.UID = "other", "99999999-2222-3333-4444-555555555555"
	for _, k := range []*awsv1.EC2NodeClass{c, other} {
		if err := r.look(t, k); err != nil {
			t.Fatal(err)
		}
	}
	for name, owner := range map[string][2]string{"a": {"demo", "default"}, "b": {"demo", "default"}, "c": {"demo", "other"}, "d": {"elsewhere", "default"}} {
		_, err := r.finder.EC2.CreateLaunchTemplate(t.Context(), &ec2.CreateLaunchTemplateInput{LaunchTemplateName: aws.String("template-" + name),
			LaunchTemplateData: &types.RequestLaunchTemplateData{ImageId: aws.String(c.Status.AMIs[0].ID)},
			TagSpecifications: []types.TagSpecification{{ResourceType: types.ResourceTypeLaunchTemplate, Tags: []types.Tag{
				{Key: aws.String("eks:eks-cluster-name"), Value: aws.String(owner[0])}, {Key: aws.String("karpenter.k8s.aws/ec2nodeclass"), Value: aws.String(owner[1])}}}}})
		if err != nil {
			t.Fatal(err)
		}
	}
	r.AddFault(awsemulator.Fault{Service: "iam", Action: "DeleteInstanceProfile", Kind: awsemulator.FailBefore, Status: 400, Code: "Broken", Times: 1})
	if err := r.finder.DeleteArtifacts(t.Context(), c); err == nil || !strings.Contains(err.Error(), "delete instance profile demo_") {
		t.Errorf("error is %v, want one about the profile", err)
	}
	for range 2 {
		if err := r.finder.DeleteArtifacts(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff([]string{other.Status.InstanceProfile}, slices.Sorted(maps.Keys(r.profiles(t)))); diff != "" {
		t.Errorf("profiles (-want +got):\n%s", diff)
	}
	left, err := r.finder.EC2.DescribeLaunchTemplates(t.Context(), &ec2.DescribeLaunchTemplatesInput{})
	if err != nil {
		t.Fatal(err)
	}
	var templates []string
	for _, lt := range left.LaunchTemplates {
		templates = append(templates, *lt.LaunchTemplateName)
	}
	slices.Sort(templates)
	if diff := cmp.Diff([]string{"template-c", "template-d"}, templates); diff != "" {
		t.Errorf("templates (-want +got):\n%s", diff)
	}
}
