package scenario

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	api "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/plan"
	"joiner.sh/pkg/model/requirements"
)

// labelEBSZone is the zone label that the EBS CSI driver puts on every node.
const labelEBSZone = "topology.ebs.csi.aws.com/zone"

// addNode reads "node n1 type=m5.large zone=a capacity=spot pool=default" with lines "taint T", "label k=v",
// "attaches DRIVER COUNT", "provides feature NAME" and "provides CSI driver NAME". Words: ready=20 and initialized=9 (for so many seconds), reservation=cr-1 (that its instance
// is in), unmanaged (no claim), nominated=(default/web-1) (the pods its claim was made for), starting (registered, not
// initialized), unregistered, deleting, interrupted (EC2 takes it back), end=90 (by force, after so many seconds),
// grace=90 (of the claim), disrupted
// (tainted), moving (by a disruption that brings its replacements).
func (w *World) addNode(d directive) error {
	t, ok := w.typeOf(d.str("type"))
	if !ok {
		return fmt.Errorf("node %s: no type %q", d.name(), d.str("type"))
	}
	capacity := d.str("capacity")
	if capacity == "" {
		capacity = instancetypes.OnDemand
	}
	labels := t.Requirements.Labels()
	maps.Copy(labels, map[string]string{key("zone"): d.str("zone"), key("zone-id"): zoneID(d.str("zone")),
		key("capacity"): capacity, key("host"): d.name(), labelEBSZone: d.str("zone")})
	n := cluster.Node{Name: d.name(), ProviderID: "aws:///" + d.name(), Labels: labels, Capacity: t.Capacity,
		Allocatable: t.Allocatable, Ready: true}
	for _, l := range d.lines {
		word, rest, _ := strings.Cut(l, " ")
		k, v, _ := strings.Cut(rest, "=")
		switch word {
		case "taint":
			n.Taints = append(n.Taints, taint(rest))
		case "label":
			labels[key(k)] = v
		case "attaches":
			if err := addVolumeLimit(&n, rest); err != nil {
				return err
			}
		case "provides":
			n.Provides = append(n.Provides, rest)
		default:
			return fmt.Errorf("node %s: %w", n.Name, unknownLine(l, "taint", "label", "attaches", "provides"))
		}
	}
	if d.has("ready") {
		n.ReadySince = w.Snapshot.Now.Add(-time.Duration(d.num("ready", 0)) * time.Second)
	}
	if d.has("disrupted") {
		n.Taints = append(n.Taints, taint(api.TaintDisrupted+":NoSchedule"))
	}
	if !d.has("unmanaged") {
		w.Snapshot.Claims = append(w.Snapshot.Claims, w.claimOf(&n, d, t))
	}
	w.Snapshot.Nodes = append(w.Snapshot.Nodes, n)
	return nil
}

// claimOf is the claim of a node, which gets the labels of its pool and of its phase.
func (w *World) claimOf(n *cluster.Node, d directive, t instancetypes.Type) cluster.Claim {
	pool, _ := w.Snapshot.PoolOf(d.str("pool"))
	maps.Copy(n.Labels, pool.Labels)
	n.Labels[key("pool")] = pool.Name
	c := cluster.Claim{
		Name: "claim-" + n.Name, Pool: pool.Name, Class: pool.Class, ProviderID: n.ProviderID, NodeName: n.Name,
		Taints:        pool.Taints,
		StartupTaints: pool.StartupTaints, Capacity: t.Capacity, Allocatable: t.Allocatable,
		Labels: maps.Clone(n.Labels),
	}
	delete(c.Labels, key("host"))
	if d.has("reservation") {
		c.Requirements = c.Requirements.And(requirements.Of(instancetypes.LabelReservationID, d.str("reservation")))
	}
	if d.has("nominated") {
		c.Annotations = map[string]string{"joiner.sh/nominated-pods": strings.Join(d.list("nominated"), ",")}
	}
	if d.has("moving") {
		c.Annotations = map[string]string{api.AnnotationDisruptionCommand: "{}"}
	}
	if d.has("deleting") {
		c.Deleting = w.Snapshot.Now
	}
	if d.has("initialized") {
		since := w.Snapshot.Now.Add(-time.Duration(d.num("initialized", 0)) * time.Second)
		c.Conditions = []cluster.Condition{{Type: api.ConditionInitialized, Status: "True", Since: since}}
	}
	if d.has("interrupted") {
		c.Deleting = w.Snapshot.Now
		c.Annotations = map[string]string{api.AnnotationDrainAfterReplacement: w.Snapshot.Now.Add(
			time.Minute).Format(time.RFC3339)}
	}
	if d.has("end") {
		c.Annotations = map[string]string{api.AnnotationTerminationTimestamp: w.Snapshot.Now.Add(
			time.Duration(d.num("end", 0)) * time.Second).Format(time.RFC3339)}
	}
	if d.has("grace") {
		grace := time.Duration(d.num("grace", 0)) * time.Second
		c.TerminationGrace = &grace
	}
	switch {
	case d.has("unregistered"):
		n.Taints = append(n.Taints, taint(api.TaintUnregistered+":NoExecute"))
		n.Labels = map[string]string{key("host"): n.Name}
		return c
	case d.has("starting"):
		n.Taints = slices.Concat(n.Taints, pool.Taints, pool.StartupTaints,
			[]cluster.Taint{taint("node.kubernetes.io/not-ready:NoSchedule")})
	default:
		n.Taints = append(n.Taints, pool.Taints...)
		n.Labels[api.LabelInitialized] = "true"
	}
	n.Labels[api.LabelRegistered] = "true"
	return c
}

