package sim

import (
	"maps"
	"slices"
	"time"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
)

// ec2 launches and ends instances.
type ec2 struct {
	*engine
	api      *apiServer
	catalog  *catalog
	kubelets *kubelets
	lambda   *lambda
	launched func(*machine) // is told of each instance

	machines map[string]*machine
	tokens   map[string]fleetAnswer
	scarce   map[instancetypes.OfferingKey]bool // unavailable just now
}

// machine is an EC2 instance.
type machine struct {
	cluster.Instance
	labels  map[string]string // that its user data gives the node
	taints  []cluster.Taint
	tagged  bool      // it has a tag Name
	showAt  time.Time // from then on it is listed
	states  []instanceState
	taken   bool      // EC2 takes it back in two minutes
	noticed bool      // EC2 has said that it ends or stops the instance
	dies    time.Time // when
	asked   bool      // we asked to end it
	endedBy string    // who ended it
	stopped time.Time // when that was
	foreign bool      // somebody else launched it
	node    *node     // the last node that it made
	// UID of the claim it was launched for; of a batch's, of the claim that was given it, empty before
	owner string
	pool  string    // of its claim
	began time.Time // when it was launched
	ended time.Time // when it was terminated

	ill         statusFailure // a status check that it fails
	change      time.Time     // when EC2 will stop it, unless that is called off; zero for not
	changeShows time.Time     // from when on its status says so
	calledOff   time.Time     // when that was called off
	ignored     int           // invocations in a row that were told of its status and did nothing

	boots     int       // starts after the first
	restarted time.Time // when the last of them was
}

// instanceState is a state of an instance from when on lists show it.
type instanceState struct {
	name   string
	showAt time.Time
	reason string
}

// instanceOf is the instance that the claim names, or nil.
func (e *ec2) instanceOf(c *claim) *machine {
	return e.machines[c.InstanceID()]
}

// enterState is a change of an instance's state, which EC2 tells in an event and lists show a little later.
func (e *ec2) enterState(m *machine, name string) {
	if m.Gone() && name != "terminated" || m.State == name || m.State != "pending" && name == "running" {
		return
	}
	e.changeState(m, name, m.StateReason)
	e.lambda.emitEvent(Event{Kind: EventState, Instance: m.ID, State: name})
}

// changeState has lists show a state a little later, with the reason that it has then.
func (e *ec2) changeState(m *machine, name, reason string) {
	m.State, m.StateReason = name, reason
	m.states = append(m.states, instanceState{name, time.Now().Add(e.drawDuration(0, e.plan.stateLag)), reason})
}

// endInstance ends an instance. Its node falls silent; the cloud controller deletes the object once the instance is
// gone.
func (e *ec2) endInstance(m *machine, by string) {
	if m.Gone() {
		return
	}
	m.endedBy, m.stopped = by, time.Now()
	e.addTrace("instance %s is ended by %s", m.ID, by)
	e.enterState(m, "shutting-down")
	e.kubelets.silenceMachine(m)
	e.runAfter(e.drawDuration(2*time.Second, 40*time.Second), func() {
		e.enterState(m, "terminated")
		m.ended = time.Now()
		e.runAfter(e.drawDuration(5*time.Second, 50*time.Second), func() { e.kubelets.forgetMachine(m) })
	})
}

// livingInstances lists the instances that run or will, without foreign ones.
func (e *ec2) livingInstances() []*machine {
	return selectInOrder(e.machines, func(m *machine) bool { return !m.Gone() && !m.foreign })
}

// changeSupply changes what EC2 has: now and then it has no spot at all, or nothing in a zone.
func (e *ec2) changeSupply() {
	e.scarce = map[instancetypes.OfferingKey]bool{}
	share := []float64{0, 0.2, 0.6, 1}[e.rng.IntN(4)]
	noSpot, zones := e.drawChance(0.15), e.catalog.zoneNames()
	dry := ""
	if e.drawChance(0.15) {
		dry = zones[e.rng.IntN(len(zones))]
	}
	for _, name := range slices.Sorted(maps.Keys(e.catalog.types)) {
		for _, o := range e.catalog.types[name].Offerings {
			offering := instancetypes.OfferingKey{CapacityType: o.CapacityType, Type: name, Zone: o.Zone}
			e.scarce[offering] = e.drawChance(share) || noSpot && o.CapacityType == instancetypes.Spot || o.Zone == dry
		}
	}
	e.addTrace("EC2 has changed what it sells: share %.1f unavailable, no spot %t, zone %q dry", share, noSpot, dry)
}

// assignInstance has the instance that the claim names belong to it, if that was launched for the claim's batch.
func (e *ec2) assignInstance(c *claim) {
	m := e.instanceOf(c)
	if b, _ := c.Batch(); m != nil && m.Batch != "" && m.Batch == b.ID && m.owner == "" {
		m.owner = c.UID
	}
}
