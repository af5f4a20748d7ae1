package sim

import (
	"errors"
	"strings"
	"time"

	"joiner.sh/pkg/testing/requestlimits"
)

// awsAttempts is the number of times that the SDK makes a call, and mostBackoff the longest it waits before it tries
// again.
const (
	awsAttempts = 4
	mostBackoff = 20 * time.Second
)

// awsCall holds what a call asks of AWS; the zero value for one that does not. Counts are of the values of parameters.
type awsCall struct {
	service, action string
	counts          map[string]int
}

func askedOfAWS(r *portRequest) awsCall {
	switch r.call {
	case "launch", "launch batch":
		return awsCall{service: "ec2", action: "CreateFleet"}
	case "terminate":
		return awsCall{"ec2", "TerminateInstances", map[string]int{"InstanceId": len(strings.Fields(r.key))}}
	case "start instance":
		return awsCall{"ec2", "StartInstances", map[string]int{"InstanceId": 1}}
	case "stop":
		return awsCall{"ec2", "StopInstances", map[string]int{"InstanceId": len(strings.Fields(r.key))}}
	case "list instances", "look for the instance":
		return awsCall{service: "ec2", action: "DescribeInstances"}
	case "describe instance status":
		return awsCall{service: "ec2", action: "DescribeInstanceStatus"}
	case "tag instance":
		return awsCall{service: "ec2", action: "CreateTags"}
	case "sweep launch templates":
		return awsCall{service: "ec2", action: "DescribeLaunchTemplates"}
	}
	if strings.HasPrefix(r.call, "wake ") {
		return awsCall{service: "lambda", action: "Invoke"}
	}
	return awsCall{}
}

// refuse reports whether AWS refuses the call for its rate, and has it made again as the SDK does, or answered with the
// error once it was made often enough.
func (n *network) refuse(r *portRequest, f callFault, back time.Duration) bool {
	c := askedOfAWS(r)
	if c.service == "" || n.account.Take(time.Now(), c.service, c.action, c.counts) {
		return false
	}
	n.refused[c.action]++
	if r.refused++; r.refused < awsAttempts {
		most := min(mostBackoff, time.Second<<r.refused)
		n.runAfter(n.drawDuration(0, most), func() { n.carryOut(r, f, back) })
		return true
	}
	n.addTrace("%s %s %s: RequestLimitExceeded", r.inv, r.call, r.key)
	r.inv.faulty = true
	n.runAfter(back, func() { n.answerRequest(r, portAnswer{err: errors.New("RequestLimitExceeded")}) })
	return true
}

// newAccount is an account with the limits that the local environment plays too.
func newAccount() *requestlimits.Account { return requestlimits.NewAccount(requestlimits.Default()) }
