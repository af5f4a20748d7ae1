package remotewrite

import (
	"context"
	"time"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/timeseries"
)

// StateStore keeps the State. All calls may be repeated.
type StateStore interface {
	// ReadState returns what was stored last, the zero State for nothing or for what nobody can read. When it is what
	// this store read or wrote last, same is true.
	ReadState(ctx context.Context) (st State, same bool, err error)
	// WriteState stores it.
	WriteState(ctx context.Context, st State) error
}

// SeriesWriter sends series. It may be repeated.
type SeriesWriter interface {
	// WriteSeries sends the values of a moment, and ends series. It returns within seconds.
	WriteSeries(ctx context.Context, series, ended []timeseries.Series, at time.Time) error
}

// Surroundings reads what lifecycle does not look at by itself. All calls may be repeated.
type Surroundings interface {
	// ReadSurroundings is the snapshot with the catalog and the offerings that are not to be had, and what disruption
	// has counted.
	ReadSurroundings(ctx context.Context, s cluster.Snapshot) (cluster.Snapshot, timeseries.Totals, error)
}
