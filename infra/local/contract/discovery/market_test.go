package discovery

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"joiner.sh/infra/local/awsemulator"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/instancetypes/builtin"
)

func snapshot(t *testing.T) instancetypes.Catalog {
	t.Helper()
	c, err := instancetypes.DecodeCatalog(builtin.Data())
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// stored is what a process that starts now reads.
func (r *rig) stored(t *testing.T) instancetypes.Catalog {
	t.Helper()
	c, err := r.store().ReadStored(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func (r *rig) refresh(t *testing.T) string {
	t.Helper()
	did, err := r.market().Refresh(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return did
}

func TestTheCatalogIsWhatTheAccountSells(t *testing.T) {
	r := start(t)
	did := r.refresh(t)
	if want := "catalog stored: read 1219 instance types, 1219 on-demand prices, 7 volume prices, 4424 spot prices"; did != want {
		t.Errorf("refresh did %q, want %q", did, want)
	}
	got, want := r.stored(t), snapshot(t)
	for i := range want.Types {
		if want.Types[i].Name == "p6-b300.48xlarge" { // what the account alone knows of its network cards
			want.Types[i].CardsWithoutEFA = []int64{0}
		}
	}
	if diff := cmp.Diff(want.Types, got.Types); diff != "" {
		t.Errorf("types (-account +stored):\n%s", diff)
	}
	if diff := cmp.Diff(want.Zones, got.Zones); diff != "" {
		t.Errorf("zones (-account +stored):\n%s", diff)
	}
	if want := (instancetypes.DiskPrice{GiB: 0.08, IOPS: 0.005, MiBps: 0.04}); got.DiskPrices["gp3"] != want {
		t.Errorf("a gp3 volume costs %+v, want %+v", got.DiskPrices["gp3"], want)
	}
	if !got.Time.Equal(r.now) || !got.TypesTime.Equal(r.now) || !got.OnDemandTime.Equal(r.now) || !got.SpotTime.Equal(r.now) {
		t.Errorf("times %v, %v, %v and %v, want all %v", got.Time, got.TypesTime, got.OnDemandTime, got.SpotTime, r.now)
	}
}

func TestWhatIsDueIsReadAndNothingElse(t *testing.T) {
	r := start(t)
	actions := []string{"ec2:DescribeInstanceTypes", "ec2:DescribeInstanceTypeOfferings", "ec2:DescribeSpotPriceHistory", "pricing:GetProducts", "s3:PutObject"}
	r.refresh(t)
	all := map[string]int{"ec2:DescribeInstanceTypes": 13, "ec2:DescribeInstanceTypeOfferings": 5, "ec2:DescribeSpotPriceHistory": 9,
		"pricing:GetProducts": 17, "s3:PutObject": 1}
	if diff := cmp.Diff(all, r.made(actions...)); diff != "" {
		t.Errorf("first refresh (-want +got):\n%s", diff)
	}
	r.now = r.now.Add(12*time.Hour - time.Second)
	r.refresh(t)
	if diff := cmp.Diff(map[string]int{"ec2:DescribeSpotPriceHistory": 9, "s3:PutObject": 1}, r.made(actions...)); diff != "" {
		t.Errorf("before 12 hours (-want +got):\n%s", diff)
	}
	r.now = r.now.Add(time.Second)
	r.refresh(t)
	if diff := cmp.Diff(all, r.made(actions...)); diff != "" {
		t.Errorf("after 12 hours (-want +got):\n%s", diff)
	}
}

// altered stores a catalog that says other things than the account, all read at the time given.
func (r *rig) altered(t *testing.T, read time.Time) {
	t.Helper()
	c := snapshot(t)
	i := slices.IndexFunc(c.Types, func(f instancetypes.Facts) bool { return f.Name == "m5.large" })
	c.Types[i].OnDemandUSD, c.Types[i].VCPU = 0.9, 16
	c.Types[i].SpotUSD = map[string]float64{"us-west-2a": 0.8, "us-west-2z": 0.7}
	c.Types[i].Zones = []string{"us-west-2z"}
	c.Time, c.TypesTime, c.OnDemandTime, c.SpotTime = read, read, read, read
	if err := r.store().PutCatalog(t.Context(), c); err != nil {
		t.Fatal(err)
	}
}

func (r *rig) m5(t *testing.T) instancetypes.Facts {
	t.Helper()
	f, ok := r.stored(t).Find("m5.large")
	if !ok {
		t.Fatal("no m5.large is stored")
	}
	return f
}

func TestPricesThatWereReadBeforeAreKeptUntilThereAreNewOnes(t *testing.T) {
	r := start(t)
	r.altered(t, r.now.Add(-13*time.Hour))
	r.SetSpotPrice("m5.large", "us-west-2b", 0.5)
	r.refresh(t)
	got := r.m5(t)
	if got.OnDemandUSD != 0.096 || got.VCPU != 2 || len(got.Zones) != 4 {
		t.Errorf("m5.large costs %v, has %d vCPUs in %v", got.OnDemandUSD, got.VCPU, got.Zones)
	}
	if diff := cmp.Diff([]string{"us-west-2a", "us-west-2b", "us-west-2c", "us-west-2d", "us-west-2z"}, slices.Sorted(maps.Keys(got.SpotUSD))); diff != "" {
		t.Errorf("zones with a spot price (-want +got):\n%s", diff)
	}
	if got.SpotUSD["us-west-2b"] != 0.5 || got.SpotUSD["us-west-2z"] != 0.7 || got.SpotUSD["us-west-2d"] != 0.035018 {
		t.Errorf("spot prices %v", got.SpotUSD)
	}
}

func TestAPartThatFailsKeepsWhatItSaidAndIsTriedAgain(t *testing.T) {
	for _, test := range []struct {
		service, action, says string
		onDemand              float64
		vcpu                  int64
		spotKept              bool
	}{
		{"pricing", "GetProducts", "get products (Compute Instance)", 0.9, 2, false},
		{"ec2", "DescribeInstanceTypes", "describe instance types", 0.096, 16, false},
		{"ec2", "DescribeInstanceTypeOfferings", "describe instance type offerings", 0.096, 16, false},
		{"ec2", "DescribeSpotPriceHistory", "describe spot price history", 0.096, 2, true},
	} {
		t.Run(test.action, func(t *testing.T) {
			r := start(t)
			r.altered(t, r.now.Add(-13*time.Hour))
			r.AddFault(awsemulator.Fault{Service: test.service, Action: test.action, Kind: awsemulator.Throttle})
			did, err := r.market().Refresh(t.Context())
			if err == nil || !strings.Contains(err.Error(), test.says) || !strings.HasPrefix(did, "catalog stored") {
				t.Errorf("refresh did %q with error %v, want one that says %q", did, err, test.says)
			}
			if f := r.m5(t); f.OnDemandUSD != test.onDemand || f.VCPU != test.vcpu || (f.SpotUSD["us-west-2a"] == 0.8) != test.spotKept {
				t.Errorf("m5.large costs %v and %v, has %d vCPUs", f.OnDemandUSD, f.SpotUSD, f.VCPU)
			}
			r.ClearFaults()
			r.now = r.now.Add(time.Hour) // the price list is not asked sooner
			r.refresh(t)
			if f := r.m5(t); f.OnDemandUSD != 0.096 || f.VCPU != 2 || f.SpotUSD["us-west-2a"] != 0.037084 {
				t.Errorf("after the fault m5.large costs %v and %v, has %d vCPUs", f.OnDemandUSD, f.SpotUSD, f.VCPU)
			}
		})
	}
}

func TestAnIsolatedMarketAsksForNoPriceList(t *testing.T) {
	r := start(t)
	did, err := isolated(r).Refresh(t.Context())
	if err != nil || did != "catalog stored: read 1219 instance types, 4424 spot prices" {
		t.Errorf("refresh did %q, error %v", did, err)
	}
	if n := r.made("pricing:GetProducts"); len(n) > 0 {
		t.Errorf("%v", n)
	}
	if got := r.stored(t); !got.OnDemandTime.IsZero() || r.m5(t).OnDemandUSD != 0.096 {
		t.Errorf("on-demand prices of %v, m5.large costs %v", got.OnDemandTime, r.m5(t).OnDemandUSD)
	}
}
