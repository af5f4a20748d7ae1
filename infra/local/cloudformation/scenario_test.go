package cloudformation_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"joiner.sh/infra/local/cloudformation"
)

// seeds are orders in which everything is played: slow things at any time, last, and first.
func seeds() []uint64 { return []uint64{3, 4, 5} }

const linux, windows = "KarpenterNodeRole-demo", "KarpenterNodeRole-demo-windows"

// eachOrder runs a scenario in several orders.
func eachOrder(t *testing.T, scenario func(*testing.T, *world)) {
	t.Helper()
	for _, seed := range seeds() {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			t.Parallel()
			scenario(t, newWorld(t, seed))
		})
	}
}

// want fails unless the stack came to a status.
func (w *world) want(status string) {
	w.t.Helper()
	if w.stack.Status != status {
		w.t.Errorf("the stack is %s (%v), want %s", w.stack.Status, w.stack.Reasons, status)
	}
}

// alive fails unless every kubelet is heard.
func (w *world) alive() {
	w.t.Helper()
	if lost := w.beat(); len(lost) > 0 {
		w.t.Errorf("nodes are NotReady: %v", lost)
	}
}

// left fails unless exactly this is left in the account. The catalog's bucket stays with its policy; it can be made again.
func (w *world) left(want ...string) {
	w.t.Helper()
	got := slices.DeleteFunc(w.account.LeftResources(), func(s string) bool {
		return strings.HasPrefix(s, "AWS::S3::Bucket ") || strings.HasPrefix(s, "AWS::S3::BucketPolicy ") || strings.HasPrefix(s, "AWS::Lambda::Version ")
	})
	if diff := cmp.Diff(want, got); len(want)+len(got) > 0 && diff != "" {
		w.t.Errorf("left in the account (-want +got):\n%s", diff)
	}
}

// identity is what nodes of a class with the role belong to the cluster by, without what the class has.
func identity(role string) []string {
	return []string{"access entry " + role, "instance profile " + role, "role " + role}
}

func TestCreateAndKeep(t *testing.T) {
	eachOrder(t, func(t *testing.T, w *world) {
		w.deploy("plain")
		w.want(cloudformation.CreateComplete)
		w.launch("web", linux)
		w.player.After = func(s cloudformation.Step) {
			if lost := w.beat(); len(lost) > 0 {
				t.Errorf("after %s of %s nodes are NotReady: %v", s.Verb, s.ID, lost)
				w.player.After = nil
			}
		}
		if err := w.player.DeleteStack(t.Context(), w.stack); err != nil {
			t.Fatal(err)
		}
		w.want(cloudformation.DeleteComplete)
		w.alive()
		if held := w.held(); len(held) > 0 {
			t.Errorf("somebody waits for functions that are gone: %v", held)
		}
		left := w.account.LeftResources()
		for _, name := range identity(linux) {
			if !slices.Contains(left, name) {
				t.Errorf("%s is gone", name)
			}
		}
	})
}

// What a stack left for its nodes the next one takes into use when it is named, and says so when it is not.
func TestADeploymentAfterKeepAdoptsItsOwn(t *testing.T) {
	eachOrder(t, func(t *testing.T, w *world) {
		w.deploy("plain")
		w.launch("web", linux)
		if err := w.player.DeleteStack(t.Context(), w.stack); err != nil {
			t.Fatal(err)
		}
		w.stack = &cloudformation.Stack{Name: "joiner-demo"}
		w.deploy("nodeRole")
		w.want(cloudformation.CreateComplete)
		w.alive()
		if err := w.player.DeleteStack(t.Context(), w.stack); err != nil {
			t.Fatal(err)
		}
		w.alive()
	})
}

func TestDrainLeavesNothing(t *testing.T) {
	for _, name := range []string{"drain", "drain-windows"} {
		t.Run(name, func(t *testing.T) {
			eachOrder(t, func(t *testing.T, w *world) {
				w.deploy(name)
				w.launch("web", linux)
				if name == "drain-windows" {
					w.launch("win", windows)
				}
				if err := w.player.DeleteStack(t.Context(), w.stack); err != nil {
					t.Fatal(err)
				}
				w.want(cloudformation.DeleteComplete)
				w.peace()
				w.left()
				if held := w.held(); len(held) > 0 {
					t.Errorf("finalizers are left on %v", held)
				}
			})
		})
	}
}

// peace fails unless the kubelet of each drained node was heard, so that pods had their grace period.
func (w *world) peace() {
	w.t.Helper()
	if len(w.ended) == 0 {
		w.t.Error("nothing was drained")
	}
	for name, heard := range w.ended {
		if !heard {
			w.t.Errorf("the pods of %s were cut off: its kubelet was refused when it was to end them", name)
		}
	}
}

