package app

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"joiner.sh/pkg/controllers"
	"joiner.sh/pkg/settings"
)

func TestHints(t *testing.T) {
	const tick, notified, push, other = `{"source":"aws.scheduler","detail-type":"Scheduled Event"}`, `{"source":"aws.scheduler","detail-type":"Scheduled Event","detail":"{}"}`,
		`{"source":"joiner","detail-type":"wake","detail":{"by":"push"}}`, `{"source":"joiner","detail-type":"wake","detail":{"by":"disrupt"}}`
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	a := pushAttention{away: now.Add(-40 * time.Second)}
	for _, c := range []struct {
		name, payload string
		trigger       string
		want          controllers.PushHints
	}{
		{"a tick without push", tick, settings.TriggerSchedule, controllers.PushHints{}},
		{"a tick beside push counts what came since somebody looked", tick, settings.TriggerPush, controllers.PushHints{Since: a.away}},
		{"so does one with the text of the scheduler itself", notified, settings.TriggerPush, controllers.PushHints{Since: a.away}},
		{"the webhook", push, settings.TriggerPush, controllers.PushHints{Until: now.Add(2 * time.Second)}},
		{"the webhook of a deployment whose functions are older", push, settings.TriggerSchedule, controllers.PushHints{Until: now.Add(2 * time.Second)}},
		{"another function", other, settings.TriggerPush, controllers.PushHints{}},
		{"nothing", "null", settings.TriggerPush, controllers.PushHints{}},
	} {
		if diff := cmp.Diff(c.want, a.pushHints(settings.Values{Trigger: c.trigger}, []byte(c.payload), now)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}
