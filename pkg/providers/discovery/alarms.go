package discovery

import (
	"context"
	"fmt"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"

	"joiner.sh/pkg/model/paging"
)

// alarmsPerCall is the largest number of names that CloudWatch takes at once.
const alarmsPerCall = 100

// Alarms reads CloudWatch alarms.
type Alarms struct{ CloudWatch *cloudwatch.Client }

// ReadAlarms returns the states of alarms by name: OK, ALARM or INSUFFICIENT_DATA. One that does not exist is left out.
// May be repeated. It fails when CloudWatch does not answer within seconds: no step is taken then, and the rest of the
// pass goes on.
func (a Alarms) ReadAlarms(ctx context.Context, names []string) (map[string]string, error) {
	ctx, cancel := context.WithTimeout(ctx, lookUpTimeout)
	defer cancel()
	out := map[string]string{}
	for part := range slices.Chunk(names, alarmsPerCall) {
		// Without the types CloudWatch leaves composite alarms out.
		all := cloudwatch.NewDescribeAlarmsPaginator(a.CloudWatch, &cloudwatch.DescribeAlarmsInput{AlarmNames: part,
			AlarmTypes: []types.AlarmType{types.AlarmTypeMetricAlarm, types.AlarmTypeCompositeAlarm}})
		for page, err := range paging.Bounded(ctx, len(part)+1, all,
			func(o *cloudwatch.Options) { o.Retryer = aws.NopRetryer{} }) {
			if err != nil {
				return nil, fmt.Errorf("describe alarms: %w", err)
			}
			for _, m := range page.MetricAlarms {
				out[aws.ToString(m.AlarmName)] = string(m.StateValue)
			}
			for _, m := range page.CompositeAlarms {
				out[aws.ToString(m.AlarmName)] = string(m.StateValue)
			}
		}
	}
	return out, nil
}
