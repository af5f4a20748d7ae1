package awsemulator

import (
	"maps"
	"slices"
	"strconv"

	"joiner.sh/infra/local/awsemulator/wire"
)

// cloudwatch is CloudWatch's alarms.
type cloudwatch struct {
	*account
	alarms map[string]Alarm // by name
}

// Alarm is a CloudWatch alarm.
type Alarm struct {
	Name      string
	State     string // OK, ALARM or INSUFFICIENT_DATA
	Composite bool   // of other alarms
}

// SetAlarm makes an alarm, or changes it.
func (c *cloudwatch) SetAlarm(a Alarm) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.alarms[a.Name] = a
}

func (c *account) alarmOperations() map[string]operation {
	return map[string]operation{"DescribeAlarms": op(c.cloudwatch.describeAlarms)}
}

type describeAlarmsInput struct {
	AlarmNames, AlarmTypes []string
	MaxRecords             int
	NextToken              string
}

// Limits of DescribeAlarms.
const (
	alarmsPerPage = 50
	mostAlarms    = 100
)

// describeAlarms lists the alarms of the names, or all. Composite ones are listed only where their type is asked for.
func (c *cloudwatch) describeAlarms(_ *call, in *describeAlarmsInput) (any, error) {
	if len(in.AlarmNames) > mostAlarms || in.MaxRecords > mostAlarms {
		return nil, wire.Fail(400, "ValidationError", "more than %d alarms are asked for", mostAlarms)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(in.AlarmTypes) == 0 {
		in.AlarmTypes = []string{"MetricAlarm"}
	}
	var found []Alarm
	for _, name := range slices.Sorted(maps.Keys(c.alarms)) {
		a := c.alarms[name]
		kind := map[bool]string{false: "MetricAlarm", true: "CompositeAlarm"}[a.Composite]
		if slices.Contains(in.AlarmTypes, kind) && (len(in.AlarmNames) == 0 || slices.Contains(in.AlarmNames, name)) {
			found = append(found, a)
		}
	}
	from, _ := strconv.Atoi(in.NextToken)
	size := in.MaxRecords
	if size == 0 {
		size = alarmsPerPage
	}
	page := found[min(from, len(found)):min(from+size, len(found))]
	out := map[string]any{}
	if from+size < len(found) {
		out["NextToken"] = strconv.Itoa(from + size)
	}
	metric, composite := []map[string]any{}, []map[string]any{}
	for _, a := range page {
		one := map[string]any{"AlarmName": a.Name, "StateValue": a.State,
			"AlarmArn": c.resourceARN("cloudwatch", "alarm:"+a.Name)}
		if a.Composite {
			composite = append(composite, one)
		} else {
			metric = append(metric, one)
		}
	}
	out["MetricAlarms"], out["CompositeAlarms"] = metric, composite
	return out, nil
}

// askAlarms asks for the right by the name that IAM has for it: requests are signed for the service monitoring.
func (c *cloudwatch) askAlarms(*call) ([]access, error) {
	return []access{{action: "cloudwatch:DescribeAlarms", resource: "*"}}, nil
}
