package plancheck

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/plan"
)

// World is a snapshot with what each EC2NodeClass may launch, before any NodeOverlay.
type World struct {
	Snapshot cluster.Snapshot
	Sells    func(class string) []instancetypes.Type
}

// CheckPlan judges a plan for the world, looking at every shape that a new node may take. It returns what is wrong,
// sorted. Between pods it wants an order of arrival in which the scheduler would put each where the plan wants it. It
// does not judge preferences, nor whether a pod without a node could have had one.
func CheckPlan(w World, p plan.Plan) []string {
	t := &planCheck{World: w, plan: p, byKey: map[string]*cluster.Pod{}, sold: map[string][]instancetypes.Type{},
		brings: map[[2]string]bool{}}
	t.applyOverlays()
	t.buildPossibleNodes()
	t.placePods()
	for _, m := range t.possibleNodes {
		t.checkPossibleNode(m)
	}
	t.checkPodRules()
	t.checkPools()
	slices.Sort(t.faults)
	return slices.Compact(t.faults)
}

// planCheck is one judgement of a plan.
type planCheck struct {
	World
	plan          plan.Plan
	possibleNodes []*possibleNode
	byKey         map[string]*cluster.Pod
	sold          map[string][]instancetypes.Type // by pool, overlays applied
	brings        map[[2]string]bool              // by key and value: see bringsNode
	faults        []string
}

func (t *planCheck) addViolation(format string, args ...any) {
	t.faults = append(t.faults, fmt.Sprintf(format, args...))
}

// possibleNode is a node with its pods, as it may turn out: a new one in each type, zone and capacity type that its
// claim allows.
type possibleNode struct {
	name   string
	pool   string
	id     string // provider id
	taints []cluster.Taint
	shapes []possibleShape
	limits map[string]int64 // volumes that can be attached, by driver
	launch *plan.Launch     // of a new one
	closed bool             // it is going away and takes nobody
	own    map[string]bool  // pods that its claim was made for
	class  string           // that says which kubelet it will have
	node   *cluster.Node    // nil while there is none that is ready
	served bool             // all that its CSI drivers had to do is done

	there     []*cluster.Pod // stand on it and stay
	nominated []*cluster.Pod // the scheduler keeps room for them
	came      []*cluster.Pod // the plan puts them here
	leaving   []*cluster.Pod // stand on it and have to go
}

// possibleShape is one thing that a node may be.
type possibleShape struct {
	labels   map[string]string
	room     resourceAmounts
	capacity resourceAmounts
	limits   map[string]int64 // volumes that a new node is expected to attach, by driver
	price    float64
	offering instancetypes.Offering
}

// placePods gives every pod of the plan its node, and wants each pod that needs a place in exactly one.
func (t *planCheck) placePods() {
	byName := map[string]*possibleNode{}
	for _, m := range t.possibleNodes {
		byName[m.name] = m
	}
	times := map[string]int{}
	place := func(m *possibleNode, key string) {
		pod := t.byKey[key]
		if pod == nil {
			t.addViolation("%s: no pod %s waits for a place", m.name, key)
			return
		}
		times[key]++
		m.came = append(m.came, pod)
	}
	for i := range t.plan.Launches {
		m := t.newPossibleNode(i)
		for _, key := range t.plan.Launches[i].Pods {
			place(m, key)
		}
		if len(m.came) == 0 {
			t.addViolation("%s: it has no pods", m.name)
		}
		t.possibleNodes = append(t.possibleNodes, m)
	}
	for _, e := range t.plan.Existing {
		m := byName[e.Node]
		if m == nil || m.closed {
			t.addViolation("%s goes to %s, which does not take pods", e.Pod, e.Node)
			continue
		}
		place(m, e.Pod)
	}
	for _, u := range t.plan.Unplaced {
		if t.byKey[u.Pod] == nil {
			t.addViolation("%s is unplaced, but waits for no place", u.Pod)
		}
		if len(u.Why) == 0 || slices.Contains(u.Why, "") {
			t.addViolation("%s is unplaced without a reason", u.Pod)
		}
		times[u.Pod]++
	}
	for _, key := range slices.Sorted(maps.Keys(t.byKey)) {
		if times[key] != 1 {
			t.addViolation("%s has %d places in the plan, it wants one", key, times[key])
		}
		if pod := t.byKey[key]; len(pod.Unmodelled) > 0 &&
			!slices.ContainsFunc(t.plan.Unplaced, func(u plan.Unplaced) bool { return u.Pod == key }) {
			t.addViolation("%s is placed although %s", key, pod.Unmodelled[0])
		}
	}
}