// What cannot be drained in time fails the deletion, with its name, and loses nothing; another deletion goes on.
func TestADrainThatTakesTooLongIsGoneOnWith(t *testing.T) {
	eachOrder(t, func(t *testing.T, w *world) {
		w.deploy("drain")
		w.launch("web", linux)
		w.launch("stuck", linux)
		w.within, w.stuck["stuck"] = 2*time.Second, true
		err := w.player.DeleteStack(t.Context(), w.stack)
		if err == nil || !strings.Contains(err.Error(), "1 NodeClaims are not drained within") || !strings.Contains(err.Error(), "stuck") {
			t.Fatalf("error %v", err)
		}
		w.want(cloudformation.DeleteFailed)
		w.alive()
		w.within, w.stuck["stuck"] = 5*time.Second, false
		if err := w.player.DeleteStack(t.Context(), w.stack); err != nil {
			t.Fatal(err)
		}
		w.peace()
		w.left()
	})
}

// A failed deployment leaves the account as it was, and the next one succeeds.
func TestACreationThatFailsAndThenSucceeds(t *testing.T) {
	eachOrder(t, func(t *testing.T, w *world) {
		w.cloud.SetClusterAccess("CONFIG_MAP", true)
		err := w.player.DeployStack(t.Context(), w.stack, template(t, "plain", nil))
		if err == nil || !strings.Contains(err.Error(), "update-cluster-config") {
			t.Fatalf("error %v, want the command that mends it", err)
		}
		w.want(cloudformation.RollbackComplete)
		w.left()
		w.cloud.SetClusterAccess("API", true)
		w.deploy("plain")
		w.want(cloudformation.CreateComplete)
		w.launch("web", linux)
	})
}

// Whatever fails to be created, what was made goes again, and the next deployment succeeds. It is made after each failure
// that leaves the bucket, and after a part of the others.
func TestEachFailureIsRolledBack(t *testing.T) {
	plain := form(t, "plain")
	for _, name := range []string{"plain", "drain-windows", "network", "endpoints"} {
		for i, id := range slices.Sorted(maps.Keys(form(t, name))) {
			if name != "plain" && plain[id] != nil && !strings.HasPrefix(id, "SetupResource") {
				continue // which failed in plain
			}
			if i%8 != 0 && strings.HasPrefix(typeOf(t, name, id), "AWS::CloudWatch::") {
				continue // one alarm is like another
			}
			if testing.Short() && name == "plain" && i%3 != 0 {
				continue
			}
			t.Run(name+" "+id, func(t *testing.T) {
				t.Parallel()
				w := newWorld(t, uint64(i))
				w.player.Fail = func(s cloudformation.Step) error {
					if s.Verb == cloudformation.Create && s.ID == id {
						return errors.New("told to fail")
					}
					return nil
				}
				if err := w.player.DeployStack(t.Context(), w.stack, template(t, name, nil)); err == nil {
					t.Fatal("the deployment did not fail")
				}
				// Beside the schedules something may fail when refresh has stored a catalog. Then the bucket stays, and what
				// stands before it.
				kind := typeOf(t, name, id)
				late := kind != "AWS::Events::Rule" && kind != "AWS::Lambda::EventSourceMapping" &&
					len(w.stack.Reasons) == 2 && strings.Contains(w.stack.Reasons[1], "BucketNotEmpty")
				if !late {
					w.want(cloudformation.RollbackComplete)
					w.left()
				}
				if late || i%6 == 0 { // each takes as long as a creation
					w.player.Fail = nil
					w.deploy(name)
					w.want(cloudformation.CreateComplete)
				}
			})
		}
	}
}

func typeOf(t *testing.T, name, id string) string {
	t.Helper()
	r, _ := form(t, name)[id].(map[string]any)
	kind, _ := r["Type"].(string)
	return kind
}

// In a VPC, with a NAT gateway and with endpoints alone: nodes stay with `keep` and are drained in peace with `drain`.
// Where there are endpoints alone no role makes a profile, so that no class can name one.
func TestInAVPC(t *testing.T) {
	for name, c := range map[string]struct {
		form        string
		nat, walled bool
	}{
		"NAT, into the cluster's group": {"network-drain", true, true},
		"groups of the user":            {"groups", true, false},
		"endpoints alone":               {"endpoints-drain", false, false},
	} {
		t.Run(name, func(t *testing.T) {
			eachOrder(t, func(t *testing.T, w *world) {
				w.nat, w.s3Gateway, w.walled = c.nat, true, c.walled
				w.deploy(c.form)
				if c.nat {
					w.launch("web", linux)
				}
				if err := w.player.DeleteStack(t.Context(), w.stack); err != nil {
					t.Fatal(err)
				}
				w.want(cloudformation.DeleteComplete)
				switch {
				case c.form == "groups":
					w.alive()
				case c.nat:
					w.peace()
					w.left()
				}
				if held := w.held(); len(held) > 0 {
					t.Errorf("finalizers are left on %v", held)
				}
			})
		})
	}
}
