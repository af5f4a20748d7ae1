package stack

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsevents"
	"github.com/aws/aws-cdk-go/awscdk/v2/awseventstargets"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/jsii-runtime-go"

	"joiner.sh/events"
)

// addRules lets the events of a function invoke it. Those that EventBridge cannot deliver go to the same dead-letter
// queue as what the function could not handle.
func (s *joiner) addRules(f madeFunction) error {
	target := f.ruleTarget()
	for _, kind := range f.rules {
		pattern, err := s.readPattern(kind)
		if err != nil {
			return err
		}
		rule := awsevents.NewRule(s.Stack, jsii.String(f.id+"On"+ruleID(kind)), &awsevents.RuleProps{
			Description:  jsii.String("Sends " + string(kind) + " events to " + s.functionName(f.name)),
			EventPattern: pattern,
			Targets:      &[]awsevents.IRuleTarget{target},
		})
		s.rules = append(s.rules, resourceOf(rule))
		if kind != events.KindDeployed { // which the next tick makes good
			f.eventRules = append(f.eventRules, rule)
		}
	}
	if f.queue != nil {
		f.keepSendersOut()
	}
	s.made[f.name] = f
	return nil
}

// keepSendersOut lets the function's own rules send to its queue and nobody else: of an instance whose end is told
// there the function lets go without asking EC2.
func (f madeFunction) keepSendersOut() {
	var rules []any
	for _, r := range f.eventRules {
		rules = append(rules, *r.RuleArn())
	}
	f.queue.AddToResourcePolicy(awsiam.NewPolicyStatement(&awsiam.PolicyStatementProps{
		Sid: jsii.String("OnlyRulesSend"), Effect: awsiam.Effect_DENY,
		Principals: &[]awsiam.IPrincipal{awsiam.NewAnyPrincipal()}, Actions: jsii.Strings("sqs:SendMessage"),
		Resources:  &[]*string{f.queue.QueueArn()},
		Conditions: &map[string]any{"ArnNotEquals": map[string]any{"aws:SourceArn": rules}},
	}))
}

// ruleTarget returns where rules send the events of the function.
func (f madeFunction) ruleTarget() awsevents.IRuleTarget {
	if f.queue != nil {
		return awseventstargets.NewSqsQueue(f.queue, &awseventstargets.SqsQueueProps{DeadLetterQueue: f.deadLetters,
			MaxEventAge: awscdk.Duration_Hours(jsii.Number(queueKeepsHours)), RetryAttempts: jsii.Number(deliveries)})
	}
	props := &awseventstargets.LambdaFunctionProps{
		MaxEventAge:   awscdk.Duration_Seconds(&f.maxAgeSec),
		RetryAttempts: jsii.Number(deliveries),
	}
	if f.deadLetters != nil {
		props.DeadLetterQueue = f.deadLetters
	}
	return awseventstargets.NewLambdaFunction(f.entrance, props)
}

// deliveries is the number of times that EventBridge tries again to deliver an event, within its age.
const deliveries = 10

// readPattern reads the pattern of a kind of event. Of the stacks of the account, only our own one concerns us.
func (s *joiner) readPattern(kind events.Kind) (*awsevents.EventPattern, error) {
	raw, err := kind.Pattern()
	if err != nil {
		return nil, err
	}
	var p struct {
		Source     []string       `json:"source"`
		DetailType []string       `json:"detail-type"`
		Detail     map[string]any `json:"detail"`
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&p); err != nil {
		return nil, fmt.Errorf("decode pattern of event %s: %w", kind, err)
	}
	out := &awsevents.EventPattern{Source: jsii.Strings(p.Source...), DetailType: jsii.Strings(p.DetailType...)}
	if kind == events.KindDeployed {
		p.Detail["stack-id"] = []string{*s.StackId()}
	}
	if p.Detail != nil {
		out.Detail = &p.Detail
	}
	return out, nil
}

func ruleID(kind events.Kind) string {
	id, ok := map[events.Kind]string{
		events.KindDeployed: "Deployed", events.KindRebalance: "Rebalance",
		events.KindReservationInterruption: "ReservationInterruption",
		events.KindScheduledChange:         "ScheduledChange", events.KindSpotInterruption: "SpotInterruption",
		events.KindStateChange: "StateChange",
	}[kind]
	if !ok {
		panic("no rule is made for events of kind " + string(kind))
	}
	return id
}
