package drift_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	awsv1 "joiner.sh/pkg/api/aws/v1"
	v1 "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/disruption/drift"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/requirements"
)

func noon() time.Time { return time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC) }

// world is a cluster with one NodeClaim that is as its pool and class ask for.
func world() (cluster.Snapshot, []instancetypes.Type) {
	s := cluster.Snapshot{
		Now: noon(),
		Classes: []instancetypes.Class{{Name: "default", Ready: true, Hash: "77", HashVersion: awsv1.HashVersion, Images: []instancetypes.Image{{ID: "ami-1"}},
			SecurityGroups: []string{"sg-1", "sg-2"}, Subnets: []instancetypes.Subnet{{ID: "subnet-1"}, {ID: "subnet-2"}}}},
		Instances: []cluster.Instance{{ID: "i-1", Zone: "a", SubnetID: "subnet-2", SecurityGroups: []string{"sg-1", "sg-2"}}},
		Pools:     []cluster.Pool{{Name: "p", Class: "default", Ready: true, Hash: "11", Requirements: requirements.NewSet(requirements.Of("kubernetes.io/arch", "amd64"))}},
		Claims: []cluster.Claim{{
			Name: "c", Pool: "p", Class: "default", Created: noon().Add(-2 * time.Hour), ImageID: "ami-1", ProviderID: "aws:///a/i-1",
			Labels: map[string]string{"kubernetes.io/arch": "amd64", "node.kubernetes.io/instance-type": "m5.large", "topology.kubernetes.io/zone": "a",
				"karpenter.sh/capacity-type": "spot"},
			Annotations: map[string]string{v1.AnnotationNodePoolHash: "11", v1.AnnotationNodePoolHashVersion: v1.NodePoolHashVersion,
				awsv1.AnnotationHash: "77", awsv1.AnnotationHashVersion: awsv1.HashVersion},
			Conditions: []cluster.Condition{{Type: v1.ConditionLaunched, Status: "True"}},
		}},
	}
	types := []instancetypes.Type{{Name: "m5.large", ImageID: "ami-1", Offerings: []instancetypes.Offering{
		{OfferingKey: instancetypes.OfferingKey{CapacityType: "spot", Type: "m5.large", Zone: "a"}, Why: "unavailable"},
		{OfferingKey: instancetypes.OfferingKey{CapacityType: "on-demand", Type: "m5.large", Zone: "b"}, Available: true}}}}
	return s, types
}

