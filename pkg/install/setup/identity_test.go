package setup_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"joiner.sh/pkg/install/setup"
)

const linux, windows = "KarpenterNodeRole-demo", "KarpenterNodeRole-demo-windows"

// classWith is an EC2NodeClass whose spec names a role or a profile.
func classWith(name, field, value string) *unstructured.Unstructured {
	o := object("EC2NodeClass", name)
	o.Object["spec"] = map[string]any{field: value}
	o.SetUID("u-1")
	return o
}

// claimIn is a NodeClaim of ours of the class, launched with the profile.
func claimIn(name, class, profile string) *unstructured.Unstructured {
	o := ours(name, "")
	spec := o.Object["spec"].(map[string]any)
	spec["nodeClassRef"].(map[string]any)["name"] = class
	if profile != "" {
		o.SetAnnotations(map[string]string{"karpenter.k8s.aws/instance-profile-name": profile})
	}
	return o
}

// An update that leaves a node role out would delete it, and with it the identity of nodes that run. Which role a node
// has follows from the profile that it was launched with.
func TestAnUpdateThatTakesARoleOfLivingNodesIsRefused(t *testing.T) {
	foreign := claimOf("auto", "eks.amazonaws.com", "NodeClass", "")
	foreign.Object["spec"].(map[string]any)["nodeClassRef"].(map[string]any)["name"] = "win"
	for name, c := range map[string]struct {
		leaving []string
		claim   *unstructured.Unstructured
		refused bool
	}{
		"nothing leaves":                          {nil, claimIn("a", "win", windows), false},
		"a profile of the role's name":            {[]string{windows}, claimIn("a", "win", windows), true},
		"the profile made for the class":          {[]string{windows}, claimIn("a", "win", "win/u-1/"+windows), true},
		"the class had that role before":          {[]string{windows}, claimIn("a", "linux", "linux/u-1/"+windows), true},
		"no profile is told, the class has it":    {[]string{windows}, claimIn("a", "win", ""), true},
		"no profile is told, the class names one": {[]string{windows}, claimIn("a", "named", ""), true},
		"another role":                            {[]string{windows}, claimIn("a", "linux", "linux/u-1/"+linux), false},
		"both roles leave":                        {[]string{linux, windows}, claimIn("a", "linux", "linux/u-1/"+linux), true},
		"somebody else's claim":                   {[]string{windows}, foreign, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := &world{objects: map[string]*unstructured.Unstructured{claimsPath + c.claim.GetName(): c.claim,
				classPath + "win": classWith("win", "role", "path/"+windows), classPath + "linux": classWith("linux", "role", linux), classPath + "named": classWith("named", "instanceProfile", windows)}}
			s := newSetup(w)
			s.Leaving = setup.Leaving{Roles: c.leaving, ProfileOf: func(class, uid, role string) string { return class + "/" + uid + "/" + role }}
			err := s.CheckLeavingRoles(t.Context())
			if (err != nil) != c.refused || err != nil && !strings.Contains(err.Error(), "1 nodes belong to the cluster: a.") {
				t.Errorf("error %v, want a refusal: %t", err, c.refused)
			}
		})
	}
}

// Without its instance profiles IAM would not let CloudFormation delete the node role; with keep they go on serving.
func TestDrainRemovesWhatLaunchesLeftInTheAccount(t *testing.T) {
	for name, c := range map[string]struct {
		drain bool
		found bool
		want  []string
	}{
		"drain":                        {true, true, []string{"remove leftovers"}},
		"drain of a cluster that left": {true, false, []string{"remove leftovers"}},
		"keep":                         {false, true, nil},
	} {
		t.Run(name, func(t *testing.T) {
			w := &world{objects: map[string]*unstructured.Unstructured{}}
			s := newSetup(w)
			s.Access.Found = c.found
			if err := s.RemoveFromCluster(t.Context(), c.drain, time.Minute); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, w.done); diff != "" {
				t.Errorf("done (-want +got):\n%s", diff)
			}
		})
	}
}

// A refresh that began before its schedule went makes a profile again that setup has just removed.
func TestLeftoversAreRemovedUntilNoRefreshRunsAnyMore(t *testing.T) {
	w := &world{objects: map[string]*unstructured.Unstructured{}}
	s := newSetup(w)
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	s.Now, s.IAMDelay = func() time.Time { now = now.Add(time.Millisecond); return now }, 3*time.Millisecond
	if err := s.RemoveFromCluster(t.Context(), true, time.Minute); err != nil {
		t.Fatal(err)
	}
	if len(w.done) < 2 || w.done[0] != "remove leftovers" {
		t.Errorf("done %v, want leftovers removed more than once", w.done)
	}
	w.fail = func(call string) error {
		if call == "remove leftovers" {
			return errors.New("AccessDenied")
		}
		return nil
	}
	if err := s.RemoveFromCluster(t.Context(), true, time.Minute); err == nil || !strings.Contains(err.Error(), "remove instance profiles and launch templates: AccessDenied") {
		t.Errorf("error %v", err)
	}
}
