package controllers

import (
	"context"
	"log/slog"
	"time"

	"joiner.sh/pkg/model/cluster"
)

// Deps holds what every function of the stack needs beside the ports of its own.
type Deps struct {
	Permission Permission // to write; asked before each action
	Record     Recorder
	Metrics    Metrics          // nil: nothing is measured
	Memory     Memory           // of the process; nil: it is not watched
	Rules      cluster.Settings // of decisions
	Holder     string           // names this invocation as the holder of leases
	Now        func() time.Time
	Log        *slog.Logger
}

// RecordOrLog writes a Kubernetes event. One that cannot be written is logged and costs nothing else.
func (d *Deps) RecordOrLog(ctx context.Context, e cluster.Event) {
	if err := d.Record.RecordEvent(ctx, e); err != nil {
		d.Log.Warn("event on "+e.Kind+" "+e.Name, "error", err)
	}
}

// Shield keeps a panic about one thing from all others.
func (d *Deps) Shield() Shield { return Shield{d.Log, d.Metrics} }
