package stack

import (
	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsscheduler"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsschedulertargets"
	"github.com/aws/jsii-runtime-go"
)

// schedules are the ticks of the stack: a group of EventBridge Scheduler, and the role by which it invokes functions.
// An event bus has 300 rules, an account a million schedules in 500 groups.
type schedules struct {
	group awsscheduler.ScheduleGroup
	role  awsiam.Role
}

// tickAgeSec is the largest age of a tick at its delivery: the shortest that EventBridge Scheduler takes.
const tickAgeSec = 60

// awakeEvery is the time between two calls of a function that may fall asleep, in minutes. Lambda guide, "Giving Lambda
// functions access to resources in an Amazon VPC": the network of a function that is idle for long is taken away. The
// next invocation fails, and brings it back. That takes up to 90 of the 120 seconds that EC2 leaves a spot instance.
const awakeEvery = 24 * 60

// mayFallAsleep reports whether the function is in a VPC and may go without an event for weeks. A deployment that finds
// setup so would fail.
func (s *joiner) mayFallAsleep(f function) bool {
	return s.net.vpc != nil && (len(f.rules) > 0 || f.admin) && !f.ticks()
}

// newSchedules makes the group and the role. Nobody else's schedules can use the role, and it can invoke nothing but
// the functions that it wakes.
func newSchedules(s *joiner, functions []function) schedules {
	name := s.names.ScheduleGroup()
	group := awsscheduler.NewScheduleGroup(s.Stack, jsii.String("Schedules"), &awsscheduler.ScheduleGroupProps{
		ScheduleGroupName: &name, RemovalPolicy: awscdk.RemovalPolicy_DESTROY,
	})
	var ticking []string
	for _, f := range functions {
		if (f.ticks() || s.mayFallAsleep(f)) && !f.direct {
			ticking = append(ticking, f.name)
		}
	}
	wake := s.permissions().allowWake(ticking...)
	for _, f := range functions {
		if f.direct && s.mayFallAsleep(f) {
			wake.resources = append(wake.resources, s.arn("lambda", *s.Region(), *s.Account(),
				"function:"+s.functionName(f.name)))
		}
	}
	role := awsiam.NewRole(s.Stack, jsii.String("SchedulesRole"), &awsiam.RoleProps{
		Path: s.rolePath(),
		AssumedBy: awsiam.NewServicePrincipal(jsii.String("scheduler.amazonaws.com"), &awsiam.ServicePrincipalOpts{
			Conditions: &map[string]any{"StringEquals": map[string]any{"aws:SourceAccount": *s.Account(),
				"aws:SourceArn": s.arn("scheduler", *s.Region(), *s.Account(), "schedule-group/"+name)}},
		}),
		Description:    jsii.String("Joiner schedules in cluster " + s.cluster),
		InlinePolicies: &map[string]awsiam.PolicyDocument{"joiner": document([]statement{wake})},
	})
	return schedules{group, role}
}

// addSchedule has a function that ticks invoked every so many minutes, and one that may fall asleep once a day, which
// does nothing then. A tick that cannot be delivered is no lost work: the next one does the same, so that it is neither
// tried again nor kept. It returns the schedule of a function that ticks, else nil.
func (t schedules) addSchedule(s *joiner, f madeFunction) awscdk.CfnResource {
	every := f.everyMin
	switch {
	case s.mayFallAsleep(f.function):
		every = awakeEvery
	case !f.ticks():
		return nil
	}
	name, age := s.functionName(f.name), float64(tickAgeSec)
	made := awsscheduler.NewSchedule(s.Stack, jsii.String(f.id+"Schedule"), &awsscheduler.ScheduleProps{
		ScheduleName:  &name,
		Description:   jsii.String("Wakes " + name),
		ScheduleGroup: t.group,
		Schedule:      awsscheduler.ScheduleExpression_Rate(awscdk.Duration_Minutes(&every)),
		Target: awsschedulertargets.NewLambdaInvoke(f.entrance, &awsschedulertargets.ScheduleTargetBaseProps{
			Role:        t.role.WithoutPolicyUpdates(nil),
			MaxEventAge: awscdk.Duration_Seconds(&age), RetryAttempts: jsii.Number(0),
			Input: awsscheduler.ScheduleTargetInput_FromObject(map[string]string{
				"source": "aws.scheduler", "detail-type": "Scheduled Event"}),
		}),
	})
	// It names the group by a text, of which CloudFormation concludes nothing.
	resourceOf(made).AddResourceDependency(resourceOf(t.group), nil)
	s.rules = append(s.rules, resourceOf(made))
	if !f.ticks() {
		return nil
	}
	return resourceOf(made)
}
