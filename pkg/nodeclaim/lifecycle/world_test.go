package lifecycle_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	awsv1 "joiner.sh/pkg/api/aws/v1"
	v1 "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/requirements"
	"joiner.sh/pkg/model/resources"
)

// start is when every scenario begins. Durations in scenario files are ages: "launched=5m" was five minutes ago, and a
// negative one lies ahead.
func start() time.Time { return time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC) }

func rules() cluster.Settings {
	return cluster.Settings{LaunchTimeout: 5 * time.Minute, RegistrationTimeout: 15 * time.Minute, InitializationTimeout: 30 * time.Minute,
		GarbageCollectionMinAge: 30 * time.Second}
}

// rulesFrom reads "rules repair detach=20m".
func rulesFrom(a args) cluster.Settings {
	settings := rules()
	settings.NodeRepair, settings.DetachTimeout = a.has("repair"), a.duration("detach")
	return settings
}

// poolFrom reads "pool p uid=u nodes=2 cpu=4000 gently deleting in=(a,b) told=usw2-az1 unhealthy=1". It is limited
// to zones, its events told of shifts, and a budget bounds its repairs. Gently has its nodes expire within its budgets; nodes
// and cpu are what its status says, nothing was counted yet without them.
func poolFrom(a args) cluster.Pool {
	p := cluster.Pool{Name: a.name, UID: a.str("uid", "uid-"+a.name), Class: "default", Uncounted: !a.has("nodes")}
	p.Disruption.ExpireGently, p.Deleting = a.has("gently"), a.has("deleting")
	if zones := a.str("in", ""); zones != "" {
		p.Requirements = requirements.NewSet(requirements.Of(instancetypes.LabelZone, strings.Split(zones, ",")...))
	}
	if told := a.str("told", ""); told != "" {
		p.ToldShifts = strings.Split(told, ",")
	}
	if a.has("unhealthy") { // a budget of repairs, beside one that forbids everything else
		p.Disruption.Budgets = []cluster.NodeBudget{{Every: true, Nodes: "0"},
			{Reasons: []string{"Unhealthy"}, Nodes: a.str("unhealthy", "")}}
	}
	for _, name := range []string{"nodes", "cpu"} {
		if a.has(name) {
			p.Counted = amount(a.t, p.Counted, []string{"", name, a.str(name, "")})
		}
	}
	return p
}

// classFrom reads "class zones=(a/usw2-az1,b/usw2-az2)", the only class, with a subnet in each zone.
func classFrom(a args) instancetypes.Class {
	c := instancetypes.Class{Name: "default", Ready: true, ZoneIDs: map[string]string{}}
	for _, z := range strings.Split(a.str("zones", ""), ",") {
		zone, id, _ := strings.Cut(z, "/")
		c.ZoneIDs[zone] = id
	}
	return c
}

// shiftsFrom reads "shifted ids=(usw2-az1,usw2-az2)", the zones that traffic is shifted away from; none without ids.
func shiftsFrom(a args) *cluster.ZonalShifts {
	s := &cluster.ZonalShifts{}
	if ids := a.str("ids", ""); ids != "" {
		s.ZoneIDs = strings.Split(ids, ",")
	}
	return s
}

// budgetFrom reads "pdb web allowed=1", a budget of the pods web-1, web-2 and so on.
func budgetFrom(a args) cluster.PodDisruptionBudget {
	n, err := strconv.ParseInt(a.str("allowed", "0"), 10, 32)
	if err != nil {
		a.t.Fatal(err)
	}
	return cluster.PodDisruptionBudget{Namespace: "default", Name: a.name, DisruptionsAllowed: int32(n),
		Selector: &cluster.Selector{Requirements: []requirements.Requirement{requirements.Of("app", a.name)}}}
}

// reservationFrom reads "reservation cr-1 ends=-41m block", of the only class.
func reservationFrom(a args) instancetypes.Class {
	r := instancetypes.Reservation{ID: a.name, Kind: "default", Ends: a.ago("ends")}
	if a.has("block") {
		r.Kind = "capacity-block"
	}
	return instancetypes.Class{Name: "default", Ready: true, Reservations: []instancetypes.Reservation{r}}
}

