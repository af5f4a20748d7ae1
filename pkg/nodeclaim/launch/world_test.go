package launch_test

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"sigs.k8s.io/yaml"

	awsv1 "joiner.sh/pkg/api/aws/v1"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/requirements"
	"joiner.sh/pkg/nodeclaim/launch"
)

const plainClass = `
metadata: {name: default}
spec:
  amiSelectorTerms: [{alias: al2023@latest}]
  role: node
  metadataOptions: {httpEndpoint: enabled, httpProtocolIPv6: disabled, httpPutResponseHopLimit: 1, httpTokens: required}
status:
  instanceProfile: demo-profile
  subnets: [{id: subnet-a1, zone: a, zoneID: r-1}, {id: subnet-a2, zone: a, zoneID: r-1}, {id: subnet-b, zone: b, zoneID: r-2}]
  securityGroups: [{id: sg-1}, {id: sg-2}]
  amis: [{id: ami-1, requirements: []}]
`

// world is what the commands of a scenario build up.
type world struct {
	in          launch.Input
	doc         map[string]any // the class as YAML
	facts       []instancetypes.Facts
	unavailable []instancetypes.UnavailableOffering
	last        launch.Order
	types       []instancetypes.Type
}

func newWorld(t *testing.T) *world {
	w := &world{in: launch.Input{
		Claim: cluster.Claim{
			Name: "general-x7", UID: "11111111-2222-3333-4444-555555555555", Pool: "general", Class: "default",
			Labels: map[string]string{"karpenter.sh/nodepool": "general"},
		},
		Cluster: launch.Cluster{
			Name: "demo", Endpoint: "https://api", CABundle: "Q0E=", DNSAddress: "172.20.0.10", ServiceCIDR: "172.20.0.0/16", Region: "r",
		},
	}}
	w.class(t, plainClass)
	return w
}

// class lays YAML over the class; lists are replaced, null takes away.
func (w *world) class(t *testing.T, text string) {
	var over map[string]any
	if err := yaml.Unmarshal([]byte(text), &over); err != nil {
		t.Fatal(err)
	}
	w.doc = overlay(w.doc, over)
	whole, err := yaml.Marshal(w.doc)
	if err != nil {
		t.Fatal(err)
	}
	c := &awsv1.EC2NodeClass{}
	if err := yaml.UnmarshalStrict(whole, c); err != nil {
		t.Fatal(err)
	}
	w.in.Class = c
	w.in.Resolved = instancetypes.Class{Name: c.Name, Ready: true, Family: c.ResolvedAMIFamily(), MemoryOverhead: 0.075, ZoneIDs: map[string]string{}}
	for _, s := range c.Status.Subnets {
		w.in.Resolved.ZoneIDs[s.Zone] = s.ZoneID
	}
	for _, a := range c.Status.AMIs {
		i := instancetypes.Image{ID: a.ID}
		for _, r := range a.Requirements {
			i.Requirements = i.Requirements.And(demand(t, append([]string{r.Key, string(r.Operator)}, r.Values...)))
		}
		w.in.Resolved.Images = append(w.in.Resolved.Images, i)
	}
	k := c.Spec.Kubelet
	if k == nil {
		return
	}
	w.in.Resolved.MaxPodsExpression, w.in.Resolved.KubeReserved, w.in.Resolved.SystemReserved = k.MaxPodsExpression(), k.KubeReserved, k.SystemReserved
	if k.MaxPods != nil {
		n := int64(*k.MaxPods)
		w.in.Resolved.MaxPods = &n
	}
}

func overlay(base, over map[string]any) map[string]any {
	out := maps.Clone(base)
	if out == nil {
		out = map[string]any{}
	}
	for k, v := range over {
		inner, isMap := v.(map[string]any)
		was, wasMap := out[k].(map[string]any)
		switch {
		case v == nil:
			delete(out, k)
		case isMap && wasMap:
			out[k] = overlay(was, inner)
		default:
			out[k] = v
		}
	}
	return out
}

