package launch_test

import (
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/nodeclaim/launch"
	"joiner.sh/pkg/testing/syntax"
)

func TestChoose(t *testing.T) {
	words := syntax.NewGrammar(nil, "new", "types", "class unready", "claim relaxed annotate= taint= cpu=# memory=# nvidia.com/gpu=# vpc.amazonaws.com/efa=#",
		"addresses", "open-reservations", "group", "dns", "region", "unavailable", "choose", "show PART")
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		w := newWorld(t)
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			if err := words.Check(d); err != nil {
				d.Fatalf(t, "%v", err)
			}
			switch d.Cmd {
			case "new":
				w = newWorld(t)
			case "types":
				w.facts, w.in.Resolved.Reservations = nil, nil
				for _, l := range lines(d.Input) {
					w.addType(t, l)
				}
			case "class":
				w.class(t, d.Input)
				w.in.Resolved.Ready = !d.HasArg("unready")
			case "claim":
				w.claim(t, d)
			case "addresses": // lines such as "subnet-a1 left=3 spare=-26"
				w.in.Addresses = map[string]launch.SubnetAddresses{}
				for _, l := range lines(d.Input) {
					f := strings.Fields(l)
					w.in.Addresses[f[0]] = launch.SubnetAddresses{Left: int64(number(t, strings.TrimPrefix(f[1], "left="))), Spare: int64(number(t, strings.TrimPrefix(f[2], "spare=")))}
				}
			case "open-reservations": // the setting reservedCapacity is false
				w.in.Resolved.ApplySettings(w.in.Resolved.MemoryOverhead, w.in.Resolved.ReservedENIs, true, false)
			case "group": // such as "pg-1 partition 3"; empty while it is not looked up
				w.in.Resolved.Placement = &instancetypes.Placement{Name: "ours"}
				if f := strings.Fields(d.Input); len(f) > 0 {
					*w.in.Resolved.Placement = instancetypes.Placement{ID: f[0], Name: "ours", Strategy: f[1], Partitions: int64(number(t, f[2]))}
				}
			case "dns":
				w.in.Cluster.DNSAddress = d.Input
			case "region":
				w.in.Cluster.Region = d.Input
			case "unavailable":
				w.unavailable = nil
				for _, l := range lines(d.Input) {
					f := strings.Fields(l)
					u := instancetypes.UnavailableOffering{OfferingKey: instancetypes.OfferingKey{CapacityType: f[0], Type: f[1], Zone: f[2]}, Until: time.Time{}.Add(time.Minute), Why: "ICE"}
					if len(f) > 3 {
						u.Scope = f[3]
					}
					w.unavailable = append(w.unavailable, u)
				}
			case "choose":
				o, err := w.choose(t)
				if err != nil {
					return kind(err) + ": " + err.Error()
				}
				return offerings(o)
			case "show":
				return w.show(t, d.CmdArgs[0].Key)
			default:
				d.Fatalf(t, "unknown command")
			}
			return ""
		})
	})
}

// At most 60 types are asked for, the cheapest ones.
func TestAtMost60Types(t *testing.T) {
	w := newWorld(t)
	for i := range 70 {
		w.addType(t, fmt.Sprintf("m%d.large od=%v", i+1, 1-float64(i)/100))
	}
	o, err := w.choose(t)
	if err != nil {
		t.Fatal(err)
	}
	types := map[string]bool{}
	for _, f := range o.Offerings() {
		types[f.Type] = true
	}
	if len(types) != 60 || types["m10.large"] || !types["m11.large"] || !types["m70.large"] {
		t.Errorf("%d types, tenth cheapest too many: %v", len(types), types["m10.large"])
	}
}

// CreateFleet takes 50 launch template configurations. Of types that each have a template of their own the cheapest are
// asked for, and before them what minValues need.
func TestAtMost50Templates(t *testing.T) {
	for _, c := range []struct {
		requirement string
		arm, dear   bool // whether the dearest type, the only one of arm64, and the 50th cheapest are asked for
	}{
		{"kubernetes.io/arch In amd64 arm64", false, true},
		{"kubernetes.io/arch In amd64 arm64 min=2", true, false},
	} {
		w := newWorld(t)
		w.class(t, `{spec: {kubelet: {kubeReserved: {cpu: vcpus * 30}}}}`)
		for i := range 59 {
			w.addType(t, fmt.Sprintf("m%d.large cpu=%d od=%v", i+1, i+2, 0.1+float64(i)/100))
		}
		w.addType(t, "g1.large arm= cpu=70 od=9")
		w.in.Claim.Requirements = w.in.Claim.Requirements.And(demand(t, strings.Fields(c.requirement)))
		o, err := w.choose(t)
		if err != nil {
			t.Fatal(err)
		}
		asked := map[string]bool{}
		for _, f := range o.Offerings() {
			asked[f.Type] = true
		}
		if len(o.Templates) != 50 || len(asked) != 50 || !asked["m49.large"] || asked["m51.large"] ||
			asked["g1.large"] != c.arm || asked["m50.large"] != c.dear {
			t.Errorf("%s: %d templates, types %v", c.requirement, len(o.Templates), asked)
		}
		if !slices.IsSortedFunc(o.Templates, func(a, b launch.Template) int { return strings.Compare(a.Name, b.Name) }) {
			t.Errorf("%s: templates are not sorted by name", c.requirement)
		}
	}
}

