package discovery

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"k8s.io/apimachinery/pkg/types"

	"joiner.sh/infra/local/awsemulator"
	"joiner.sh/pkg/api/autoscaling/v1beta1"
	awsv1 "joiner.sh/pkg/api/aws/v1"
	v1 "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/api/v1alpha1"
	"joiner.sh/pkg/controllers"
	"joiner.sh/pkg/controllers/refresh"
	"joiner.sh/pkg/model/buffers"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/instancetypes/builtin"
	"joiner.sh/pkg/nodeclaim/launch"
	"joiner.sh/pkg/providers/fleet"
)

// desk keeps EC2NodeClasses, and nothing else of a cluster.
type desk struct {
	classes map[string]*awsv1.EC2NodeClass
}

func (d desk) ListClasses(context.Context) ([]awsv1.EC2NodeClass, error) {
	var out []awsv1.EC2NodeClass
	for _, name := range slices.Sorted(maps.Keys(d.classes)) {
		out = append(out, *d.classes[name].DeepCopy())
	}
	return out, nil
}
func (d desk) ReadClass(_ context.Context, name string) (*awsv1.EC2NodeClass, error) {
	return d.classes[name].DeepCopy(), nil
}
func (d desk) WriteClassStatus(_ context.Context, c *awsv1.EC2NodeClass) error {
	d.classes[c.Name].Status = *c.Status.DeepCopy()
	return nil
}
func (d desk) MarkClass(_ context.Context, name string, annotations map[string]string) error {
	c := d.classes[name]
	if c.Annotations == nil {
		c.Annotations = map[string]string{}
	}
	maps.Copy(c.Annotations, annotations)
	c.Finalizers = []string{awsv1.FinalizerTermination}
	return nil
}
func (desk) ReleaseClass(context.Context, string) error                       { return nil }
func (desk) ListPools(context.Context) ([]v1.NodePool, error)                 { return nil, nil }
func (desk) WritePoolStatus(context.Context, *v1.NodePool) error              { return nil }
func (desk) PatchPoolMeta(context.Context, string, map[string]string) error   { return nil }
func (desk) ListClaims(context.Context) ([]cluster.Claim, error)              { return nil, nil }
func (desk) ListNodes(context.Context) ([]cluster.Node, error)                { return nil, nil }
func (desk) RecordEvent(context.Context, cluster.Event) error                 { return nil }
func (desk) Refresh(context.Context) (string, error)                          { return "", nil }
func (desk) ListBuffers(context.Context) ([]buffers.Buffer, error)            { return nil, nil }
func (desk) WriteBufferStatus(context.Context, *v1beta1.CapacityBuffer) error { return nil }
func (desk) WriteOverlayStatus(context.Context, *v1alpha1.NodeOverlay) error  { return nil }
func (desk) ReadOfferingInputs(context.Context) (cluster.Snapshot, []v1alpha1.NodeOverlay, error) {
	return cluster.Snapshot{}, nil, nil
}
func (desk) AnnotateClaim(_ context.Context, c cluster.Claim, _ map[string]string) (cluster.Claim, error) {
	return c, nil
}
func (desk) ReadCatalog(context.Context) (instancetypes.Catalog, string, error) {
	c, err := instancetypes.DecodeCatalog(builtin.Data())
	return c, "", err
}

// refreshed refreshes the classes once, with rehearsals, and returns what stands in the way of each.
func (r *rig) refreshed(t *testing.T, d desk) (map[string]string, error) {
	t.Helper()
	f := &fleet.Fleet{EC2: ec2.NewFromConfig(r.cfg), Cluster: "demo", Now: r.clock}
	run := refresh.Controller{Deps: controllers.Deps{Record: d, Rules: cluster.Settings{MemoryOverhead: 0.075}, Now: r.clock, Log: slog.New(slog.DiscardHandler)},
		Finder: r.finder, Classes: d, Pools: d, Nodes: d, Market: d, Overlays: d, Buffers: d, Prices: d, Rehearse: f,
		Cluster: launch.Cluster{Name: "demo", Endpoint: "https://api", CABundle: "Q0E=", DNSAddress: "172.20.0.10", ServiceCIDR: "10.100.0.0/16", Version: "1.36", Region: "us-west-2"}}
	err := run.Run(t.Context())
	out := map[string]string{}
	for name, c := range d.classes {
		out[name] = "ready"
		for _, k := range c.Status.Conditions {
			waits := k.Type == awsv1.ConditionReady || k.Reason == awsv1.ReasonDependenciesNotReady
			if !waits && k.Status != "True" {
				out[name] = fmt.Sprintf("%s %s: %s", k.Type, k.Reason, k.Message)
			}
		}
	}
	return out, err
}

