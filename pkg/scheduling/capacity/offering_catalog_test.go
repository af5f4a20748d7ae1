package capacity

import (
	"testing"
	"time"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/resources"
)

// Two nodes of a type that never had a resource make it count as zero for a day, for this spec of the class alone; the
// type is sold as before.
func TestWhatNodesNeverHadCountsAsZero(t *testing.T) {
	const eni = "vpc.amazonaws.com/pod-eni"
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	class := instancetypes.Class{Name: "default", Hash: "1"}
	var noted []instancetypes.UnavailableEntry
	check := func(step string, now time.Time, c instancetypes.Class, want int64) {
		t.Helper()
		s := cluster.Snapshot{Now: now, Classes: []instancetypes.Class{c}}
		for _, m := range noted {
			s.Unavailable = append(s.Unavailable, m.UnavailableOffering)
		}
		types := withoutMissing(s, func(cluster.Pool) []instancetypes.Type {
			return []instancetypes.Type{{Name: "m5.large", Allocatable: resources.List{CPU: 2000}.With(eni, 9)}}
		})(cluster.Pool{Name: "general", Class: "default"})
		if got := types[0].Allocatable; got.Get(eni) != want || got.CPU != 2000 {
			t.Errorf("%s: %s, want %d", step, got, want)
		}
	}
	for i, want := range []int64{9, 0} {
		noted, _ = instancetypes.NoteUnusedNodes(noted, []instancetypes.UnusedNode{{Class: "default", Type: "m5.large",
			Resource: eni, Cause: class.CauseOf("m5.large"), Instance: []string{"i-1", "i-2"}[i], Allowed: 2}}, nil, now)
		check("noted", now, class, want)
	}
	check("until a day later", now.Add(24*time.Hour-time.Second), class, 0)
	check("a day later", now.Add(24*time.Hour), class, 9)
	check("another spec", now, instancetypes.Class{Name: "default", Hash: "2"}, 9)
}