// demand reads "key Operator value..." with min=n for minValues.
func demand(t *testing.T, words []string) requirements.Requirement {
	values, minValues := []string{}, 0
	for _, v := range words[2:] {
		if n, found := strings.CutPrefix(v, "min="); found {
			minValues = number(t, n)
		} else {
			values = append(values, v)
		}
	}
	r, err := requirements.NewRequirement(words[0], requirements.Operator(words[1]), values...)
	if err != nil {
		t.Fatal(err)
	}
	r.MinValues = minValues
	return r
}

func number(t *testing.T, s string) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func price(t *testing.T, s string) float64 {
	p, err := strconv.ParseFloat(s, 64)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// addType reads "m5.large cpu=2 od=0.096 spot=0.04 spot.b=0.05 gpu=1 efa=2 eni=3 reserved=cr-1,a,3".
func (w *world) addType(t *testing.T, line string) {
	words := strings.Fields(line)
	f := instancetypes.Facts{
		Name: words[0], Arch: []string{"amd64"}, VCPU: 2, MemoryMiB: 8192, DefaultCardENIs: 3, IPv4PerENI: 10, Hypervisor: "nitro",
		Virtualization: []string{"hvm"}, PlacementStrategies: []string{"cluster", "partition", "spread"}, UsageClasses: []string{"on-demand"}, Zones: []string{"a", "b"}, SpotUSD: map[string]float64{},
	}
	for _, word := range words[1:] {
		k, v, _ := strings.Cut(word, "=")
		switch {
		case k == "cpu":
			f.VCPU = int64(number(t, v))
		case k == "eni":
			f.DefaultCardENIs = int64(number(t, v))
		case k == "od":
			f.OnDemandUSD = price(t, v)
		case k == "arm":
			f.Arch = []string{"arm64"}
		case k == "gpu":
			f.GPUs = []instancetypes.Accelerator{{Manufacturer: "NVIDIA", Name: "T4", Count: int64(number(t, v))}}
		case k == "reserved":
			w.in.Resolved.Reservations = append(w.in.Resolved.Reservations, reservation(t, f.Name, v))
		case k == "efa":
			f.MaxEFAs = int64(number(t, v))
		case k == "spot":
			f.SpotUSD["a"], f.SpotUSD["b"] = price(t, v), price(t, v)
		case strings.HasPrefix(k, "spot."):
			f.SpotUSD[strings.TrimPrefix(k, "spot.")] = price(t, v)
		default:
			t.Fatalf("type has no %s", k)
		}
	}
	if len(f.SpotUSD) > 0 {
		f.UsageClasses = append(f.UsageClasses, "spot")
	}
	w.facts = append(w.facts, f)
}

// reservation reads "cr-1,a,3" and after it "capacity-block" or "interruptible".
func reservation(t *testing.T, typ, text string) instancetypes.Reservation {
	p := strings.Split(text, ",")
	out := instancetypes.Reservation{ID: p[0], Type: typ, Zone: p[1], Kind: "default", Remaining: int64(number(t, p[2]))}
	for _, word := range p[3:] {
		if out.Interruptible = word == "interruptible"; !out.Interruptible {
			out.Kind = word
		}
	}
	return out
}

func (w *world) claim(t *testing.T, d *datadriven.TestData) {
	w.in.Claim.Requirements = requirements.Set{}
	for _, line := range lines(d.Input) {
		w.in.Claim.Requirements = w.in.Claim.Requirements.And(demand(t, strings.Fields(line)))
	}
	for _, a := range d.CmdArgs {
		switch a.Key {
		case "relaxed":
			w.in.RelaxMinValues = true
		case "annotate":
			w.in.Claim.Annotations = map[string]string{a.Vals[0]: "true"}
		case "taint":
			w.in.Claim.Taints = []cluster.Taint{{Key: a.Vals[0], Effect: "NoSchedule"}}
			w.in.Claim.StartupTaints = []cluster.Taint{{Key: a.Vals[0], Effect: "NoSchedule"}, {Key: "startup", Effect: "NoExecute"}}
		default:
			w.in.Claim.Requests = w.in.Claim.Requests.With(a.Key, int64(number(t, a.Vals[0])))
		}
	}
}

func lines(s string) []string {
	return slices.DeleteFunc(strings.Split(s, "\n"), func(l string) bool { return l == "" })
}

func (w *world) choose(t *testing.T) (launch.Order, error) {
	c := instancetypes.Catalog{Region: "r", Zones: map[string]string{"a": "r-1", "b": "r-2", "c": "r-3"}, Types: w.facts}
	w.types = instancetypes.ResolveTypes(c, w.in.Resolved, w.unavailable, time.Time{})
	w.in.Types = w.types
	o, err := launch.ChooseOrder(w.in)
	w.last = o
	again, _ := launch.ChooseOrder(w.in)
	if fmt.Sprintf("%+v", o) != fmt.Sprintf("%+v", again) {
		t.Error("the same input gave two orders")
	}
	return o, err
}

func kind(err error) string {
	if _, ok := errors.AsType[*instancetypes.NoCapacityError](err); ok {
		return "NoCapacity"
	}
	if _, ok := errors.AsType[*launch.NotReadyError](err); ok {
		return "NotReady"
	}
	if _, ok := errors.AsType[*launch.ReadinessUnknownError](err); ok {
		return "ReadinessUnknown"
	}
	return "other"
}

// offerings prints what the order asks for, template by template in the order of their cheapest offering.
func offerings(o launch.Order) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s by %s%s\n", o.CapacityType, o.Strategy, optional(" from the market ", o.Market))
	ts := slices.Clone(o.Templates)
	slices.SortFunc(ts, func(x, y launch.Template) int {
		return strings.Compare(fmt.Sprint(x.Overrides[0].Price, x.Overrides[0].Type), fmt.Sprint(y.Overrides[0].Price, y.Overrides[0].Type))
	})
	for i, x := range ts {
		fmt.Fprintf(&b, "template %d: %s%s\n", i+1, x.ImageID, optional(" in ", x.Reservation.ID))
		for _, v := range x.Overrides {
			fmt.Fprintf(&b, "  %s %s %s %v\n", v.Type, v.Zone, v.SubnetID, v.Price)
		}
	}
	return b.String()
}

