package plancheck_test

import (
	"slices"
	"strings"
	"testing"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/plan"
	"joiner.sh/pkg/model/requirements"
	"joiner.sh/pkg/model/resources"
	"joiner.sh/pkg/testing/scenario"
)

// market is what every world of these tests sells, and its pools.
func market() []string {
	return []string{
		"type m cpu=2000 mem=8192 milliusd=96 spot=40", "type l cpu=4000 mem=16384 milliusd=192 spot=80",
		"pool p\nrequire type In m l\nlabel tier=web", "pool tainted\ntaint dedicated:NoSchedule",
		"node n1 type=l zone=a pool=p\nattaches ebs 1", "node n2 type=l zone=b pool=p",
	}
}

// launch is a new node of pool p in one zone, of type m or l, for pods of namespace default.
func launch(zone string, pods ...string) plan.Launch {
	l := plan.Launch{
		Pool: "p", Class: "default", Types: []string{"m", "l"}, Labels: map[string]string{"tier": "web"},
		Choice: instancetypes.Offering{OfferingKey: instancetypes.OfferingKey{Type: "m", Zone: zone, CapacityType: "spot"}, Price: 0.04},
		Requirements: requirements.NewSet(requirements.Of("node.kubernetes.io/instance-type", "m", "l"), requirements.Of("topology.kubernetes.io/zone", zone),
			requirements.Of("karpenter.sh/capacity-type", "spot"), requirements.Of("tier", "web")),
	}
	for _, p := range pods {
		l.Pods = append(l.Pods, "default/"+p)
		l.Requests = l.Requests.Add(resources.List{CPU: 900, Memory: 100 * resources.MiB, Pods: 1})
	}
	return l
}

// booked is a new node of pool booked in the reservation cr-1.
func booked(pods ...string) plan.Launch {
	l := launch("a", pods...)
	l.Pool, l.Types, l.Labels = "booked", []string{"r"}, nil
	l.Choice = instancetypes.Offering{OfferingKey: instancetypes.OfferingKey{Type: "r", Zone: "a", CapacityType: "reserved"}, Reservation: &instancetypes.Reservation{ID: "cr-1"}}
	l.Requirements = requirements.NewSet(requirements.Of("node.kubernetes.io/instance-type", "r"), requirements.Of("topology.kubernetes.io/zone", "a"), requirements.Of("karpenter.sh/capacity-type", "reserved"))
	return l
}

// planned is a plan with the launches and with pods of namespace default on nodes, written as pod@node.
func planned(launches []plan.Launch, existing ...string) plan.Plan {
	p := plan.Plan{Launches: launches}
	for _, e := range existing {
		pod, node, _ := strings.Cut(e, "@")
		p.Existing = append(p.Existing, plan.Placement{Pod: "default/" + pod, Node: node})
	}
	return p
}

func one(l plan.Launch) []plan.Launch { return []plan.Launch{l} }

func verdict(t *testing.T, script []string, p plan.Plan) string {
	t.Helper()
	w, err := scenario.FromText(append(market(), script...))
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(w.Check(p), "\n")
}

const web = "pods web n=2 cpu=900 mem=100"

// ofTypes is types m and l with minValues.
func ofTypes(least int) requirements.Requirement {
	r := requirements.Of("node.kubernetes.io/instance-type", "m", "l")
	r.MinValues = least
	return r
}

// bestEffort is a launch of pool wide for both pods of web that says whether its minValues are lowered, and asks for
// those of r.
func bestEffort(says string, r requirements.Requirement) plan.Plan {
	l := launch("a", "web-1", "web-2")
	l.Pool, l.Labels, l.Annotations = "wide", nil, map[string]string{"karpenter.sh/nodeclaim-min-values-relaxed": says}
	l.Requirements = l.Requirements.Without("tier")
	if r.Key != "" {
		l.Requirements = l.Requirements.Without(r.Key).And(r)
	}
	return planned(one(l))
}