// Each reservation has a template of its own: the request names 50 of them.
func TestAtMost50Reservations(t *testing.T) {
	w := newWorld(t)
	for i := range 60 {
		w.addType(t, fmt.Sprintf("m%d.large od=%v reserved=cr-%d,a,1", i+1, 0.1+float64(i)/100, i+1))
	}
	o, err := w.choose(t)
	if err != nil {
		t.Fatal(err)
	}
	if n := len(o.Templates); n != 50 || o.CapacityType != "reserved" || o.Reservation("m1.large", "a") != "cr-1" || o.Reservation("m51.large", "a") != "" {
		t.Errorf("%d templates of %s: %v", n, o.CapacityType, o.Offerings())
	}
}

func TestNamesAndTokens(t *testing.T) {
	w := newWorld(t)
	w.addType(t, "m5.large od=0.096 spot=0.04")
	name := func() string {
		o, err := w.choose(t)
		if err != nil {
			t.Fatal(err)
		}
		return o.Templates[0].Name
	}
	first := name()
	if !strings.HasPrefix(first, "joiner/demo/") || len(first) != len("joiner/demo/")+20 {
		t.Errorf("name %s", first)
	}
	w.in.Claim.Name, w.in.Claim.UID = "general-y8", "66666666-2222-3333-4444-555555555555"
	w.facts[0].SpotUSD["a"] = 0.05
	if name() != first {
		t.Error("claim or price changed the template")
	}
	w.in.Claim.Pool = "other"
	if name() == first {
		t.Error("the pool is in the tags, so the name must change")
	}
	w.in.Cluster.Name = strings.Repeat("c", 100)
	if n := len(name()); n != 128 {
		t.Errorf("the longest name has %d characters, want 128", n)
	}
	if got := launch.ClientToken(w.in.Claim.UID, 12); got != "66666666-2222-3333-4444-555555555555-12" || len(got) > 64 {
		t.Errorf("token %s", got)
	}
}

func TestReadiness(t *testing.T) {
	w := newWorld(t)
	w.addType(t, "m5.large od=0.096")
	w.in.Resolved.Ready, w.in.Resolved.Message = false, "SubnetsNotFound: none"
	if _, err := w.choose(t); kind(err) != "ReadinessUnknown" {
		t.Errorf("no condition: %v", err)
	}
	w.in.Class.Status.Conditions = []metav1.Condition{{Type: "Ready", Status: metav1.ConditionUnknown}}
	if _, err := w.choose(t); kind(err) != "ReadinessUnknown" {
		t.Errorf("unknown: %v", err)
	}
	w.in.Class.Status.Conditions[0].Status = metav1.ConditionFalse
	if _, err := w.choose(t); kind(err) != "NotReady" || err.Error() != "EC2NodeClass default is not ready: SubnetsNotFound: none" {
		t.Errorf("not ready: %v", err)
	}
	now := metav1.Now()
	w.in.Class.Status.Conditions, w.in.Class.DeletionTimestamp = nil, &now
	if _, err := w.choose(t); kind(err) != "NotReady" {
		t.Errorf("terminating: %v", err)
	}
	w.in.Class = nil
	if _, err := w.choose(t); kind(err) != "NotReady" {
		t.Errorf("missing: %v", err)
	}
}

// The class is read later than the types were resolved, so a zone may have lost its subnet meanwhile.
func TestSubnetGoneMeanwhile(t *testing.T) {
	w := newWorld(t)
	w.addType(t, "m5.large od=0.096")
	if _, err := w.choose(t); err != nil {
		t.Fatal(err)
	}
	w.in.Class.Status.Subnets = w.in.Class.Status.Subnets[:2] // both in zone a
	o, err := launch.ChooseOrder(w.in)
	if err != nil {
		t.Fatal(err)
	}
	if got := offerings(o); got != "on-demand by lowest-price\ntemplate 1: ami-1\n  m5.large a subnet-a1 0.096\n" {
		t.Errorf("got %s", got)
	}
}

