package sim

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/requirements"
)

// volumeDriver is the CSI driver of all volumes.
const volumeDriver = "ebs.csi.aws.com"

// forcedDetach is after which time Kubernetes detaches a volume from a node that is silent.
const forcedDetach = 6 * time.Minute

// volumes are the persistent volumes of a world, and what the scheduler's volume binding, the attach-detach controller
// and the CSI driver do with them. They know pods and nodes by name. Chance about them comes from a stream of its own:
// what else a seed draws does not depend on it.
type volumes struct {
	*engine
	rng     *rand.Rand
	most    int64              // that a node attaches, 0 for a world without volumes
	zones   []string           // where there can be any
	byClaim map[string]*volume // by namespace and name of its claim
	limits  map[string]int64   // by node, from the registration of its driver on
	told    bool               // a node has said how many it attaches, and others are expected to attach no more
}

// volume is a persistent volume, or only its claim.
type volume struct {
	claim       string
	within      []string  // where it may come to be, none for anywhere
	making      bool      // it is being made, whoever uses it: its class binds at once
	zone        string    // where it is, empty until its first pod has a node
	existsSince time.Time // since when it is there
	node        string    // to which it is attached
	turns       int       // counts attachments and detachments, so that a late one is known as stale
}

func drawVolumes(e *engine, seed uint64, zones []string) *volumes {
	v := &volumes{engine: e, rng: rand.New(rand.NewPCG(seed, 0x766f6c756d6573)), zones: zones,
		byClaim: map[string]*volume{}, limits: map[string]int64{}}
	if v.rng.IntN(2) == 0 {
		v.most = []int64{4, 8, 24}[v.rng.IntN(3)]
	}
	return v
}

func (v *volumes) span(least, most time.Duration) time.Duration {
	return least + time.Duration(v.rng.Int64N(int64(most-least)+1))
}

// furnish makes some apps stateful and gives their pods volumes.
func (v *volumes) furnish(a *app) {
	if v.most == 0 || a.daemon || v.rng.IntN(5) < 2 {
		return
	}
	a.stateful, a.bare, a.pattern.Owner = true, false, cluster.OwnerStatefulSet
	a.volumes, a.volumesAtOnce = 1+v.rng.IntN(5)/4, v.rng.IntN(5) == 0
	if v.rng.IntN(4) == 0 {
		zones := v.zones[:1+v.rng.IntN(len(v.zones))]
		// A zone in which a node may come counts for a spread, so pods whose volumes may be in some zones only would
		// wait for ever.
		if !slices.ContainsFunc(a.pattern.Spread, func(s cluster.Spread) bool {
			return s.Key == labelZone &&
				!s.Soft
		}) {
			a.volumeZones = zones
		}
	}
	if z, ok := a.pattern.NodeSelector[labelZone]; ok {
		a.volumeZones = []string{z}
	}
}

// claim makes the claims of a new pod that there are not, and returns all, by namespace and name. made is called when a
// volume is there for which the pod has to wait.
func (v *volumes) claim(a *app, pod string, made func()) (names []string) {
	zone := ""
	for i := range a.volumes {
		name := fmt.Sprintf("%s/disk%d-%s", a.pattern.Namespace, i, pod)
		names = append(names, name)
		if v.byClaim[name] != nil {
			continue
		}
		one := &volume{claim: name, within: a.volumeZones}
		v.byClaim[name] = one
		if !a.volumesAtOnce {
			continue
		}
		among := v.zones
		if len(a.volumeZones) > 0 {
			among = a.volumeZones
		}
		zone = cmp.Or(zone, among[v.rng.IntN(len(among))])
		one.making = true
		v.runAfter(v.span(time.Second, 15*time.Second), func() {
			one.making = false
			v.place(one, zone)
			made()
		})
	}
	return names
}

func (v *volumes) place(one *volume, zone string) {
	one.zone, one.existsSince = zone, time.Now()
	v.addTrace("volume %s is in %s", one.claim, zone)
}

// refuse says why the scheduler keeps a pod with these volumes off a node, in whose zone and to which others are or
// will be attached.
func (v *volumes) refuse(claims []string, node, zone string, others []string) string {
	if len(claims) == 0 {
		return ""
	}
	for _, name := range claims {
		switch one := v.byClaim[name]; {
		case one.making:
			return "volume " + name + " is being made"
		case one.zone != "" && one.zone != zone:
			return "volume " + name + " is in " + one.zone
		case one.zone == "" && len(one.within) > 0 && !slices.Contains(one.within, zone):
			return "volume " + name + " cannot be in " + zone
		}
	}
	most, known := v.limits[node]
	if !known {
		return ""
	}
	used := map[string]bool{}
	for _, name := range slices.Concat(claims, others, v.on(node)) {
		used[name] = true
	}
	if int64(len(used)) > most {
		return fmt.Sprintf("%d volumes, it attaches %d", len(used), most)
	}
	return ""
}

