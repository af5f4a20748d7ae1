package stack_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// watchedMetric says what the alarm watches and when it rings.
func watchedMetric(p map[string]any) string {
	return fmt.Sprintf("%v %v%s %v of %vs, %v %s, %v of %v, no data %v", p["Namespace"], p["MetricName"], text(p["Dimensions"]), p["Statistic"], p["Period"],
		map[any]string{"GreaterThanThreshold": "over", "LessThanThreshold": "under"}[p["ComparisonOperator"]], text(p["Threshold"]),
		p["DatapointsToAlarm"], p["EvaluationPeriods"], map[any]string{"breaching": "rings", "notBreaching": "is fine"}[p["TreatMissingData"]])
}

// alarmsOf are all alarms of the stack with these settings, by name.
func alarmsOf(t *testing.T, more map[string]any) map[string]string {
	t.Helper()
	context := map[string]any{"clusterName": "demo", "distFolder": placeholders(t), "push": true, "vpcID": "vpc-0123456789abcdef0", "subnetIDs": "subnet-0123456789abcdef0"}
	maps.Copy(context, more)
	out := map[string]string{}
	words(t, mustSynth(t, context)).each("AWS::CloudWatch::Alarm", func(_ string, p map[string]any) {
		out[strings.TrimPrefix(text(p["AlarmName"]), "joiner-demo-")] = watchedMetric(p)
	})
	return out
}

// everyAlarm is what each alarm watches. Those of functions differ in their name, in how long they may run, and in how
// they are invoked.
func everyAlarm() map[string]string {
	const ours = "Joiner %s{Name=cluster, Value=demo} %s"
	out := map[string]string{
		"ProvisionSilent": "AWS/Lambda Invocations{Name=FunctionName, Value=Provision} Sum of 600s, under 1, 1 of 1, no data rings",
		"PodsUnplaced":    fmt.Sprintf(ours, "karpenter_pods_provisioning_unbound_time_seconds", "Maximum of 300s, over 900, 2 of 2, no data is fine"),
		"CatalogOld":      fmt.Sprintf(ours, "joiner_catalog_age_seconds", "Maximum of 600s, over 21600, 3 of 3, no data rings"),
		"NoticesLate":     fmt.Sprintf(ours, "joiner_notice_handled_seconds", "Maximum of 300s, over 60, 1 of 1, no data is fine"),
		"OtherLeader":     fmt.Sprintf(ours, "joiner_changes_refused_total", "Sum of 300s, over 0, 1 of 1, no data is fine"),
		"Faults":          fmt.Sprintf(ours, "joiner_faults_total", "Sum of 900s, over 0, 1 of 1, no data is fine"),
		"PushMissed":      fmt.Sprintf(ours, "joiner_push_missed_total", "Sum of 300s, over 0, 3 of 6, no data is fine"),
		"Price":           fmt.Sprintf(ours, "joiner_price_usd_per_hour", "Maximum of 300s, over 12.5, 2 of 2, no data is fine"),
		"Nodes":           fmt.Sprintf(ours, "karpenter_cluster_state_node_count", "Maximum of 300s, over 300, 2 of 2, no data is fine"),
	}
	for _, f := range []struct {
		id                             string
		nearly                         int // its time-out in milliseconds, less a twentieth; 0 for no such alarm
		errors, throttles, deadLetters bool
	}{
		{"Provision", 57000, true, false, false}, {"Lifecycle", 57000, true, false, false}, {"Disrupt", 57000, true, false, false}, {"Refresh", 114000, true, false, false},
		{"SpotInterruption", 57000, true, true, true}, {"ReservationInterruption", 57000, true, true, true}, {"Rebalance", 57000, true, true, true},
		{"ScheduledChange", 57000, true, true, true}, {"StateChange", 28500, true, true, true}, {"Setup", 0, false, false, true}, {"Wake", 1900, true, false, false},
	} {
		lambda := "AWS/Lambda %s{Name=FunctionName, Value=" + f.id + "} %s"
		if f.errors {
			out[f.id+"Errors"] = fmt.Sprintf(lambda, "Errors", "Sum of 300s, over 2, 1 of 1, no data is fine")
		}
		if f.nearly > 0 {
			out[f.id+"Duration"] = fmt.Sprintf(lambda, "Duration", fmt.Sprintf("Maximum of 300s, over %d, 2 of 3, no data is fine", f.nearly))
		}
		if f.throttles {
			out[f.id+"Throttles"] = fmt.Sprintf(lambda, "Throttles", "Sum of 300s, over 0, 1 of 1, no data is fine")
		}
		if f.deadLetters {
			out[f.id+"DeadLetters"] = "AWS/SQS ApproximateNumberOfMessagesVisible{Name=QueueName, Value=${" + f.id + "DeadLetters.QueueName}} Maximum of 300s, over 0, 1 of 1, no data is fine"
		}
	}
	return out
}

// Each alarm watches its metric, with its dimensions and statistic, and rings where it should; there is no other.
func TestEveryAlarmWatchesItsMetric(t *testing.T) {
	got := alarmsOf(t, map[string]any{"priceAlarmUSD": 12.5, "nodesAlarm": 300})
	if diff := cmp.Diff(everyAlarm(), got); diff != "" {
		t.Errorf("alarms (-want +got):\n%s", diff)
	}
}

// A threshold that is a setting moves with that setting, and no other alarm does.
func TestThresholdsAreTheirSettings(t *testing.T) {
	set := map[string]any{"priceAlarmUSD": 99, "nodesAlarm": 7, "unschedulablePodsAlarm": "1h", "staleCatalogAlarm": "2h"}
	got := alarmsOf(t, set)
	want := everyAlarm()
	for name, to := range map[string][2]string{"Price": {"over 12.5,", "over 99,"}, "Nodes": {"over 300,", "over 7,"}, "PodsUnplaced": {"over 900,", "over 3600,"}, "CatalogOld": {"over 21600,", "over 7200,"}} {
		want[name] = strings.Replace(want[name], to[0], to[1], 1)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("with %v (-want +got):\n%s", set, diff)
	}
	without := slices.Sorted(maps.Keys(alarmsOf(t, nil)))
	if slices.Contains(without, "Price") || slices.Contains(without, "Nodes") {
		t.Errorf("without settings there are %v", without)
	}
}
