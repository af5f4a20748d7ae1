// Package rules holds Joiner's rules over NodePools against those of Karpenter's core: budgets, the drift hash and
// drifted requirements.
//
// It has tests only. Both are given the same YAML, made at random by a fixed seed.
package rules

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	clock "k8s.io/utils/clock/testing"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	v1 "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/model/budgets"
	"joiner.sh/pkg/nodeclass"
)

func (d dice) number(most int) string { return fmt.Sprint(d.IntN(most + 1)) }

// field is one of the five of a schedule, between the bounds.
func (d dice) field(least, most int) string {
	a := least + d.IntN(most-least+1)
	b := a + d.IntN(most-a+1)
	return d.one("*", "*", fmt.Sprint(a), fmt.Sprintf("%d-%d", a, b), fmt.Sprintf("%d,%d", b, a), fmt.Sprintf("*/%d", 1+d.IntN(most)), fmt.Sprintf("%d-%d/%d", a, b, 1+d.IntN(5)))
}

// schedule is a cron line of which some start comes: its days are in every month.
func (d dice) schedule() string {
	if d.IntN(4) == 0 {
		return d.one("@annually", "@yearly", "@monthly", "@weekly", "@daily", "@midnight", "@hourly")
	}
	return strings.Join([]string{d.field(0, 59), d.field(0, 23), d.field(1, 28), d.one(d.field(1, 12), "JAN-MAR", "feb,DEC"), d.one(d.field(0, 6), "MON-FRI", "sun")}, " ")
}

func (d dice) budgets() string {
	var all []string
	for range d.IntN(4) {
		b := "nodes: '" + d.one("0", d.number(12), d.number(100)+"%") + "'"
		if d.coin() {
			b += ", reasons: [" + d.some(3, "Underutilized", "Empty", "Drifted") + "]"
		}
		if d.coin() {
			b += fmt.Sprintf(", schedule: '%s', duration: %s", d.schedule(), d.one(d.number(50)+"h10m", "8h", "30m", "24h", d.number(90)+"m5s", "720h"))
		}
		all = append(all, "{"+b+"}")
	}
	return "spec: {disruption: {budgets: [" + strings.Join(all, ", ") + "]}}"
}

// A budget allows as many nodes to be disrupted as Karpenter lets it, at every time and for every reason.
func TestBudgetsAllowWhatKarpentersDo(t *testing.T) {
	some, none := 0, 0
	for seed := range uint64(20_000) {
		d := roll(seed)
		text := d.budgets()
		theirs, ours := read(t, text)
		for range 5 {
			now := time.Date(2026, time.Month(1+d.IntN(12)), 1+d.IntN(28), d.IntN(24), d.IntN(60), d.IntN(2)*30, 0, time.UTC)
			total, reason := d.IntN(60), d.one("Underutilized", "Empty", "Drifted")
			want := theirs.MustGetAllowedDisruptions(clock.NewFakeClock(now), total, karpv1.DisruptionReason(reason))
			got, err := budgets.AllowedDisruptions(nodeclass.ReadDisruption(ours), v1.DisruptionReason(reason), total, now)
			if want != got {
				t.Fatalf("seed %d: %d of %d for %s at %s, Karpenter allows %d (%v), of\n%s", seed, got, total, reason, now, want, err, text)
			}
			switch want {
			case 0:
				none++
			case math.MaxInt32:
			default:
				some++
			}
		}
	}
	t.Logf("%d times some, %d times none of 100,000", some, none)
	if some < 20_000 || none < 5_000 {
		t.Errorf("the budgets hardly say anything: %d times some, %d times none", some, none)
	}
}

// A schedule that never comes closes the pool; Karpenter never lets such a budget count.
func TestScheduleThatNeverComes(t *testing.T) {
	theirs, ours := read(t, "spec: {disruption: {budgets: [{nodes: '3', schedule: '0 0 30 2 *', duration: 1h}]}}")
	now := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	got, err := budgets.AllowedDisruptions(nodeclass.ReadDisruption(ours), v1.DisruptionEmpty, 10, now)
	want := theirs.MustGetAllowedDisruptions(clock.NewFakeClock(now), 10, karpv1.DisruptionReasonEmpty)
	if got != 0 || err == nil || want != 3 {
		t.Errorf("%d allowed (%v), Karpenter allows %d", got, err, want)
	}
}
