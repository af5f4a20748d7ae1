// Package loadtest launches many NodeClaims at once against the emulated EC2, whose API rates are those that EC2
// documents, and counts what that costs. A plain test run launches 50; -claims says how many.
package loadtest

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"maps"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"joiner.sh/infra/local/awsemulator"
	awsv1 "joiner.sh/pkg/api/aws/v1"
	"joiner.sh/pkg/controllers"
	"joiner.sh/pkg/controllers/provision"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/instancetypes/builtin"
	"joiner.sh/pkg/model/nomination"
	"joiner.sh/pkg/model/resources"
	"joiner.sh/pkg/nodeclaim/launch"
	"joiner.sh/pkg/providers/discovery"
	"joiner.sh/pkg/providers/fleet"
	"joiner.sh/pkg/testing/fake"
)

var claims = flag.Int("claims", 50, "NodeClaims that are launched in one burst")

// ports are a cluster in memory whose class is of the emulated account.
type ports struct {
	*fake.Ports
	class *awsv1.EC2NodeClass
}

func (p ports) ReadClass(context.Context, string) (*awsv1.EC2NodeClass, error) { return p.class, nil }

func (p ports) ReadSnapshot(ctx context.Context) (cluster.Snapshot, error) {
	s, err := p.Ports.ReadSnapshot(ctx)
	for i := range s.Classes {
		s.Classes[i].Subnets, s.Classes[i].Images = nil, []instancetypes.Image{{ID: p.class.Status.AMIs[0].ID}}
		for _, n := range p.class.Status.Subnets {
			s.Classes[i].Subnets = append(s.Classes[i].Subnets, instancetypes.Subnet{ID: n.ID, Zone: n.Zone})
		}
	}
	return s, err
}

// classOf is a class as the account has it.
func classOf(t *testing.T, e *ec2.Client) *awsv1.EC2NodeClass {
	t.Helper()
	images, err := e.DescribeImages(t.Context(), &ec2.DescribeImagesInput{Owners: []string{"amazon"},
		Filters: []types.Filter{{Name: aws.String("name"), Values: []string{"amazon-eks-node-al2023-x86_64-standard-1.36-*"}}}})
	if err != nil || len(images.Images) == 0 {
		t.Fatalf("images: %v", err)
	}
	groups, err := e.DescribeSecurityGroups(t.Context(), &ec2.DescribeSecurityGroupsInput{GroupNames: []string{"demo-node"}})
	if err != nil {
		t.Fatal(err)
	}
	subnets, err := e.DescribeSubnets(t.Context(), &ec2.DescribeSubnetsInput{})
	if err != nil {
		t.Fatal(err)
	}
	c := &awsv1.EC2NodeClass{}
	c.Name = "default"
	c.Spec.AMISelectorTerms = []awsv1.AMISelectorTerm{{Alias: "al2023@latest"}}
	c.Status.InstanceProfile = "nodes"
	c.Status.AMIs = []awsv1.AMI{{ID: *images.Images[0].ImageId}}
	c.Status.SecurityGroups = []awsv1.SecurityGroup{{ID: *groups.SecurityGroups[0].GroupId}}
	for _, s := range subnets.Subnets {
		c.Status.Subnets = append(c.Status.Subnets, awsv1.Subnet{ID: *s.SubnetId, Zone: *s.AvailabilityZone, ZoneID: *s.AvailabilityZoneId})
	}
	return c
}

// market is what EC2 sells to amd64 nodes.
func market(t *testing.T) instancetypes.Catalog {
	t.Helper()
	c, err := instancetypes.DecodeCatalog(builtin.Data())
	if err != nil {
		t.Fatal(err)
	}
	c.Types = slices.DeleteFunc(c.Types, func(f instancetypes.Facts) bool { return !slices.Contains(f.Arch, "amd64") })
	return c
}

// burst is a cluster in which so many nodes are wanted, each for one pod, of ten kinds.
func burst(t *testing.T, n int, rates []rate) (*fake.World, *provision.Controller, *awsemulator.Cloud, *watch) {
	t.Helper()
	c, e, seen := account(t, rates)
	w := fake.New(market(t), time.Now())
	for kind := range 10 {
		pod := cluster.Pod{Need: resources.List{CPU: 1500 + 100*int64(kind), Memory: 2 << 30}, HostPorts: []cluster.HostPort{{Protocol: "TCP", Port: 80}}}
		w.RunApp(fmt.Sprint("app", kind), n/10, pod)
	}
	p := ports{w.Ports(fake.Fault{}), classOf(t, e)}
	c.ForgetCalls()
	return w, &provision.Controller{Deps: controllers.Deps{Record: p, Rules: cluster.Settings{MaxClaims: n, LaunchTimeout: 5 * time.Minute, MemoryOverhead: 0.075}, Holder: "me", Now: w.Now, Log: slog.New(slog.DiscardHandler)},
		Read: p, Claims: p, Lease: p, Unavailable: p, Prices: p, Lifecycle: p.NewWaker("lifecycle"), Refresh: p.NewWaker("refresh"),
		Fleet: &fleet.Fleet{EC2: e, Cluster: "demo", Now: time.Now}, Levels: discovery.RemainingCapacity{EC2: e}, ShareFrom: 5,
		Cluster:        launch.Cluster{Name: "demo", Endpoint: "https://api", CABundle: "Q0E=", DNSAddress: "172.20.0.10", ServiceCIDR: "172.20.0.0/16", Version: "1.36", Region: "us-west-2"},
		UnavailableFor: 3 * time.Minute}, c, seen
}

