package spotpools

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	v1 "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/controllers"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/spotpools"
)

// mostGap bounds the time for which running nodes are counted at once: what ran before is not known.
const mostGap = time.Hour

// Claims lists our NodeClaims. It may be repeated.
type Claims interface {
	ListClaims(ctx context.Context) ([]cluster.Claim, error)
}

// Events are what notices and launches noted. All calls may be repeated.
type Events interface {
	// ListSpotEvents lists the events that were not forgotten.
	ListSpotEvents(ctx context.Context) ([]spotpools.Event, error)
	// ForgetSpotEvents forgets those events, and none that came meanwhile.
	ForgetSpotEvents(ctx context.Context, events []spotpools.Event) error
}

// Records are the stored records, one for each cluster that uses the bucket.
type Records interface {
	// ReadOwn reads the cluster's own record, an empty one where there is none or a broken one. May be repeated.
	ReadOwn(ctx context.Context) (r spotpools.Record, version string, err error)
	// WriteOwn stores it if it is still of that version, else it has a method Conflict that reports true. Repeating it
	// is a conflict, which changes nothing.
	WriteOwn(ctx context.Context, r spotpools.Record, version string) error
	// ReadOthers reads the records of other clusters, as many as can be read. May be repeated.
	ReadOthers(ctx context.Context) ([]spotpools.Record, error)
}

// Learner keeps the record up to date and tells what it comes to.
type Learner struct {
	Claims  Claims
	Events  Events
	Records Records
	Now     func() time.Time
	Log     *slog.Logger

	latest *spotpools.Summary
}

// Latest is the summary that Learn came to, nil before.
func (l *Learner) Latest() *spotpools.Summary { return l.latest }

// Learn adds to the record what happened since the last time. It may be repeated, and may die after any step: events
// are forgotten when they are counted, and none counts twice.
func (l *Learner) Learn(ctx context.Context) error {
	now := l.Now()
	own, version, err := l.Records.ReadOwn(ctx)
	if err != nil {
		return fmt.Errorf("learn spot pools: %w", err)
	}
	others, err := l.Records.ReadOthers(ctx)
	if err != nil {
		l.Log.Warn("some records of spot pools are left out", "error", err)
	}
	may, err := controllers.MayWrite(ctx)
	if err != nil {
		return err
	}
	if may {
		if own, err = l.update(ctx, own, version, now); err != nil {
			return fmt.Errorf("learn spot pools: %w", err)
		}
	}
	s := spotpools.Summarize(own, others, now)
	l.latest = &s
	return nil
}

// update stores the record with what happened since the last time.
func (l *Learner) update(ctx context.Context, old spotpools.Record, version string, now time.Time) (spotpools.Record,
	error) {
	events, err := l.Events.ListSpotEvents(ctx)
	if err != nil {
		return old, err
	}
	claims, err := l.Claims.ListClaims(ctx)
	if err != nil {
		return old, err
	}
	next := old.FadeTo(now).CountHours(hoursSince(claims, old.At, now)).CountEvents(events, now)
	if err := l.Records.WriteOwn(ctx, next, version); controllers.IsConflict(err) {
		l.Log.Info("another refresh wrote the record of spot pools")
		return old, nil
	} else if err != nil {
		return old, err
	}
	return next, l.Events.ForgetSpotEvents(ctx, events)
}

// hoursSince are the hours that launched spot nodes ran since then, by pool.
func hoursSince(claims []cluster.Claim, since, now time.Time) map[spotpools.Pool]float64 {
	out := map[spotpools.Pool]float64{}
	if since.IsZero() {
		return out
	}
	if now.Sub(since) > mostGap {
		since = now.Add(-mostGap)
	}
	for _, c := range claims {
		p, spot := PoolOf(c)
		launched := c.Condition(v1.ConditionLaunched)
		if !spot || launched.Status != "True" {
			continue
		}
		from := since
		if launched.Since.After(from) {
			from = launched.Since
		}
		if h := now.Sub(from).Hours(); h > 0 {
			out[p] += h
		}
	}
	return out
}

// PoolOf is the spot pool of a claim's instance, false for a claim that is not spot or not launched.
func PoolOf(c cluster.Claim) (spotpools.Pool, bool) {
	p := spotpools.Pool{Type: c.Labels[instancetypes.LabelType], Zone: c.Labels[instancetypes.LabelZone]}
	return p, c.Labels[instancetypes.LabelCapacityType] == instancetypes.Spot && p.Type != "" && p.Zone != ""
}
