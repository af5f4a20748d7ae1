package cluster

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"joiner.sh/pkg/model/instancetypes"
)

// A node that says it attaches next to nothing takes no volumes from other nodes of its type; what several nodes say,
// and what is near to what EC2 says, counts.
func TestVolumeLimitsOfANodeThatLies(t *testing.T) {
	const ebs, other = instancetypes.DriverEBS, "csi.example.com"
	type says struct {
		typ    string
		driver string
		limit  int64
	}
	for name, c := range map[string]struct {
		nodes []says
		ec2   int64
		want  map[string]int64
	}{
		"one lies among honest ones": {[]says{{"m", ebs, 1}, {"m", ebs, 25}, {"m", ebs, 26}}, 26, map[string]int64{ebs: 25}},
		"the only node lies":         {[]says{{"m", ebs, 1}}, 26, map[string]int64{ebs: 26}},
		"the only node of its type":  {[]says{{"m", ebs, 1}, {"r", ebs, 25}}, 26, map[string]int64{ebs: 26}},
		"a little fewer":             {[]says{{"m", ebs, 20}}, 26, map[string]int64{ebs: 20}},
		"all are told to attach few": {[]says{{"m", ebs, 4}, {"r", ebs, 4}}, 26, map[string]int64{ebs: 4}},
		"two of the type attach few": {[]says{{"m", ebs, 4}, {"m", ebs, 5}, {"r", ebs, 25}}, 26, map[string]int64{ebs: 4}},
		"EC2 says nothing":           {[]says{{"m", ebs, 3}}, 0, map[string]int64{ebs: 3}},
		"another driver":             {[]says{{"m", other, 1}, {"r", other, 16}}, 26, map[string]int64{ebs: 26, other: 16}},
		"another driver, alone":      {[]says{{"m", other, 1}}, 0, map[string]int64{other: 1}},
		"nodes of other types":       {[]says{{"r", ebs, 25}, {"r", other, 8}, {"r", other, 9}}, 0, map[string]int64{ebs: 25, other: 9}},
		"attaches nothing":           {[]says{{"m", ebs, 0}}, 26, map[string]int64{ebs: 26}},
	} {
		var hosts []StateNode
		for _, n := range c.nodes {
			hosts = append(hosts, StateNode{Node: &Node{VolumeLimits: map[string]int64{n.driver: n.limit}},
				Claim: &Claim{Labels: map[string]string{instancetypes.LabelType: n.typ}}})
		}
		if d := cmp.Diff(c.want, ReadVolumeLimits(hosts).ExpectedOn("m", c.ec2)); d != "" {
			t.Errorf("%s (-want +got):\n%s", name, d)
		}
	}
}

// A driver that is told to attach few is told so on the nodes of all types, so that a type of which there is no node
// attaches few too. One node does not tell so, nor do nodes when one of them attaches what EC2 says.
func TestVolumeLimitsOfADriverThatIsToldToAttachFew(t *testing.T) {
	const ebs = instancetypes.DriverEBS
	ec2 := map[string]int64{"m": 26, "r": 26, "c": 39, "large": 127}
	type says map[string][]int64 // by type
	for name, c := range map[string]struct {
		nodes says
		typ   string
		want  int64
	}{
		"all say few":                     {says{"r": {4}, "c": {4}}, "m", 4},
		"all say few, of one type":        {says{"r": {4, 5}}, "m", 5},
		"of a type that attaches fewer":   {says{"c": {18, 18}}, "small", 8},
		"one node":                        {says{"r": {4}}, "m", 26},
		"one lies":                        {says{"r": {4}, "c": {38}}, "m", 26},
		"one lies among its type":         {says{"r": {4, 25}}, "m", 26},
		"what EC2 says, of a larger type": {says{"m": {26}, "r": {26}}, "large", 127},
		"types of which EC2 says nothing": {says{"x": {4}, "y": {4}}, "m", 26},
		"and one that it knows":           {says{"x": {4}, "r": {4}}, "m", 26},
	} {
		var hosts []StateNode
		for typ, limits := range c.nodes {
			for _, n := range limits {
				hosts = append(hosts, StateNode{Node: &Node{VolumeLimits: map[string]int64{ebs: n}},
					Claim: &Claim{Labels: map[string]string{instancetypes.LabelType: typ}}})
			}
		}
		known := ReadVolumeLimits(hosts).LoweredFrom(func(typ string) int64 { return ec2[typ] })
		offered := ec2[c.typ]
		if c.typ == "small" {
			offered = 8
		}
		if got := known.ExpectedOn(c.typ, offered)[ebs]; got != c.want {
			t.Errorf("%s: %d volumes, want %d", name, got, c.want)
		}
	}
}
