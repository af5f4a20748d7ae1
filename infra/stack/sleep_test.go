package stack_test

import (
	"maps"
	"strings"
	"testing"

	"github.com/aws/jsii-runtime-go"
)

// Setup is told when the cluster sleeps, and is called again when that changes; without the setting it is told nothing.
func TestSetupIsToldWhenTheClusterSleeps(t *testing.T) {
	dist := placeholders(t)
	tmpl := mustSynth(t, map[string]any{"clusterName": "demo", "distFolder": dist, "hibernationSchedule": "CRON_TZ=Europe/Berlin 0 20 * * 1-5", "hibernationDuration": "12h"})
	tmpl.HasResourceProperties(jsii.String("Custom::JoinerSetup"), map[string]any{"Sleep": "0 20 * * 1-5", "SleepFor": "12h0m0s", "SleepTimeZone": "Europe/Berlin"})
	if order := words(t, mustSynth(t, map[string]any{"clusterName": "demo", "distFolder": dist})).order(); strings.Contains(order, "Sleep") {
		t.Errorf("setup is told of sleep without the setting: %s", order)
	}
}

func TestASleepThatCannotBeMeantIsRefused(t *testing.T) {
	for want, more := range map[string]map[string]any{
		"hibernationSchedule and hibernationDuration belong together": {"hibernationSchedule": "0 20 * * *"},
		`hibernationSchedule is "@daily"; allowed: minute, hour`:      {"hibernationSchedule": "@daily", "hibernationDuration": "1h"},
		"schedule \"0 25 * * *\"":                                     {"hibernationSchedule": "0 25 * * *", "hibernationDuration": "1h"},
		"schedule \"0 0 31 2 *\" never comes":                         {"hibernationSchedule": "0 0 31 2 *", "hibernationDuration": "1h"},
		`time zone "Europe/Berne" is not known`:                       {"hibernationSchedule": "CRON_TZ=Europe/Berne 0 20 * * *", "hibernationDuration": "1h"},
		`hibernationDuration is "30s"; allowed: a duration such as`:   {"hibernationSchedule": "0 20 * * *", "hibernationDuration": "30s"},
	} {
		context := map[string]any{"clusterName": "demo", "distFolder": "none"}
		maps.Copy(context, more)
		if _, err := synth(t, context); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}
