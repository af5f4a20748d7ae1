package app

import (
	"time"

	"joiner.sh/pkg/controllers"
	"joiner.sh/pkg/controllers/webhook"
	"joiner.sh/pkg/providers/invoke"
	"joiner.sh/pkg/settings"
)

// watchAfterPush is the time for which somebody whom the webhook woke looks for what was announced. It is longer than
// webhook.Between, in which further announcements wake nobody.
const watchAfterPush = 2 * webhook.Between

// pushAttention knows what push has to do with an invocation. It is kept between the invocations of a process, which
// come one after another.
type pushAttention struct {
	away time.Time // since when no invocation of this process has looked
}

// pushHints returns the hints for an invocation with this payload.
func (a *pushAttention) pushHints(set settings.Values, payload []byte, now time.Time) controllers.PushHints {
	switch reason := invoke.Reason(payload); {
	case reason == invoke.Push:
		return controllers.PushHints{Until: now.Add(watchAfterPush)}
	case set.Trigger == settings.TriggerPush && reason == invoke.Clock:
		return controllers.PushHints{Since: a.away}
	}
	return controllers.PushHints{}
}
