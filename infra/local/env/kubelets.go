package env

import (
	"context"
	"fmt"

	"joiner.sh/infra/local/awsemulator"
	"joiner.sh/infra/local/kubelet"
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
		Admit:       e.admitInstance,
		ServingFor:  o.ServingFor,
		BootDelay:   o.BootDelay,
		CollectPods: o.CollectPods,
		Log:         o.FunctionLog,
	})
}

// admitInstance lets an instance in whose profile holds a role with an access entry for nodes, as EKS does.
func (e *Env) admitInstance(i kubelet.Instance) error {
	if i.ProfileName == "" {
		return fmt.Errorf("instance %s has no instance profile, so EKS does not know it", i.ID)
	}
	return nil
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
