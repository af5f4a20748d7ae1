package awsemulator

import (
	"encoding/base64"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"

	"joiner.sh/infra/local/awsemulator/wire"
)

// instances is the part of EC2 that runs instances: their states, timers and health.
type instances struct {
	*account
	tagged   []taggedThing
	machines map[string]*machine
	failing  failingLaunches
}

// Instance is what the account knows of an instance. State is EC2's word: pending, running, stopping, stopped,
// shutting-down, terminated.
type Instance struct {
	ID             string            `json:"id"`
	Type           string            `json:"type"`
	Zone           string            `json:"zone"`
	ZoneID         string            `json:"zoneId"`
	SubnetID       string            `json:"subnetId"`
	ImageID        string            `json:"imageId"`
	Arch           string            `json:"arch"`         // x86_64 or arm64
	CapacityType   string            `json:"capacityType"` // spot or on-demand
	State          string            `json:"state"`
	StateReason    string            `json:"stateReason,omitempty"`
	PrivateIP      string            `json:"privateIp"`
	PrivateDNSName string            `json:"privateDnsName"`
	PublicIP       string            `json:"publicIp,omitempty"` // none while it is stopped
	Profile        string            `json:"profile,omitempty"`  // instance profile name
	SecurityGroups []string          `json:"securityGroups"`
	UserData       string            `json:"userData,omitempty"` // decoded
	Tags           map[string]string `json:"tags"`
	SpotRequestID  string            `json:"spotRequestId,omitempty"`
	FleetID        string            `json:"fleetId,omitempty"`
	TemplateName   string            `json:"launchTemplate,omitempty"`
	ClientToken    string            `json:"clientToken,omitempty"`
	Group          string            `json:"placementGroup,omitempty"`
	Partition      int               `json:"partition,omitempty"`   // of the group
	Reservation    string            `json:"reservation,omitempty"` // capacity reservation that it is in
	PriceUSD       float64           `json:"priceUSD"`              // an hour, at launch
	Launched       time.Time         `json:"launched"`
	Ended          time.Time         `json:"ended,omitzero"`
}

// machine is an instance with what only the account needs.
type machine struct {
	Instance
	order    int // of launch
	template templateData
	addr     netip.Addr
	timers   []*time.Timer
	noticed  bool // has had its interruption warning
	health   health

	protected protection
}

// health is what DescribeInstanceStatus tells beyond the state.
type health struct {
	instance, system time.Time // impaired since; zero: ok
	events           []statusEvent
}

type statusEvent struct {
	id, code, about string
	notBefore       time.Time
}

func (m *machine) stopTimers() {
	for _, t := range m.timers {
		t.Stop()
	}
	m.timers = nil
}

// isLiving says whether the instance takes up capacity.
func (m *machine) isLiving() bool { return m.State != "terminated" }

// copyInstance is the instance without anything that can change under the reader.
func (m *machine) copyInstance() Instance {
	i := m.Instance
	i.Tags = maps.Clone(m.Tags)
	i.SecurityGroups = append([]string{}, m.SecurityGroups...)
	return i
}

// addInstance adds an instance to the account in state pending. The account is locked.
func (c *instances) addInstance(p pool, in launchRequest) *machine {
	subnet := c.networks.vpc.findSubnet(p.subnet)
	addr := subnet.takeAddress()
	c.sequence++
	text, _ := base64.StdEncoding.DecodeString(p.data.UserData) // checked when the template was made
	m := &machine{
		order: c.sequence, addr: addr, template: p.data,
		Instance: Instance{
			ID: newID("i"), Type: p.kind, Zone: subnet.Zone, ZoneID: subnet.ZoneID, SubnetID: subnet.ID,
			ImageID: p.image, Arch: p.arch, CapacityType: in.capacityType, State: "pending",
			PrivateIP: addr.String(), PrivateDNSName: privateName(addr, c.opt.Region),
			Profile: p.profile, SecurityGroups: p.groups, UserData: string(text),
			Tags: maps.Clone(p.tags), FleetID: in.fleet, TemplateName: p.templateName, ClientToken: in.token,
			PriceUSD: p.price, Launched: time.Now(),
		},
	}
	if in.capacityType == spot {
		m.SpotRequestID = "sir-" + hash16(m.ID)[:8]
	}
	m.PublicIP = c.networks.vpc.publicAddress(m)
	m.Group, m.Partition = p.group.ID, p.choosePartition(c.sequence)
	if m.Reservation = p.reservation; m.Reservation == "" && in.capacityType == onDemand {
		m.Reservation = c.capacity.openReservation(p)
	}
	c.machines[m.ID] = m
	c.notifyState(m)
	if reason := c.failing.takeReason(p.kind); reason != "" {
		c.runAfter(m, c.opt.PendingFor, func() { c.endInstance(m, reason) })
		return m
	}
	c.runAfter(m, c.opt.PendingFor, func() {
		if m.State == "pending" {
			m.State = "running"
			c.notifyState(m)
		}
	})
	return m
}