// devicesFrom reads "devices" with lines "serve RESOURCE DEVICECLASS DRIVER WHY-UNREAD"; none for a cluster that is
// known to have no such class.
func devicesFrom(a args) cluster.Devices {
	out := cluster.Devices{Known: true}
	for _, l := range a.lines {
		f := strings.SplitN(l, " ", 5)
		c := cluster.DeviceClass{Resource: f[1], Name: f[2], Driver: f[3]}
		if len(f) > 4 {
			c.Unread = f[4]
		}
		out.Classes = append(out.Classes, c)
	}
	return out
}

// impairmentFrom reads "impaired i-1 since=3m system".
func impairmentFrom(a args) cluster.Impairment {
	return cluster.Impairment{Instance: a.name, System: a.has("system"), Since: a.ago("since")}
}

// changeFrom reads "change i-1 at=-3h code=instance-stop"; a date in the future is so long ago, less than nothing.
func changeFrom(a args) cluster.ScheduledChange {
	return cluster.ScheduledChange{Instance: a.name, Code: a.str("code", "instance-retirement"), At: a.ago("at")}
}

// attachmentFrom reads "attach pv-1 to=n1 claim=data shared"; data is the claim default/data.
func attachmentFrom(a args) cluster.Attachment {
	return cluster.Attachment{Node: a.str("to", ""), Volume: a.name, Claim: "default/" + a.str("claim", ""), Shared: a.has("shared")}
}

// args are the words of one directive: key, key=value or key=(value,value).
type args struct {
	t     *testing.T
	name  string
	words []datadriven.CmdArg
	lines []string
}

func newArgs(t *testing.T, d *datadriven.TestData) args {
	a := args{t: t, words: d.CmdArgs}
	if d.Input != "" {
		a.lines = strings.Split(strings.TrimSpace(d.Input), "\n")
	}
	if len(a.words) > 0 && len(a.words[0].Vals) == 0 {
		a.name = a.words[0].Key
	}
	return a
}

func (a args) get(key string) (string, bool) {
	for _, w := range a.words {
		if w.Key == key {
			return strings.Join(w.Vals, ","), true
		}
	}
	return "", false
}

func (a args) has(key string) bool { _, ok := a.get(key); return ok }

func (a args) str(key, otherwise string) string {
	if v, ok := a.get(key); ok {
		return v
	}
	return otherwise
}

func (a args) duration(key string) time.Duration {
	v, ok := a.get(key)
	if !ok || v == "" {
		return 0
	}
	d, err := time.ParseDuration(v)
	if err != nil {
		a.t.Fatalf("%s: %v", a.name, err)
	}
	return d
}

// ago is the time of an age, zero when the word is missing.
func (a args) ago(key string) time.Time {
	if !a.has(key) {
		return time.Time{}
	}
	return start().Add(-a.duration(key))
}

