package sim_test

import (
	"testing"
	"time"

	"joiner.sh/pkg/testing/objects"
	"joiner.sh/pkg/testing/requestlimits"
	"joiner.sh/pkg/testing/shortrun"
	"joiner.sh/pkg/testing/sim"
)

var notices = shortrun.NewCount("notices", 1000, 100, "how many spot notices come within a minute in TestNoticesOfAMinute")

// TestNoticesOfAMinute: EC2 takes back a thousand spot nodes within a minute, in an account with the request limits that
// the local environment plays too and with the stack's concurrency for notices. Every node is drained and its
// replacement launched before its instance ends.
func TestNoticesOfAMinute(t *testing.T) {
	out := playNotices(t, sim.NoticeStorm{Nodes: notices.N(), Concurrency: 100, Limits: requestlimits.Default()})
	if len(out.Lost) > 0 || len(out.Late) > 0 || out.Launched != notices.N() {
		t.Errorf("of %d notices %d are lost and %d late, and %d replacements were launched", notices.N(), len(out.Lost), len(out.Late), out.Launched)
	}
}

// TestNoticesWithTheLeastThatIsReserved: the smallest share of an account's concurrency that the stack reserves for
// notices is enough for 300 of them in a minute.
func TestNoticesWithTheLeastThatIsReserved(t *testing.T) {
	shortrun.Skip(t)
	out := playNotices(t, sim.NoticeStorm{Nodes: 300, Concurrency: 20, Limits: requestlimits.Default()})
	if len(out.Lost) > 0 || len(out.Late) > 0 {
		t.Errorf("%d are lost and %d late", len(out.Lost), len(out.Late))
	}
}

// TestNoticesBeyondTheLimits: the same cluster loses nodes in an account that lets far fewer requests through, and where
// notices are handled one at a time. What the other tests show is shown by the limits.
func TestNoticesBeyondTheLimits(t *testing.T) {
	shortrun.Skip(t)
	const nodes = 100
	limits := func(action string, burst, perSecond float64) []requestlimits.Limit {
		return append([]requestlimits.Limit{{Service: "ec2", Action: action, Burst: burst, PerSecond: perSecond}}, requestlimits.Default()...)
	}
	for name, s := range map[string]sim.NoticeStorm{
		"few requests for instances": {Concurrency: 100, Limits: limits("CreateFleet", 1, 0.001)},
		"one notice at a time":       {Concurrency: 1, Limits: requestlimits.Default()},
	} {
		t.Run(name, func(t *testing.T) {
			s.Nodes = nodes
			if out := playNotices(t, s); len(out.Late)+len(out.Lost) == 0 {
				t.Errorf("nothing is late: %+v", out)
			}
		})
	}
}

func playNotices(t *testing.T, s sim.NoticeStorm) sim.NoticeOutcome {
	t.Helper()
	s.Over, s.Types = time.Minute, []string{"c5.large", "m5.large", "r5.large"}
	r := sim.RunScenario(t, sim.Scenario{Seed: 1, Catalog: objects.FewTypes(), Notices: &s})
	for _, v := range r.Violations {
		t.Fatalf("%s\n%s", v, r.Trace)
	}
	t.Logf("%d notices: %d lost, %d late, %d launched; the slowest NodeClaim was deleted after %s; refused %v", s.Nodes, len(r.Notices.Lost),
		len(r.Notices.Late), r.Notices.Launched, r.Notices.Slowest, r.Notices.Refused)
	return r.Notices
}