// What is asked for a batch names the batch and none of its claims; what is asked for one claim names the claim.
func TestWhomAnOrderIsFor(t *testing.T) {
	w := newWorld(t)
	w.addType(t, "m5.large od=0.096")
	tags := func(o launch.Order) (out string) {
		for _, g := range o.InstanceTags {
			if strings.Contains(g.Key, "nodeclaim") || g.Key == launch.TagBatch || g.Key == launch.TagNodePool {
				out += g.Key + "=" + g.Value + " "
			}
		}
		return out
	}
	w.in.Claim.Name, w.in.Claim.UID, w.in.Claim.Pool = "general-x7", "uid-7", ""
	w.in.Claim.Labels = map[string]string{"karpenter.sh/nodepool": "general"}
	o, err := w.choose(t)
	if err != nil || tags(o) != "joiner.sh/nodeclaim-uid=uid-7 karpenter.sh/nodeclaim=general-x7 karpenter.sh/nodepool=general " || o.Count() != 1 {
		t.Errorf("error %v, tags %s for %d", err, tags(o), o.Count())
	}
	if got, want := o.String(), "order on-demand for claim general-x7 from 2 offerings in 1 templates"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if o.Reservation("m5.large", "a") != "" || o.Reservation("m5.large", "elsewhere") != "" {
		t.Error("it is in a reservation")
	}
	w.in.Batch = cluster.Batch{ID: "b1", Size: 7}
	if o, err = w.choose(t); err != nil || tags(o) != "joiner.sh/launch-batch=b1 karpenter.sh/nodepool=general " || o.Count() != 7 || o.ClaimName+o.ClaimUID != "" {
		t.Errorf("error %v, tags %s for %d, claim %q", err, tags(o), o.Count(), o.ClaimName)
	}
	if got, want := o.String(), "order 7 on-demand for batch b1 from 2 offerings in 1 templates"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// What a template takes from kubelet settings, connection tracking and requests.
func TestWhatATemplateTakesFromItsClass(t *testing.T) {
	w := newWorld(t)
	w.addType(t, "m5.large od=0.096")
	plain, err := w.choose(t)
	if err != nil || plain.Templates[0].Enclave || plain.Templates[0].NetworkInterfaces[0].ConnectionTracking != nil {
		t.Fatalf("error %v, template %+v", err, plain.Templates)
	}
	w.class(t, `{spec: {kubelet: {systemReserved: {cpu: 123m}}, connectionTracking: {tcpEstablishedTimeout: 500, udpStreamTimeout: 70, udpTimeout: 40}}}`)
	const slots = "eks.amazonaws.com/nip-slots"
	w.in.Claim.Requests = w.in.Claim.Requests.With(slots, 1)
	if _, err = w.choose(t); kind(err) != "NoCapacity" {
		t.Errorf("no type is said to have %s: %v", slots, err)
	}
	for i := range w.in.Types { // as a NodeOverlay does
		w.in.Types[i].Allocatable = w.in.Types[i].Allocatable.With(slots, 1)
	}
	o, err := launch.ChooseOrder(w.in)
	if err != nil {
		t.Fatal(err)
	}
	got := o.Templates[0]
	data, err := base64.StdEncoding.DecodeString(got.UserData)
	if err != nil || !strings.Contains(string(data), "systemReserved") || !strings.Contains(string(data), "123m") {
		t.Errorf("error %v, user data without the kubelet's settings:\n%s", err, data)
	}
	if track := got.NetworkInterfaces[0].ConnectionTracking; !got.Enclave || track == nil || *track != (launch.ConnectionTracking{TCPEstablishedSec: 500, UDPStreamSec: 70, UDPSec: 40}) {
		t.Errorf("enclave %t, tracking %+v", got.Enclave, track)
	}
	if v := got.Overrides[0]; v.ImageID != "ami-1" || v.Pods != 29 {
		t.Errorf("override %+v", v)
	}
}

// Types of which an expression of the kubelet comes to something else have another template, whose user data says what
// it comes to.
func TestTemplatesByWhatExpressionsComeTo(t *testing.T) {
	for _, family := range []string{"AL2023", "AL2", "Bottlerocket"} {
		w := newWorld(t)
		for _, line := range []string{"m5.large od=0.096", "m5.xlarge cpu=4 od=0.192", "c5.xlarge cpu=4 od=0.17"} {
			w.addType(t, line)
		}
		w.class(t, `{spec: {amiFamily: `+family+`, kubelet: {maxPods: "instance_type == 'c5.xlarge' ? 11 : 12", kubeReserved: {cpu: vcpus * 30, memory: 1Gi}, systemReserved: {pid: '3'}}}}`)
		o, err := w.choose(t)
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]string{}
		for _, x := range o.Templates {
			data, err := base64.StdEncoding.DecodeString(x.UserData)
			if err != nil || len(x.Overrides) != 2 || strings.Contains(string(data), "vcpus") || strings.Contains(string(data), "instance_type") {
				t.Errorf("%s: error %v, overrides %v, user data\n%s", family, err, x.Overrides, data)
			}
			got[x.Overrides[0].Type] = string(data)
		}
		for typ, want := range map[string][]string{"m5.large": {"60m", "1Gi", "12"}, "m5.xlarge": {"120m", "1Gi", "12"}, "c5.xlarge": {"120m", "1Gi", "11"}} {
			for _, text := range want {
				if !strings.Contains(got[typ], text) {
					t.Errorf("%s: user data of %s lacks %s:\n%s", family, typ, text, got[typ])
				}
			}
		}
	}
}