// runAfter runs f with the account locked once d has passed, unless the account is closed by then. The account is
// locked.
func (c *instances) runAfter(m *machine, d time.Duration, f func()) {
	if c.closed {
		return
	}
	m.timers = append(m.timers, time.AfterFunc(d, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if !c.closed {
			f()
		}
	}))
}

// notifyState tells the callbacks about a new state. The account is locked.
func (c *instances) notifyState(m *machine) {
	c.emitEvent("EC2 Instance State-change Notification",
		"arn:aws:ec2:"+c.opt.Region+":"+c.opt.Account+":instance/"+m.ID,
		map[string]string{"instance-id": m.ID, "state": m.State})
	c.news.postInstance(m.copyInstance())
}

// endInstance shuts an instance down, for a reason in EC2's words. The account is locked.
func (c *instances) endInstance(m *machine, reason string) {
	if m.State == "shutting-down" || m.State == "terminated" {
		return
	}
	m.stopTimers()
	m.State, m.StateReason = "shutting-down", reason
	c.notifyState(m)
	c.runAfter(m, c.opt.ShutdownFor, func() {
		m.State, m.Ended = "terminated", time.Now()
		delete(c.networks.vpc.findSubnet(m.SubnetID).used, m.addr)
		c.notifyState(m)
		c.runAfter(m, c.opt.TerminatedFor, func() { delete(c.machines, m.ID) })
	})
}

// CopyInstance adds an instance that runs and is as the one of the id, tags and all, without a word to anybody: it
// counts as one that has been there for long, and says that it was launched an hour before the other.
func CopyInstance(c *Cloud, id string) (Instance, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	of, err := c.machineByID(id)
	if err != nil {
		return Instance{}, err
	}
	c.sequence++
	subnet := c.vpc.findSubnet(of.SubnetID)
	if subnet.freeAddresses() == 0 {
		return Instance{}, wire.Fail(400, "InsufficientFreeAddressesInSubnet", "%s is full", subnet.ID)
	}
	m := &machine{Instance: of.copyInstance(), order: c.sequence, template: of.template, addr: subnet.takeAddress()}
	m.ID, m.State, m.Launched = newID("i"), "running", m.Launched.Add(-time.Hour)
	m.PrivateIP, m.PrivateDNSName = m.addr.String(), privateName(m.addr, c.opt.Region)
	m.PublicIP = c.vpc.publicAddress(m)
	if m.SpotRequestID != "" {
		m.SpotRequestID = "sir-" + hash16(m.ID)[:8]
	}
	c.machines[m.ID] = m
	return m.copyInstance(), nil
}

// privateName is the name that EC2 gives an address.
func privateName(a netip.Addr, region string) string {
	return "ip-" + strings.ReplaceAll(a.String(), ".", "-") + "." + region + ".compute.internal"
}

// machineByID finds an instance. The account is locked.
func (c *instances) machineByID(id string) (*machine, error) {
	if m := c.machines[id]; m != nil {
		return m, nil
	}
	if !strings.HasPrefix(id, "i-") {
		return nil, wire.Fail(400, "InvalidInstanceID.Malformed", "Invalid id: \"%s\"", id)
	}
	return nil, wire.Fail(400, "InvalidInstanceID.NotFound", "The instance ID '%s' does not exist", id)
}

// DescribedInstances returns all instances that are still described, in the order of their launch.
func (c *instances) DescribedInstances() []Instance {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []Instance
	for _, m := range c.inOrder() {
		out = append(out, m.copyInstance())
	}
	return out
}

// InstanceIDs are the ids of all instances that are still described.
func (c *instances) InstanceIDs() map[string]bool {
	out := map[string]bool{}
	for _, i := range c.DescribedInstances() {
		out[i.ID] = true
	}
	return out
}

// LaunchTimes are the times, earliest first, at which CreateFleet was accepted for the instances that are not among the
// known.
func (c *instances) LaunchTimes(known map[string]bool) (out []time.Time) {
	for _, i := range c.DescribedInstances() {
		if !known[i.ID] {
			out = append(out, i.Launched)
		}
	}
	slices.SortFunc(out, time.Time.Compare)
	return out
}

