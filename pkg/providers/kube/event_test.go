package kube_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/providers/kube"
)

// The same event is written again only when its time is over, two minutes unless it says longer, whether this process
// told it or another one.
func TestEventsDoNotFlood(t *testing.T) {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	var calls []string
	var stored time.Time // when the event was told last, zero for never
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		body, _ := io.ReadAll(r.Body)
		exists := r.Method == http.MethodPost && !stored.IsZero()
		if asks := r.Method == http.MethodPatch && !strings.Contains(string(body), "lastTimestamp"); !asks && !exists {
			calls, stored = append(calls, r.Method), now
		}
		if exists {
			w.WriteHeader(http.StatusConflict)
			_ = json.NewEncoder(w).Encode(map[string]any{"apiVersion": "v1", "kind": "Status", "status": "Failure", "reason": "AlreadyExists", "code": 409})
			return
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"apiVersion": "v1", "kind": "Event", "metadata": map[string]any{"name": "e", "resourceVersion": "1"},
			"lastTimestamp": stored.Format(time.RFC3339), "count": 1})
	}))
	t.Cleanup(s.Close)
	clock := func(c *kube.Config) { c.Now = func() time.Time { return now } }
	first, second := client(t, s.URL, clock), client(t, s.URL, clock)
	e := cluster.Event{Kind: "Pod", Namespace: "a", Name: "web", UID: "u1", Reason: "FailedScheduling", Message: "no zone"}
	for _, step := range []struct {
		after time.Duration
		every time.Duration
		want  []string
	}{
		{0, 0, []string{"POST"}}, {119 * time.Second, 0, nil}, {time.Second, 0, []string{"PATCH"}},
		{2 * time.Minute, time.Hour, nil}, {57 * time.Minute, time.Hour, nil}, {time.Minute, time.Hour, []string{"PATCH"}},
	} {
		now, e.Every, calls = now.Add(step.after), step.every, nil
		for _, c := range []*kube.Client{first, second, first} {
			if err := c.RecordEvent(t.Context(), e); err != nil {
				t.Fatal(err)
			}
		}
		if diff := cmp.Diff(step.want, calls); diff != "" {
			t.Errorf("%s, every %s (-want +got):\n%s", now.Format(time.TimeOnly), step.every, diff)
		}
	}
}
