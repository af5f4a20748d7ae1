package app

import (
	"io"
	"log/slog"
	"time"

	"joiner.sh/pkg/model/metrics"
)

// emfWriter writes what was measured onto the function's log, from which CloudWatch takes it.
type emfWriter struct {
	out     io.Writer
	cluster string
	now     func() time.Time
	log     *slog.Logger
}

// Put writes the records. One that cannot be written is logged and costs nothing else.
func (m *emfWriter) Put(records ...metrics.Record) {
	for _, r := range records {
		lines, err := metrics.EMFLines(m.now(), m.cluster, r)
		for _, l := range lines {
			if err == nil {
				_, err = m.out.Write(append(l, '\n')) // in one write, so that it stays one line among those of the log
			}
		}
		if err != nil {
			m.log.Warn("metrics are lost", "error", err)
		}
	}
}
