package events_test

import (
	"fmt"

	"joiner.sh/events"
)

// A warning of EC2 names the instance that it takes back.
func ExampleDecodeSpotInterruption() {
	warning, err := events.DecodeSpotInterruption([]byte(`{
		"version": "0", "id": "1", "detail-type": "EC2 Spot Instance Interruption Warning", "source": "aws.ec2",
		"account": "111122223333", "time": "2026-09-14T17:42:08Z", "region": "us-west-2",
		"resources": ["arn:aws:ec2:us-west-2a:instance/i-0f3c9a7d51be2846c"],
		"detail": {"instance-id": "i-0f3c9a7d51be2846c", "instance-action": "terminate"}}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(warning.Detail.InstanceID, warning.Detail.InstanceAction, warning.Time.Format("15:04:05"))
	// Output: i-0f3c9a7d51be2846c terminate 17:42:08
}
