package sim

import (
	"slices"
	"time"

	"joiner.sh/pkg/model/instancetypes"
)

// storm lets users and EC2 do things at random.
type storm struct {
	*engine
	api       *apiServer
	ec2       *ec2
	lambda    *lambda
	users     *users
	workloads *workloads
}

// recommendRebalance is a rebalance recommendation, after which anything may happen.
func (s *storm) recommendRebalance(m *machine) {
	s.addTrace("EC2 recommends to leave %s", m.ID)
	s.lambda.emitEvent(Event{Kind: EventRebalance, Instance: m.ID})
	s.users.guardRecommended(m)
	if s.drawChance(0.2) {
		s.runAfter(s.drawDuration(time.Minute, 8*time.Minute), func() {
			if s.trouble {
				s.ec2.interruptInstance(m)
			}
		})
	}
}

// focusedAct does what invokes the function that the run is about. It is false if there is nothing of that kind to do.
func (s *storm) focusedAct() bool {
	living := s.ec2.livingInstances()
	if s.drawChance(0.4) { // those that are on their way out already
		going := slices.DeleteFunc(slices.Clone(living), func(m *machine) bool {
			c := s.api.byUID[m.owner]
			return c == nil || c.Deleting.IsZero()
		})
		if len(going) > 0 {
			living = going
		}
	}
	m := s.anyMachine(living)
	switch {
	case s.plan.drifts && s.drawChance(0.25):
		s.users.causeDrift()
	case s.plan.focus == "refresh":
		s.users.changeClasses()
	case m == nil:
		return false
	case s.plan.focus == "disrupt" && m.node != nil && s.drawChance(0.15):
		s.users.guardNode(m.node, s.drawDuration(time.Minute, 6*time.Minute))
	case s.plan.focus == "rebalance" || s.plan.drifts && s.drawChance(0.1):
		s.recommendRebalance(m)
	case s.plan.focus == "reservationinterruption":
		s.ec2.interruptInstance(m)
	case s.plan.focus == "disrupt" && s.workloads.anyApp() != nil:
		a := s.workloads.anyApp()
		s.workloads.setReplicas(a, max(0, a.replicas+int(s.drawInt(-4, 2))))
	case s.plan.focus == "scheduledchange":
		s.ec2.announceChange(m, s.drawDuration(time.Minute, 6*time.Minute))
	case s.plan.focus == "lifecycle":
		return s.impairOrAnnounce(m)
	case s.plan.focus == "statechange" && s.drawChance(0.5):
		s.ec2.stopInstance(m, "EC2", "")
	case s.plan.focus == "statechange":
		s.ec2.endInstance(m, "somebody")
	default:
		return false
	}
	return true
}

// impairOrAnnounce has the instance fail its status checks, or announces that it will go, or does neither.
func (s *storm) impairOrAnnounce(m *machine) bool {
	if s.drawChance(0.3) {
		s.ec2.impairInstance(m)
		return true
	}
	if s.drawChance(0.3) {
		s.ec2.announceChange(m, s.drawDuration(time.Minute, 6*time.Minute)+time.Duration(s.rng.IntN(2))*3*time.Hour)
		return true
	}
	return false
}

// runStorm lets users and EC2 do things at random until the time given. A long one is quiet until nodes are old enough
// to be left on a recommendation.
func (s *storm) runStorm(end time.Time) {
	for range s.drawInt(1, 3) {
		s.workloads.startApp(s.workloads.drawApp())
	}
	s.ec2.changeSupply()
	quiet := time.Now().Add(s.plan.storm - usualStorm)
	var next func()
	next = func() {
		if time.Now().After(end) {
			return
		}
		most, mishaps := 30*time.Second, 0.5
		switch still := time.Now().Before(quiet); {
		case still && s.plan.patient:
			most, mishaps = 90*time.Second, 0.15
		case still:
			most, mishaps = 5*time.Minute, 1
		}
		if s.drawChance(mishaps) || !s.focusedAct() {
			s.causeMishap()
		}
		s.runAfter(s.drawDuration(time.Second, most), next)
	}
	s.runAfter(s.drawDuration(time.Second, 60*time.Second), next)
}

// causeMishap is one thing that happens.
func (s *storm) causeMishap() {
	if s.drawChance(0.5) {
		s.users.usersAct()
	} else {
		s.awsActs()
	}
}

func (s *storm) awsActs() {
	m := s.anyMachine(s.ec2.livingInstances())
	what := s.rng.IntN(10)
	switch {
	case what == 0:
		s.ec2.changeSupply()
	case what == 1:
		s.lambda.emitEvent(Event{Kind: []string{EventSpot, EventReservation, EventRebalance,
			EventHealth}[s.rng.IntN(4)],
			Instance: "i-foreign"})
	case m == nil:
	case what == 2:
		s.recommendRebalance(m)
	case what == 3:
		s.ec2.announceChange(m, s.drawDuration(time.Minute, 6*time.Minute)+time.Duration(s.rng.IntN(2))*3*time.Hour)
	case what == 4 && s.drawChance(0.5):
		s.ec2.stopInstance(m, "EC2", "")
	case what == 5 && s.drawChance(0.5):
		s.ec2.endInstance(m, "somebody")
	case what == 6 && s.drawChance(0.5):
		s.ec2.impairInstance(m)
	case m.CapacityType == instancetypes.Spot || s.drawChance(0.4):
		s.ec2.interruptInstance(m)
	}
}

func (s *storm) anyMachine(list []*machine) *machine {
	if len(list) == 0 {
		return nil
	}
	return list[s.rng.IntN(len(list))]
}
