package cloudformation_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"joiner.sh/infra/local/awsemulator"
	"joiner.sh/infra/local/cloudformation"
)

// unordered takes the dependencies of one resource on others out of the template, by the beginnings of their ids.
func unordered(of string, from ...string) func(map[string]any) {
	return func(resources map[string]any) {
		for id, v := range resources {
			r, _ := v.(map[string]any)
			list, ok := r["DependsOn"].([]any)
			if !ok || !strings.HasPrefix(id, of) {
				continue
			}
			r["DependsOn"] = slices.DeleteFunc(slices.Clone(list), func(d any) bool {
				return slices.ContainsFunc(from, func(prefix string) bool { return strings.HasPrefix(d.(string), prefix) })
			})
		}
	}
}

// deletable takes the policies out by which the nodes' identity stays.
func deletable(resources map[string]any) {
	for id, v := range resources {
		if r, ok := v.(map[string]any); ok && strings.HasPrefix(id, "Node") {
			delete(r, "DeletionPolicy")
			delete(r, "UpdateReplacePolicy")
		}
	}
}

// A stack that does not keep the identity of nodes takes it first of all, leaves being deleted first: kubelets are
// refused, no pod ends in peace, and IAM does not let go of the role that a class's profile holds.
func TestWithoutItsPoliciesKeepIsAnOutage(t *testing.T) {
	eachOrder(t, func(t *testing.T, w *world) {
		early := template(t, "plain", func(r map[string]any) { deletable(r); unordered("SetupResource", "Node")(r) })
		if err := w.player.DeployStack(t.Context(), w.stack, early); err != nil {
			t.Fatal(err)
		}
		w.launch("web", linux)
		err := w.player.DeleteStack(t.Context(), w.stack)
		if err == nil || !strings.Contains(err.Error(), "DeleteConflict") || w.stack.Status != cloudformation.DeleteFailed {
			t.Errorf("error %v, want DeleteConflict for the node role", err)
		}
		if lost := w.beat(); len(lost) != 1 {
			t.Errorf("lost nodes %v, want the one", lost)
		}
	})
}

// Without the order of setup before the nodes' identity, some order cuts pods off.
func TestWithoutItsOrderDrainCutsPodsOff(t *testing.T) {
	cut := 0
	for _, seed := range []uint64{3, 4, 5, 6, 7, 8} {
		w := newWorld(t, seed)
		if err := w.player.DeployStack(t.Context(), w.stack, template(t, "drain", unordered("SetupResource", "Node"))); err != nil {
			t.Fatal(err)
		}
		w.launch("web", linux)
		_ = w.player.DeleteStack(t.Context(), w.stack) // it may fail, as DeleteConflict has it
		if heard, drained := w.ended["web"]; drained && !heard {
			cut++
		}
	}
	if cut == 0 {
		t.Error("no order refuses the kubelet before its pods are ended")
	}
}

// Without the order of setup after its network, setup is asked while it cannot reach the cluster or AWS.
func TestWithoutItsOrderSetupHasNoNetwork(t *testing.T) {
	for name, c := range map[string]struct {
		form, way string
		nat       bool
	}{
		"the way into the cluster": {"network", "IntoCluster", true},
		"endpoints":                {"endpoints-drain", "Eks", false},
	} {
		t.Run(name, func(t *testing.T) {
			failed := 0
			for _, seed := range []uint64{3, 4, 5, 6, 7, 8} {
				w := newWorld(t, seed)
				w.nat, w.s3Gateway, w.walled = c.nat, true, c.nat
				err := w.player.DeployStack(t.Context(), w.stack, template(t, c.form, unordered("SetupResource", c.way)))
				if err == nil {
					err = w.player.DeleteStack(t.Context(), w.stack)
				}
				if err != nil && strings.Contains(err.Error(), "SetupResource") {
					failed++
				}
			}
			if failed == 0 {
				t.Error("setup reached everything in every order")
			}
		})
	}
}

// A function without a way to S3 cannot answer, and CloudFormation waits for nothing. The preflight, which runs outside
// of the VPC, always can.
func TestWithoutAWayToS3OnlyThePreflightAnswers(t *testing.T) {
	w := newWorld(t, 3)
	w.nat = false
	err := w.player.DeployStack(t.Context(), w.stack, template(t, "endpoints", nil))
	if err == nil || !strings.Contains(err.Error(), "SetupResource: "+cloudformation.ErrNoAnswer.Error()) || w.stack.Status != cloudformation.RollbackFailed {
		t.Errorf("stack %s, error %v", w.stack.Status, err)
	}
	if !slices.Contains(w.asked, "Create PreflightResource") {
		t.Errorf("asked %v", w.asked)
	}
}

// Without the order of schedules after rules, a rule may fail when refresh has stored a catalog, and the rollback then
// fails at its bucket.
func TestWithoutItsOrderARuleFailsTooLate(t *testing.T) {
	late := 0
	for _, seed := range []uint64{3, 4, 5, 6, 7, 8} {
		w := newWorld(t, seed)
		w.player.Fail = func(s cloudformation.Step) error {
			if s.Verb == cloudformation.Create && strings.HasPrefix(s.ID, "SpotInterruptionOn") && s.Type == "AWS::Events::Rule" {
				return errors.New("told to fail")
			}
			return nil
		}
		early := template(t, "plain", unordered("Schedules29FB02FD", "RebalanceOn", "RefreshOn", "ReservationInterruptionOn", "ScheduledChangeOn", "SpotInterruptionOn", "StateChange"))
		err := w.player.DeployStack(t.Context(), w.stack, early)
		if err != nil && w.stack.Status == cloudformation.RollbackFailed && strings.Contains(err.Error(), "BucketNotEmpty") {
			late++
		}
	}
	if late == 0 {
		t.Error("no order has the rule fail after the first tick of refresh")
	}
}

// A stack that is protected is not deleted.
func TestAProtectedStackStays(t *testing.T) {
	w := newWorld(t, 3)
	w.deploy("plain")
	w.stack.Protected = true
	if err := w.player.DeleteStack(t.Context(), w.stack); err == nil || !strings.Contains(err.Error(), "TerminationProtection") {
		t.Errorf("error %v", err)
	}
	w.stack.Protected = false
	if err := w.player.DeleteStack(t.Context(), w.stack); err != nil {
		t.Error(err)
	}
}

// The preflight names the subnets from which nobody could answer, before anything is made.
func TestThePreflightMissesTheWayToS3(t *testing.T) {
	w := newWorld(t, 3)
	w.nat = false
	awsemulator.SetRoutes(w.cloud, awsemulator.Route{To: "0.0.0.0/0", Via: "igw-0a1b2c3d4e5f67890"})
	err := w.player.DeployStack(t.Context(), w.stack, template(t, "endpoints", nil))
	if err == nil || !strings.Contains(err.Error(), "functions in subnet-0123456789abcdef0 and subnet-0123456789abcdef1 cannot reach S3") {
		t.Errorf("error %v", err)
	}
	w.want(cloudformation.RollbackComplete)
	w.left()
	awsemulator.SetRoutes(w.cloud, awsemulator.Route{To: awsemulator.PrefixListS3, Via: "vpce-0a1b2c3d4e5f67890"})
	w.s3Gateway = true
	w.deploy("endpoints")
	w.want(cloudformation.CreateComplete)
}
