package sim

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"joiner/pkg/model/cluster"
	"joiner/pkg/model/requirements"
)

// volumeDriver is the CSI driver of all volumes.
const volumeDriver = "ebs.csi.aws.com"

// forcedDetach is after which time Kubernetes detaches a volume from a node that is silent.
const forcedDetach = 6 * time.Minute

// disks are the persistent volumes of a world, and what the scheduler's volume binding, the attach-detach controller
// and the CSI driver do with them. They know pods and nodes by name. Chance about them comes from a stream of its own:
// what else a seed draws does not depend on it.
type disks struct {
	*eventLoop
	rng     *rand.Rand
	most    int64            // that a node attaches, 0 for a world without volumes
	zones   []string         // where there can be any
	byClaim map[string]*disk // by the name of its claim
	limits  map[string]int64 // by node, from the registration of its driver on
}

// disk is a persistent volume, or only its claim.
type disk struct {
	claim   string
	within  []string  // where it may come to be, none for anywhere
	making  bool      // it is being made, whoever uses it: its class binds at once
	zone    string    // where it is, empty until its first pod has a node
	settled time.Time // since when it is there
	node    string    // to which it is attached
	turns   int       // counts attachments and detachments, so that a late one is known as stale
}

func drawDisks(e *eventLoop, seed uint64, zones []string) *disks {
	d := &disks{eventLoop: e, rng: rand.New(rand.NewPCG(seed, 0x766f6c756d6573)), zones: zones,
		byClaim: map[string]*disk{}, limits: map[string]int64{}}
	if d.rng.IntN(2) == 0 {
		d.most = []int64{4, 8, 24}[d.rng.IntN(3)]
	}
	return d
}

func (d *disks) span(least, most time.Duration) time.Duration {
	return least + time.Duration(d.rng.Int64N(int64(most-least)+1))
}

// furnish makes some apps stateful and gives their pods volumes.
func (d *disks) furnish(a *app) {
	if d.most == 0 || a.daemon || d.rng.IntN(5) < 2 {
		return
	}
	a.stateful, a.bare, a.pattern.Owner = true, false, cluster.OwnerStatefulSet
	a.disks, a.diskAtOnce = 1+d.rng.IntN(5)/4, d.rng.IntN(5) == 0
	if d.rng.IntN(4) == 0 {
		zones := d.zones[:1+d.rng.IntN(len(d.zones))]
		// A zone in which a node may come counts for a spread, so pods whose volumes may be in some zones only would
		// wait for ever.
		if !slices.ContainsFunc(a.pattern.Spread, func(s cluster.Spread) bool {
			return s.Key == labelZone &&
				!s.Soft
		}) {
			a.diskZones = zones
		}
	}
	if z, ok := a.pattern.NodeSelector[labelZone]; ok {
		a.diskZones = []string{z}
	}
}

// claim makes the claims of a new pod that there are not, and returns the names of all. made is called when a volume is
// there for which the pod has to wait.
func (d *disks) claim(a *app, pod string, made func()) (names []string) {
	zone := ""
	for i := range a.disks {
		name := fmt.Sprintf("disk%d-%s", i, pod)
		names = append(names, name)
		if d.byClaim[name] != nil {
			continue
		}
		one := &disk{claim: name, within: a.diskZones}
		d.byClaim[name] = one
		if !a.diskAtOnce {
			continue
		}
		among := d.zones
		if len(a.diskZones) > 0 {
			among = a.diskZones
		}
		zone = cmp.Or(zone, among[d.rng.IntN(len(among))])
		one.making = true
		d.runAfter(d.span(time.Second, 15*time.Second), func() {
			one.making = false
			d.place(one, zone)
			made()
		})
	}
	return names
}

func (d *disks) place(one *disk, zone string) {
	one.zone, one.settled = zone, time.Now()
	d.addTrace("volume %s is in %s", one.claim, zone)
}

// refuse says why the scheduler keeps a pod with these volumes off a node, in whose zone and to which others are or
// will be attached.
func (d *disks) refuse(claims []string, node, zone string, others []string) string {
	if len(claims) == 0 {
		return ""
	}
	for _, name := range claims {
		switch one := d.byClaim[name]; {
		case one.making:
			return "volume " + name + " is being made"
		case one.zone != "" && one.zone != zone:
			return "volume " + name + " is in " + one.zone
		case one.zone == "" && len(one.within) > 0 && !slices.Contains(one.within, zone):
			return "volume " + name + " cannot be in " + zone
		}
	}
	most, known := d.limits[node]
	if !known {
		return ""
	}
	used := map[string]bool{}
	for _, name := range slices.Concat(claims, others, d.on(node)) {
		used[name] = true
	}
	if int64(len(used)) > most {
		return fmt.Sprintf("%d volumes, it attaches %d", len(used), most)
	}
	return ""
}