// addClaim reads "claim c1 pool=default types=(m5.large,m5.xlarge) zones=(a,b) cpu=900 mem=1024
// nominated=(default/web-1)", a claim that is not launched yet; with "type=m5.large zone=a" one that is, "age=16m" ago;
// with "lost=2m" one whose node registered so long ago and is not there any more; with "deleting" one that goes.
func (w *World) addClaim(d directive) error {
	pool, ok := w.Snapshot.PoolOf(d.str("pool"))
	if !ok {
		return fmt.Errorf("claim %s: no pool %q", d.name(), d.str("pool"))
	}
	c := cluster.Claim{
		Name: d.name(), Pool: pool.Name, Class: pool.Class, Taints: pool.Taints, StartupTaints: pool.StartupTaints,
		Requirements: pool.Requirements, Labels: map[string]string{key("pool"): pool.Name},
		Annotations: map[string]string{"joiner.sh/nominated-pods": strings.Join(d.list("nominated"), ",")},
		Requests:    d.amounts(),
	}
	maps.Copy(c.Labels, pool.Labels)
	if t, ok := w.typeOf(d.str("type")); ok {
		c.ProviderID, c.Capacity, c.Allocatable = "aws:///"+c.Name, t.Capacity, t.Allocatable
		maps.Copy(c.Labels, t.Requirements.Labels())
		c.Labels[key("zone")], c.Labels[key("zone-id")] = d.str("zone"), zoneID(d.str("zone"))
		c.Labels[key("capacity")] = instancetypes.OnDemand
	}
	if d.has("age") {
		age, err := time.ParseDuration(d.str("age"))
		if err != nil {
			return fmt.Errorf("claim %s: %w", d.name(), err)
		}
		c.Created = w.Snapshot.Now.Add(-age)
		c.Conditions = []cluster.Condition{{Type: api.ConditionLaunched, Status: "True", Since: c.Created}}
	}
	if d.has("lost") {
		since, err := time.ParseDuration(d.str("lost"))
		if err != nil {
			return fmt.Errorf("claim %s: %w", d.name(), err)
		}
		c.NodeName = "node-" + c.Name
		for _, k := range []string{api.ConditionRegistered, api.ConditionInitialized} {
			c.Conditions = cluster.WithCondition(c.Conditions, cluster.Condition{Type: k, Status: "True",
				Since: w.Snapshot.Now.Add(-since)})
		}
	}
	if d.has("deleting") {
		c.Deleting = w.Snapshot.Now
	}
	if d.has("types") {
		c.Requirements = c.Requirements.And(requirements.Of(key("type"), d.list("types")...))
	}
	if d.has("zones") {
		c.Requirements = c.Requirements.And(requirements.Of(key("zone"), d.list("zones")...))
	}
	w.Snapshot.Claims = append(w.Snapshot.Claims, c)
	return nil
}

