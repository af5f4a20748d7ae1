package env

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"

	"joiner.sh/infra/local/awsemulator"
	"joiner.sh/infra/local/kubelet"
	"joiner.sh/infra/local/lambdahost/assembly"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/instancetypes/builtin"
)

// newKubelets makes the bridge that turns instances into nodes, with the hardware of the real types.
func (e *Env) newKubelets(o Options) (*kubelet.Bridge, error) {
	c, err := instancetypes.DecodeCatalog(builtin.Data())
	if err != nil {
		return nil, err
	}
	return kubelet.NewBridge(context.Background(), kubelet.Options{
		Config:      e.Plane.RESTConfig(),
		Cluster:     kubelet.Cluster{Name: ClusterName, Endpoint: e.server, CA: e.ca},
		Region:      Region,
		ZoneID:      func(zone string) string { return c.Zones[zone] },
		Facts:       func(name string) (kubelet.Facts, bool) { return instanceFacts(c, name) },
		Boot:        e.bootInstance,
		ServingFor:  o.ServingFor,
		BootDelay:   o.BootDelay,
		CollectPods: o.CollectPods,
		Log:         o.FunctionLog,
	})
}

// bootWithin is how long an instance asks EC2 about itself.
const bootWithin = 2 * time.Minute

// bootInstance does what nodeadm does before it starts the kubelet: with the role of the instance's profile, without
// which EKS does not know it either, it asks EC2 about the instance. The error is why the kubelet does not start.
func (e *Env) bootInstance(i kubelet.Instance) error {
	credentials, err := awsemulator.Provisioner{Cloud: e.Cloud}.InstanceCredentials(i.ID)
	if err != nil {
		return err
	}
	e.groups.Store(i.ID, i.SecurityGroups)
	calls := ec2.New(ec2.Options{Region: Region, BaseEndpoint: aws.String(e.Cloud.URL()),
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return credentials, nil
		})})
	ctx, cancel := context.WithTimeout(context.Background(), bootWithin)
	defer cancel()
	_, err = calls.DescribeInstances(ctx, &ec2.DescribeInstancesInput{InstanceIds: []string{i.ID}})
	if err != nil {
		return fmt.Errorf("ask EC2 about the instance, as nodeadm does: %w", err)
	}
	return nil
}

// isWorker reports whether an instance asks for what AmazonEKSWorkerNodePolicy allows its role. The stack attaches that
// to roles of its own, and a user to others.
func (e *Env) isWorker(a awsemulator.Access) bool {
	own := slices.IndexFunc(e.Assembly.Roles, func(r assembly.Role) bool { return r.ARN == a.Caller.Role })
	return a.Caller.IsInstance() && a.Action == "ec2:DescribeInstances" &&
		(own < 0 || slices.ContainsFunc(e.Assembly.Roles[own].ManagedPolicy, func(arn string) bool {
			return strings.HasSuffix(arn, "/AmazonEKSWorkerNodePolicy")
		}))
}

// groupsOf are the security groups of an instance that boots.
func (e *Env) groupsOf(id string) []string {
	groups, _ := e.groups.Load(id)
	out, _ := groups.([]string)
	return out
}

func instanceFacts(c instancetypes.Catalog, name string) (kubelet.Facts, bool) {
	f, ok := c.Find(name)
	if !ok {
		return kubelet.Facts{}, false
	}
	out := kubelet.Facts{VCPU: f.VCPU, MemoryMiB: f.MemoryMiB, Arch: f.Arch[0], InstanceStoreGB: f.LocalStorageGB,
		PodsByENI: f.DefaultCardENIs*(f.IPv4PerENI-1) + 2, Devices: map[string]int64{}}
	vendors := map[string]string{"NVIDIA": "nvidia.com/gpu", "AMD": "amd.com/gpu", "Habana": "habana.ai/gaudi"}
	for _, g := range f.GPUs {
		if r := vendors[g.Manufacturer]; r != "" && g.Count > 0 {
			out.Devices[r] += g.Count
		}
	}
	for _, n := range f.Neuron {
		out.Devices["aws.amazon.com/neuron"] += n.Count
	}
	return out, true
}

func instanceOf(i awsemulator.Instance) kubelet.Instance {
	return kubelet.Instance{ID: i.ID, Type: i.Type, Zone: i.Zone, Lifecycle: i.CapacityType,
		PrivateDNS: i.PrivateDNSName,
		PrivateIP:  i.PrivateIP, UserData: i.UserData, State: i.State, SecurityGroups: i.SecurityGroups,
		ProfileName: i.Profile, ImageID: i.ImageID}
}
