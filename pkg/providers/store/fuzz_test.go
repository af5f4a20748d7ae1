package store_test

import (
	"testing"
	"time"

	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/providers/store"
)

// FuzzData feeds what somebody else may have written into the ConfigMaps of the functions: it counts as nothing, or as
// what can be, never is an error, and the next write mends it.
func FuzzData(f *testing.F) {
	for _, text := range []string{`[]`, `null`, `[null]`, `{}`, `[{"until":"9999-12-31T23:59:59Z","times":9223372036854775807}]`, `[{"times":-5,"marked":"0001-01-01T00:00:00Z"}]`,
		`[{"id":"","kind":"?","at":"9999-12-31T23:59:59Z"}]`, `[{"thing":"x","at":"9999-12-31T23:59:59Z"}]`, "H4sIAAAAAAAA/w==", "\x00"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		clock := start()
		every := map[string]string{}
		for _, field := range []string{"marks", "taken", "memory", "notes", "offerings"} {
			every[field] = text
		}
		s := &fakeStore{data: every, version: 1}
		l := store.NewUnavailableOfferings(s, clock.now)
		mark := instancetypes.UnavailableOffering{OfferingKey: instancetypes.OfferingKey{CapacityType: "spot", Type: "m5.large", Zone: "a"}, Why: "x"}
		if err := l.MarkUnavailable(t.Context(), []instancetypes.UnavailableOffering{mark}, time.Minute); err != nil {
			t.Errorf("mark: %v", err)
		}
		if _, err := l.ListUnavailable(t.Context()); err != nil {
			t.Errorf("list: %v", err)
		}
		if _, err := store.NewQuota(&fakeStore{data: every, version: 1}, "q", 3, time.Hour, clock.now).TakeOne(t.Context(), "thing"); err != nil {
			t.Errorf("quota: %v", err)
		}
		if _, err := store.NewDisruptionMemory[map[string]time.Time](&fakeStore{data: every, version: 1}).ReadMemory(t.Context()); err != nil {
			t.Errorf("memory: %v", err)
		}
	})
}
