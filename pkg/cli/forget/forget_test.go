package forget_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	awsv1 "joiner.sh/pkg/api/aws/v1"
	"joiner.sh/pkg/cli/forget"
	"joiner.sh/pkg/model/instancetypes"
)

func known() forget.Known {
	now := time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)
	class := func(name, memory, short string) awsv1.EC2NodeClass {
		return awsv1.EC2NodeClass{ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{
			"joiner.sh/observed-memory": memory, "joiner.sh/observed-shortfalls": short}}}
	}
	unavailable := func(o instancetypes.OfferingKey, scope, resource, why string, until time.Duration) instancetypes.UnavailableEntry {
		return instancetypes.UnavailableEntry{Instances: []string{"i-1", "i-2"}, UnavailableOffering: instancetypes.UnavailableOffering{
			OfferingKey: o, Scope: scope, Resource: resource, Why: why, Until: now.Add(until)}}
	}
	large := instancetypes.OfferingKey{Type: "m5.large"}
	return forget.Known{Now: now,
		Classes: []awsv1.EC2NodeClass{
			class("default", `{"of":"an old image","types":{"m5.large":{"mib":7500,"seen":"2026-11-22"},"c5.large":{"mib":3500,"seen":"2026-11-20"}}}`,
				`{"of":"x","seen":[{"type":"m5.large","instance":"i-1","has":[{"name":"cpu","count":1500},{"name":"pods","count":20}],"at":"2026-11-22T00:00:00Z"}]}`),
			class("empty", "", ""),
			class("odd", "[", "{"),
		},
		Unavailable: []instancetypes.UnavailableEntry{
			unavailable(instancetypes.OfferingKey{CapacityType: "spot", Type: "m5.large", Zone: "us-west-2a"}, "", "", "InsufficientInstanceCapacity", time.Minute),
			unavailable(instancetypes.OfferingKey{CapacityType: "spot"}, "", "", "MaxSpotInstanceCountExceeded", -time.Minute),
			unavailable(instancetypes.OfferingKey{CapacityType: "spot", Type: "m5.large", Zone: "us-west-2a"}, "ec2nodeclass/default", "", "InternalError", time.Minute),
			unavailable(large, "ec2nodeclass/default", "", "shop/web: 0/3 nodes\njoiner: all fine", time.Hour),
			unavailable(large, "ec2nodeclass/gone", "", "", -time.Hour),
			unavailable(large, "ec2nodeclass/default", "nvidia.com/gpu", "", time.Hour),
			unavailable(instancetypes.OfferingKey{}, "ec2nodeclass/default", "", "i-1 ended: Client.InternalError", -time.Minute),
			unavailable(instancetypes.OfferingKey{}, "subnet-1", "", "InsufficientFreeAddressesInSubnet", time.Minute),
		}}
}

func TestWhatIsDropped(t *testing.T) {
	memory := []string{"EC2NodeClass default, c5.large: memory of 3500 MiB, seen 2026-11-20", "EC2NodeClass default, m5.large: memory of 7500 MiB, seen 2026-11-22"}
	const (
		short    = "EC2NodeClass default, m5.large: only cpu 1500m, pods 20 for pods, on i-1"
		spot     = "spot m5.large in us-west-2a: unavailable until 2026-11-29 12:01 (InsufficientInstanceCapacity)"
		ofClass  = "spot m5.large in us-west-2a for ec2nodeclass/default: unavailable until 2026-11-29 12:01 (InternalError)"
		leftOut  = "EC2NodeClass default, m5.large: left out until 2026-11-29 13:00 (shop/web: 0/3 nodes joiner: all fine)"
		gone     = "EC2NodeClass gone, m5.large: 2 nodes bought in vain"
		noGPU    = "EC2NodeClass default, m5.large: without nvidia.com/gpu until 2026-11-29 13:00"
		ofClass2 = "EC2NodeClass default: a launch failed (i-1 ended: Client.InternalError)"
	)
	for name, c := range map[string]struct {
		f       forget.Filter
		lines   []string
		classes string
		entries int
	}{
		"all": {forget.Filter{}, []string{memory[0], memory[1], short,
			"EC2NodeClass odd: memory by type, unreadable", "EC2NodeClass odd: what nodes have less of than expected, unreadable",
			spot, "spot of all types in all zones: was unavailable (MaxSpotInstanceCountExceeded)", ofClass, leftOut, gone, noGPU, ofClass2,
			"subnet-1: unavailable until 2026-11-29 12:01 (InsufficientFreeAddressesInSubnet)"}, "default odd", 8},
		"a class":                      {forget.Filter{Class: "default"}, []string{memory[0], memory[1], short, ofClass, leftOut, noGPU, ofClass2}, "default", 4},
		"a type":                       {forget.Filter{Type: "m5.large"}, []string{memory[1], short, spot, ofClass, leftOut, gone, noGPU}, "default", 5},
		"a type of a class":            {forget.Filter{Class: "default", Type: "c5.large"}, memory[:1], "default", 0},
		"a class that is gone":         {forget.Filter{Class: "gone"}, []string{gone}, "", 1},
		"a class that learned nothing": {forget.Filter{Class: "empty"}, nil, "", 0},
	} {
		p := forget.PlanDrop(known(), c.f)
		slices.Sort(p.Lines)
		slices.Sort(c.lines)
		if diff := cmp.Diff(c.lines, p.Lines); diff != "" || strings.Join(p.Classes, " ") != c.classes || len(p.Unavailable) != c.entries {
			t.Errorf("%s: of classes %q, %d entries, %s", name, p.Classes, len(p.Unavailable), diff)
		}
	}
}

// A name that is a slip is refused; one of which something is remembered is not, though it is gone.
func TestNamesToForget(t *testing.T) {
	for _, c := range []struct {
		f    forget.Filter
		want string
	}{
		{forget.Filter{}, "<nil>"},
		{forget.Filter{Class: "empty", Type: "sold.large"}, "<nil>"},
		{forget.Filter{Class: "gone", Type: "m5.large"}, "<nil>"},
		{forget.Filter{Class: "defaults"}, `no EC2NodeClass is called "defaults": there is default, empty, odd`},
		{forget.Filter{Class: "default", Type: "m5.lagre"}, `no instance type is called "m5.lagre"`},
		{forget.Filter{Class: "a\nb", Type: "x"}, "no EC2NodeClass is called \"a\\nb\": there is default, empty, odd\nno instance type is called \"x\""},
	} {
		err := forget.CheckNames(known(), c.f, func(name string) bool { return name == "sold.large" })
		if got := fmt.Sprint(err); got != c.want {
			t.Errorf("%+v: %s, want %s", c.f, got, c.want)
		}
	}
	if err := forget.CheckNames(forget.Known{}, forget.Filter{Class: "x"}, nil); fmt.Sprint(err) != `no EC2NodeClass is called "x": there is none` {
		t.Error(err)
	}
}
