package discovery

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/arczonalshift"
	"github.com/google/go-cmp/cmp"

	"joiner.sh/pkg/model/instancetypes"
)

// noMarks are the marks of somebody who has none.
type noMarks struct{}

func (noMarks) ListUnavailable(context.Context) ([]instancetypes.UnavailableOffering, error) {
	return nil, nil
}

func (noMarks) MarkUnavailable(context.Context, []instancetypes.UnavailableOffering, time.Duration) error {
	return nil
}

// A zone is shut while a shift away from it is applied and has not ended. ARC is asked every half minute; while it
// cannot be asked, what it said last holds as long as it said.
func TestZonesThatAreShiftedAway(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	e := &ears{}
	asked := 0
	s := &ZonalShifts{UnavailableOfferings: noMarks{}, ARC: arczonalshift.New(arczonalshift.Options{Region: "us-west-2", HTTPClient: e, Retryer: aws.NopRetryer{}, Credentials: aws.AnonymousCredentials{}}),
		ARN: func(context.Context) (string, error) { asked++; return "arn", nil },
		Zones: func(context.Context) (map[string]string, error) {
			return map[string]string{"a": "id-a", "b": "id-b", "c": "id-c"}, nil
		},
		Now: func() time.Time { return now }, Log: slog.New(slog.DiscardHandler)}
	shift := func(zone, status string, until time.Time) string {
		return fmt.Sprintf(`{"appliedStatus": %q, "awayFrom": %q, "expiryTime": %d}`, status, zone, until.Unix())
	}
	shut := func(after time.Duration, want ...string) {
		t.Helper()
		now = now.Add(after)
		marks, err := s.ListUnavailable(t.Context())
		var zones []string
		for _, u := range marks {
			if u.CapacityType == instancetypes.Spot {
				zones = append(zones, u.Zone)
			}
		}
		if d := cmp.Diff(want, zones); d != "" || err != nil || len(marks) != 3*len(want) {
			t.Errorf("%d marks, error %v (-want +got):\n%s", len(marks), err, d)
		}
	}
	e.body = `{"zonalShifts": [` + shift("id-a", "APPLIED", now.Add(time.Minute)) + "," + shift("id-b", "NOT_APPLIED", now.Add(time.Hour)) + `],
		"autoshifts": [{"appliedStatus": "APPLIED", "awayFrom": "id-c"}]}`
	shut(0, "a", "c")
	e.body = `{}`
	shut(29*time.Second, "a", "c") // not asked again
	e.code = "ThrottlingException"
	shut(time.Second, "a", "c")
	shut(30*time.Second, "c") // the shift has ended, whether ARC says so or not
	e.code = ""
	shut(30 * time.Second)
	if asked != 1 {
		t.Errorf("the cluster's ARN is asked for %d times", asked)
	}
}
