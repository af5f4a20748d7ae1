package cluster

import (
	"testing"
)

func TestTolerates(t *testing.T) {
	for _, c := range []struct {
		toleration Toleration
		taint      Taint
		want       bool
	}{
		{Toleration{Operator: "Exists"}, Taint{"a", "x", "NoSchedule"}, true},
		{Toleration{Operator: "Exists", Effect: "NoExecute"}, Taint{"a", "x", "NoSchedule"}, false},
		{Toleration{Key: "a", Operator: "Exists"}, Taint{"a", "x", "NoSchedule"}, true},
		{Toleration{Key: "a", Operator: "Equal", Value: "x"}, Taint{"a", "x", "NoSchedule"}, true},
		{Toleration{Key: "a", Value: "x"}, Taint{"a", "y", "NoSchedule"}, false},
		{Toleration{Key: "b", Operator: "Exists"}, Taint{"a", "", "NoSchedule"}, false},
		{Toleration{}, Taint{"a", "", "NoSchedule"}, false},
		{Toleration{Key: "a"}, Taint{"a", "", "NoSchedule"}, true},
	} {
		if got := c.toleration.Tolerates(c.taint); got != c.want {
			t.Errorf("%+v on %s: %t", c.toleration, c.taint, got)
		}
	}
	left := Untolerated([]Taint{{"a", "", "NoSchedule"}, {"b", "1", "NoExecute"}}, []Toleration{{Key: "a", Operator: "Exists"}})
	if len(left) != 1 || left[0].String() != "b=1:NoExecute" {
		t.Errorf("left %v", left)
	}
}

func TestConditions(t *testing.T) {
	c := Claim{Created: noon, Conditions: []Condition{{Type: "Launched", Status: "True"}, {Type: "Ready", Status: "False"}}}
	if !c.Is("Launched") || c.Is("Ready") || c.Is("Drained") {
		t.Error("a condition is told wrongly")
	}
	if got := c.Condition("Drained"); got.Status != "Unknown" || got.Since != noon {
		t.Errorf("missing condition: %+v", got)
	}
}
