package settings_test

import (
	"testing"

	"joiner.sh/pkg/settings"
)

func TestNearestSetting(t *testing.T) {
	for key, want := range map[string]string{
		"FUNCTIONMEMORY": "functionMemory", "CLUSTER_NAME": "clusterName", "functonMemry": "functionMemory", "subnetIds": "subnetIDs",
		"subnets": "subnetIDs", "alarmsEmail": "alarmEmail", "nonsense": "", "mod": "mode", "tag": "tags", "catalogBucke": "",
		"watchDuration": "", "hibernationShedule": "hibernationSchedule",
	} {
		if got, found := settings.Nearest(key); got != want || found != (want != "") {
			t.Errorf("Nearest(%q) = %q, %t; want %q", key, got, found, want)
		}
	}
}