func TestABurstOfClaims(t *testing.T) {
	w, p, c, _ := burst(t, *claims, documented())
	stop := peak()
	if err := p.Run(t.Context(), w.Now()); err != nil {
		t.Fatal(err)
	}
	memory := stop()
	launched := map[string]bool{}
	for _, claim := range w.Claims() {
		if claim.ProviderID == "" || launched[claim.ProviderID] {
			t.Errorf("claim %s has %q, alone: %t", claim.Name, claim.ProviderID, !launched[claim.ProviderID])
		}
		launched[claim.ProviderID] = true
	}
	if len(launched) != *claims || len(c.DescribedInstances()) != *claims {
		t.Errorf("%d claims are launched by %d instances, want %d", len(launched), len(c.DescribedInstances()), *claims)
	}
	report(t, c, memory)
	if calls := c.CallCounts()["ec2:CreateFleet"]; calls > max(10, *claims/25) {
		t.Errorf("%d calls of CreateFleet", calls)
	}
}

// Pods of many kinds get nodes that are held for them. These share launch templates and requests as others do.
func TestABurstOfHeldNodes(t *testing.T) {
	w, p, c, _ := burst(t, *claims, documented())
	p.Rules.NominatedPodsOnly, p.Holds = true, p.Read.(ports)
	stop := peak()
	if err := p.Run(t.Context(), w.Now()); err != nil {
		t.Fatal(err)
	}
	if len(c.DescribedInstances()) != *claims {
		t.Errorf("%d instances, want %d", len(c.DescribedInstances()), *claims)
	}
	for _, claim := range w.Claims() {
		if _, held := nomination.TaintOf(cluster.Claim{StartupTaints: claim.StartupTaints}); !held {
			t.Errorf("the node of %s is not held", claim.Name)
		}
	}
	report(t, c, stop())
	for _, action := range []string{"ec2:CreateFleet", "ec2:CreateLaunchTemplate"} {
		if calls := c.CallCounts()[action]; calls > max(10, *claims/10) {
			t.Errorf("%d calls of %s", calls, action)
		}
	}
}

// Spot is unavailable everywhere and half of the on-demand offerings are short: what EC2 refuses is asked for
// elsewhere, and still shared.
func TestABurstWhileMuchIsUnavailable(t *testing.T) {
	w, p, c, _ := burst(t, *claims, documented())
	c.LimitCapacity(awsemulator.Capacity{CapacityType: "on-demand", Limit: max(2, *claims/50)})
	c.LimitCapacity(awsemulator.Capacity{CapacityType: "spot", Limit: 0})
	stop := peak()
	for range 10 {
		if err := p.Run(t.Context(), w.Now()); err != nil {
			t.Fatal(err)
		}
		w.Advance(time.Second)
	}
	memory := stop()
	waiting := 0
	for _, claim := range w.Claims() {
		if claim.ProviderID == "" {
			waiting++
		}
	}
	if n := len(w.Claims()); waiting > 0 || n != *claims || len(c.DescribedInstances()) != n {
		t.Errorf("%d claims, %d of them waiting, %d instances, want %d of each and none waiting", n, waiting, len(c.DescribedInstances()), *claims)
	}
	report(t, c, memory)
}

// report prints the calls, and how many of them were refused for their rate.
func report(t *testing.T, c *awsemulator.Cloud, memory uint64) {
	t.Helper()
	refused := map[string]int{}
	for _, call := range c.LoggedCalls() {
		if call.Fault == awsemulator.Throttle {
			refused[call.Service+":"+call.Action]++
		}
	}
	for _, action := range slices.Sorted(maps.Keys(c.CallCounts())) {
		t.Logf("%-28s %5d calls, %d throttled", action, c.CallCounts()[action], refused[action])
	}
	t.Logf("%d MiB of memory at most", memory>>20)
}

// peak watches the memory that is in use until it is stopped.
func peak() (stop func() uint64) {
	var most uint64
	var wg sync.WaitGroup
	end := make(chan struct{})
	wg.Go(func() {
		var m runtime.MemStats
		tick := time.NewTicker(50 * time.Millisecond)
		defer tick.Stop()
		for {
			runtime.ReadMemStats(&m)
			most = max(most, m.HeapInuse)
			select {
			case <-end:
				return
			case <-tick.C:
			}
		}
	})
	return func() uint64 { close(end); wg.Wait(); return most }
}
