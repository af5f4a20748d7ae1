package nodeclass_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	awsv1 "joiner.sh/pkg/api/aws/v1"
	v1 "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/nodeclass"
)

func TestUnusedProfiles(t *testing.T) {
	launched := []cluster.Condition{{Type: v1.ConditionLaunched, Status: "True"}}
	with := func(profile string) cluster.Claim {
		return cluster.Claim{Name: "c", Class: "default", Conditions: launched, Annotations: map[string]string{"karpenter.k8s.aws/instance-profile-name": profile}}
	}
	for _, test := range []struct {
		name   string
		claims []cluster.Claim
		change func(c *awsv1.EC2NodeClass, p *nodeclass.Profile)
		want   []string
	}{
		{"of an earlier role", nil, nil, []string{"old"}},
		{"of instances with the new one", []cluster.Claim{with("profile")}, nil, []string{"old"}},
		{"of an instance", []cluster.Claim{with("old")}, nil, nil},
		{"of an instance of another class", []cluster.Claim{{Class: "other", Conditions: launched, Annotations: with("old").Annotations}}, nil, nil},
		{"while something is launched", []cluster.Claim{{Class: "default", Annotations: with("profile").Annotations}}, nil, nil},
		{"while something is launched with another class", []cluster.Claim{{Class: "other"}}, nil, []string{"old"}},
		{"with an instance nobody knows the profile of", []cluster.Claim{{Class: "default", Conditions: launched}}, nil, nil},
		{"young", nil, func(_ *awsv1.EC2NodeClass, p *nodeclass.Profile) { p.Created = noon().Add(-59 * time.Minute) }, nil},
		{"that the class names itself", nil, func(c *awsv1.EC2NodeClass, p *nodeclass.Profile) { c.Spec.InstanceProfile = &p.Name }, nil},
		{"that the status names", nil, func(c *awsv1.EC2NodeClass, p *nodeclass.Profile) { c.Status.InstanceProfile = p.Name }, nil},
		{"while the class is looked at", nil, func(c *awsv1.EC2NodeClass, _ *nodeclass.Profile) { c.Generation++ }, nil},
		{"of a class that is gone", nil, func(_ *awsv1.EC2NodeClass, p *nodeclass.Profile) { p.ClassUID = "gone" }, []string{"old"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			c, p := class(), nodeclass.Profile{Name: "old", ClassUID: "uid", Created: noon().Add(-time.Hour)}
			c.UID = "uid"
			nodeclass.UpdateStatus(c, found(), noon())
			if test.change != nil {
				test.change(c, &p)
			}
			mine := nodeclass.Profile{Name: "profile", ClassUID: "uid", Created: noon().Add(-24 * time.Hour)}
			got := nodeclass.UnusedProfiles([]nodeclass.Profile{p, mine}, []awsv1.EC2NodeClass{*c}, test.claims, noon())
			if test.name == "that the status names" {
				test.want = []string{"profile"}
			}
			if d := cmp.Diff(test.want, got); d != "" {
				t.Errorf("unused (-want +got):\n%s", d)
			}
		})
	}
}
