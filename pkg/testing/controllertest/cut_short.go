package controllertest

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"joiner.sh/pkg/controllers"
	"joiner.sh/pkg/model/cluster"
)

// SlowReader reads a cluster that is too large for an invocation.
type SlowReader struct{ controllers.Reader }

// ReadSnapshot takes longer than there is: it ends with the context, and its error.
func (SlowReader) ReadSnapshot(ctx context.Context) (cluster.Snapshot, error) {
	<-ctx.Done()
	return cluster.Snapshot{}, ctx.Err()
}

// CachedSnapshot is ReadSnapshot.
func (r SlowReader) CachedSnapshot(ctx context.Context) (cluster.Snapshot, error) {
	return r.ReadSnapshot(ctx)
}

// CheckCutShort runs what is too slow for an invocation of a minute: it has to end before its time does, without an
// error, and one pass has to be measured as cut short.
func CheckCutShort(t *testing.T, run func(context.Context) error, lines *MetricLines) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := run(ctx); err != nil || ctx.Err() != nil {
		t.Errorf("it ended with %v, its time with %v", err, ctx.Err())
	}
	if !slices.ContainsFunc(lines.All, func(l string) bool {
		return strings.Contains(l, `"joiner_passes_cut_short_total":1`)
	}) {
		t.Errorf("measured %q", lines.All)
	}
}