// Plans that keep the rules.
func TestPlansWithoutFault(t *testing.T) {
	unplaced := planned(nil, "web-1@n1")
	unplaced.Unplaced = []plan.Unplaced{{Pod: "default/web-2", Why: []string{"no room"}}}
	for name, c := range map[string]struct {
		script []string
		plan   plan.Plan
	}{
		"new node":          {[]string{web}, planned(one(launch("a", "web-1", "web-2")))},
		"unplaced":          {[]string{web}, unplaced},
		"order of arrival":  {[]string{web + "\nspread zone skew=1 app=web", "pods late cpu=100 mem=1\nlabel app=web"}, planned(nil, "web-1@n1", "web-2@n2", "late-1@n1")},
		"followers":         {[]string{web, "pods after cpu=100 mem=1\nnear host app=web"}, planned(nil, "web-1@n1", "web-2@n1", "after-1@n1")},
		"first of its kind": {[]string{web + "\nnear zone app=web"}, planned(nil, "web-1@n1", "web-2@n1")},
		"claim on its way":  {[]string{web, "claim c1 pool=p types=(m,l) zones=(a) cpu=900 mem=100 nominated=(default/web-1)"}, planned(nil, "web-1@c1", "web-2@n1")},
		"preferences":       {[]string{web + "\nspread zone skew=1 soft app=web\nprefer 5 zone In b\nprefer-apart 5 host app=web"}, planned(nil, "web-1@n1", "web-2@n1")},
		"pool with a label": {[]string{web + "\nspread zone skew=1 honor-taints app=web\naffinity tier DoesNotExist & rack DoesNotExist", "pool racks\nrequire rack Exists", "node n3 type=l zone=a unmanaged"}, planned(nil, "web-1@n3", "web-2@n3")},
		"outlasts a drain":  {[]string{"node n3 type=l zone=a pool=p deleting", "pods old on=n3 cpu=1 mem=1\ntolerate all", "budget calm blocking\napp=old"}, planned(nil, "old-1@n1")},
		"daemon of a value": {[]string{web, "type b cpu=1000 mem=8192 milliusd=30\nlabel partition 1 2", "pool heavy weight=9\nrequire type In b", "daemon d cpu=200 mem=1\nselect partition=2"}, planned(one(launch("a", "web-1", "web-2")))},
		"lowered as needed": {[]string{web, "rules best-effort", "pool wide\nrequire type Exists min=3"}, bestEffort("true", ofTypes(2))},
		"not lowered":       {[]string{web, "rules best-effort", "pool wide\nrequire type Exists min=2"}, bestEffort("false", ofTypes(2))},
		"a pod by zone id":  {[]string{"pods byid cpu=10 mem=1\nselect zone-id=use1-b"}, planned(nil, "byid-1@n2")},
		"has the feature":   {[]string{web + "\nrequires feature F", "node n3 type=l zone=a pool=p ready=300\nprovides feature F"}, planned(nil, "web-1@n3", "web-2@n3")},
		"a driver comes":    {[]string{web + "\nrequires CSI driver d", "node n3 type=l zone=a pool=p ready=60"}, planned(nil, "web-1@n3", "web-2@n3")},
		"other addresses":   {[]string{"pods dns n=2 cpu=10 mem=1\nport 53"}, planned(nil, "dns-1@n1", "dns-2@n2")},
	} {
		if got := verdict(t, c.script, c.plan); got != "" {
			t.Errorf("%s: %s", name, got)
		}
	}
}

