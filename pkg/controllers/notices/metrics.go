package notices

import (
	"joiner.sh/pkg/model/metrics"
	"joiner.sh/pkg/nodeclaim/interruption"
)

// measureNotice counts a notice that was handled, and the claim that it deleted. What EC2 takes back soon is measured
// by how long that took since EC2 said so. A state is no notice: there is one for every instance that comes or goes.
func (c *Controller) measureNotice(n interruption.Notice, o interruption.Response) {
	if c.Metrics == nil {
		return
	}
	reason := string(n.Kind)
	r := metrics.Record{}
	switch n.Kind {
	case interruption.Running:
	case interruption.Stopping, interruption.Stopped:
		reason = string(interruption.Stopped)
	case interruption.Ending, interruption.Ended:
		reason = string(interruption.Ended)
	default:
		r.Values = append(r.Values, metrics.Total(metrics.Notices, 1))
	}
	if o.DeleteClaim {
		r.Values = append(r.Values, metrics.Total(metrics.ClaimsDisrupt, 1))
	}
	r.By = []metrics.Tag{{Key: "reason", Value: reason}}
	c.Metrics.Put(r)
	if n.Urgent() {
		c.Metrics.Put(metrics.Record{Values: []metrics.Value{metrics.Durations(metrics.NoticeHandled,
			max(0, c.Now().Sub(n.Time)))}})
	}
}
