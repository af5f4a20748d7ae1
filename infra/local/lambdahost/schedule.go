package lambdahost

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/winebarrel/cronplan"
)

// parseSchedule reads rate(...) or cron(...). The function it returns gives the next time after another one. A rate
// counts from the time it is given, which at first is when the rule was made, and not from the full hour.
func parseSchedule(expression, timezone string) (func(after time.Time) time.Time, error) {
	kind, rest, _ := strings.Cut(expression, "(")
	inner, closed := strings.CutSuffix(rest, ")")
	if !closed {
		return nil, fmt.Errorf("parse schedule %q: want rate(...) or cron(...)", expression)
	}
	switch kind {
	case "rate":
		interval, err := parseRate(inner)
		if err != nil {
			return nil, fmt.Errorf("parse schedule %q: %w", expression, err)
		}
		return func(after time.Time) time.Time { return after.Add(interval) }, nil
	case "cron":
		next, err := parseCron(inner, timezone)
		if err != nil {
			return nil, fmt.Errorf("parse schedule %q: %w", expression, err)
		}
		return next, nil
	default:
		return nil, fmt.Errorf("parse schedule %q: want rate(...) or cron(...)", expression)
	}
}

// parseRate reads "1 minute" or "5 minutes"; EventBridge refuses the wrong number of the noun, so this does too.
func parseRate(text string) (time.Duration, error) {
	number, unit, _ := strings.Cut(text, " ")
	n, err := strconv.Atoi(number)
	if err != nil || n < 1 {
		return 0, fmt.Errorf("%q is no positive number", number)
	}
	units := map[string]time.Duration{"minute": time.Minute, "hour": time.Hour, "day": 24 * time.Hour}
	if n > 1 {
		units = map[string]time.Duration{"minutes": time.Minute, "hours": time.Hour, "days": 24 * time.Hour}
	}
	length, ok := units[unit]
	if !ok {
		return 0, fmt.Errorf("%q is no unit for %d", unit, n)
	}
	return time.Duration(n) * length, nil
}

func parseCron(text, timezone string) (func(time.Time) time.Time, error) {
	fields := strings.Fields(text)
	if len(fields) != 6 {
		return nil, fmt.Errorf("has %d fields, wants 6", len(fields))
	}
	if (fields[2] == "?") == (fields[4] == "?") {
		return nil, fmt.Errorf("exactly one of day-of-month and day-of-week must be ?")
	}
	place := time.UTC
	if timezone != "" {
		named, err := time.LoadLocation(timezone)
		if err != nil {
			return nil, err
		}
		place = named
	}
	plan, err := cronplan.Parse(text)
	if err != nil {
		return nil, err
	}
	return func(after time.Time) time.Time {
		return plan.Next(after.In(place).Truncate(time.Minute).Add(time.Minute))
	}, nil
}

// keepTime fires a schedule until the host closes. Time runs from the start of the host at the host's speed.
func (b *EventBus) keepTime(r *rule) {
	h := b.host
	now := h.started
	for {
		due := r.next(now)
		if due.IsZero() {
			return // a cron expression whose years are over
		}
		if !h.pauseFor(time.Until(h.started.Add(h.scaleTime(due.Sub(h.started))))) {
			return
		}
		now = due
		b.mu.Lock()
		paused := b.paused
		if paused {
			b.skipped++
		}
		b.mu.Unlock()
		if paused {
			continue
		}
		if _, err := b.fireRule(r); err != nil {
			h.log.writeLine(r.name, "", err.Error())
		}
	}
}