// InterruptSpot sends a spot instance its warning and reclaims it after the notice. With rebalance, a rebalance
// recommendation comes first. A second warning for the same instance does nothing.
func (c *instances) InterruptSpot(id string, rebalance bool) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	m, err := c.spotMachine(id)
	if err != nil || m.noticed {
		return err
	}
	if rebalance {
		c.recommendRebalance(m)
	}
	m.noticed = true
	c.emitEvent("EC2 Spot Instance Interruption Warning", "arn:aws:ec2:"+m.Zone+":instance/"+m.ID,
		map[string]string{"instance-id": m.ID, "instance-action": "terminate"})
	c.runAfter(m, c.opt.SpotNotice, func() { c.endInstance(m, "Server.SpotInstanceTermination") })
	return nil
}

// RecommendRebalance sends the rebalance recommendation for a spot instance; nothing else happens to it.
func (c *instances) RecommendRebalance(id string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	m, err := c.spotMachine(id)
	if err == nil {
		c.recommendRebalance(m)
	}
	return err
}

func (c *instances) recommendRebalance(m *machine) {
	c.emitEvent("EC2 Instance Rebalance Recommendation", "arn:aws:ec2:"+m.Zone+":instance/"+m.ID,
		map[string]string{"instance-id": m.ID})
}

// spotMachine finds a spot instance that lives. The account is locked.
func (c *instances) spotMachine(id string) (*machine, error) {
	m, err := c.machineByID(id)
	if err != nil {
		return nil, err
	}
	if m.CapacityType != spot {
		return nil, wire.Fail(400, "InvalidInstanceID", "the instance %s is not a spot instance", id)
	}
	if m.State != "pending" && m.State != "running" {
		return nil, wire.Fail(400, "IncorrectInstanceState", "the instance %s is %s", id, m.State)
	}
	return m, nil
}

// FailLaunches has EC2 take launches of an instance type, * standing for any, and end the instances before they run,
// for a reason in its words such as Client.InternalError, which is what comes of a KMS key that nobody may use. It
// does so for the next n of them, 0 for all; with an empty reason no more.
func (c *instances) FailLaunches(instanceType, reason string, n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.failing = failingLaunches{instanceType, reason, n}
}

// failingLaunches are those that end at once.
type failingLaunches struct {
	instanceType, reason string
	left                 int // 0: until told otherwise
}

// takeReason is the reason for which an instance ends at once; empty for none.
func (f *failingLaunches) takeReason(instanceType string) string {
	if f.reason == "" || !matchesPattern(f.instanceType, instanceType) {
		return ""
	}
	reason := f.reason
	if f.left == 1 {
		f.reason = ""
	}
	f.left = max(f.left-1, 0)
	return reason
}

// KillInstance terminates an instance behind the back of whoever launched it.
func (c *instances) KillInstance(id string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	m, err := c.machineByID(id)
	if err == nil {
		c.endInstance(m, "Server.InternalError")
	}
	return err
}

// ChangeTags changes the tags of an instance, as its owner or another program would; false if there is no such
// instance.
func (c *instances) ChangeTags(id string, change func(tags map[string]string)) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	m := c.machines[id]
	if m == nil {
		return false
	}
	change(m.Tags)
	return true
}

// ImpairInstance makes DescribeInstanceStatus call an instance impaired since a time: by its system check, or else by
// its own. A zero time heals it.
func (c *instances) ImpairInstance(id string, system bool, since time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	m, err := c.machineByID(id)
	if err != nil {
		return err
	}
	if system {
		m.health.system = since
	} else {
		m.health.instance = since
	}
	return nil
}

// ScheduleEvent puts an event such as instance-retirement on an instance's status.
func (c *instances) ScheduleEvent(id, code string, notBefore time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	m, err := c.machineByID(id)
	if err == nil {
		event := statusEvent{id: newID("instance-event"), code: code, about: "The instance is scheduled for " + code,
			notBefore: notBefore}
		m.health.events = append(m.health.events, event)
	}
	return err
}

// CloseEvents marks the events of an instance with that code as EC2 does for a week after the end of an event, as
// Completed or Canceled.
func (c *instances) CloseEvents(id, code, how string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	m, err := c.machineByID(id)
	if err != nil {
		return err
	}
	for i := range m.health.events {
		if e := &m.health.events[i]; e.code == code && !strings.HasPrefix(e.about, "[") {
			e.about = "[" + how + "] " + e.about
		}
	}
	return nil
}