// Each of these plans breaks one rule.
func TestPlansWithFaults(t *testing.T) {
	with := func(l plan.Launch, change func(*plan.Launch)) plan.Plan {
		change(&l)
		return planned(one(l))
	}
	both := func() plan.Launch { return launch("a", "web-1", "web-2") }
	twice := planned(nil, "web-1@n1", "web-1@n2", "web-2@n1")
	mute := planned(nil, "web-1@n1")
	mute.Unplaced = []plan.Unplaced{{Pod: "default/web-2"}}
	bound := planned(nil, "web-1@n1", "web-2@n1")
	bound.LowerBoundUSD = 0.01
	for name, c := range map[string]struct {
		script []string
		plan   plan.Plan
		want   string
	}{
		"forgotten":        {[]string{web}, planned(nil, "web-1@n1"), "default/web-2 has 0 places"},
		"twice":            {[]string{web}, twice, "default/web-1 has 2 places"},
		"no reason":        {[]string{web}, mute, "unplaced without a reason"},
		"nobody asked":     {[]string{web}, planned(nil, "web-1@n1", "web-2@n1", "ghost@n1"), "no pod default/ghost waits"},
		"bound already":    {[]string{"pods old on=n1 cpu=1 mem=1"}, planned(nil, "old-1@n2"), "no pod default/old-1 waits"},
		"held by a budget": {[]string{"node n3 type=l zone=a pool=p deleting", "pods old on=n3 cpu=1 mem=1", "budget calm blocking\napp=old"}, planned(nil, "old-1@n1"), "no pod default/old-1 waits"},
		"gated":            {[]string{"pods g cpu=1 mem=1 bound"}, planned(nil, "g-1@n2"), "no pod default/g-1 waits"},
		"not modelled":     {[]string{"pods u cpu=1 mem=1\nunmodelled a device"}, planned(nil, "u-1@n2"), "is placed although a device"},
		"unknown node":     {[]string{web}, planned(nil, "web-1@n1", "web-2@n9"), "goes to n9, which does not take pods"},
		"disrupted node":   {[]string{web, "node n3 type=l zone=a pool=p disrupted"}, planned(nil, "web-1@n1", "web-2@n3"), "goes to n3, which does not take pods"},
		"too much":         {[]string{"pods web n=2 cpu=2100 mem=1"}, planned(nil, "web-1@n1", "web-2@n1"), "want 4200 of cpu, there is 4000"},
		"type too small":   {[]string{"pods web n=2 cpu=1100 mem=1"}, with(both(), func(l *plan.Launch) { l.Requests.CPU = 2200 }), "launch 0 as spot m a: its pods and daemons want 2200 of cpu"},
		"daemons":          {[]string{web, "daemon d cpu=300 mem=1"}, planned(one(both())), "launch 0 as spot m a: its pods and daemons want 2100 of cpu"},
		"asks for less":    {[]string{web}, with(both(), func(l *plan.Launch) { l.Requests.Memory = 1 }), "asks for less memory than its pods need"},
		"taint of a pool": {[]string{web}, with(both(), func(l *plan.Launch) {
			l.Pool, l.Taints = "tainted", []cluster.Taint{{Key: "dedicated", Effect: "NoSchedule"}}
		}), "does not tolerate dedicated:NoSchedule"},
		"taint left out":   {[]string{web}, with(both(), func(l *plan.Launch) { l.Pool = "tainted" }), "class or taints are not those of pool tainted"},
		"label left out":   {[]string{web}, with(both(), func(l *plan.Launch) { l.Labels = nil }), "label tier of pool p is missing"},
		"node selector":    {[]string{web + "\nselect zone=b"}, planned(nil, "web-1@n2", "web-2@n1"), "n1 as on-demand l a: its labels keep web-2 away"},
		"id of a zone":     {[]string{web + "\nselect zone-id=use1-b"}, planned(nil, "web-1@n2", "web-2@n1"), "n1 as on-demand l a: its labels keep web-2 away"},
		"open zone":        {[]string{web + "\nselect zone=b"}, with(launch("b", "web-1", "web-2"), func(l *plan.Launch) { l.Requirements = l.Requirements.Without("topology.kubernetes.io/zone") }), "as spot m a: its labels keep"},
		"affinity":         {[]string{web + "\naffinity zone In b & cpu Gt 2\naffinity cpu Lt 2"}, planned(nil, "web-1@n2", "web-2@n1"), "its labels keep web-2 away"},
		"volume elsewhere": {[]string{web + "\nvolume zone In b"}, planned(nil, "web-1@n2", "web-2@n1"), "its labels keep web-2 away"},
		"volumes of a new node": {[]string{web + "\nattach ebs.csi.aws.com",
			"node n3 type=m zone=a pool=p\nattaches ebs.csi.aws.com 1", "node n4 type=m zone=a pool=p\nattaches ebs.csi.aws.com 1"}, planned([]plan.Launch{launch("a", "web-1", "web-2")}),
			"launch 0 as m: 2 volumes of ebs.csi.aws.com, at most 1"},
		"volumes":                 {[]string{web + "\nattach ebs"}, planned(nil, "web-1@n1", "web-2@n1"), "2 volumes of ebs, at most 1"},
		"feature":                 {[]string{web + "\nrequires feature F"}, planned(nil, "web-1@n1", "web-2@n2"), "n2: it is without feature F, which web-2 requires"},
		"driver":                  {[]string{web + "\nrequires CSI driver d", "node n3 type=l zone=a pool=p ready=300"}, planned(nil, "web-1@n3", "web-2@n3"), "n3: it is without CSI driver d"},
		"old images":              {[]string{"class old kubelet=35", "pool older class=old\nlabel tier=web", web + "\nrequires feature F"}, with(both(), func(l *plan.Launch) { l.Pool, l.Class = "older", "old" }), "launch 0: it is without feature F"},
		"ports":                   {[]string{web + "\nport 80"}, planned(nil, "web-1@n1", "web-2@n1"), "want port TCP/80"},
		"port of a daemon":        {[]string{web + "\nport 80", "daemon d cpu=1 mem=1\nport 80"}, planned(nil, "web-1@n1", "web-2@n2"), "d and web-1 want port TCP/80"},
		"spread":                  {[]string{web + "\nspread zone skew=1 app=web"}, planned(nil, "web-1@n1", "web-2@n1"), "cannot come there: 2 pods in a, 0 in the least"},
		"spread to a label":       {[]string{web + "\nspread zone skew=1 honor-taints app=web\naffinity tier NotIn web & rack NotIn r1", "pool racks\nrequire rack Exists", "node n3 type=l zone=a unmanaged"}, planned(nil, "web-1@n3", "web-2@n3"), "0 in the least of topology.kubernetes.io/zone [a b c]"},
		"spread and open":         {[]string{web + "\nspread zone skew=2 app=web"}, with(both(), func(l *plan.Launch) { l.Requirements = l.Requirements.Without("topology.kubernetes.io/zone") }), "the node may be any of [a b c]"},
		"spread over hosts":       {[]string{web + "\nspread host skew=1 app=web"}, planned(nil, "web-1@n1", "web-2@n1"), "2 pods in n1, 0 in the least of kubernetes.io/hostname"},
		"too few domains":         {[]string{web + "\nspread zone skew=1 min=4 app=web\nselect zone=a"}, planned(nil, "web-1@n1", "web-2@n1"), "cannot come there: 2 pods in a, 0 in the least"},
		"spread over nothing":     {[]string{web + "\nspread rack skew=1 app=web"}, planned(nil, "web-1@n1", "web-2@n2"), "spreads over rack, the node may be any of []"},
		"apart":                   {[]string{web + "\napart host app=web"}, planned(nil, "web-1@n1", "web-2@n1"), "must not share a value of kubernetes.io/hostname"},
		"apart and open":          {[]string{web + "\napart zone app=web"}, planned([]plan.Launch{launch("a", "web-1"), with(launch("b", "web-2"), func(l *plan.Launch) { l.Requirements = l.Requirements.Without("topology.kubernetes.io/zone") }).Launches[0]}), "must not share a value of topology.kubernetes.io/zone"},
		"apart from old":          {[]string{web, "pods old on=n1 cpu=1 mem=1\napart zone app=web"}, planned(nil, "web-1@n1", "web-2@n2"), "old-1 must not share a value of topology.kubernetes.io/zone with web-1"},
		"other namespace":         {[]string{web, "namespace far", "pods old on=n1 ns=far cpu=1 mem=1\napart host ns=* app=web"}, planned(nil, "web-1@n1", "web-2@n2"), "old-1 must not share"},
		"far":                     {[]string{web + "\nnear zone app=web"}, planned(nil, "web-1@n1", "web-2@n2"), "nobody to be near to in"},
		"in a circle":             {[]string{"pods a cpu=1 mem=1\nnear host app=b", "pods b cpu=1 mem=1\nnear host app=a"}, planned(nil, "a-1@n1", "b-1@n1"), "nobody to be near to"},
		"near two kinds":          {[]string{"pods a cpu=1 mem=1", "pods b cpu=1 mem=1", "pods c cpu=1 mem=1\nnear host app=a\nnear zone app=b"}, planned(nil, "a-1@n1", "b-1@n1", "c-1@n1"), "c-1 cannot come there: nobody to be near to"},
		"static pool":             {[]string{web, "pool still static"}, with(both(), func(l *plan.Launch) { l.Pool = "still" }), "pool still may launch nothing"},
		"pool that is broken":     {[]string{web, "pool early not-ready=(no AMI)"}, with(both(), func(l *plan.Launch) { l.Pool = "early" }), "pool early may launch nothing"},
		"unavailable":             {[]string{web, "unavailable m capacity=spot", "unavailable l capacity=spot"}, planned(one(both())), "nothing that is sold meets its requirements"},
		"type unavailable":        {[]string{web, "unavailable m"}, planned(one(both())), "it names the types [m l], its requirements leave [l]"},
		"type not named":          {[]string{web}, with(both(), func(l *plan.Launch) { l.Types = []string{"m"} }), "it names the types [m], its requirements leave [l m]"},
		"order of types":          {[]string{web}, with(both(), func(l *plan.Launch) { slices.Reverse(l.Types) }), "its types are not sorted by price"},
		"wrong price":             {[]string{web}, with(both(), func(l *plan.Launch) { l.Choice.Price = 0.03 }), "its choice spot m in a at 0.03 USD/h is not among"},
		"dearer choice":           {[]string{web}, with(both(), func(l *plan.Launch) { l.Choice.Type, l.Choice.Price = "l", 0.08 }), "its choice costs 0.08 USD/h, it may become one for 0.04"},
		"price of an overlay":     {[]string{web, "overlay o price=0.01\nrequire type In m"}, planned(one(both())), "its choice spot m in a at 0.04 USD/h is not among"},
		"outside the pool":        {[]string{web, "pool cheap\nrequire capacity In on-demand"}, with(both(), func(l *plan.Launch) { l.Pool = "cheap" }), "pool cheap wants karpenter.sh/capacity-type"},
		"limit":                   {[]string{web, "pool small\nlimit cpu 3000"}, with(both(), func(l *plan.Launch) { l.Pool = "small" }), "pool small: 4000 of cpu are more than its limit 3000"},
		"limit of nodes":          {[]string{web, "pool small\nlimit nodes 0"}, with(both(), func(l *plan.Launch) { l.Pool = "small" }), "pool small: 1 of nodes are more than its limit 0"},
		"minValues":               {[]string{web, "pool wide\nrequire type Exists min=3"}, with(both(), func(l *plan.Launch) { l.Pool = "wide" }), "2 values of node.kubernetes.io/instance-type, pool wide wants 3"},
		"minValues of zones":      {[]string{web, "pool wide\nrequire zone Exists min=2"}, with(both(), func(l *plan.Launch) { l.Pool = "wide" }), "1 values of topology.kubernetes.io/zone, pool wide wants 2"},
		"minValues of zones' ids": {[]string{web, "pool wide\nrequire zone-id Exists min=2"}, with(both(), func(l *plan.Launch) { l.Pool = "wide" }), "1 values of topology.k8s.aws/zone-id, pool wide wants 2"},
		"minValues of capacities": {[]string{web, "pool wide\nrequire capacity Exists min=2"}, with(both(), func(l *plan.Launch) { l.Pool = "wide" }), "1 values of karpenter.sh/capacity-type, pool wide wants 2"},
		"lowered further":         {[]string{web, "rules best-effort", "pool wide\nrequire type Exists min=3"}, bestEffort("true", requirements.Requirement{}), "it asks for 0 values of node.kubernetes.io/instance-type, each of its pods leaves 2, pool wide wants 3"},
		"lowered in silence":      {[]string{web, "rules best-effort", "pool wide\nrequire type Exists min=3"}, bestEffort("false", ofTypes(2)), `nodeclaim-min-values-relaxed is "false", its minValues are lowered: true`},
		"not lowered, it says":    {[]string{web, "rules best-effort", "pool wide\nrequire type Exists min=2"}, bestEffort("true", ofTypes(2)), `nodeclaim-min-values-relaxed is "true", its minValues are lowered: false`},
		"lowered, and not enough": {[]string{web, "rules best-effort", "pool wide\nrequire type Exists min=3"}, bestEffort("true", ofTypes(3)), "2 values of node.kubernetes.io/instance-type, pool wide wants 3"},
		"light pool":              {[]string{web, "pool heavy weight=9"}, planned(one(both())), "is in pool p of weight 0, pool heavy of weight 9 could have it"},
		"too many claims":         {[]string{web, "rules max-claims=1"}, planned([]plan.Launch{launch("a", "web-1"), launch("b", "web-2")}), "2 new claims, a pass may make 1"},
		"reservation": {[]string{web, "type r cpu=2000 mem=4096 milliusd=99 reserved=(cr-1,a,1)", "pool booked\nrequire capacity In reserved"}, planned([]plan.Launch{booked("web-1"), booked("web-2")}),
			"reservation cr-1: 2 launches into it, it has room for 1"},
		"above the bound":     {[]string{web}, bound, "less than its bound"},
		"apart from a daemon": {[]string{web + "\napart zone app=d", "daemon d cpu=1 mem=1"}, planned(one(both())), "web-1 must not share a value of topology.kubernetes.io/zone with d"},
		"a daemon apart":      {[]string{web, "daemon d cpu=1 mem=1\napart host app=web"}, planned(one(both())), "d must not share a value of kubernetes.io/hostname with web-1"},
		"empty node":          {[]string{web}, planned(one(launch("a")), "web-1@n1", "web-2@n1"), "it has no pods"},
	} {
		if got := verdict(t, c.script, c.plan); !strings.Contains(got, c.want) {
			t.Errorf("%s: %q is not in\n%s", name, c.want, got)
		}
	}
}