// claimFrom reads "claim c1 id=i-1 age=10m launched=9m registered=8m initialized=7m deleting=5s no-finalizer expire=1h
// grace=1m uid=u node=n1 deadline=-1m tagged half-tagged by-hand unlabelled unnamed names=i-1 batch=b/5 zone=a/az1" with lines "startup T",
// "request NAME AMOUNT", "capacity NAME AMOUNT", "note ANNOTATION=VALUE" and "condition TYPE=STATUS REASON AGE
// MESSAGE". By hand is one that no pool owns.
func claimFrom(a args) cluster.Claim {
	c := cluster.Claim{Name: a.name, UID: a.str("uid", "uid-"+a.name), Pool: a.str("pool", "p"), PoolUID: "uid-p", Class: "default", Created: start().Add(-a.duration("age")),
		Deleting: a.ago("deleting"), Finalizer: !a.has("no-finalizer"), ExpireAfter: a.duration("expire"), NodeName: a.str("node", ""),
		Labels: map[string]string{v1.LabelNodePool: "p", awsv1.LabelEC2NodeClass: "default"}, Annotations: map[string]string{}}
	if id := a.str("in", ""); id != "" {
		c.Labels[instancetypes.LabelCapacityType], c.Labels[instancetypes.LabelReservationID] = instancetypes.Reserved, id
	}
	if id := a.str("id", ""); id != "" {
		c.ProviderID, c.Labels[v1.LabelInstance] = providerID(id), id
	}
	if a.has("grace") {
		g := a.duration("grace")
		c.TerminationGrace = &g
	}
	if a.has("deadline") {
		c.Annotations[v1.AnnotationTerminationTimestamp] = a.ago("deadline").Format(time.RFC3339)
	}
	if a.has("tagged") {
		c.Annotations["karpenter.k8s.aws/tagged"] = "true"
		c.Annotations["compatibility.karpenter.k8s.aws/cluster-name-tagged"] = "true"
	}
	if a.has("half-tagged") {
		c.Annotations["karpenter.k8s.aws/tagged"] = "true"
	}
	if a.has("batch") {
		c.Annotations[v1.AnnotationLaunchBatch] = a.str("batch", "")
	}
	if a.has("by-hand") {
		c.Pool, c.PoolUID = "", ""
		delete(c.Labels, v1.LabelNodePool)
	}
	if a.has("unlabelled") {
		delete(c.Labels, awsv1.LabelEC2NodeClass)
	}
	if a.has("partition") {
		c.Labels[instancetypes.LabelPartition] = a.str("partition", "")
	}
	if zone, id, ok := strings.Cut(a.str("zone", ""), "/"); ok {
		c.Labels[instancetypes.LabelZone], c.Labels[instancetypes.LabelZoneID] = zone, id
	}
	if a.has("type") {
		c.Labels[instancetypes.LabelType] = a.str("type", "")
	}
	if a.has("unnamed") {
		delete(c.Labels, v1.LabelInstance)
	}
	if a.has("names") {
		c.Labels[v1.LabelInstance] = a.str("names", "")
	}
	for _, k := range []struct{ word, condition string }{
		{"initialized", v1.ConditionInitialized}, {"launched", v1.ConditionLaunched}, {"registered", v1.ConditionRegistered},
	} {
		if a.has(k.word) {
			c.Conditions = append(c.Conditions, cluster.Condition{Type: k.condition, Status: "True", Reason: k.condition, Since: a.ago(k.word)})
		}
	}
	for _, l := range a.lines {
		f := strings.Fields(l)
		switch f[0] {
		case "startup":
			c.StartupTaints = append(c.StartupTaints, taintFrom(f[1]))
		case "request":
			c.Requests = amount(a.t, c.Requests, f)
		case "capacity":
			c.Capacity = amount(a.t, c.Capacity, f)
		case "note":
			key, value, _ := strings.Cut(strings.Join(f[1:], " "), "=")
			c.Annotations[key] = value
		case "condition":
			kind, status, _ := strings.Cut(f[1], "=")
			d, err := time.ParseDuration(f[3])
			if err != nil {
				a.t.Fatal(err)
			}
			c.Conditions = append(c.Conditions, cluster.Condition{Type: kind, Status: status, Reason: f[2], Since: start().Add(-d),
				Message: strings.Join(f[4:], " ")})
		default:
			a.t.Fatalf("claim %s: unknown line %q", a.name, l)
		}
	}
	return c
}

// nodeFrom reads "node n1 id=i-1 not-ready deleting=5s ready=30s no-finalizer foreign unlabelled" with lines "taint T",
// "offer NAME AMOUNT", "capacity NAME AMOUNT", "label KEY=VALUE", "note ANNOTATION=VALUE" and "condition TYPE=STATUS AGE". A node says 4 cpu and
// 8Gi unless it has offer lines. A foreign one is of no pool, an unlabelled one lacks the label of the class.
func nodeFrom(a args) cluster.Node {
	n := cluster.Node{Name: a.name, UID: "uid-" + a.name, Ready: !a.has("not-ready"), Deleting: a.ago("deleting"),
		ReadySince: a.ago("ready"), Finalizer: !a.has("no-finalizer"), Labels: map[string]string{}}
	if id := a.str("id", ""); id != "" {
		n.ProviderID = providerID(id)
	}
	if !a.has("foreign") {
		n.Labels[awsv1.LabelEC2NodeClass], n.Labels[v1.LabelNodePool] = "default", "p"
	}
	if a.has("unlabelled") {
		delete(n.Labels, awsv1.LabelEC2NodeClass)
	}
	for _, l := range a.lines {
		f := strings.Fields(l)
		switch f[0] {
		case "taint":
			n.Taints = append(n.Taints, taintFrom(f[1]))
		case "offer":
			n.Allocatable = amount(a.t, n.Allocatable, f)
		case "capacity":
			n.Capacity = amount(a.t, n.Capacity, f)
		case "label":
			key, value, _ := strings.Cut(f[1], "=")
			n.Labels[key] = value
		case "note":
			key, value, _ := strings.Cut(f[1], "=")
			n.Annotations = map[string]string{key: value}
		case "condition":
			kind, status, _ := strings.Cut(f[1], "=")
			d, err := time.ParseDuration(f[2])
			if err != nil {
				a.t.Fatal(err)
			}
			n.Conditions = append(n.Conditions, cluster.Condition{Type: kind, Status: status, Since: start().Add(-d)})
		default:
			a.t.Fatalf("node %s: unknown line %q", a.name, l)
		}
	}
	if n.Allocatable.IsZero() {
		n.Allocatable = resources.List{CPU: 4000, Memory: 8192 * resources.MiB}
	}
	return n
}

