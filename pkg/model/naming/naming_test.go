package naming_test

import (
	"strings"
	"testing"

	"joiner.sh/pkg/model/naming"
)

// Names that fit are what users have deployed: they must stay as they are.
func TestNamesThatFitStayAsTheyAre(t *testing.T) {
	cluster := strings.Repeat("a", 33)
	n := naming.Names{Cluster: cluster}
	for got, want := range map[string]string{
		n.Function("reservationinterruption"): "joiner-" + cluster + "-reservationinterruption",
		n.Function("wake"):                    "joiner-" + cluster + "-wake",
		n.NodeRole():                          "KarpenterNodeRole-" + cluster,
		n.WindowsNodeRole():                   "KarpenterNodeRole-" + cluster + "-windows",
		n.Stack():                             "joiner-" + cluster,
		n.Alarm("Faults"):                     "joiner-" + cluster + "-Faults",
		n.Title():                             "Joiner " + cluster,
		naming.Names{Cluster: "a_b"}.Stack():  "joiner-a-b",
		n.ScheduleGroup():                     "joiner-" + cluster,

		naming.Names{Prefix: "acme-", Cluster: "demo"}.Function("wake"): "acme-joiner-demo-wake",
		naming.Names{Prefix: "acme-", Cluster: "demo"}.NodeRole():       "acme-KarpenterNodeRole-demo",
	} {
		if got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

func TestLongNamesAreCutAndStayDifferent(t *testing.T) {
	one, other := strings.Repeat("a", 99)+"b", strings.Repeat("a", 99)+"c"
	for _, prefix := range []string{"", strings.Repeat("p", 19) + "-"} {
		a, b := naming.Names{Prefix: prefix, Cluster: one}, naming.Names{Prefix: prefix, Cluster: other}
		for name, c := range map[string]struct {
			a, b  string
			limit int
		}{
			"function":     {a.Function("reservationinterruption"), b.Function("reservationinterruption"), 64},
			"node role":    {a.NodeRole(), b.NodeRole(), 64},
			"Windows role": {a.WindowsNodeRole(), b.WindowsNodeRole(), 64},
			"stack":        {a.Stack(), b.Stack(), 128},
			"title":        {a.Title(), b.Title(), 100},
			"schedules":    {a.ScheduleGroup(), b.ScheduleGroup(), 64},
			"alarm":        {a.Alarm("ReservationInterruptionDeadLetters"), b.Alarm("ReservationInterruptionDeadLetters"), 255},
			"dashboard":    {a.Dashboard(), b.Dashboard(), 255},
		} {
			if len(c.a) > c.limit || c.a == c.b || !strings.HasPrefix(c.a, prefix) && name != "title" {
				t.Errorf("%s with prefix %q: %s (%d characters of %d) and %s", name, prefix, c.a, len(c.a), c.limit, c.b)
			}
		}
	}
	// The hash is part of what is deployed, so it must not change either.
	if got, want := (naming.Names{Cluster: one}).Function("wake"), "joiner-"+strings.Repeat("a", 24)+"-ec1a833c-wake"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
