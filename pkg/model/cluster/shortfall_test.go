package cluster

import (
	"fmt"
	"testing"

	api "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/resources"
)

// What a node cannot plausibly have so little of is no shortfall: nothing is learned of it, and the cause by which nodes
// bought in vain are counted stays what it is.
func TestShortfallsArePlausible(t *testing.T) {
	for name, c := range map[string]struct {
		has  resources.List
		want string
	}{
		"as estimated":        {resources.List{CPU: 2000, Memory: 8000, Pods: 29}, "[]"},
		"a little less":       {resources.List{CPU: 1500, Memory: 8000, Pods: 29}, "[{cpu 1500}]"},
		"less than half":      {resources.List{CPU: 900, Memory: 8000, Pods: 29}, "[]"},
		"one of two":          {resources.List{CPU: 1500, Memory: 3000, Pods: 29}, "[{cpu 1500}]"},
		"less than a tenth":   {resources.List{CPU: 2000, Memory: 8000, Pods: 2}, "[]"},
		"few pods":            {resources.List{CPU: 2000, Memory: 8000, Pods: 4}, "[{pods 4}]"},
		"has not reported it": {resources.List{Memory: 8000, Pods: 29}, "[]"},
	} {
		node := StateNode{Node: &Node{Name: "n", Allocatable: c.has}, Claim: &Claim{ProviderID: "aws:///a/i-1",
			Labels:     map[string]string{instancetypes.LabelType: "m5.large"},
			Conditions: []Condition{{Type: api.ConditionRegistered, Status: "True"}}, Allocatable: resources.List{CPU: 2000, Memory: 8000, Pods: 29}}}
		o, short := node.Shortfall()
		if got := fmt.Sprint(o.Has); got != c.want || short != (c.want != "[]") {
			t.Errorf("%s: %s, %v, want %s", name, got, short, c.want)
		}
	}
}
