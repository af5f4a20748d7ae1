package discovery

import (
	"fmt"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	"github.com/google/go-cmp/cmp"

	"joiner.sh/infra/local/awsemulator"
	"joiner.sh/pkg/providers/discovery"
)

// Alarms are read by name, metric and composite ones, as many as there are; one that does not exist is left out.
func TestAlarms(t *testing.T) {
	r := start(t)
	a := discovery.Alarms{CloudWatch: cloudwatch.NewFromConfig(r.cfg)}
	r.SetAlarm(awsemulator.Alarm{Name: "errors", State: "ALARM"})
	r.SetAlarm(awsemulator.Alarm{Name: "all", State: "OK", Composite: true})
	r.SetAlarm(awsemulator.Alarm{Name: "other", State: "OK"})
	got, err := a.ReadAlarms(t.Context(), []string{"errors", "all", "missing"})
	if diff := cmp.Diff(map[string]string{"errors": "ALARM", "all": "OK"}, got); diff != "" || err != nil {
		t.Errorf("error %v (-want +got):\n%s", err, diff)
	}
	var names []string
	for i := range 230 {
		names = append(names, fmt.Sprintf("a-%03d", i))
		r.SetAlarm(awsemulator.Alarm{Name: names[i], State: "INSUFFICIENT_DATA"})
	}
	if got, err = a.ReadAlarms(t.Context(), names); len(got) != len(names) || err != nil {
		t.Errorf("%d of %d alarms, error %v", len(got), len(names), err)
	}
	r.AddFault(awsemulator.Fault{Service: "monitoring", Kind: awsemulator.FailBefore, Code: "AccessDeniedException"})
	if _, err := a.ReadAlarms(t.Context(), names); err == nil {
		t.Error("a refusal is no error")
	}
}
