package sim

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"joiner/pkg/model/cluster"
	"joiner/pkg/nodeclaim/interruption"
)

// Times of status checks.
const (
	checkLag   = time.Minute     // EC2 checks once a minute, and so shows what is new
	soundAfter = 2 * time.Minute // how long a check must have failed before anybody acts on it
)

// statusFailure is a status check that fails.
type statusFailure struct {
	since, until time.Time // until is zero while it goes on
	system       bool      // of the host
	showAt       time.Time
}

// ListStatuses tells of the running instances that fail a check or have a date, of whoever asks for instances of the
// cluster also those that it did not name.
func (p *Ports) ListStatuses(ctx context.Context, running []string) ([]cluster.Impairment, []cluster.ScheduledChange,
	error) {
	type answers struct {
		failing []cluster.Impairment
		changes []cluster.ScheduledChange
	}
	out, err := callPort(ctx, p, "describe instance status", "", func() (a answers, err error) {
		w, now := p.w, time.Now()
		for _, id := range slices.Sorted(maps.Keys(w.machines)) {
			m := w.machines[id]
			if m.State != "running" || !slices.Contains(running, id) && !w.drawChance(0.5) {
				continue
			}
			if i := m.ill; !i.since.IsZero() && i.until.IsZero() && !now.Before(i.showAt) {
				a.failing = append(a.failing, cluster.Impairment{Instance: id, System: i.system, Since: i.since})
			}
			if !m.change.IsZero() && !now.Before(m.changeShows) {
				a.changes = append(a.changes, cluster.ScheduledChange{Instance: id, Code: "instance-stop",
					At: m.change})
			}
			if w.isUrgent(m) {
				p.inv.told = append(p.inv.told, m)
			}
		}
		return a, nil
	})
	return out.failing, out.changes, err
}

// impairInstance has an instance fail a status check, for good or for a while. Some go on working all the same.
func (w *world) impairInstance(m *machine) {
	if m.Gone() || m.State != "running" || !m.ill.since.IsZero() {
		return
	}
	m.ill = statusFailure{since: w.toSecond(), system: w.drawChance(0.5),
		showAt: time.Now().Add(w.drawDuration(0, checkLag))}
	w.addTrace("instance %s fails a status check", m.ID)
	if w.drawChance(0.3) {
		w.runAfter(w.drawDuration(10*time.Second, 4*time.Minute), func() {
			m.ill.until = time.Now()
			w.addTrace("instance %s passes its status checks again", m.ID)
		})
		return
	}
	if w.drawChance(0.4) {
		w.addTrace("the kubelet of %s is dead", m.ID)
		w.silenceMachine(m)
	}
}

// isUnsound reports whether the instance fails a check, or did, for so long that it may be ended by force. Who decides
// so may have been told a while ago.
func (w *world) isUnsound(m *machine) bool {
	until := m.ill.until
	if until.IsZero() {
		until = time.Now()
	}
	return !m.ill.since.IsZero() && !until.Before(m.ill.since.Add(soundAfter-w.plan.skew-late))
}

// isUrgent reports whether what the status of the instance says must have its claim condemned or marked by whoever is
// told.
func (w *world) isUrgent(m *machine) bool {
	lasting := !m.ill.since.IsZero() && m.ill.until.IsZero() && !time.Now().Before(m.ill.showAt) &&
		!time.Now().Before(m.ill.since.Add(soundAfter+w.plan.skew+time.Second))
	dated := !m.change.IsZero() && !time.Now().Before(m.changeShows)
	return m.State == "running" && (lasting || dated)
}

// mostIgnored is how many invocations of lifecycle that nothing went wrong with may leave a status be: their time may
// be up, or somebody else may write the same claim.
const mostIgnored = 3

// checkTold looks at an invocation that came to its end without any fault and was told how instances are: it has done
// something about it.
func (w *world) checkTold(inv *invocation) {
	if inv.faulty || inv.err != nil {
		return
	}
	for _, m := range inv.told {
		c := w.byUID[m.owner]
		if c == nil || w.claims[c.Name] != c || c.ProviderID != m.ProviderID() || !c.Deleting.IsZero() ||
			interruption.LeaveOf(c.Claim).Cause == interruption.Scheduled || !w.isUrgent(m) {
			m.ignored = 0
			continue
		}
		if m.ignored++; m.ignored == mostIgnored {
			w.addViolation("status without effect",
				"%s and %d before it were told of the status of %s, and claim %s goes on", inv, mostIgnored-1, m.ID,
				c.Name)
		}
	}
}

// checkDeadline looks at the time by which lifecycle says that a drain ends by force: the grace period of the claim, or
// a reason why its instance ends sooner.
func (w *world) checkDeadline(by *invocation, c *claim, end string) {
	at, err := time.Parse(time.RFC3339, end)
	m := w.instanceOf(c)
	if by.fn.Name != "lifecycle" || err != nil || m == nil || m.Gone() || m.State != "running" || m.noticed ||
		w.isUnsound(m) || !m.calledOff.IsZero() {
		return // or it was a moment ago
	}
	from := c.Deleting
	if from.IsZero() {
		from = time.Now()
	}
	if c.TerminationGrace == nil || at.Before(from.Add(*c.TerminationGrace-2*w.plan.skew-seconds)) {
		w.addViolation("forced without need", "%s ends the drain of claim %s at %s, and nothing is amiss with %s", by,
			c.Name, end, m.ID)
	}
}

// callOff takes the date of an instance back, as EC2 does.
func (w *world) callOff(m *machine) {
	if m.change.IsZero() {
		return
	}
	m.change, m.noticed, m.calledOff = time.Time{}, false, time.Now()
	w.addTrace("EC2 leaves %s alone after all", m.ID)
}

// instanceOf is the instance that the claim names, or nil.
func (w *world) instanceOf(c *claim) *machine {
	return w.machines[c.ProviderID[strings.LastIndexByte(c.ProviderID, '/')+1:]]
}

// isDisturbed reports whether EC2 says that the claim's instance is or will be of no use.
func (w *world) isDisturbed(c *claim) bool {
	m := w.instanceOf(c)
	return m != nil && (!m.change.IsZero() || w.isUnsound(m))
}
