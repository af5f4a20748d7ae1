package controllers

import (
	"log/slog"
	"time"

	"joiner/pkg/model/cluster"
)

// Deps is what every function of the stack needs beside the ports of its own.
type Deps struct {
	Permission Permission // to write; asked before each action
	Record     Recorder
	Metrics    Metrics          // nil: nothing is measured
	Rules      cluster.Settings // of decisions
	Holder     string           // names this invocation as the holder of leases
	Now        func() time.Time
	Log        *slog.Logger
}

func (d *Deps) shield() shield { return shield{d.Log, d.Metrics} }
