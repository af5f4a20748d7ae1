package sim

import (
	"errors"
	"strings"
	"time"

	"joiner.sh/pkg/disruption"
	"joiner.sh/pkg/model/instancetypes"
)

// remember keeps what later checks ask about: what invocations were told, and when and why claims were marked for
// deletion.
func (w *world) remember(step any) {
	switch s := step.(type) {
	case callAnswered:
		learnUnavailable(s)
	case claimCreated:
		s.claim.paid = s.launch.Choice.Paid
		w.book.addLaunch(w, s)
	case claimAnnotated:
		if mark, ok := s.set[disruption.AnnotationMark]; ok && mark == "" {
			s.claim.spared = time.Now()
		}
		w.book.addMark(w, s)
	case podMoved:
		w.trial.noteMove(s.pod, w.api.nodes[s.pod.NodeName])
	case podRan:
		w.stopped.noteRun(s.pod)
	case instanceRestarted:
		w.stopped.noteStart()
	case podStarted:
		w.trial.noteStart(s.image, s.pod.Trouble != "")
	case rolloutWritten:
		w.noteStatus()
	case instanceTerminated:
		w.noteUnusable(s.machine)
	case claimDeleted:
		rememberReason(w, s)
	case fleetOrdered:
		if ofAnother(w, s) && len(unavailableOrdered(w, s)) > 0 {
			s.by.recalled[orderedBy(s.order)] = true
		}
	}
}

// learnUnavailable remembers what an invocation was told is unavailable.
func learnUnavailable(s callAnswered) {
	learn := func(marks []instancetypes.UnavailableOffering) {
		for _, u := range marks {
			s.to.learned = append(s.to.learned, refusedOffering{u.OfferingKey, time.Now()})
		}
	}
	if f, ok := s.answer.value.(fleetAnswer); ok && s.answer.err == nil {
		learn(f.marks)
		if no, ok := errors.AsType[*instancetypes.NoCapacityError](f.err); ok {
			learn(no.Unavailable)
		}
	}
	if no, ok := errors.AsType[*instancetypes.NoCapacityError](s.answer.err); ok {
		learn(no.Unavailable)
	}
}

// refusedOffering is an offering that an invocation was told is unavailable.
type refusedOffering struct {
	offering instancetypes.OfferingKey
	at       time.Time
}

// rememberReason remembers whether a notice, the state of an instance or its age had the claim marked for deletion.
func rememberReason(w *world, s claimDeleted) {
	name := s.by.fn.Name
	if strings.HasSuffix(name, "interruption") {
		s.claim.noticed = time.Now()
	}
	if name == "statechange" || name == "scheduledchange" || name == "lifecycle" && isDisturbed(w, s.claim) {
		s.claim.dropped = time.Now()
	}
	if name == "lifecycle" {
		s.claim.expired = time.Now()
	}
}

// isDisturbed reports whether EC2 says that the claim's instance is or will be of no use, or has stopped it.
func isDisturbed(w *world, c *claim) bool {
	m := w.ec2.instanceOf(c)
	return m != nil && (!m.change.IsZero() || w.ec2.isUnsound(m) || m.State != "running" && m.State != "pending")
}