func TestVerdicts(t *testing.T) {
	drifted := cluster.Condition{Type: v1.ConditionDrifted, Status: "True", Reason: "AMIDrift"}
	for _, c := range []struct {
		name   string
		change func(s *cluster.Snapshot, c *cluster.Claim, t *instancetypes.Type)
		want   string // the reason, "none" for a condition to be removed, empty for nothing to change
	}{
		{"older than its pool wants, replaced by force", func(s *cluster.Snapshot, c *cluster.Claim, _ *instancetypes.Type) { c.ExpireAfter = time.Hour }, ""},
		{"older than its pool wants, replaced within budgets", func(s *cluster.Snapshot, c *cluster.Claim, _ *instancetypes.Type) {
			c.ExpireAfter, s.Pools[0].Disruption.ExpireGently = 2*time.Hour, true
		}, "Expired"},
		{"not yet", func(s *cluster.Snapshot, c *cluster.Claim, _ *instancetypes.Type) {
			c.ExpireAfter, s.Pools[0].Disruption.ExpireGently = 2*time.Hour+time.Second, true
		}, ""},
		{"as asked for", func(*cluster.Snapshot, *cluster.Claim, *instancetypes.Type) {}, ""},
		{"another template", func(s *cluster.Snapshot, _ *cluster.Claim, _ *instancetypes.Type) { s.Pools[0].Hash = "12" }, "NodePoolDrifted"},
		{"a hash of another version", func(s *cluster.Snapshot, c *cluster.Claim, _ *instancetypes.Type) {
			s.Pools[0].Hash, c.Annotations[v1.AnnotationNodePoolHashVersion] = "12", "v2"
		}, ""},
		{"no hash", func(s *cluster.Snapshot, c *cluster.Claim, _ *instancetypes.Type) {
			s.Pools[0].Hash = "12"
			delete(c.Annotations, v1.AnnotationNodePoolHash)
		}, ""},
		{"a pool whose hash nobody wrote down yet", func(s *cluster.Snapshot, _ *cluster.Claim, _ *instancetypes.Type) { s.Pools[0].Hash = "" }, ""},
		{"a class whose hash nobody wrote down yet", func(s *cluster.Snapshot, _ *cluster.Claim, _ *instancetypes.Type) { s.Classes[0].Hash = "" }, ""},
		{"no hash of the class", func(_ *cluster.Snapshot, c *cluster.Claim, _ *instancetypes.Type) {
			delete(c.Annotations, awsv1.AnnotationHash)
		}, ""},
		{"a type whose image nobody found", func(_ *cluster.Snapshot, _ *cluster.Claim, t *instancetypes.Type) { t.ImageID = "" }, ""},
		{"the same, of one that drifted by its image", func(_ *cluster.Snapshot, c *cluster.Claim, t *instancetypes.Type) {
			t.ImageID, c.Conditions = "", append(c.Conditions, drifted)
		}, ""},
		{"one that drifted by its image, of a class that has found none", func(s *cluster.Snapshot, c *cluster.Claim, t *instancetypes.Type) {
			s.Classes[0].Images, t.ImageID, c.Conditions = nil, "", append(c.Conditions, drifted)
		}, "none"},
		{"reserved capacity that is sold as spot only", func(_ *cluster.Snapshot, c *cluster.Claim, _ *instancetypes.Type) {
			c.Labels["karpenter.sh/capacity-type"] = "reserved"
		}, "InstanceTypeNotFound"},
		{"requirements that it does not meet", func(s *cluster.Snapshot, _ *cluster.Claim, _ *instancetypes.Type) {
			s.Pools[0].Requirements = requirements.NewSet(requirements.Of("kubernetes.io/arch", "arm64"))
		}, "RequirementsDrifted"},
		{"a required label that it lacks", func(s *cluster.Snapshot, _ *cluster.Claim, _ *instancetypes.Type) {
			s.Pools[0].Requirements = requirements.NewSet(requirements.Any("team"))
		}, "RequirementsDrifted"},
		{"a required label that it lacks and its type has", func(s *cluster.Snapshot, _ *cluster.Claim, t *instancetypes.Type) {
			t.Requirements = requirements.NewSet(requirements.Of("karpenter.k8s.aws/instance-capability-flex", "false"))
			s.Pools[0].Requirements = t.Requirements
		}, ""},
		{"a required label that it lacks, of which its type has another value", func(s *cluster.Snapshot, _ *cluster.Claim, t *instancetypes.Type) {
			t.Requirements = requirements.NewSet(requirements.Of("karpenter.k8s.aws/instance-capability-flex", "true"))
			s.Pools[0].Requirements = requirements.NewSet(requirements.Of("karpenter.k8s.aws/instance-capability-flex", "false"))
		}, "RequirementsDrifted"},
		{"a label that it lacks and that must not have the value of its type", func(s *cluster.Snapshot, _ *cluster.Claim, t *instancetypes.Type) {
			t.Requirements = requirements.NewSet(requirements.Of("karpenter.k8s.aws/instance-capability-flex", "true"))
			s.Pools[0].Requirements = requirements.NewSet(not("karpenter.k8s.aws/instance-capability-flex", "true"))
		}, "RequirementsDrifted"},
		{"a label that it has counts, whatever its type has", func(s *cluster.Snapshot, c *cluster.Claim, t *instancetypes.Type) {
			t.Requirements = requirements.NewSet(requirements.Of("karpenter.k8s.aws/instance-network-bandwidth", "12500"))
			c.Labels["karpenter.k8s.aws/instance-network-bandwidth"] = "10000"
			s.Pools[0].Requirements = t.Requirements
		}, "RequirementsDrifted"},
		{"a required label that its type has several values of", func(s *cluster.Snapshot, _ *cluster.Claim, t *instancetypes.Type) {
			t.Requirements = requirements.NewSet(requirements.Of("topology.k8s.aws/zone-id", "use1-az1", "use1-az2"))
			s.Pools[0].Requirements = requirements.NewSet(requirements.Of("topology.k8s.aws/zone-id", "use1-az1"))
		}, "RequirementsDrifted"},
		{"a required label of the only reservation of its type", func(s *cluster.Snapshot, _ *cluster.Claim, t *instancetypes.Type) {
			t.Requirements = requirements.NewSet(requirements.Of("karpenter.k8s.aws/capacity-reservation-id", "cr-1"))
			s.Pools[0].Requirements = t.Requirements
		}, "RequirementsDrifted"},
		{"its type is not known any more", func(_ *cluster.Snapshot, _ *cluster.Claim, t *instancetypes.Type) { t.Name = "m6.large" }, "InstanceTypeNotFound"},
		{"nor within the first hour", func(_ *cluster.Snapshot, c *cluster.Claim, t *instancetypes.Type) {
			t.Name, c.Created = "m6.large", noon().Add(-time.Hour+time.Second)
		}, ""},
		{"but from the first hour on", func(_ *cluster.Snapshot, c *cluster.Claim, t *instancetypes.Type) {
			t.Name, c.Created = "m6.large", noon().Add(-time.Hour)
		}, "InstanceTypeNotFound"},
		{"the template before requirements", func(s *cluster.Snapshot, _ *cluster.Claim, _ *instancetypes.Type) {
			s.Pools[0].Hash, s.Pools[0].Requirements = "12", requirements.NewSet(requirements.Any("team"))
		}, "NodePoolDrifted"},
		{"requirements before the type", func(s *cluster.Snapshot, _ *cluster.Claim, t *instancetypes.Type) {
			t.Name, s.Pools[0].Requirements = "m6.large", requirements.NewSet(requirements.Any("team"))
		}, "RequirementsDrifted"},
		{"the type before the class", func(s *cluster.Snapshot, _ *cluster.Claim, t *instancetypes.Type) {
			t.Name, s.Classes[0].Hash = "m6.large", "78"
		}, "InstanceTypeNotFound"},
		{"the class before the image", func(s *cluster.Snapshot, _ *cluster.Claim, t *instancetypes.Type) {
			s.Classes[0].Hash, t.ImageID = "78", "ami-2"
		}, "NodeClassDrift"},
		{"an instance whose groups and subnet nobody tells", func(s *cluster.Snapshot, _ *cluster.Claim, _ *instancetypes.Type) {
			s.Instances[0].SecurityGroups, s.Instances[0].SubnetID = nil, ""
		}, ""},
		{"a class whose groups and subnets nobody found", func(s *cluster.Snapshot, _ *cluster.Claim, _ *instancetypes.Type) {
			s.Classes[0].SecurityGroups, s.Classes[0].Subnets = nil, nil
		}, ""},
		{"its zone does not sell it any more", func(_ *cluster.Snapshot, c *cluster.Claim, _ *instancetypes.Type) {
			c.Labels["topology.kubernetes.io/zone"] = "b"
		}, "InstanceTypeNotFound"},
		{"reserved capacity that is on-demand capacity now", func(_ *cluster.Snapshot, c *cluster.Claim, _ *instancetypes.Type) {
			c.Labels["topology.kubernetes.io/zone"], c.Labels["karpenter.sh/capacity-type"] = "b", "reserved"
		}, ""},
		{"a reservation that its class selects", func(s *cluster.Snapshot, c *cluster.Claim, _ *instancetypes.Type) {
			c.Labels["karpenter.sh/capacity-type"], c.Labels["karpenter.k8s.aws/capacity-reservation-id"] = "reserved", "cr-1"
			c.Created, s.Classes[0].Reservations = noon(), []instancetypes.Reservation{{ID: "cr-1"}}
		}, ""},
		{"a reservation that its class does not select any more", func(s *cluster.Snapshot, c *cluster.Claim, _ *instancetypes.Type) {
			c.Labels["karpenter.sh/capacity-type"], c.Labels["karpenter.k8s.aws/capacity-reservation-id"] = "reserved", "cr-1"
			c.Created, s.Classes[0].Reservations = noon(), []instancetypes.Reservation{{ID: "cr-2"}}
		}, "CapacityReservationDrift"},
		{"a reservation while selections are not read", func(s *cluster.Snapshot, c *cluster.Claim, _ *instancetypes.Type) {
			c.Labels["karpenter.sh/capacity-type"], c.Labels["karpenter.k8s.aws/capacity-reservation-id"] = "reserved", "cr-1"
			c.Created, s.Classes[0].OpenReservations = noon(), true
		}, ""},
		{"what became on-demand has no reservation to lose", func(_ *cluster.Snapshot, c *cluster.Claim, _ *instancetypes.Type) {
			c.Created, c.Labels["karpenter.sh/capacity-type"], c.Labels["karpenter.k8s.aws/capacity-reservation-id"] = noon(), "on-demand", "cr-1"
		}, ""},
		{"another class", func(s *cluster.Snapshot, _ *cluster.Claim, _ *instancetypes.Type) { s.Classes[0].Hash = "78" }, "NodeClassDrift"},
		{"a class hash of another version", func(s *cluster.Snapshot, _ *cluster.Claim, _ *instancetypes.Type) {
			s.Classes[0].Hash, s.Classes[0].HashVersion = "78", "v0"
		}, ""},
		{"another image", func(_ *cluster.Snapshot, _ *cluster.Claim, t *instancetypes.Type) { t.ImageID = "ami-2" }, "AMIDrift"},
		{"an image nobody wrote down", func(_ *cluster.Snapshot, c *cluster.Claim, t *instancetypes.Type) { t.ImageID, c.ImageID = "ami-2", "" }, ""},
		{"a class that is not ready", func(s *cluster.Snapshot, _ *cluster.Claim, t *instancetypes.Type) {
			s.Classes[0].Ready, t.ImageID = false, "ami-2"
		}, ""},
		{"another template while the class is not ready", func(s *cluster.Snapshot, _ *cluster.Claim, _ *instancetypes.Type) {
			s.Classes[0].Ready, s.Pools[0].Hash = false, "12"
		}, "NodePoolDrifted"},
		{"a requirement while the class is gone", func(s *cluster.Snapshot, c *cluster.Claim, _ *instancetypes.Type) {
			s.Classes, c.Labels["kubernetes.io/arch"] = nil, "arm64"
		}, "RequirementsDrifted"},
		{"a pool that is gone", func(s *cluster.Snapshot, _ *cluster.Claim, t *instancetypes.Type) { s.Pools, t.ImageID = nil, "ami-2" }, ""},
		{"not launched", func(_ *cluster.Snapshot, c *cluster.Claim, t *instancetypes.Type) {
			c.Conditions, t.ImageID = nil, "ami-2"
		}, ""},
		{"being deleted", func(_ *cluster.Snapshot, c *cluster.Claim, t *instancetypes.Type) {
			c.Deleting, t.ImageID = noon(), "ami-2"
		}, ""},
		{"known already", func(_ *cluster.Snapshot, c *cluster.Claim, t *instancetypes.Type) {
			t.ImageID, c.Conditions = "ami-2", append(c.Conditions, drifted)
		}, ""},
		{"for another reason now", func(s *cluster.Snapshot, c *cluster.Claim, _ *instancetypes.Type) {
			s.Pools[0].Hash, c.Conditions = "12", append(c.Conditions, drifted)
		}, "NodePoolDrifted"},
		{"a group more than the class finds", func(s *cluster.Snapshot, _ *cluster.Claim, _ *instancetypes.Type) {
			s.Classes[0].SecurityGroups = []string{"sg-1"}
		}, "SecurityGroupDrift"},
		{"a group less", func(s *cluster.Snapshot, _ *cluster.Claim, _ *instancetypes.Type) {
			s.Instances[0].SecurityGroups = []string{"sg-2"}
		}, "SecurityGroupDrift"},
		{"a subnet that the class does not find", func(s *cluster.Snapshot, _ *cluster.Claim, _ *instancetypes.Type) {
			s.Classes[0].Subnets = []instancetypes.Subnet{{ID: "subnet-1"}}
		}, "SubnetDrift"},
		{"an instance that EC2 shows without groups and subnet yet", func(s *cluster.Snapshot, _ *cluster.Claim, _ *instancetypes.Type) {
			s.Instances[0].SecurityGroups, s.Instances[0].SubnetID = nil, ""
		}, ""},
		{"a class that has found neither groups nor subnets", func(s *cluster.Snapshot, _ *cluster.Claim, _ *instancetypes.Type) {
			s.Classes[0].SecurityGroups, s.Classes[0].Subnets = nil, nil
		}, ""},
		{"groups before subnets", func(s *cluster.Snapshot, _ *cluster.Claim, _ *instancetypes.Type) {
			s.Classes[0].Subnets, s.Classes[0].SecurityGroups = []instancetypes.Subnet{{ID: "subnet-1"}}, []string{"sg-9"}
		}, "SecurityGroupDrift"},
		{"the image before groups", func(s *cluster.Snapshot, _ *cluster.Claim, t *instancetypes.Type) {
			s.Classes[0].SecurityGroups, t.ImageID = []string{"sg-9"}, "ami-2"
		}, "AMIDrift"},
		{"another placement group", func(s *cluster.Snapshot, c *cluster.Claim, _ *instancetypes.Type) {
			c.Labels[instancetypes.LabelPlacement], s.Classes[0].Placement = "pg-1", &instancetypes.Placement{ID: "pg-2", Strategy: "cluster"}
		}, "PlacementGroupDrift"},
		{"the placement group of its class", func(s *cluster.Snapshot, c *cluster.Claim, _ *instancetypes.Type) {
			c.Labels[instancetypes.LabelPlacement], s.Classes[0].Placement = "pg-1", &instancetypes.Placement{ID: "pg-1", Strategy: "cluster"}
		}, ""},
		{"a node of none, whose class has one since", func(s *cluster.Snapshot, _ *cluster.Claim, _ *instancetypes.Type) {
			s.Classes[0].Placement = &instancetypes.Placement{ID: "pg-1", Strategy: "cluster"}
		}, ""},
		{"a placement group that nobody looked up", func(s *cluster.Snapshot, c *cluster.Claim, _ *instancetypes.Type) {
			c.Labels[instancetypes.LabelPlacement], s.Classes[0].Placement = "pg-1", &instancetypes.Placement{ID: "pg-2"}
		}, ""},
		{"reservations before placement groups", func(s *cluster.Snapshot, c *cluster.Claim, _ *instancetypes.Type) {
			c.Labels["karpenter.sh/capacity-type"], c.Labels["karpenter.k8s.aws/capacity-reservation-id"] = "reserved", "cr-1"
			c.Created, c.Labels[instancetypes.LabelPlacement], s.Classes[0].Placement = noon(), "pg-1", &instancetypes.Placement{ID: "pg-2", Strategy: "cluster"}
		}, "CapacityReservationDrift"},
		{"an image nobody wrote down, of one that drifted", func(_ *cluster.Snapshot, c *cluster.Claim, t *instancetypes.Type) {
			t.ImageID, c.ImageID, c.Conditions = "", "", append(c.Conditions, drifted)
		}, "none"},
		{"an instance that EC2 does not show", func(s *cluster.Snapshot, _ *cluster.Claim, _ *instancetypes.Type) {
			s.Classes[0].Subnets, s.Instances = []instancetypes.Subnet{{ID: "subnet-1"}}, nil
		}, ""},
		{"one that drifted when EC2 showed it", func(s *cluster.Snapshot, c *cluster.Claim, _ *instancetypes.Type) {
			k := drifted
			k.Reason, s.Instances = "SubnetDrift", nil
			c.Conditions = append(c.Conditions, k)
		}, ""},
		{"one that drifted by its image, which is right now", func(s *cluster.Snapshot, c *cluster.Claim, _ *instancetypes.Type) {
			s.Instances, c.Conditions = nil, append(c.Conditions, drifted)
		}, "none"},
		{"not any more", func(_ *cluster.Snapshot, c *cluster.Claim, _ *instancetypes.Type) {
			c.Conditions = append(c.Conditions, drifted)
		}, "none"},
	} {
		s, types := world()
		s.Claims = slices.Clone(s.Claims)
		c.change(&s, &s.Claims[0], &types[0])
		var got []string
		for _, v := range drift.DriftChanges(s, func(cluster.Pool) []instancetypes.Type { return types }) {
			if v.Reason == "" {
				v.Reason = "none"
			} else if v.Message == "" {
				t.Errorf("%s: no message", c.name)
			}
			got = append(got, v.Reason)
		}
		if fmt.Sprint(strings.Join(got, ",")) != c.want {
			t.Errorf("%s: %v, want %q", c.name, got, c.want)
		}
	}
}

// What cannot drift yet does not hide what has.
func TestVerdictsOfSeveral(t *testing.T) {
	s, types := world()
	young, old := s.Claims[0], s.Claims[0]
	young.Name, young.Conditions, old.Name = "a", nil, "b"
	s.Claims = []cluster.Claim{young, old}
	s.Pools[0].Hash = "12"
	got := drift.DriftChanges(s, func(cluster.Pool) []instancetypes.Type { return types })
	if len(got) != 1 || got[0].Claim != "b" || got[0].Reason != "NodePoolDrifted" {
		t.Errorf("verdicts %v, want one of b", got)
	}
}

func not(key string, values ...string) requirements.Requirement {
	r, err := requirements.NewRequirement(key, "NotIn", values...)
	if err != nil {
		panic(err)
	}
	return r
}