func (d desk) put(name string, change func(c *awsv1.EC2NodeClass)) {
	c := class()
	c.Name, c.UID = name, types.UID("uid-"+name)
	if change != nil {
		change(c)
	}
	d.classes[name] = c
}

// Each class has one thing wrong with it, and says so; the good one is ready, and none of it is an error of the
// function.
func TestWhatIsWrongWithAClassIsSaidOnIt(t *testing.T) {
	r, d, want := start(t), desk{map[string]*awsv1.EC2NodeClass{}}, map[string]string{"good": "ready"}
	arm := r.PutImage("arm", "arm64", nil)
	r.PutParameter("/text", "no image")
	d.put("good", nil)
	bad := func(name, says string, change func(c *awsv1.EC2NodeClass)) {
		d.put(name, change)
		want[name] = says
	}
	terms := func(family string, term awsv1.AMISelectorTerm) func(c *awsv1.EC2NodeClass) {
		return func(c *awsv1.EC2NodeClass) {
			c.Spec.AMISelectorTerms = []awsv1.AMISelectorTerm{term}
			if family != "" {
				c.Spec.AMIFamily = &family
			}
		}
	}
	const noImage = "AMIsReady AMINotFound: no image in us-west-2 matches amiSelectorTerms (%s): check that it exists there and may be used by this account, or change the terms"
	bad("image", fmt.Sprintf(noImage, "id ami-0123"), terms("AL2023", awsv1.AMISelectorTerm{ID: "ami-0123"}))
	bad("image-name", fmt.Sprintf(noImage, "name none-* of owner self"), terms("AL2023", awsv1.AMISelectorTerm{Name: "none-*", Owner: "self"}))
	bad("parameter", fmt.Sprintf(noImage, "ssmParameter /none"), terms("AL2023", awsv1.AMISelectorTerm{SSMParameter: "/none"}))
	bad("parameter-text", fmt.Sprintf(noImage, "ssmParameter /text"), terms("AL2023", awsv1.AMISelectorTerm{SSMParameter: "/text"}))
	bad("release", fmt.Sprintf(noImage, "alias al2023@v19990101"), terms("", awsv1.AMISelectorTerm{Alias: "al2023@v19990101"}))
	bad("alias", "AMIsReady UnsupportedAlias: there are no AL2 images for Kubernetes 1.36: use the alias al2023@latest", terms("", awsv1.AMISelectorTerm{Alias: "al2@latest"}))
	bad("subnets", "SubnetsReady SubnetsNotFound: no subnet in us-west-2 matches subnetSelectorTerms (tag a=b): tag a subnet or change the terms",
		func(c *awsv1.EC2NodeClass) { c.Spec.SubnetSelectorTerms[0].Tags = map[string]string{"a": "b"} })
	bad("groups", "SecurityGroupsReady SecurityGroupsNotFound: no security group in us-west-2 matches securityGroupSelectorTerms (id sg-0123): tag a group or change the terms",
		func(c *awsv1.EC2NodeClass) {
			c.Spec.SecurityGroupSelectorTerms = []awsv1.SecurityGroupSelectorTerm{{ID: "sg-0123"}}
		})
	bad("role", "InstanceProfileReady RoleNotFound: there is no IAM role nobody: create it or change spec.role", func(c *awsv1.EC2NodeClass) { c.Spec.Role = "nobody" })
	bad("profile", "ValidationSucceeded InstanceProfileNotFound: EC2 knows no instance profile nobodys: create it, or change spec.instanceProfile or spec.role",
		func(c *awsv1.EC2NodeClass) { c.Spec.Role, c.Spec.InstanceProfile = "", aws.String("nobodys") })
	bad("tag", "ValidationSucceeded TagValidationFailed: spec.tags may not hold karpenter.sh/nodepool: Joiner sets it",
		func(c *awsv1.EC2NodeClass) { c.Spec.Tags = map[string]string{"karpenter.sh/nodepool": "x"} })
	bad("toml", "ValidationSucceeded UserDataMalformed: user data: spec.userData is no TOML: toml: expected ']' to close table name: change spec.userData or spec.kubelet",
		func(c *awsv1.EC2NodeClass) {
			c.Spec.AMISelectorTerms[0].Alias, c.Spec.UserData = "bottlerocket@latest", aws.String("[settings\nmotd: hi")
		})
	bad("mime", "ValidationSucceeded UserDataMalformed: user data: spec.userData is MIME multipart without a boundary: change spec.userData or spec.kubelet",
		func(c *awsv1.EC2NodeClass) {
			c.Spec.UserData = aws.String("MIME-Version: 1.0\nContent-Type: multipart/mixed\n\nhello")
		})
	bad("long", "ValidationSucceeded UserDataSizeLimitExceeded: user data: it has 20538 bytes with what the node needs, EC2 takes at most 16384; shorten spec.userData",
		func(c *awsv1.EC2NodeClass) { c.Spec.UserData = aws.String(strings.Repeat("#", 20_000)) })
	bad("cards", "ValidationSucceeded NoInstanceType: no instance type can be launched with this class: the class uses network card 40, this type has 1", func(c *awsv1.EC2NodeClass) {
		c.Spec.NetworkInterfaces = []*awsv1.NetworkInterface{{InterfaceType: "interface"}, {NetworkCardIndex: 40, InterfaceType: "efa-only"}}
	})
	bad("arm-windows", "ValidationSucceeded NoInstanceType: no instance type can be launched with this class: no AMI of the class fits this type", func(c *awsv1.EC2NodeClass) {
		terms("Windows2022", awsv1.AMISelectorTerm{ID: arm})(c)
		c.Spec.CPUOptions = &awsv1.CPUOptions{NestedVirtualization: aws.String("enabled")}
	})
	bad("placement", "PlacementGroupReady PlacementGroupNotFound: no placement group pg is available in us-west-2: make it or change placementGroupSelector",
		func(c *awsv1.EC2NodeClass) { c.Spec.PlacementGroupSelector = &awsv1.PlacementGroupSelector{Name: "pg"} })
	for range 2 {
		got, err := r.refreshed(t, d)
		if err != nil {
			t.Errorf("the function fails: %v", err)
		}
		for name := range want {
			if !strings.HasPrefix(got[name], want[name]) {
				t.Errorf("%s\n got %s\nwant %s", name, got[name], want[name])
			}
		}
	}
	// the good one once, none into a placement group that there is not, each subnet for the profile that there is not
	// twice
	if n := r.CallCounts()["ec2:RunInstances"]; n != 1+2*4 {
		t.Errorf("%d launches were rehearsed", n)
	}
}

