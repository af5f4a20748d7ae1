package lifecycle_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	awsv1 "joiner.sh/pkg/api/aws/v1"
	v1 "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/plan"
	"joiner.sh/pkg/model/resources"
	"joiner.sh/pkg/nodeclaim/lifecycle"
)

// A node that ends because it never became usable is held against its type and its class as these are now, unless
// another one has become usable since it was bought: then it was broken.
func TestNodesThatNeverBecameUsable(t *testing.T) {
	const agent = "taint node.cilium.io/agent-not-ready:NoSchedule is still on the node; its NodePool does not declare it under startupTaints"
	another := func(typ string, since time.Duration) func(*cluster.Snapshot) {
		return func(s *cluster.Snapshot) {
			c := s.Claims[0]
			c.Name, c.UID, c.ProviderID = "other", "uid-other", providerID("i-2")
			c.Labels = map[string]string{instancetypes.LabelType: typ}
			c.Conditions = []cluster.Condition{{Type: v1.ConditionLaunched, Status: "True"}, {Type: v1.ConditionRegistered, Status: "True"},
				{Type: v1.ConditionInitialized, Status: "True", Since: start().Add(-since)}}
			s.Claims = append(s.Claims, c)
		}
	}
	unregistered := func(s *cluster.Snapshot) {
		s.Nodes, s.Claims[0].NodeName, s.Claims[0].Conditions = nil, "", s.Claims[0].Conditions[:1]
	}
	for name, c := range map[string]struct {
		change func(*cluster.Snapshot)
		why    string
		want   []string // type of those held, the class as "", and how many are allowed
	}{
		"an agent's taint stays": {func(*cluster.Snapshot) {}, agent, []string{"m5.large 2", " 3"}},
		"a startup taint stays": {func(s *cluster.Snapshot) {
			s.Nodes[0].Taints = []cluster.Taint{{Key: "setup", Effect: "NoSchedule"}}
			s.Claims[0].StartupTaints = s.Nodes[0].Taints
		}, "startup taint setup:NoSchedule is still on the node", []string{"m5.large 2", " 3"}},
		"it is never Ready": {func(s *cluster.Snapshot) { s.Nodes[0].Ready = false }, "the node is not Ready", []string{"m5.large 2", " 3"}},
		"none registers":    {unregistered, "no node registered for it within 15m0s", []string{"m5.large 2", " 3"}},
		"it lacks a resource": {func(s *cluster.Snapshot) {
			s.Nodes[0].Taints, s.Claims[0].Requests, s.Devices.Known = nil, resources.List{}.With("a/b", 1), true
		}, "", nil},
		"one of its type came since":     {another("m5.large", 39*time.Minute), "", nil},
		"one of another type came since": {another("m6g.large", 39*time.Minute), agent, []string{"m5.large 2"}},
		"others came before":             {another("m5.large", 41*time.Minute), agent, []string{"m5.large 2", " 3"}},
		"an image of before":             {func(s *cluster.Snapshot) { s.Claims[0].ImageID = "ami-0" }, "", nil},
		"a spec of before":               {func(s *cluster.Snapshot) { s.Claims[0].Annotations[awsv1.AnnotationHash] = "0" }, "", nil},
		"nobody knows its type":          {func(s *cluster.Snapshot) { delete(s.Claims[0].Labels, instancetypes.LabelType) }, "", nil},
		"one of 500 nodes of its NodePool": {func(s *cluster.Snapshot) {
			for i := range 499 {
				s.Claims = append(s.Claims, cluster.Claim{Name: fmt.Sprintf("z-%03d", i), UID: fmt.Sprint(i), Pool: "p", Class: "default"})
			}
		}, agent, []string{"m5.large 5", " 5"}},
	} {
		since := start().Add(-30 * time.Minute)
		s := cluster.Snapshot{Now: start(), Rules: cluster.Settings{RegistrationTimeout: 15 * time.Minute, InitializationTimeout: 30 * time.Minute},
			Classes: []instancetypes.Class{{Name: "default", Hash: "1", Images: []instancetypes.Image{{ID: "ami-1"}}}},
			Nodes: []cluster.Node{{Name: "n", ProviderID: providerID("i-1"), Ready: true, Finalizer: true, Created: since,
				Taints: []cluster.Taint{{Key: "node.cilium.io/agent-not-ready", Effect: "NoSchedule"}}}},
			Claims: []cluster.Claim{{Name: "c", UID: "u", Pool: "p", Class: "default", ProviderID: providerID("i-1"), Finalizer: true, NodeName: "n", ImageID: "ami-1",
				Created: start().Add(-40 * time.Minute), Annotations: map[string]string{awsv1.AnnotationHash: "1"}, Labels: map[string]string{instancetypes.LabelType: "m5.large"},
				Conditions: []cluster.Condition{{Type: v1.ConditionLaunched, Status: "True", Since: since}, {Type: v1.ConditionRegistered, Status: "True", Since: since}}}},
			Instances: []cluster.Instance{{ID: "i-1", State: "running", Zone: "a", Claim: "c", ClaimUID: "u"}, {ID: "i-2", State: "running", Zone: "a", Claim: "other", ClaimUID: "uid-other"}}}
		c.change(&s)
		var got []string
		ended := false
		for _, a := range lifecycle.Next(s).Actions {
			ended = ended || a.Do == plan.DeleteClaim && a.Claim == "c"
			if a.Do != plan.NoteUseless {
				continue
			}
			for _, u := range a.Unused {
				got = append(got, fmt.Sprint(u.Type, " ", u.Allowed))
				if u.Class != "default" || u.Instance != "i-1" || u.Cause != s.Classes[0].CauseOf(u.Type) || u.Why != "c: "+c.why {
					t.Errorf("%s: %+v, want why %q", name, u, c.why)
				}
			}
		}
		if !ended || !slices.Equal(got, c.want) {
			t.Errorf("%s: held against %q, want %q; ended %t", name, strings.Join(got, ","), strings.Join(c.want, ","), ended)
		}
	}
}
