package invoke_test

import (
	"testing"

	"joiner.sh/pkg/providers/invoke"
)

func TestReason(t *testing.T) {
	for payload, want := range map[string]string{
		`{"version":"0","source":"aws.events","detail-type":"Scheduled Event","detail":{}}`:          "clock",
		`{"version":"0","source":"aws.scheduler","detail-type":"Scheduled Event","detail":"{}"}`:     "clock",
		`{"source":"joiner","detail-type":"wake","detail":{"by":"push"}}`:                            "push",
		`{"source":"joiner","detail-type":"wake","detail":{"by":"spotinterruption"}}`:                "spotinterruption",
		`{"source":"aws.cloudformation","detail":{"by":"push"}}`:                                     "",
		`{"source":"aws.cloudformation","detail-type":"x","detail":{"status-details":{"status":1}}}`: "",
		`{"detail":[]}`: "", `null`: "", ``: "", `7`: "", `{"source":"joiner","detail":{"by":7}}`: "",
	} {
		if got := invoke.Reason([]byte(payload)); got != want {
			t.Errorf("%s: reason %q, want %q", payload, got, want)
		}
	}
}