// A call that is denied says so on the classes that need it, and on no other.
func TestADeniedCallIsSaidOnTheClass(t *testing.T) {
	for _, test := range []struct{ service, action, says, other string }{
		{"ssm", "GetParameter", "AMIsReady Unauthorized: the role of the function refresh may not look: not allowed", "ready"},
		{"ec2", "DescribeImages", "AMIsReady Unauthorized: the role of the function refresh may not look: not allowed", "AMIsReady Unauthorized: "},
		{"ec2", "DescribeSubnets", "SubnetsReady Unauthorized: the role of the function refresh may not look: not allowed", "SubnetsReady Unauthorized: "},
		{"ec2", "DescribeSecurityGroups", "SecurityGroupsReady Unauthorized: the role of the function refresh may not look: not allowed", "SecurityGroupsReady Unauthorized: "},
		{"iam", "CreateInstanceProfile", "InstanceProfileReady Unauthorized: the role of the function refresh may not look: not allowed", "ready"},
		{"iam", "AddRoleToInstanceProfile", "InstanceProfileReady RoleNotAllowed: IAM does not let refresh give role " + nodeRole, "ready"},
		{"ec2", "CreateLaunchTemplate", "ValidationSucceeded CreateLaunchTemplateAuthCheckFailed: ", "ValidationSucceeded CreateLaunchTemplateAuthCheckFailed: "},
		{"ec2", "CreateFleet", "ValidationSucceeded CreateFleetAuthCheckFailed: ", "ValidationSucceeded CreateFleetAuthCheckFailed: "},
		{"ec2", "RunInstances", "ValidationSucceeded RunInstancesAuthCheckFailed: ", "ValidationSucceeded RunInstancesAuthCheckFailed: "},
	} {
		t.Run(test.action, func(t *testing.T) {
			r, d := start(t), desk{map[string]*awsv1.EC2NodeClass{}}
			image := r.PutImage("golden", "x86_64", nil)
			r.PutInstanceProfile("mine", nodeRole)
			d.put("a", nil)
			d.put("b", func(c *awsv1.EC2NodeClass) { // needs neither SSM nor IAM
				c.Spec.AMIFamily, c.Spec.AMISelectorTerms = aws.String("AL2023"), []awsv1.AMISelectorTerm{{ID: image}}
				c.Spec.Role, c.Spec.InstanceProfile = "", aws.String("mine")
			})
			code := map[string]string{"ssm": "AccessDeniedException", "ec2": "UnauthorizedOperation", "iam": "AccessDenied"}[test.service]
			r.AddFault(awsemulator.Fault{Service: test.service, Action: test.action, Kind: awsemulator.FailBefore, Status: 403, Code: code, Message: "not allowed"})
			got, _ := r.refreshed(t, d)
			if !strings.HasPrefix(got["a"], test.says) || !strings.HasPrefix(got["b"], test.other) {
				t.Errorf("a: %s\nb: %s", got["a"], got["b"])
			}
			r.ClearFaults()
			r.now = r.now.Add(31 * 60e9)
			if got, err := r.refreshed(t, d); err != nil || got["a"] != "ready" || got["b"] != "ready" {
				t.Errorf("when it is allowed: %v, error %v", got, err)
			}
		})
	}
}

