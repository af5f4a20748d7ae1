package kube

import (
	"net/http"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

type answering func(*http.Request) (*http.Response, error)

func (f answering) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// A lease of somebody else is believed for a minute after its renewal at most, whatever it says of itself: one that is
// written once does not keep Joiner from acting for long.
func TestALeaseOfOthersIsBelievedForAMinute(t *testing.T) {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		renewed time.Duration // from now
		seconds int32
		want    string
	}{
		"as Karpenter's":              {-10 * time.Second, 15, "other"},
		"expired":                     {-16 * time.Second, 15, ""},
		"for 68 years, just now":      {-time.Second, 2147483647, "other"},
		"for 68 years, a minute ago":  {-time.Minute, 2147483647, ""},
		"by a clock that is ahead":    {30 * time.Second, 15, "other"},
		"in the future, for 68 years": {24 * time.Hour, 2147483647, ""},
	} {
		holder, at := "other", metav1.NewMicroTime(now.Add(c.renewed))
		lease := &coordinationv1.Lease{TypeMeta: metav1.TypeMeta{Kind: "Lease", APIVersion: "coordination.k8s.io/v1"},
			Spec: coordinationv1.LeaseSpec{HolderIdentity: &holder, LeaseDurationSeconds: &c.seconds, RenewTime: &at}}
		client, err := New(Config{Endpoint: "http://api.invalid", Now: func() time.Time { return now },
			Transport: answering(func(*http.Request) (*http.Response, error) { return answer(http.StatusOK, lease) })})
		if err != nil {
			t.Fatal(err)
		}
		if got, err := client.LeaseHolder(t.Context(), "karpenter", "karpenter-leader-election"); err != nil || got != c.want {
			t.Errorf("%s: %q, want %q: %v", name, got, c.want, err)
		}
	}
}