// newPossibleNode is the node of launch i, and checks what the launch says of itself.
func (t *planCheck) newPossibleNode(i int) *possibleNode {
	l := &t.plan.Launches[i]
	m := &possibleNode{name: fmt.Sprintf("launch %d", i), pool: l.Pool, taints: l.Taints, launch: l}
	pool, ok := t.Snapshot.PoolOf(l.Pool)
	m.class = pool.ClassKey()
	if class, found := t.Snapshot.ClassOf(pool.Class); !ok || !pool.Ready || pool.Deleting || pool.Static || !found ||
		!class.Ready {
		t.addViolation("%s: pool %s may launch nothing", m.name, l.Pool)
		return m
	}
	if l.Class != pool.Class || !slices.Equal(l.Taints, pool.Taints) || !slices.Equal(l.Startup, pool.StartupTaints) {
		t.addViolation("%s: class or taints are not those of pool %s", m.name, pool.Name)
	}
	m.shapes = t.possibleShapes(pool, l.Labels, labelRequirements(l.Requirements.All()), false)
	if len(l.Choice.Paid) > 0 {
		t.paidFor(m)
	}
	for k, v := range pool.Labels { // violations are sorted later
		if l.Labels[k] != v {
			t.addViolation("%s: label %s of pool %s is missing", m.name, k, pool.Name)
		}
	}
	t.checkAccepted(m, pool)
	t.checkFlexibility(m, pool)
	return m
}

// checkFlexibility checks the types of a launch and its choice among them.
func (t *planCheck) checkFlexibility(m *possibleNode, pool cluster.Pool) {
	const most = 60 // that a launch may name
	l := m.launch
	cheapest := map[string]float64{}
	chosen := false
	for _, s := range m.shapes {
		name := s.labels[labelType]
		if p, ok := cheapest[name]; !ok || s.price < p {
			cheapest[name] = s.price
		}
		chosen = chosen || s.offering.OfferingKey == l.Choice.OfferingKey && s.price == l.Choice.Price &&
			reservationOf(s.offering) == reservationOf(l.Choice)
		for _, r := range labelRequirements(pool.Requirements.All()) {
			if !r.isMet(s.labels) {
				t.addViolation("%s as %s: pool %s wants %s", m.name, s, pool.Name, r)
			}
		}
	}
	if got := slices.Sorted(maps.Keys(cheapest)); !slices.Equal(got, slices.Sorted(slices.Values(l.Types))) {
		t.addViolation("%s: it names the types %v, its requirements leave %v", m.name, l.Types, got)
	}
	if len(l.Types) == 0 || len(l.Types) > most {
		t.addViolation("%s: it names %d types", m.name, len(l.Types))
		return
	}
	if !slices.IsSortedFunc(l.Types, func(a, b string) int { return compareUSD(cheapest[a], cheapest[b]) }) {
		t.addViolation("%s: its types are not sorted by price: %v", m.name, l.Types)
	}
	if !chosen {
		t.addViolation("%s: its choice %s at %g USD/h is not among what it may become", m.name, l.Choice.OfferingKey,
			l.Choice.Price)
	} else if l.Choice.Price > cheapest[l.Types[0]] {
		t.addViolation("%s: its choice costs %g USD/h, it may become one for %g", m.name, l.Choice.Price,
			cheapest[l.Types[0]])
	}
}

func compareUSD(a, b float64) int {
	switch {
	case a < b-1e-12:
		return -1
	case a > b+1e-12:
		return 1
	}
	return 0
}

func reservationOf(o instancetypes.Offering) string {
	if o.Reservation == nil {
		return ""
	}
	return o.Reservation.ID
}

func (s possibleShape) String() string {
	return strings.Join([]string{s.labels[labelCapacity], s.labels[labelType], s.labels[labelZone]}, " ")
}

