package doctor

import (
	"strings"
	"testing"

	"joiner.sh/pkg/settings"
)

func TestTracesAreLookedAt(t *testing.T) {
	const arn = "arn:aws:secretsmanager:us-west-2:111122223333:secret:otel-AbCdEf"
	good := settings.Traces{URL: "https://collector.example:4318/v1/traces"}
	for _, c := range []struct {
		set    settings.Traces
		secret Secret
		level  Level
		says   string
	}{
		{settings.Traces{}, Secret{}, "", ""},
		{good, Secret{}, Fine, "traces go to collector.example:4318"},
		{good, Secret{ARN: arn, Found: true}, Fine, "traces go to collector.example:4318"},
		{good, Secret{ARN: arn}, Broken, "no traces are sent: there is no secret " + arn},
		{settings.Traces{URL: "https://%/v1/traces"}, Secret{}, Broken, "no URL"},
		{settings.Traces{URL: "https://collector.example"}, Secret{}, Broken, "has no path"},
		{settings.Traces{URL: "http://collector.example/v1/traces", Secret: arn}, Secret{ARN: arn, Found: true}, Broken, "use https"},
	} {
		e := examination{f: Facts{TracesSecret: c.secret, Functions: Functions{List: []Function{{Name: "joiner-shop-provision", Found: true, Traces: c.set}}}}}
		e.checkTraces()
		if c.level == "" {
			if len(e.found) > 0 {
				t.Errorf("without the setting: %+v", e.found)
			}
			continue
		}
		if len(e.found) != 1 || e.found[0].Level != c.level || !strings.Contains(e.found[0].What, c.says) {
			t.Errorf("%+v: %+v; want %s %q", c.set, e.found, c.level, c.says)
		}
	}
}
