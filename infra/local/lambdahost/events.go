package lambdahost

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"time"

	"joiner.sh/infra/local/lambdahost/assembly"
	"joiner.sh/infra/local/lambdahost/pattern"
)

// EventBus is EventBridge and its Scheduler: it sends what matches a rule, or falls due, to the functions of the host
// and to queues.
type EventBus struct {
	host  *Host
	rules []*rule

	mu          sync.Mutex
	paused      bool
	skipped     int // times of schedules that fell due while paused
	undelivered []Undelivered
}

// rule is an EventBridge rule, or a schedule of EventBridge Scheduler, ready to match and to fire.
type rule struct {
	name      string
	logicalID string
	arn       string
	enabled   bool
	pattern   *pattern.Pattern                 // nil: a schedule only
	next      func(after time.Time) time.Time  // nil: a pattern only
	scheduler bool                             // EventBridge Scheduler: acts by a role, not by a permission
	event     func(b *EventBus) map[string]any // what a schedule sends
	targets   []assembly.Target
}

// Delivery says what became of one target of a rule that matched or fired.
type Delivery struct {
	Rule      string
	TargetARN string
	RequestID string // of the invocation; empty if there is none
	Failed    string // why it was not delivered
}

func newRule(r assembly.Rule) (*rule, error) {
	made := &rule{name: r.Name, logicalID: r.LogicalID, arn: r.ARN, enabled: r.Enabled, targets: r.Targets}
	made.event = func(b *EventBus) map[string]any { return b.scheduledEvent("aws.events", r.ARN, map[string]any{}) }
	var err error
	if r.Pattern != nil {
		if made.pattern, err = pattern.CompilePattern(r.Pattern); err != nil {
			return made, fmt.Errorf("rule %s: %w", r.Name, err)
		}
	}
	if r.Schedule != "" {
		if made.next, err = parseSchedule(r.Schedule, ""); err != nil {
			return made, fmt.Errorf("rule %s: %w", r.Name, err)
		}
	}
	return made, nil
}

func newSchedule(s assembly.Schedule) (*rule, error) {
	made := &rule{
		name: s.Name, logicalID: s.LogicalID, arn: s.ARN, enabled: s.Enabled, scheduler: true,
		targets: []assembly.Target{s.Target},
	}
	made.event = func(b *EventBus) map[string]any { return b.scheduledEvent("aws.scheduler", s.ARN, "{}") }
	var err error
	if made.next, err = parseSchedule(s.Expression, s.Timezone); err != nil {
		return made, fmt.Errorf("schedule %s: %w", s.Name, err)
	}
	return made, nil
}

// DeliverEvent gives an event to every enabled rule whose pattern it matches. The result has one entry for each target.
// The error says that the event is none.
func (b *EventBus) DeliverEvent(event []byte) ([]Delivery, error) {
	var out []Delivery
	for _, r := range b.rules {
		if r.pattern == nil || !r.enabled {
			continue
		}
		fits, err := r.pattern.MatchEvent(event)
		if err != nil {
			return out, fmt.Errorf("deliver event: %w", err)
		}
		if fits {
			out = append(out, b.sendToTargets(r, event)...)
		}
	}
	return out, nil
}

// FireSchedule lets a schedule fire now, besides its times and even while paused. The rule is given by name, logical id
// or ARN.
func (b *EventBus) FireSchedule(name string) ([]Delivery, error) {
	for _, r := range b.rules {
		if r.next == nil || (name != r.name && name != r.logicalID && name != r.arn) {
			continue
		}
		return b.fireRule(r)
	}
	return nil, fmt.Errorf("fire %s: no such schedule", name)
}

func (b *EventBus) fireRule(r *rule) ([]Delivery, error) {
	event, err := json.Marshal(r.event(b))
	if err != nil {
		return nil, fmt.Errorf("encode scheduled event: %w", err)
	}
	return b.sendToTargets(r, event), nil
}

// PauseSchedules stops schedules from firing, as disabled rules do; what would have fired is not made up for.
func (b *EventBus) PauseSchedules() { b.setPaused(true) }

// ResumeSchedules lets schedules fire again.
func (b *EventBus) ResumeSchedules() { b.setPaused(false) }

func (b *EventBus) setPaused(paused bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.paused = paused
}

// DeliverDeployed delivers CloudFormation's event that the stacks have been made, for which rules may wait.
func (b *EventBus) DeliverDeployed() ([]Delivery, error) {
	var out []Delivery
	for _, id := range b.host.options.Assembly.StackIDs() {
		envelope := b.scheduledEvent("aws.cloudformation", id, map[string]any{
			"stack-id": id, "client-request-token": "",
			"status-details": map[string]any{"status": "CREATE_COMPLETE", "status-reason": ""},
		})
		envelope["detail-type"] = "CloudFormation Stack Status Change"
		event, err := json.Marshal(envelope)
		if err != nil {
			return out, fmt.Errorf("encode deployment event: %w", err)
		}
		delivered, err := b.DeliverEvent(event)
		out = append(out, delivered...)
		if err != nil {
			return out, err
		}
	}
	return out, nil
}

