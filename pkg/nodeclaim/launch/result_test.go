package launch_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/requirements"
	"joiner.sh/pkg/nodeclaim/launch"
)

func TestResult(t *testing.T) {
	w := newWorld(t)
	w.addType(t, "c5n.18xlarge od=3 spot=1 efa=1 reserved=cr-1,a,1,interruptible")
	w.in.Claim.Requirements = w.in.Claim.Requirements.And(requirements.Of(instancetypes.LabelCapacityType, "spot", "on-demand"))
	launched := func() launch.Launched {
		o, err := w.choose(t)
		if err != nil {
			t.Fatal(err)
		}
		i := cluster.Instance{ID: "i-1", Type: "c5n.18xlarge", Zone: "b", CapacityType: o.CapacityType}
		return launch.LaunchResult(w.in.Claim, o, w.types[0], i)
	}
	got := launched()
	if got.ProviderID != "aws:///b/i-1" || got.ImageID != "ami-1" {
		t.Errorf("%s from %s", got.ProviderID, got.ImageID)
	}
	want := map[string]string{
		"kubernetes.io/arch": "amd64", "kubernetes.io/os": "linux", "node.kubernetes.io/instance-type": "c5n.18xlarge",
		"joiner.sh/instance": "i-1", "topology.kubernetes.io/zone": "b", "topology.k8s.aws/zone-id": "r-2", "topology.kubernetes.io/region": "r",
		"karpenter.sh/capacity-type": "spot", "karpenter.k8s.aws/instance-tenancy": "default",
		"karpenter.k8s.aws/instance-category": "c", "karpenter.k8s.aws/instance-generation": "5",
		"karpenter.k8s.aws/instance-family": "c5n", "karpenter.k8s.aws/instance-size": "18xlarge",
		"karpenter.k8s.aws/instance-cpu": "2", "karpenter.k8s.aws/instance-memory": "8192",
		"karpenter.k8s.aws/instance-cpu-sustained-clock-speed-mhz":   "0",
		"karpenter.k8s.aws/instance-capability-flex":                 "false",
		"karpenter.k8s.aws/instance-hypervisor":                      "nitro",
		"karpenter.k8s.aws/instance-encryption-in-transit-supported": "false",
	}
	if d := cmp.Diff(want, got.Labels); d != "" {
		t.Errorf("labels:\n%s", d)
	}
	annotations := map[string]string{
		"karpenter.k8s.aws/ec2nodeclass-hash": w.in.Class.Hash("Q0E="), "karpenter.k8s.aws/ec2nodeclass-hash-version": "v6",
		"karpenter.k8s.aws/instance-profile-name": "demo-profile",
	}
	if d := cmp.Diff(annotations, got.Annotations); d != "" {
		t.Errorf("annotations:\n%s", d)
	}
	if got.Capacity.CPU != 2000 || got.Allocatable.CPU != 1930 {
		t.Errorf("capacity %s, allocatable %s", got.Capacity, got.Allocatable)
	}
	if got.Capacity.Get(instancetypes.ResourceEFA) != 0 || got.Allocatable.Get(instancetypes.ResourceEFA) != 0 {
		t.Error("EFA without such an interface")
	}

	// What the claim has already is not written again; EFA counts where it was asked for.
	w.in.Claim.Labels = map[string]string{"kubernetes.io/arch": "amd64", "kubernetes.io/os": "other", "karpenter.sh/nodepool": "general"}
	w.in.Claim.Requests = w.in.Claim.Requests.With(instancetypes.ResourceEFA, 1)
	got = launched()
	if _, again := got.Labels["kubernetes.io/arch"]; again || got.Labels["kubernetes.io/os"] != "linux" {
		t.Errorf("labels %v", got.Labels)
	}
	if got.Capacity.Get(instancetypes.ResourceEFA) != 1 || got.Allocatable.Get(instancetypes.ResourceEFA) != 1 {
		t.Error("no EFA")
	}

	// EFA interfaces of another type's template do not count.
	o := launch.Order{Templates: []launch.Template{
		{NetworkInterfaces: []launch.NetworkInterface{{Type: "efa"}}, Overrides: []launch.Override{{OfferingKey: instancetypes.OfferingKey{Type: "p5.48xlarge"}}}},
		{Overrides: []launch.Override{{OfferingKey: instancetypes.OfferingKey{Type: "c5n.18xlarge"}}}},
	}}
	other := launch.LaunchResult(w.in.Claim, o, w.types[0], cluster.Instance{ID: "i-2", Type: "c5n.18xlarge", Zone: "a", CapacityType: "spot"})
	if n := other.Capacity.Get(instancetypes.ResourceEFA); n != 0 {
		t.Errorf("%d EFA interfaces of another type", n)
	}
}

// The node of a reserved instance says which reservation it is in, and what of, also when the class does not select
// that one any more.
func TestResultInAReservation(t *testing.T) {
	w := newWorld(t)
	w.addType(t, "m5.large od=0.096 reserved=cr-1,a,1,interruptible reserved=cr-2,a,1")
	o, err := w.choose(t)
	if err != nil {
		t.Fatal(err)
	}
	for id, want := range map[string]map[string]string{
		"cr-1": {instancetypes.LabelReservationID: "cr-1", instancetypes.LabelReservation: "default", instancetypes.LabelInterruptible: "true"},
		"cr-2": {instancetypes.LabelReservationID: "cr-2", instancetypes.LabelReservation: "default", instancetypes.LabelInterruptible: "false"},
		"cr-9": {instancetypes.LabelReservationID: "cr-9"},
		"":     {},
	} {
		i := cluster.Instance{ID: "i-1", Type: "m5.large", Zone: "a", CapacityType: instancetypes.Reserved, Reservation: id}
		got := map[string]string{}
		for k, v := range launch.LaunchResult(w.in.Claim, o, w.types[0], i).Labels {
			if k == instancetypes.LabelReservationID || k == instancetypes.LabelReservation || k == instancetypes.LabelInterruptible {
				got[k] = v
			}
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("in %q:\n%s", id, d)
		}
	}
}

// Of a group with partitions the label waits for what EC2 tells, unless the request said which.
func TestResultInAPartition(t *testing.T) {
	w := newWorld(t)
	w.addType(t, "m5.large od=0.096")
	w.in.Resolved.Placement = &instancetypes.Placement{ID: "pg-1", Strategy: "partition", Partitions: 3}
	o, err := w.choose(t)
	if err != nil {
		t.Fatal(err)
	}
	label := func(o launch.Order, told int32) string {
		i := cluster.Instance{ID: "i-1", Type: "m5.large", Zone: "a", CapacityType: instancetypes.OnDemand, Partition: told}
		v, ok := launch.LaunchResult(w.in.Claim, o, w.types[0], i).Labels[instancetypes.LabelPartition]
		return fmt.Sprint(ok, " ", v)
	}
	if got := label(o, 0) + ", " + label(o, 1); got != "true , true 1" {
		t.Errorf("chosen by EC2: %s", got)
	}
	o.Templates[0].Partition = 3
	if got := label(o, 0); got != "true 3" {
		t.Errorf("chosen by the claim: %s", got)
	}
	w.in.Resolved.Placement = &instancetypes.Placement{ID: "pg-2", Strategy: "cluster"}
	if o, err = w.choose(t); err != nil {
		t.Fatal(err)
	}
	if got := label(o, 0); got != "false " {
		t.Errorf("in a cluster group: %s", got)
	}
}