// possibleShapes lists what a claim with these requirements may become. What is not to be had now counts when any is
// asked for, but never what the type has no zone for: nobody sells it there, or the class has no subnet.
func (t *planCheck) possibleShapes(pool cluster.Pool, labels map[string]string, rules []labelRequirement,
	anyOffering bool) []possibleShape {
	var out []possibleShape
	for _, typ := range t.sold[pool.Name] {
		zones := slices.DeleteFunc(labelRequirements(typ.Requirements.All()),
			func(r labelRequirement) bool { return r.Key != labelZone })
		for _, o := range typ.Offerings {
			nowhere := slices.ContainsFunc(zones, func(r labelRequirement) bool {
				return !r.isMet(map[string]string{labelZone: o.Zone})
			})
			// what a commitment covers is the same instance at another price
			if !o.Available && !anyOffering || nowhere || len(o.Paid) > 0 {
				continue
			}
			for _, l := range labelled(pool, typ, o, labels) {
				if !contradicts(pool, labels, l) &&
					!slices.ContainsFunc(rules, func(r labelRequirement) bool { return !r.isMet(l) }) {
					out = append(out, possibleShape{labels: l, room: amountsOf(typ.Allocatable),
						limits: t.attachedByNew(typ, t.sold[pool.Name]), capacity: amountsOf(typ.Capacity),
						price: o.Price, offering: o})
				}
			}
		}
	}
	return out
}

// contradicts reports whether what the type decides is not as the NodePool labels its nodes, where they have no own
// label for it.
func contradicts(pool cluster.Pool, own, labels map[string]string) bool {
	for k, v := range pool.Labels {
		if _, other := own[k]; !other && decidedByType(k) && labels[k] != v {
			return true
		}
	}
	return false
}

// labelled are the labels that a node of the offering may have: one for each value of those that the type leaves open.
func labelled(pool cluster.Pool, typ instancetypes.Type, o instancetypes.Offering,
	own map[string]string) []map[string]string {
	base := maps.Clone(pool.Labels)
	if base == nil {
		base = map[string]string{}
	}
	for _, r := range labelRequirements(pool.Requirements.All()) {
		if v, single := r.singleValue(); single && !decidedByType(r.Key) {
			base[r.Key] = v
		}
	}
	open := map[string][]string{}
	for _, r := range labelRequirements(typ.Requirements.All()) {
		if v, single := r.singleValue(); single {
			base[r.Key] = v
		} else if len(r.Values) > 1 {
			open[r.Key] = r.Values
		}
	}
	maps.Copy(base, map[string]string{labelPool: pool.Name, labelClass: pool.Class, "karpenter.sh/registered": "true",
		"karpenter.sh/initialized": "true"})
	maps.Copy(base, own)
	for _, k := range []string{labelReservation, labelReservationKind, labelInterruptible} {
		delete(base, k)
	}
	if r := o.Reservation; r != nil {
		base[labelReservation], base[labelReservationKind], base[labelInterruptible] = r.ID, r.Kind,
			fmt.Sprint(r.Interruptible)
	}
	base[labelZone], base[labelCapacity], base[labelEBSZone] = o.Zone, o.CapacityType, o.Zone
	if o.ZoneID != "" {
		base[labelZoneID] = o.ZoneID
	}
	out := []map[string]string{base}
	for _, k := range slices.Sorted(maps.Keys(open)) {
		if k == labelZone || k == labelZoneID || k == labelCapacity || base[k] != "" || len(out) > mostChoices {
			continue
		}
		var next []map[string]string
		for _, v := range open[k] {
			for _, l := range out {
				l = maps.Clone(l)
				l[k] = v
				next = append(next, l)
			}
		}
		out = next
	}
	for _, l := range out {
		addBetaLabels(l)
	}
	return out
}

// addBetaLabels adds the old names under which nodes carry some labels too.
func addBetaLabels(l map[string]string) {
	for old, now := range map[string]string{
		"beta.kubernetes.io/arch": labelArch, "beta.kubernetes.io/os": labelOS,
		"beta.kubernetes.io/instance-type":       labelType,
		"failure-domain.beta.kubernetes.io/zone": labelZone, "failure-domain.beta.kubernetes.io/region": labelRegion,
	} {
		if v, ok := l[now]; ok && l[old] == "" {
			l[old] = v
		}
	}
}
