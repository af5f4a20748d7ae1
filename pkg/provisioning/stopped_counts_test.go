package provisioning_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	v1 "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/provisioning"
)

// limited is the pool with a limit.
func limited(limit string) string { return onePool[:len(onePool)-5] + "limit " + limit + "\n----\n" }

// What stopped capacity counts for, as functions/stopped-capacity.md has it: for every limit as if it ran, whatever
// becomes of it, and its launches for those that a pass makes at most.
func TestStoppedCapacityCounts(t *testing.T) {
	const web = "pods web cpu=700 mem=900\n----\n"
	warming := func(c *cluster.Claim) {
		c.Conditions = cluster.WithCondition(c.Conditions, cluster.Condition{Type: v1.ConditionStopped, Status: "Unknown", Reason: v1.ReasonWarming})
	}
	asked := func(s cluster.Snapshot) func(*cluster.Claim) {
		return func(c *cluster.Claim) {
			c.Annotations[v1.AnnotationStartRequested] = s.Now.Add(-time.Hour).Format(time.RFC3339)
		}
	}
	for _, limit := range []string{"cpu 5000", "memory 9216", "nodes 1", "joiner.sh/usd-per-hour 190000"} {
		for name, of := range map[string]func(cluster.Snapshot) cluster.Snapshot{
			"one that warms": func(s cluster.Snapshot) cluster.Snapshot { return withStopped(t, s, "c1", "c5.xlarge", warming) },
			"one that waits and may not be started": func(s cluster.Snapshot) cluster.Snapshot {
				return withStopped(t, s, "c1", "c5.xlarge", asked(s))
			},
		} {
			t.Run(limit+", "+name, func(t *testing.T) {
				s := read(t, limited(limit)+web)
				if got := outline(provisioning.Decide(s).Plan); !slices.Equal(got, []string{"launch for default/web-1"}) {
					t.Fatalf("without it: %v", got)
				}
				if got := outline(provisioning.Decide(of(s)).Plan); !slices.Contains(got, "unplaced default/web-1") {
					t.Errorf("beside it: %v", got)
				}
			})
		}
		t.Run(limit+", the buffer", func(t *testing.T) {
			s := read(t, limited(limit)+"pods spare n=4 cpu=1900 mem=1500\n----\n")
			s.Rules.MaxClaims = 100
			got := provisioning.Decide(withBuffer(s, "spare")).Plan
			if len(got.Fixed) == 0 || len(got.Stopped.Unplaced) == 0 {
				t.Errorf("%d launches, %v have no place", len(got.Fixed), got.Stopped.Unplaced)
			}
		})
	}
	t.Run("launches of a pass", func(t *testing.T) {
		s := withBuffer(read(t, onePool+"pods spare n=3 cpu=3000 mem=900\n----\n"), "spare")
		for most, want := range map[int]int{0: 3, 2: 2, 5: 3} {
			s.Rules.MaxClaims = most
			if got := provisioning.Decide(s).Plan; len(got.Fixed) != want {
				t.Errorf("%d launches of at most %d, want %d", len(got.Fixed), most, want)
			}
		}
	})
}

// A node that will soon expire is replaced instead of started.
func TestStoppedCapacityExpires(t *testing.T) {
	for age, want := range map[time.Duration][]string{
		89 * time.Minute: {"c1 is kept for default/spare-1"},
		90 * time.Minute: {"launch on-demand to be stopped"},
	} {
		t.Run(fmt.Sprint(age), func(t *testing.T) {
			s := read(t, onePool+"pods spare cpu=1500 mem=900\n----\n")
			s = withBuffer(withStopped(t, s, "c1", "m5.large", func(c *cluster.Claim) {
				c.Created, c.ExpireAfter = s.Now.Add(-age), 100*time.Minute
			}), "spare")
			if diff := gocmp.Diff(want, outline(provisioning.Decide(s).Plan)); diff != "" {
				t.Errorf("plan (-want +got):\n%s", diff)
			}
		})
	}
}
