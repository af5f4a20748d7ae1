package app

import (
	"time"

	"joiner/pkg/control"
	"joiner/pkg/push"
	"joiner/pkg/setting"
	"joiner/pkg/wake"
)

// lookAfterPush is how long somebody whom the webhook woke looks for what was announced. It is longer than push.Between, in which
// further announcements wake nobody.
const lookAfterPush = 2 * push.Between

// attention knows what push has to do with an invocation. It is kept between the invocations of a process, which come one after another.
type attention struct {
	away time.Time // since when no invocation of this process has looked
}

// hints are those of an invocation with this payload.
func (a *attention) hints(set setting.Values, payload []byte, now time.Time) control.Hints {
	switch reason := wake.Reason(payload); {
	case reason == wake.Push:
		return control.Hints{Until: now.Add(lookAfterPush)}
	case set.Push && reason == wake.Clock:
		return control.Hints{Since: a.away}
	}
	return control.Hints{}
}