func optional(before, text string) string {
	if text == "" {
		return ""
	}
	return before + text
}

// show prints parts of the last order's only template.
func (w *world) show(t *testing.T, part string) string {
	if len(w.last.Templates) != 1 {
		t.Fatalf("%d templates", len(w.last.Templates))
	}
	x := w.last.Templates[0]
	var v any
	switch part {
	case "tags":
		v = map[string]any{"fleet and volumes": w.last.Tags, "instance": w.last.InstanceTags, "template": x.Tags, "spot request": x.SpotTags}
	case "interfaces":
		v = x.NetworkInterfaces
	case "devices":
		v = x.BlockDevices
	case "options":
		x.UserData, x.Tags, x.SpotTags, x.NetworkInterfaces, x.BlockDevices, x.Name = "", nil, nil, nil, nil, ""
		v = map[string]any{"template": x, "context": w.last.Context, "annotations": w.last.Annotations}
	case "userdata", "mount":
		text, err := base64.StdEncoding.DecodeString(x.UserData)
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range lines(string(text)) {
			if part == "mount" && strings.HasPrefix(line, "commands") {
				return line
			}
		}
		return string(text)
	}
	var generic any
	b, err := json.Marshal(v)
	if err == nil {
		err = json.Unmarshal(b, &generic)
	}
	if err != nil {
		t.Fatal(err)
	}
	out, err := yaml.Marshal(prune(generic))
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// prune leaves out what is empty.
func prune(v any) any {
	switch x := v.(type) {
	case map[string]any:
		for k, e := range x {
			if e = prune(e); e == nil || e == "" || e == float64(0) || e == false && k != "Encrypted" && k != "AssociatePublicIP" {
				delete(x, k)
			} else {
				x[k] = e
			}
		}
	case []any:
		for i := range x {
			x[i] = prune(x[i])
		}
	}
	return v
}
