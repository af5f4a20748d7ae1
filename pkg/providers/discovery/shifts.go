package discovery

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/arczonalshift"
	"github.com/aws/aws-sdk-go-v2/service/arczonalshift/types"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
)

// shiftsEvery is the time for which an answer about zonal shifts is good.
const shiftsEvery = 30 * time.Second

// lookUpTimeout bounds a look-up whose last answer may be kept. It is made once, for every pass waits for it.
const lookUpTimeout = 3 * time.Second

// UnavailableOfferings is the store to which Shifts adds.
type UnavailableOfferings interface {
	ListUnavailable(ctx context.Context) ([]instancetypes.UnavailableOffering, error)
	MarkUnavailable(ctx context.Context, unavailable []instancetypes.UnavailableOffering, d time.Duration) error
}

// ZonalShifts makes all offerings of a zone unavailable while the cluster's traffic is shifted away from it by ARC,
// beside what is unavailable. It may be used by several goroutines.
type ZonalShifts struct {
	UnavailableOfferings
	ARC   *arczonalshift.Client
	ARN   func(ctx context.Context) (string, error)            // of the cluster
	Zones func(ctx context.Context) (map[string]string, error) // of the region: name to id
	Now   func() time.Time
	Log   *slog.Logger

	mu    sync.Mutex
	arn   string
	asked time.Time
	away  map[string]time.Time // zone id to the end of its shift
}

// ListUnavailable lists unavailable offerings, and those of shifted zones. When ARC cannot be asked, what it said last
// holds for as long as it said.
func (s *ZonalShifts) ListUnavailable(ctx context.Context) ([]instancetypes.UnavailableOffering, error) {
	unavailable, err := s.UnavailableOfferings.ListUnavailable(ctx)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.readLately(ctx)
	if len(s.away) == 0 {
		return unavailable, nil
	}
	zones, err := s.Zones(ctx)
	if err != nil {
		return nil, err
	}
	unavailable = slices.Clone(unavailable)
	for name, id := range zones { // sorted below
		until, shifted := s.away[id]
		if !shifted || !s.Now().Before(until) {
			continue
		}
		for _, capacity := range []string{instancetypes.OnDemand, instancetypes.Reserved, instancetypes.Spot} {
			unavailable = append(unavailable, instancetypes.UnavailableOffering{
				OfferingKey: instancetypes.OfferingKey{CapacityType: capacity,
					Zone: name}, Until: until, Why: "ZonalShift"})
		}
	}
	slices.SortStableFunc(unavailable, func(a, b instancetypes.UnavailableOffering) int {
		return slices.Compare(shiftReason(a), shiftReason(b))
	})
	return unavailable, nil
}

// ListShifts tells which zones are shifted away from, and nil while ARC has never answered.
func (s *ZonalShifts) ListShifts(ctx context.Context) *cluster.ZonalShifts {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.readLately(ctx)
	if s.away == nil {
		return nil
	}
	out := &cluster.ZonalShifts{}
	for _, id := range slices.Sorted(maps.Keys(s.away)) {
		if s.Now().Before(s.away[id]) {
			out.ZoneIDs = append(out.ZoneIDs, id)
		}
	}
	return out
}

// readLately asks ARC unless it was asked within the last half minute. An answer that does not come holds nobody up:
// the failure of a zone is what shifts are for.
func (s *ZonalShifts) readLately(ctx context.Context) {
	if s.Now().Sub(s.asked) < shiftsEvery {
		return
	}
	s.asked = s.Now()
	ctx, cancel := context.WithTimeout(ctx, lookUpTimeout)
	defer cancel()
	if err := s.readShifts(ctx); err != nil {
		s.Log.Error("zonal shifts are not looked at", "error", err)
	}
}

func shiftReason(u instancetypes.UnavailableOffering) []string {
	return []string{u.Zone, u.Type, u.CapacityType, u.Scope, u.Why}
}

// readShifts finds the zones that are shifted away from, by hand or by AWS.
func (s *ZonalShifts) readShifts(ctx context.Context) error {
	if s.arn == "" {
		arn, err := s.ARN(ctx)
		if err != nil {
			return err
		}
		s.arn = arn
	}
	out, err := s.ARC.GetManagedResource(ctx, &arczonalshift.GetManagedResourceInput{
		ResourceIdentifier: aws.String(s.arn)}, func(o *arczonalshift.Options) { o.Retryer = aws.NopRetryer{} })
	if err != nil {
		return fmt.Errorf("get managed resource %s: %w: is zonal shift enabled for the cluster?", s.arn, err)
	}
	away := map[string]time.Time{}
	for _, z := range out.ZonalShifts {
		if z.AppliedStatus == types.AppliedStatusApplied {
			away[aws.ToString(z.AwayFrom)] = aws.ToTime(z.ExpiryTime)
		}
	}
	for _, z := range out.Autoshifts { // these end when AWS says so
		if z.AppliedStatus == types.AutoshiftAppliedStatusApplied {
			away[aws.ToString(z.AwayFrom)] = s.Now().Add(10 * shiftsEvery)
		}
	}
	for id, until := range away {
		if _, known := s.away[id]; !known {
			s.Log.Warn("the cluster is shifted away from zone "+id+": nothing is launched there", "until", until)
		}
	}
	for id := range s.away {
		if _, still := away[id]; !still {
			s.Log.Info("the cluster is not shifted away from zone " + id + " any more")
		}
	}
	s.away = away
	return nil
}