// CPU options that leave nested virtualization out leave it to EC2.
func TestCPUOptionsOfATemplate(t *testing.T) {
	for class, want := range map[string]string{
		`{spec: {}}`: "", `{spec: {cpuOptions: {}}}`: "",
		`{spec: {cpuOptions: {nestedVirtualization: disabled}}}`: "disabled",
	} {
		w := newWorld(t)
		w.addType(t, "m5.large od=0.096")
		w.class(t, class)
		o, err := w.choose(t)
		if err != nil || o.Templates[0].NestedVirtual != want {
			t.Errorf("class %s: error %v, templates %+v, want nested virtualization %q", class, err, o.Templates, want)
		}
	}
}

// A claim that carries what no Node can is given up: that is not the fault of its class, with which others launch.
func TestLabelsThatNoNodeCanHave(t *testing.T) {
	for why, edit := range map[string]func(*cluster.Claim){
		"": func(*cluster.Claim) {},
		`no label team can have the value ";--anonymous-auth=true#"`: func(c *cluster.Claim) { c.Labels["team"] = ";--anonymous-auth=true#" },
		`no label can have the key "a b"`:                            func(c *cluster.Claim) { c.Labels["a b"] = "x" },
		`no taint can have the key "a,b"`:                            func(c *cluster.Claim) { c.Taints = []cluster.Taint{{Key: "a,b", Effect: "NoSchedule"}} },
		`no taint a can have the value "b\nc"`: func(c *cluster.Claim) {
			c.StartupTaints = []cluster.Taint{{Key: "a", Value: "b\nc", Effect: "NoSchedule"}}
		},
		`no taint a can have the effect "NoSchedule --v=9"`: func(c *cluster.Claim) { c.Taints = []cluster.Taint{{Key: "a", Effect: "NoSchedule --v=9"}} },
	} {
		w := newWorld(t)
		w.in.Resolved.Ready = true
		w.addType(t, "m5.large od=0.1")
		w.in.Claim.Labels = map[string]string{"karpenter.sh/nodepool": "general"}
		edit(&w.in.Claim)
		_, err := w.choose(t)
		if why == "" && err == nil {
			continue
		}
		if err == nil || kind(err) != "NoCapacity" || err.Error() != "no capacity: InvalidNodeRegistration: user data: "+why {
			t.Errorf("%v, want %s", err, why)
		}
	}
}

// What a class says of the kubelet is one setting each: a quote or a line break would be another flag.
func TestKubeletSettingsThatAreOthers(t *testing.T) {
	for text, why := range map[string]string{
		`{systemReserved: {cpu: "1\" --anonymous-auth=true \""}}`: `spec.kubelet.systemReserved.cpu is no amount: "1\" --anonymous-auth=true \""`,
		`{evictionHard: {"a<1,b": 5%}}`:                           `spec.kubelet.evictionHard has a key that the kubelet does not know: "a<1,b"`,
		`{clusterDNS: [10.0.0.10, "10.0.0.11'"]}`:                 `spec.kubelet.clusterDNS[1] is no IP address: "10.0.0.11'"`,
	} {
		w := newWorld(t)
		w.addType(t, "m5.large od=0.1")
		w.class(t, "spec: {kubelet: "+text+"}")
		w.in.Resolved.KubeReserved, w.in.Resolved.SystemReserved = nil, nil
		if _, err := w.choose(t); err == nil || err.Error() != "EC2NodeClass default is not ready: UserDataMalformed: user data: "+why {
			t.Errorf("%s: %v, want %s", text, err, why)
		}
	}
}
