package budgets

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	_ "time/tzdata" // the time zones of budgets, which a Lambda does not bring

	"github.com/robfig/cron/v3"

	v1 "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/model/cluster"
)

// Unlimited is the number of nodes that a pool without an active budget allows.
const Unlimited = math.MaxInt32

// AllowedDisruptions returns how many of the pool's total nodes may be out of service at a time for the reason, whoever
// took them out. It is the least of the active budgets, and 0 with an error while any budget cannot be understood,
// whatever its reasons are.
func AllowedDisruptions(d cluster.Disruption, reason v1.DisruptionReason, total int, now time.Time) (int, error) {
	least := Unlimited
	var problems []error
	for i, b := range d.Budgets {
		active, err := isActive(b, d.TimeZone, now)
		n, countErr := parseNodeCount(b.Nodes, total)
		if err = errors.Join(err, countErr); err != nil {
			problems = append(problems, fmt.Errorf("budget %d: %w", i+1, err))
			continue
		}
		if active && (b.Every || slices.Contains(b.Reasons, string(reason))) {
			least = min(least, n)
		}
	}
	if len(problems) > 0 {
		return 0, errors.Join(problems...)
	}
	return least, nil
}

// ValidateBudgets says what is wrong with the budgets of a pool, or nil.
func ValidateBudgets(d cluster.Disruption) error {
	// not the zero time, which is a midnight and stands for a start that never comes
	someTime := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	_, err := AllowedDisruptions(d, v1.DisruptionEmpty, 0, someTime)
	if zoneErr := checkZone(d.TimeZone); zoneErr != nil && err == nil { // no schedule asked for it
		err = zoneErr
	}
	if _, sleepErr := inSchedule(d, someTime); sleepErr != nil {
		err = errors.Join(err, fmt.Errorf("sleep: %w", sleepErr))
	}
	return err
}

// IsHibernating reports whether the pool sleeps: a start of its schedule lies within the time it sleeps before now. A
// schedule that cannot be understood lets it wake.
func IsHibernating(d cluster.Disruption, now time.Time) bool {
	asleep, err := inSchedule(d, now)
	return asleep && err == nil
}

func inSchedule(d cluster.Disruption, now time.Time) (bool, error) {
	if d.SleepAt == "" && d.SleepFor == 0 {
		return false, nil
	}
	return isActive(cluster.NodeBudget{Schedule: d.SleepAt, Duration: d.SleepFor}, cmp.Or(d.SleepZone, d.TimeZone), now)
}

// WakeTime returns the time when a pool that sleeps wakes, the zero time for one that is awake or will not wake within
// 1,000 starts of its schedule.
func WakeTime(d cluster.Disruption, now time.Time) time.Time {
	const most = 1000
	if !IsHibernating(d, now) {
		return time.Time{}
	}
	s, err := cron.ParseStandard("CRON_TZ=" + cmp.Or(d.SleepZone, d.TimeZone, "UTC") + " " + d.SleepAt)
	if err != nil {
		return time.Time{}
	}
	end := now
	for start, n := s.Next(now.Add(-d.SleepFor)), 0; n < most; start, n = s.Next(start), n+1 {
		if start.IsZero() || start.After(end) {
			return end.UTC()
		}
		end = start.Add(d.SleepFor)
	}
	return time.Time{}
}

// parseNodeCount reads a number of nodes, or a percentage of total, rounded up.
func parseNodeCount(nodes string, total int) (int, error) {
	text, percent := strings.CutSuffix(nodes, "%")
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 || percent && n > 100 {
		return 0, fmt.Errorf("nodes %q is neither a count nor a percentage up to 100%%", nodes)
	}
	if percent {
		return (total*n + 99) / 100, nil
	}
	return n, nil
}

// isActive reports whether a start of the budget lies within its duration before now, the start included and the end
// not.
func isActive(b cluster.NodeBudget, zone string, now time.Time) (bool, error) {
	if b.Schedule == "" && b.Duration == 0 {
		return true, nil
	}
	if b.Schedule == "" || b.Duration <= 0 {
		return false, errors.New("schedule and duration go together, and the duration is longer than 0")
	}
	if zone == "" {
		zone = "UTC"
	}
	zoneErr := checkZone(zone)
	if zoneErr != nil {
		zone = "UTC" // what else is wrong is said too
	}
	if strings.Contains(b.Schedule, "TZ=") {
		return false, errors.Join(zoneErr, fmt.Errorf("schedule %q names a time zone of its own: use the annotation %s",
			b.Schedule, v1.AnnotationTimeZone))
	}
	s, err := cron.ParseStandard("CRON_TZ=" + zone + " " + b.Schedule)
	if err != nil {
		return false, errors.Join(zoneErr, fmt.Errorf("schedule %q: %w", b.Schedule, err))
	}
	next := s.Next(now.Add(-b.Duration))
	if next.IsZero() {
		return false, errors.Join(zoneErr, fmt.Errorf("schedule %q never comes", b.Schedule))
	}
	if zoneErr != nil {
		return false, zoneErr
	}
	return !next.After(now), nil
}

func checkZone(zone string) error {
	if _, err := time.LoadLocation(zone); err != nil || zone == "Local" { // that is another one wherever we run
		return fmt.Errorf("time zone %q is not known: use an IANA name such as Europe/Berlin", zone)
	}
	return nil
}
