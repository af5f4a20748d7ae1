package discovery

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/arczonalshift"
	"github.com/google/go-cmp/cmp"

	"joiner.sh/infra/local/awsemulator"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/providers/discovery"
)

// ledger has one mark of its own.
type ledger struct{ discovery.UnavailableOfferings }

func (ledger) ListUnavailable(context.Context) ([]instancetypes.UnavailableOffering, error) {
	return []instancetypes.UnavailableOffering{{OfferingKey: instancetypes.OfferingKey{CapacityType: instancetypes.Spot, Type: "m5.large", Zone: "us-west-2b"}, Why: "UnfulfillableCapacity"}}, nil
}

func TestNothingIsToBeHadInAShiftedZone(t *testing.T) {
	r := start(t)
	r.SetCluster("https://127.0.0.1:1", []byte("ca"), "10.100.0.0/16")
	s := &discovery.ZonalShifts{UnavailableOfferings: ledger{}, ARC: arczonalshift.NewFromConfig(r.cfg), Now: r.clock, Log: slog.New(slog.DiscardHandler),
		ARN: func(context.Context) (string, error) {
			return "arn:aws:eks:us-west-2:111122223333:cluster/demo", nil
		},
		Zones: func(context.Context) (map[string]string, error) {
			return map[string]string{"us-west-2a": "usw2-az2", "us-west-2b": "usw2-az1", "us-west-2c": "usw2-az3"}, nil
		}}
	sold := instancetypes.UnavailableOffering{OfferingKey: instancetypes.OfferingKey{CapacityType: instancetypes.Spot, Type: "m5.large", Zone: "us-west-2b"}, Why: "UnfulfillableCapacity"}
	zone := func(name string, until time.Time) []instancetypes.UnavailableOffering {
		var out []instancetypes.UnavailableOffering
		for _, capacity := range []string{instancetypes.OnDemand, instancetypes.Reserved, instancetypes.Spot} {
			out = append(out, instancetypes.UnavailableOffering{OfferingKey: instancetypes.OfferingKey{CapacityType: capacity, Zone: name}, Until: until, Why: "ZonalShift"})
		}
		return out
	}
	want := func(when string, marks ...instancetypes.UnavailableOffering) {
		t.Helper()
		got, err := s.ListUnavailable(t.Context())
		if diff := cmp.Diff(marks, got); diff != "" || err != nil {
			t.Errorf("%s (-want +got): %v\n%s", when, err, diff)
		}
	}
	want("without shifts", sold)
	hour := r.now.Add(time.Hour).Truncate(time.Second).UTC()
	r.AddShift(awsemulator.ZonalShift{ZoneID: "usw2-az2", Until: hour})
	r.AddShift(awsemulator.ZonalShift{ZoneID: "usw2-az3", Until: hour, Void: true})
	want("before the half minute is over", sold)
	r.now = r.now.Add(30 * time.Second)
	want("with a shift", append(zone("us-west-2a", hour), sold)...)

	r.AddFault(awsemulator.Fault{Service: "arc-zonal-shift", Kind: awsemulator.FailBefore, Code: "AccessDeniedException"})
	r.now = r.now.Add(30 * time.Second)
	want("while ARC does not answer", append(zone("us-west-2a", hour), sold)...)
	r.now = hour
	want("after its end, while ARC does not answer", sold)
	r.ClearFaults()
	r.EndShifts()
	r.AddShift(awsemulator.ZonalShift{ZoneID: "usw2-az3", Auto: true})
	r.now = r.now.Add(30 * time.Second)
	want("with one of AWS", append([]instancetypes.UnavailableOffering{sold}, zone("us-west-2c", r.now.Add(5*time.Minute))...)...)
	r.EndShifts()
	r.now = r.now.Add(30 * time.Second)
	want("after all", sold)
	if n := r.CallCounts()["eks:DescribeCluster"]; n != 0 {
		t.Errorf("the cluster was described %d times: its ARN is known", n)
	}
}
