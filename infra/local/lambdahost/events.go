package lambdahost

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"joiner/infra/local/lambdahost/assembly"
	"joiner/infra/local/lambdahost/pattern"
)

// rule is an EventBridge rule, or a schedule of EventBridge Scheduler, ready to match and to fire.
type rule struct {
	name      string
	logicalID string
	arn       string
	enabled   bool
	pattern   *pattern.Pattern                // nil: a schedule only
	next      func(after time.Time) time.Time // nil: a pattern only
	scheduler bool                            // EventBridge Scheduler: acts by a role, not by a permission
	event     func(h *Host) map[string]any    // what a schedule sends
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
	made.event = func(h *Host) map[string]any { return h.scheduledEvent("aws.events", r.ARN, map[string]any{}) }
	var err error
	if r.Pattern != nil {
		if made.pattern, err = pattern.Compile(r.Pattern); err != nil {
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
	made.event = func(h *Host) map[string]any { return h.scheduledEvent("aws.scheduler", s.ARN, "{}") }
	var err error
	if made.next, err = parseSchedule(s.Expression, s.Timezone); err != nil {
		return made, fmt.Errorf("schedule %s: %w", s.Name, err)
	}
	return made, nil
}

// Deliver gives an event to every enabled rule whose pattern it matches. The result has one entry for each target. The
// error says that the event is none.
func (h *Host) Deliver(event []byte) ([]Delivery, error) {
	var out []Delivery
	for _, r := range h.rules {
		if r.pattern == nil || !r.enabled {
			continue
		}
		fits, err := r.pattern.Match(event)
		if err != nil {
			return out, fmt.Errorf("deliver event: %w", err)
		}
		if fits {
			out = append(out, h.send(r, event)...)
		}
	}
	return out, nil
}

// Fire lets a schedule fire now, besides its times and even while paused. The rule is given by name, logical id or ARN.
func (h *Host) Fire(name string) ([]Delivery, error) {
	for _, r := range h.rules {
		if r.next == nil || (name != r.name && name != r.logicalID && name != r.arn) {
			continue
		}
		return h.fire(r)
	}
	return nil, fmt.Errorf("fire %s: no such schedule", name)
}

func (h *Host) fire(r *rule) ([]Delivery, error) {
	event, err := json.Marshal(r.event(h))
	if err != nil {
		return nil, fmt.Errorf("encode scheduled event: %w", err)
	}
	return h.send(r, event), nil
}

// Deployed delivers CloudFormation's event that the stacks have been made, for which rules may wait.
func (h *Host) Deployed() ([]Delivery, error) {
	var out []Delivery
	for _, id := range h.options.Assembly.StackIDs() {
		envelope := h.scheduledEvent("aws.cloudformation", id, map[string]any{
			"stack-id": id, "client-request-token": "",
			"status-details": map[string]any{"status": "CREATE_COMPLETE", "status-reason": ""},
		})
		envelope["detail-type"] = "CloudFormation Stack Status Change"
		event, err := json.Marshal(envelope)
		if err != nil {
			return out, fmt.Errorf("encode deployment event: %w", err)
		}
		delivered, err := h.Deliver(event)
		out = append(out, delivered...)
		if err != nil {
			return out, err
		}
	}
	return out, nil
}

// scheduledEvent is the envelope of a schedule's event. Its time is the real one, however short a minute is here.
func (h *Host) scheduledEvent(source, arn string, detail any) map[string]any {
	place := h.options.Assembly.Place
	return map[string]any{
		"version": "0", "id": newID(), "detail-type": "Scheduled Event", "source": source,
		"account": place.Account, "time": time.Now().UTC().Format("2006-01-02T15:04:05Z"), "region": place.Region,
		"resources": []string{arn}, "detail": detail,
	}
}

// send delivers to all targets of a rule. What cannot be delivered goes to the target's dead-letter queue or is
// dropped; neither missing permissions nor missing targets are retried, as in EventBridge.
func (h *Host) send(r *rule, event []byte) []Delivery {
	var out []Delivery
	for _, t := range r.targets {
		d := Delivery{Rule: r.name, TargetARN: t.ARN}
		payload := event
		if t.Input != "" {
			payload = []byte(t.Input)
		}
		id, code, why := h.sendOne(r, t, payload)
		d.RequestID, d.Failed = id, why
		if why != "" {
			h.undeliverable(r, t, Undelivered{Rule: r.name, Target: t.ARN, Code: code, Why: why, Event: payload})
		}
		out = append(out, d)
	}
	return out
}

func (h *Host) sendOne(r *rule, t assembly.Target, payload []byte) (id, code, why string) {
	a := h.options.Assembly
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
		if err := h.sendToQueue(t.ARN, payload); err != nil {
			return "", "INTERNAL_ERROR", err.Error()
		}
		return "", "", ""
	}
	f, err := h.find(t.ARN)
	if err != nil {
		return "", "NO_RESOURCE", err.Error()
	}
	if !r.scheduler && !h.permitted(f, service, r.arn) {
		return "", "NO_PERMISSIONS", fmt.Sprintf("no AWS::Lambda::Permission lets %s invoke %s for %s", service, f.Name,
			r.arn)
	}
	id = newID()
	h.enqueue(f, id, payload)
	return id, "", ""
}

// sendToQueue puts a message where a mapping takes it from, or into a queue that nobody reads.
func (h *Host) sendToQueue(arn string, body []byte) error {
	for _, m := range h.mappings {
		if m.QueueARN == arn {
			m.put(h, body)
			return nil
		}
	}
	return h.options.SendToQueue(arn, body)
}

// permitted weighs the function's resource-based policy.
func (h *Host) permitted(f *function, service, sourceARN string) bool {
	a := h.options.Assembly
	for _, p := range a.Permissions {
		if p.FunctionARN == f.ARN && assembly.Like(p.Action, "lambda:InvokeFunction") && p.Principal == service &&
			(p.SourceARN == "" || assembly.Like(p.SourceARN, sourceARN)) &&
			(p.SourceAccount == "" || p.SourceAccount == a.Place.Account) {
			return true
		}
	}
	return false
}

// undeliverable puts an event into the target's dead-letter queue, if there is one that takes it.
func (h *Host) undeliverable(r *rule, t assembly.Target, u Undelivered) {
	if t.DeadLetterARN != "" {
		switch {
		case !r.scheduler && !h.options.Assembly.QueueAccepts(t.DeadLetterARN, "events.amazonaws.com", r.arn):
			u.Why += "; dropped: the dead-letter queue's policy does not let events.amazonaws.com send"
		default:
			if err := h.options.SendToQueue(t.DeadLetterARN, u.Event); err != nil {
				u.Why += "; dropped: " + err.Error()
			} else {
				u.QueueARN = t.DeadLetterARN
			}
		}
	}
	h.log.line(r.name, "", "not delivered to "+t.ARN+": "+u.Why)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ledger.undelivered = append(h.ledger.undelivered, u)
}