func (w *World) typeOf(name string) (instancetypes.Type, bool) {
	for _, t := range w.Types {
		if t.Name == name {
			return t, true
		}
	}
	return instancetypes.Type{}, false
}

// Apply returns the world after the plan's claims were written, pods were nominated on the nodes that start, and those
// that go to running nodes were bound, before anything is launched.
func (w *World) Apply(p plan.Plan) *World {
	out := *w
	out.Snapshot.Claims = slices.Clone(w.Snapshot.Claims)
	for i, l := range p.Launches {
		out.Snapshot.Claims = append(out.Snapshot.Claims, cluster.Claim{
			Name: fmt.Sprintf("applied-%04d", len(w.Snapshot.Claims)+i), Pool: l.Pool, Class: l.Class, Labels: l.Labels,
			Annotations:  l.Annotations,
			Requirements: l.Requirements, Requests: l.Requests, Taints: l.Taints, StartupTaints: l.Startup,
		})
	}
	runs := map[string]bool{}
	for _, node := range out.Snapshot.StateNodes() {
		runs[node.Name()] = node.Initialized()
		if !runs[node.Name()] && node.Claim != nil {
			nominate(node, p)
		}
	}
	to := map[string]string{}
	for _, e := range p.Existing {
		if runs[e.Node] {
			to[e.Pod] = e.Node
		}
	}
	out.Snapshot.Pods = slices.Clone(w.Snapshot.Pods)
	for i := range out.Snapshot.Pods {
		if q := &out.Snapshot.Pods[i]; to[q.Key()] != "" && !q.Virtual {
			q.NodeName, q.Phase, q.Unscheduled = to[q.Key()], "Running", false
		}
	}
	return &out
}

// nominate notes on the claim of a node that starts which pods the plan has there.
func nominate(node cluster.StateNode, p plan.Plan) {
	var pods []string
	for _, e := range p.Existing {
		if e.Node == node.Name() {
			pods = append(pods, e.Pod)
		}
	}
	if len(pods) > 0 {
		node.Claim.Annotations = maps.Clone(node.Claim.Annotations)
		if node.Claim.Annotations == nil {
			node.Claim.Annotations = map[string]string{}
		}
		node.Claim.Annotations["joiner.sh/nominated-pods"] = strings.Join(pods, ",")
	}
}

// spent are the types with room for one instance less in the reservation.
func spent(types []instancetypes.Type, id string) []instancetypes.Type {
	out := slices.Clone(types)
	for i := range out {
		out[i].Offerings = slices.Clone(out[i].Offerings)
		for j := range out[i].Offerings {
			if o := &out[i].Offerings[j]; o.Reservation != nil && o.Reservation.ID == id {
				r := *o.Reservation
				r.Remaining--
				o.Reservation, o.Available = &r, r.Remaining > 0
			}
		}
	}
	return out
}

// decided are the labels of an instance of the type that the launch gets: of several values the first that it asks for.
func decided(t instancetypes.Type, l plan.Launch) map[string]string {
	out := t.Requirements.Labels()
	for _, r := range t.Requirements.All() {
		if asked, ok := l.Requirements.Get(r.Key); ok {
			r = r.Intersect(asked)
		}
		if len(r.Values) > 0 {
			out[r.Key] = r.Values[0]
		}
	}
	return out
}

// Launched returns the world after the plan's claims got the instances that the plan chose.
func (w *World) Launched(p plan.Plan) *World {
	out := w.Apply(p)
	n := len(w.Snapshot.Claims)
	for i, l := range p.Launches {
		c := &out.Snapshot.Claims[n+i]
		t, _ := w.typeIn(l.Pool, l.Choice.Type)
		c.Labels = maps.Clone(c.Labels)
		maps.Copy(c.Labels, decided(t, l))
		c.Labels[key("zone")], c.Labels[key("capacity")] = l.Choice.Zone, l.Choice.CapacityType
		c.Labels[labelEBSZone] = l.Choice.Zone
		c.ProviderID, c.Capacity, c.Allocatable = "aws:///"+c.Name, t.Capacity, t.Allocatable
		if l.Choice.Reservation != nil {
			out.Types = spent(out.Types, l.Choice.Reservation.ID)
		}
	}
	return out
}