// on are the claims of the volumes that are attached to the node, sorted.
func (d *disks) on(node string) (out []string) {
	for name, one := range d.byClaim {
		if one.node == node {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

// mount has the volumes of a pod bound that has a node now, and attached to it, and then goes on. Whatever is attached
// elsewhere must be detached there first. It gives up once the pod does not want them any more.
func (d *disks) mount(claims []string, node, zone string, wanted func() bool, then func()) {
	if len(claims) == 0 {
		then()
		return
	}
	one := d.byClaim[claims[0]]
	if one.zone == "" {
		d.place(one, zone)
	}
	next := func() {
		if wanted() {
			d.mount(claims[1:], node, zone, wanted, then)
		}
	}
	switch one.node {
	case node:
		one.turns++ // nobody detaches it now
		next()
	case "":
		one.turns++
		one.node = node
		d.runAfter(d.span(time.Second, 6*time.Second), next)
	default:
		d.runAfter(d.span(time.Second, 3*time.Second), func() {
			if wanted() {
				d.mount(claims, node, zone, wanted, then)
			}
		})
	}
}

// release has the volumes of a pod detached from its node, which is gone. A node that is silent tells nobody that they
// are free.
func (d *disks) release(claims []string, node string, silent bool) {
	for _, name := range claims {
		if one := d.byClaim[name]; one.node == node {
			after := d.span(time.Second, 8*time.Second)
			if silent {
				after = forcedDetach
			}
			d.detach(one, after)
		}
	}
}

func (d *disks) detach(one *disk, after time.Duration) {
	turn := one.turns
	d.runAfter(after, func() {
		if one.turns == turn {
			one.turns++
			one.node = ""
		}
	})
}

// join has the driver of a new node register, and say how many volumes that attaches.
func (d *disks) join(node string) {
	if d.most > 0 {
		d.runAfter(d.span(5*time.Second, 40*time.Second), func() { d.limits[node] = d.most })
	}
}

// leave detaches all from a node whose object is gone.
func (d *disks) leave(node string) {
	delete(d.limits, node)
	for _, name := range d.on(node) {
		d.detach(d.byClaim[name], d.span(time.Second, 6*time.Second))
	}
}

// attachments are the volumes attached to the nodes, as the API server lists them.
func (d *disks) attachments(nodes []string) (out []cluster.Attachment) {
	for _, node := range slices.Sorted(slices.Values(nodes)) {
		for _, name := range d.on(node) {
			out = append(out, cluster.Attachment{Node: node, Volume: "pv-" + name, Claim: namespace + "/" + name})
		}
	}
	return out
}

// describe is the pod with what its volumes allow, as claims, volumes and classes say it.
func (d *disks) describe(p cluster.Pod, claims []string) cluster.Pod {
	for _, name := range claims {
		one := d.byClaim[name]
		if one == nil {
			continue
		}
		p.Volumes = append(slices.Clip(p.Volumes), cluster.Volume{Driver: volumeDriver, ID: namespace + "/" + name})
		zones := one.within
		if one.zone != "" {
			zones = []string{one.zone}
		}
		switch {
		case one.making && p.Provisionable():
			p.Unmodelled = append(slices.Clip(p.Unmodelled),
				"volume "+name+" is not bound though its class binds at once")
		case len(zones) > 0 && len(p.VolumeZones) == 0:
			p.VolumeZones = [][]requirements.Requirement{{requirements.Of(labelZone, zones...)}}
		}
	}
	p.UnreadClaims = nil
	return p
}

// describeNode is the node with the limits that its driver says.
func (d *disks) describeNode(n cluster.Node) cluster.Node {
	if most, known := d.limits[n.Name]; known {
		n.VolumeLimits = map[string]int64{volumeDriver: most}
	}
	return n
}

// zoneOf is where the volumes of a pod have been for so long that everybody knows it, empty for nowhere.
func (d *disks) zoneOf(claims []string, since time.Duration) string {
	for _, name := range claims {
		if one := d.byClaim[name]; one.zone != "" && time.Since(one.settled) > since {
			return one.zone
		}
	}
	return ""
}

// zonesOf are the zones in which the volumes of a pod are or may come to be, none for anywhere.
func (d *disks) zonesOf(claims []string) []string {
	for _, name := range claims {
		switch one := d.byClaim[name]; {
		case one.zone != "":
			return []string{one.zone}
		case len(one.within) > 0:
			return one.within
		}
	}
	return nil
}

// stuck are the volumes that are attached to nodes that there are not, at rest.
func (d *disks) stuck(nodes map[string]*node) (bad []string) {
	for _, name := range slices.Sorted(maps.Keys(d.byClaim)) {
		if one := d.byClaim[name]; one.node != "" && nodes[one.node] == nil {
			bad = append(bad, fmt.Sprintf("volume %s is attached to %s, which is gone", name, one.node))
		}
	}
	return bad
}