// on are the claims of the volumes that are attached to the node, sorted.
func (v *volumes) on(node string) (out []string) {
	for name, one := range v.byClaim {
		if one.node == node {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

// mount has the volumes of a pod bound that has a node now, and attached to it, and then goes on. Whatever is attached
// elsewhere must be detached there first. It gives up once the pod does not want them any more.
func (v *volumes) mount(claims []string, node, zone string, wanted func() bool, then func()) {
	if len(claims) == 0 {
		then()
		return
	}
	one := v.byClaim[claims[0]]
	if one.zone == "" {
		v.place(one, zone)
	}
	next := func() {
		if wanted() {
			v.mount(claims[1:], node, zone, wanted, then)
		}
	}
	switch one.node {
	case node:
		one.turns++ // nobody detaches it now
		next()
	case "":
		one.turns++
		one.node = node
		v.runAfter(v.span(time.Second, 6*time.Second), next)
	default:
		v.runAfter(v.span(time.Second, 3*time.Second), func() {
			if wanted() {
				v.mount(claims, node, zone, wanted, then)
			}
		})
	}
}

// release has the volumes of a pod detached from its node, which is gone. A node that is silent tells nobody that they
// are free.
func (v *volumes) release(claims []string, node string, silent bool) {
	for _, name := range claims {
		if one := v.byClaim[name]; one.node == node {
			after := v.span(time.Second, 8*time.Second)
			if silent {
				after = forcedDetach
			}
			v.detach(one, after)
		}
	}
}

func (v *volumes) detach(one *volume, after time.Duration) {
	turn := one.turns
	v.runAfter(after, func() {
		if one.turns == turn {
			one.turns++
			one.node = ""
		}
	})
}

// join has the driver of a new node register, and say how many volumes that attaches.
func (v *volumes) join(node string) {
	if v.most > 0 {
		v.runAfter(v.span(5*time.Second, 40*time.Second), func() { v.limits[node], v.told = v.most, true })
	}
}

// leave detaches all from a node whose object is gone.
func (v *volumes) leave(node string) {
	delete(v.limits, node)
	for _, name := range v.on(node) {
		v.detach(v.byClaim[name], v.span(time.Second, 6*time.Second))
	}
}

// attachments are the volumes attached to the nodes, as the API server lists them.
func (v *volumes) attachments(nodes []string) (out []cluster.Attachment) {
	for _, node := range slices.Sorted(slices.Values(nodes)) {
		for _, name := range v.on(node) {
			out = append(out, cluster.Attachment{Node: node, Volume: "pv-" + name, Claim: name})
		}
	}
	return out
}

// describe is the pod with what its volumes allow, as claims, volumes and classes say it.
func (v *volumes) describe(p cluster.Pod, claims []string) cluster.Pod {
	for _, name := range claims {
		one := v.byClaim[name]
		if one == nil {
			continue
		}
		p.Volumes = append(slices.Clip(p.Volumes), cluster.Volume{Driver: volumeDriver, ID: name})
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
func (v *volumes) describeNode(n cluster.Node) cluster.Node {
	if most, known := v.limits[n.Name]; known {
		n.VolumeLimits = map[string]int64{volumeDriver: most}
	}
	return n
}

// zoneOf returns the zone where the volumes of a pod have been for so long that everybody knows it, empty for nowhere.
func (v *volumes) zoneOf(claims []string, since time.Duration) string {
	for _, name := range claims {
		if one := v.byClaim[name]; one.zone != "" && time.Since(one.existsSince) > since {
			return one.zone
		}
	}
	return ""
}

// zonesOf are the zones in which the volumes of a pod are or may come to be, none for anywhere.
func (v *volumes) zonesOf(claims []string) []string {
	for _, name := range claims {
		switch one := v.byClaim[name]; {
		case one.zone != "":
			return []string{one.zone}
		case len(one.within) > 0:
			return one.within
		}
	}
	return nil
}

// stuck are the volumes that are attached to nodes that there are not, at rest.
func (v *volumes) stuck(nodes map[string]*node) (bad []string) {
	for _, name := range slices.Sorted(maps.Keys(v.byClaim)) {
		if one := v.byClaim[name]; one.node != "" && nodes[one.node] == nil {
			bad = append(bad, fmt.Sprintf("volume %s is attached to %s, which is gone", name, one.node))
		}
	}
	return bad
}
