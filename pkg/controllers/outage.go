package controllers

import (
	"log/slog"
	"time"
)

const tellOutageEvery = time.Hour

// Outage is since when nothing of a kind can be sent, and when that was told last. The zero Outage is none.
type Outage struct {
	Failing time.Time `json:"failing,omitzero"`
	Told    time.Time `json:"told,omitzero"`
}

// NoteOutcome notes what became of a send of what is named, and tells of it where that is news: of failures once an
// hour, and when they are over. It reports whether it told something.
func (o *Outage) NoteOutcome(log *slog.Logger, what string, err error, now time.Time) (told bool) {
	if err == nil {
		if told = !o.Failing.IsZero(); told {
			log.Info(what+" are sent again", "failedFor", now.Sub(o.Failing).Round(time.Second).String())
		}
		*o = Outage{}
		return told
	}
	if o.Failing.IsZero() {
		o.Failing = now
	}
	if told = now.Sub(o.Told) >= tellOutageEvery; told {
		o.Told = now
		log.Error(what+" cannot be sent; this is told once an hour", "error", err, "since",
			o.Failing.UTC().Format(time.RFC3339))
	}
	return told
}
