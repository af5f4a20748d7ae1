package notices

import (
	"context"
	"fmt"
	"sync"
	"time"

	"joiner.sh/events"
	"joiner.sh/pkg/controllers"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/lists"
	"joiner.sh/pkg/nodeclaim/interruption"
)

// Location is the account and region of the functions. Events from elsewhere are dropped without asking anybody; an
// empty field is not compared.
type Location struct{ Account, Region string }

// decodeNotices reads an event. why says that it is well-formed and nothing of ours; the error, that it makes no sense
// for this kind.
func (l Location) decodeNotices(kind events.Kind, data []byte) (list []interruption.Notice, why string, err error) {
	switch kind {
	case events.KindSpotInterruption:
		e, err := events.DecodeSpotInterruption(data)
		return oneNotice(e, interruption.Notice{Kind: interruption.Spot, Instance: e.Detail.InstanceID,
			Action: e.Detail.InstanceAction}), fromElsewhere(l, e), err
	case events.KindReservationInterruption:
		e, err := events.DecodeReservationInterruption(data)
		return oneNotice(e, interruption.Notice{Kind: interruption.Reservation, Instance: e.Detail.InstanceID,
			Action: e.Detail.InstanceAction,
			At:     e.Detail.Termination.Time()}), fromElsewhere(l, e), err
	case events.KindRebalance:
		e, err := events.DecodeRebalance(data)
		return oneNotice(e, interruption.Notice{Kind: interruption.Rebalance, Instance: e.Detail.InstanceID}),
			fromElsewhere(l, e), err
	case events.KindStateChange:
		e, err := events.DecodeStateChange(data)
		return oneNotice(e, interruption.Notice{Kind: noticeKinds()[e.Detail.State], Instance: e.Detail.InstanceID}),
			l.stateNotice(e), err
	case events.KindScheduledChange:
		e, err := events.DecodeScheduledChange(data)
		return l.scheduledNotices(e), l.unaffectedReason(e), err
	}
	return nil, "", fmt.Errorf("no notice is made of events of kind %s", kind)
}

func oneNotice[D any](e events.Event[D], n interruption.Notice) []interruption.Notice {
	n.Time = e.Time
	return []interruption.Notice{n}
}

// fromElsewhere says that the event is about another account or region.
func fromElsewhere[D any](l Location, e events.Event[D]) string {
	switch {
	case l.Account != "" && e.Account != "" && e.Account != l.Account:
		return "it is about account " + e.Account
	case l.Region != "" && e.Region != "" && e.Region != l.Region:
		return "it is about region " + e.Region
	}
	return ""
}

func noticeKinds() map[string]interruption.Kind {
	return map[string]interruption.Kind{"running": interruption.Running, "stopping": interruption.Stopping,
		"stopped":       interruption.Stopped,
		"shutting-down": interruption.Ending, "terminated": interruption.Ended}
}

func (l Location) stateNotice(e events.StateChange) string {
	if _, known := noticeKinds()[e.Detail.State]; !known {
		return "state " + e.Detail.State + " means nothing to us"
	}
	return fromElsewhere(l, e)
}

// scheduledNotices makes a notice for each instance, once.
func (l Location) scheduledNotices(e events.ScheduledChange) (out []interruption.Notice) {
	seen := map[string]bool{}
	for _, id := range e.Detail.AffectedInstances() {
		if !seen[id] {
			seen[id] = true
			out = append(out, interruption.Notice{Kind: interruption.Scheduled, Instance: id, Time: e.Time,
				At: e.Detail.StartTime.Time()})
		}
	}
	return out
}

// unaffectedReason says why a scheduled change concerns nobody. A copy may be delivered to another region than the one
// that is affected, and one with us as the affected region counts wherever it was delivered first.
func (l Location) unaffectedReason(e events.ScheduledChange) string {
	if e.Detail.EventRegion != "" {
		e.Region = e.Detail.EventRegion
	}
	if why := fromElsewhere(l, e); why != "" {
		return why
	}
	switch {
	case e.Detail.StatusCode == "closed":
		return "it is over, or was called off"
	case len(e.Detail.AffectedInstances()) == 0:
		return "it is about no instance"
	}
	return ""
}

// ForeignInstances remembers instances that are not ours, so that the next notice about one costs nothing. It may be
// used by several goroutines; a nil one remembers nothing.
type ForeignInstances struct {
	mu  sync.Mutex
	ids map[string]time.Time // until when
}

// Limits of what is remembered. Instance ids are never used again.
const (
	foreignFor = time.Hour
	maxForeign = 10_000
)

func (f *ForeignInstances) rememberInstance(id string, now time.Time) {
	if f == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.ids == nil || len(f.ids) >= maxForeign {
		f.ids = map[string]time.Time{}
	}
	f.ids[id] = now.Add(foreignFor)
}

// withoutForeign are the notices about instances that may be ours.
func (f *ForeignInstances) withoutForeign(notices []interruption.Notice, now time.Time) []interruption.Notice {
	if f == nil {
		return notices
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return lists.Where(notices, func(n interruption.Notice) bool { return !now.Before(f.ids[n.Instance]) })
}

// readNode reads the claim's node; it has no name if there is none. A node of that name may be another instance's by
// now: names are made of addresses, and those are used again.
func (c *Controller) readNode(ctx context.Context, o interruption.Response) (cluster.Node, error) {
	if o.Claim.NodeName == "" || !o.DeleteClaim && len(o.Tell) == 0 && o.Pods == interruption.LeaveToDrain && !o.Drain {
		return cluster.Node{}, nil
	}
	n, err := c.Node.ReadNode(ctx, o.Claim.NodeName)
	if controllers.IsNotFound(err) || err == nil && n.ProviderID != o.Claim.ProviderID {
		return cluster.Node{}, nil
	}
	return n, err
}

// recordNotice writes the events on the claim and its node.
func (c *Controller) recordNotice(ctx context.Context, o interruption.Response, node cluster.Node) {
	about := []cluster.Event{{Kind: "NodeClaim", Name: o.Claim.Name, UID: o.Claim.UID}}
	if node.Name != "" {
		about = append(about, cluster.Event{Kind: "Node", Name: node.Name, UID: node.UID})
	}
	for _, e := range about {
		for _, t := range o.Tell {
			e.Warning, e.Reason, e.Message = t.Warning, t.Reason, t.Message
			c.RecordOrLog(ctx, e)
		}
	}
}