// podFrom reads "pod web-1 on=n1 owner=DaemonSet critical deleting=5s grace=30 phase=Succeeded protect=true started=1m
// volume=data hold=h age=1m starting" with lines "tolerate T" or "tolerate all".
func podFrom(a args) cluster.Pod {
	grace, err := strconv.ParseInt(a.str("grace", "30"), 10, 64)
	if err != nil {
		a.t.Fatal(err)
	}
	p := cluster.Pod{Namespace: "default", Name: a.name, UID: "uid-" + a.name, NodeName: a.str("on", ""), Phase: a.str("phase", "Running"),
		Owner: cluster.Owner(a.str("owner", "Other")), Critical: a.has("critical"), Deleting: a.ago("deleting"), GraceSec: grace,
		DoNotDisrupt: a.str("protect", ""), Started: a.ago("started"), Created: a.ago("age"), Ready: !a.has("starting")}
	app, _, _ := strings.Cut(a.name, "-")
	p.Labels = map[string]string{"app": app}
	if v := a.str("volume", ""); v != "" {
		p.Volumes = []cluster.Volume{{Driver: "ebs.csi.aws.com", ID: "default/" + v}}
	}
	if a.has("hold") {
		p.Holds = []string{a.str("hold", "")}
	}
	for _, l := range a.lines {
		_, rest, _ := strings.Cut(l, " ")
		if rest == "all" {
			p.Tolerations = append(p.Tolerations, cluster.Toleration{Operator: "Exists"})
			continue
		}
		t := taintFrom(rest)
		p.Tolerations = append(p.Tolerations, cluster.Toleration{Key: t.Key, Value: t.Value, Effect: t.Effect, Operator: "Exists"})
	}
	return p
}

// instanceFrom reads "instance i-1 state=running age=1m claim=c1 uid=u batch=b dns=ip-1.internal why=(CODE: MESSAGE)".
func instanceFrom(a args) cluster.Instance {
	i := cluster.Instance{ID: a.name, State: a.str("state", "running"), Type: "m5.large", Zone: "a", CapacityType: a.str("sold", "spot"),
		Launched: start().Add(-a.duration("age")), Claim: a.str("claim", ""), Batch: a.str("batch", ""), NodeName: a.str("dns", "")}
	i.StateReason = a.str("why", "")
	if n, err := strconv.Atoi(a.str("partition", "")); err == nil {
		i.Partition = int32(n)
	}
	if i.Claim != "" {
		i.ClaimUID = a.str("uid", "uid-"+i.Claim)
	}
	return i
}

func providerID(id string) string { return "aws:///a/" + id }

func taintFrom(s string) cluster.Taint {
	var t cluster.Taint
	t.Key, t.Effect, _ = strings.Cut(s, ":")
	t.Key, t.Value, _ = strings.Cut(t.Key, "=")
	return t
}

// amount reads the words "request cpu 500"; memory is in MiB.
func amount(t *testing.T, l resources.List, f []string) resources.List {
	n, err := strconv.ParseInt(f[2], 10, 64)
	if err != nil {
		t.Fatal(fmt.Errorf("%v: %w", f, err))
	}
	if f[1] == resources.Memory {
		n *= resources.MiB
	}
	return l.With(f[1], n)
}