// scheduledEvent is the envelope of a schedule's event. Its time is the real one, however short a minute is here.
func (b *EventBus) scheduledEvent(source, arn string, detail any) map[string]any {
	place := b.host.options.Assembly.Place
	return map[string]any{
		"version": "0", "id": newID(), "detail-type": "Scheduled Event", "source": source,
		"account": place.Account, "time": time.Now().UTC().Format("2006-01-02T15:04:05Z"), "region": place.Region,
		"resources": []string{arn}, "detail": detail,
	}
}

// sendToTargets delivers to all targets of a rule. What cannot be delivered goes to the target's dead-letter queue or
// is dropped; neither missing permissions nor missing targets are retried, as in EventBridge.
func (b *EventBus) sendToTargets(r *rule, event []byte) []Delivery {
	var out []Delivery
	for _, t := range r.targets {
		d := Delivery{Rule: r.name, TargetARN: t.ARN}
		payload := event
		if t.Input != "" {
			payload = []byte(t.Input)
		}
		id, code, why := b.sendOne(r, t, payload)
		d.RequestID, d.Failed = id, why
		if why != "" {
			b.keepUndelivered(r, t, Undelivered{Rule: r.name, Target: t.ARN, Code: code, Why: why, Event: payload})
		}
		out = append(out, d)
	}
	return out
}

func (b *EventBus) sendOne(r *rule, t assembly.Target, payload []byte) (id, code, why string) {
	a := b.host.options.Assembly
	service := "events.amazonaws.com"
	if r.scheduler {
		service = "scheduler.amazonaws.com"
		action := "lambda:InvokeFunction"
		if strings.HasPrefix(t.ARN, "arn:aws:sqs:") {
			action = "sqs:SendMessage"
		}
		if !a.RoleTrusts(t.RoleARN, service) || !a.RoleMay(t.RoleARN, action, t.ARN) {
			return "", "NO_PERMISSIONS", fmt.Sprintf("role %q may not %s, or does not trust %s", t.RoleARN, action,
				service)
		}
	}
	if strings.HasPrefix(t.ARN, "arn:aws:sqs:") {
		if !r.scheduler && !a.QueueAccepts(t.ARN, service, r.arn) {
			return "", "NO_PERMISSIONS", "the queue's policy does not let " + service + " send"
		}
		if err := b.host.sendToQueue(t.ARN, payload); err != nil {
			return "", "INTERNAL_ERROR", err.Error()
		}
		return "", "", ""
	}
	f, err := b.host.findFunction(t.ARN)
	if err != nil {
		return "", "NO_RESOURCE", err.Error()
	}
	if !r.scheduler && !b.isPermitted(f, service, r.arn) {
		return "", "NO_PERMISSIONS", fmt.Sprintf("no AWS::Lambda::Permission lets %s invoke %s for %s", service, f.Name,
			r.arn)
	}
	id = newID()
	b.host.enqueueEvent(f, id, payload, lineage{}.withRun(f.Name))
	return id, "", ""
}

// isPermitted weighs the function's resource-based policy.
func (b *EventBus) isPermitted(f *function, service, sourceARN string) bool {
	a := b.host.options.Assembly
	for _, p := range a.Permissions {
		if p.FunctionARN == f.ARN && assembly.MatchesWildcards(p.Action, "lambda:InvokeFunction") &&
			p.Principal == service &&
			(p.SourceARN == "" || assembly.MatchesWildcards(p.SourceARN, sourceARN)) &&
			(p.SourceAccount == "" || p.SourceAccount == a.Place.Account) {
			return true
		}
	}
	return false
}

// keepUndelivered puts an event into the target's dead-letter queue, if there is one that takes it.
func (b *EventBus) keepUndelivered(r *rule, t assembly.Target, u Undelivered) {
	if t.DeadLetterARN != "" {
		switch {
		case !r.scheduler && !b.host.options.Assembly.QueueAccepts(t.DeadLetterARN, "events.amazonaws.com", r.arn):
			u.Why += "; dropped: the dead-letter queue's policy does not let events.amazonaws.com send"
		default:
			if err := b.host.options.SendToQueue(t.DeadLetterARN, u.Event); err != nil {
				u.Why += "; dropped: " + err.Error()
			} else {
				u.QueueARN = t.DeadLetterARN
			}
		}
	}
	b.host.log.writeLine(r.name, "", "not delivered to "+t.ARN+": "+u.Why)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.undelivered = append(b.undelivered, u)
}