// What AWS does not take of a term is the user's to mend: it is said on the class, and is no error of the function.
func TestATermThatAWSDoesNotTake(t *testing.T) {
	for action, want := range map[string]string{
		"DescribeSubnets":        "SubnetsReady SubnetsNotFound: describe subnets: AWS does not take a selector term: InvalidParameterValue: not so",
		"DescribeSecurityGroups": "SecurityGroupsReady SecurityGroupsNotFound: describe security groups: AWS does not take a selector term: InvalidParameterValue: not so",
		"DescribeImages":         "AMIsReady AMINotFound: describe images: AWS does not take a selector term: InvalidParameterValue: not so",
	} {
		r, d := start(t), desk{map[string]*awsv1.EC2NodeClass{}}
		d.put("a", nil)
		if got, err := r.refreshed(t, d); err != nil || got["a"] != "ready" {
			t.Fatalf("at first: %v, error %v", got, err)
		}
		r.AddFault(awsemulator.Fault{Service: "ec2", Action: action, Kind: awsemulator.FailBefore, Status: 400, Code: "InvalidParameterValue", Message: "not so"})
		r.now = r.now.Add(31 * time.Minute)
		if got, err := r.refreshed(t, d); err != nil || got["a"] != want {
			t.Errorf("%s: %s, error %v", action, got["a"], err)
		}
	}
}

// Of what only some classes ask for, a refusal concerns those alone.
func TestADeniedLookUpOfWhatFewAskFor(t *testing.T) {
	for action, want := range map[string]string{
		"DescribePlacementGroups":      "PlacementGroupReady PlacementGroupResolutionFailed: ",
		"DescribeCapacityReservations": "CapacityReservationsReady Unauthorized: the role of the function refresh may not look: not allowed",
	} {
		r, d := start(t), desk{map[string]*awsv1.EC2NodeClass{}}
		d.put("a", func(c *awsv1.EC2NodeClass) {
			if action == "DescribePlacementGroups" {
				c.Spec.PlacementGroupSelector = &awsv1.PlacementGroupSelector{Name: "pg"}
			} else {
				c.Spec.CapacityReservationSelectorTerms = []awsv1.CapacityReservationSelectorTerm{{ID: "cr-1"}}
			}
		})
		d.put("b", nil)
		r.AddFault(awsemulator.Fault{Service: "ec2", Action: action, Kind: awsemulator.FailBefore, Status: 403, Code: "UnauthorizedOperation", Message: "not allowed"})
		got, err := r.refreshed(t, d)
		if !strings.HasPrefix(got["a"], want) || got["b"] != "ready" {
			t.Errorf("%s\na: %s\nb: %s\nerror %v", action, got["a"], got["b"], err)
		}
	}
}
