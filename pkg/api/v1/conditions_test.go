package v1

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func at(minute int) time.Time {
	return time.Date(2026, 3, 1, 10, minute, 0, 0, time.UTC)
}

func newClaim() *NodeClaim {
	return &NodeClaim{ObjectMeta: metav1.ObjectMeta{Generation: 1, CreationTimestamp: metav1.NewTime(at(0))}}
}

// show writes conditions one per line: type=status reason "message" minute generation.
func show(conditions []metav1.Condition) string {
	var lines []string
	for _, c := range conditions {
		lines = append(lines, fmt.Sprintf("%s=%s %s %q min%d gen%d",
			c.Type, c.Status, c.Reason, c.Message, c.LastTransitionTime.Minute(), c.ObservedGeneration))
	}
	return strings.Join(lines, "\n") + "\n"
}

func expect(t *testing.T, conditions []metav1.Condition, want string) {
	t.Helper()
	if diff := cmp.Diff(strings.TrimLeft(want, "\n"), show(conditions)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestInitializeCountsFromCreation(t *testing.T) {
	claim := newClaim()
	if !claim.StatusConditions().Initialize() {
		t.Error("said that nothing changed")
	}
	expect(t, claim.Status.Conditions, `
Launched=Unknown AwaitingReconciliation "object is awaiting reconciliation" min0 gen1
Registered=Unknown AwaitingReconciliation "object is awaiting reconciliation" min0 gen1
Initialized=Unknown AwaitingReconciliation "object is awaiting reconciliation" min0 gen1
Ready=Unknown AwaitingReconciliation "object is awaiting reconciliation" min0 gen1
`)
	if claim.StatusConditions().Initialize() {
		t.Error("changed something the second time")
	}
}

// The launch and registration time-outs count from the transition, so a new reason must not move it.
func TestTransitionTimeMovesOnlyWithTheStatus(t *testing.T) {
	claim := newClaim()
	conditions := claim.StatusConditions()
	conditions.Initialize()
	conditions.SetUnknown(ConditionRegistered, ReasonNodeNotFound, "no node yet", at(1))
	conditions.SetTrue(ConditionLaunched, at(2))
	conditions.SetTrue(ConditionLaunched, at(3))
	expect(t, claim.Status.Conditions, `
Launched=True Launched "" min2 gen1
Registered=Unknown NodeNotFound "no node yet" min0 gen1
Initialized=Unknown AwaitingReconciliation "object is awaiting reconciliation" min0 gen1
Ready=Unknown ReconcilingDependents "Registered=Unknown, Initialized=Unknown" min0 gen1
`)
}

func TestSetSaysWhetherAnythingChanged(t *testing.T) {
	claim := newClaim()
	conditions := claim.StatusConditions()
	if !conditions.SetFalse(ConditionRegistered, ReasonMultipleNodesFound, "a, b", at(1)) {
		t.Error("a new condition is a change")
	}
	if conditions.SetFalse(ConditionRegistered, ReasonMultipleNodesFound, "a, b", at(2)) {
		t.Error("the same again is no change")
	}
	if !conditions.SetFalse(ConditionRegistered, ReasonMultipleNodesFound, "a, b, c", at(3)) {
		t.Error("another message is a change")
	}
	claim.Generation = 2
	if !claim.StatusConditions().SetFalse(ConditionRegistered, ReasonMultipleNodesFound, "a, b, c", at(4)) {
		t.Error("another generation is a change")
	}
}

func TestReadyFollowsItsDependents(t *testing.T) {
	pool := &NodePool{ObjectMeta: metav1.ObjectMeta{Generation: 4}}
	conditions := pool.StatusConditions()
	conditions.SetTrue(ConditionValidationSucceeded, at(1))
	conditions.SetTrue(ConditionNodeClassReady, at(2))
	conditions.SetFalse(ConditionNodeRegistrationHealthy, ReasonRegistrationFailed, "", at(3))
	if !conditions.IsTrue(ConditionReady, ConditionNodeClassReady) {
		t.Errorf("not ready:\n%s", show(pool.Status.Conditions))
	}
	expect(t, pool.Status.Conditions, `
ValidationSucceeded=True ValidationSucceeded "" min1 gen4
Ready=True Ready "" min2 gen4
NodeClassReady=True NodeClassReady "" min2 gen4
NodeRegistrationHealthy=False RegistrationFailed "" min3 gen4
`)
	conditions.SetFalse(ConditionNodeClassReady, ReasonNodeClassNotFound, "", at(5))
	ready, _ := conditions.Get(ConditionReady)
	if got := show([]metav1.Condition{ready}); got != "Ready=False UnhealthyDependents \"NodeClassReady=False\" min5 gen4\n" {
		t.Errorf("got %s", got)
	}
}

// What was true of an older spec says nothing about this one.
func TestAnOldGenerationIsNotTrue(t *testing.T) {
	pool := &NodePool{ObjectMeta: metav1.ObjectMeta{Generation: 1}}
	pool.StatusConditions().SetTrue(ConditionValidationSucceeded, at(1))
	pool.StatusConditions().SetTrue(ConditionNodeClassReady, at(1))
	pool.Generation = 2
	conditions := pool.StatusConditions()
	if conditions.IsTrue(ConditionReady) || conditions.IsTrue(ConditionNodeClassReady) {
		t.Error("an old generation counts as true")
	}
	conditions.SetTrue(ConditionValidationSucceeded, at(2))
	ready, _ := conditions.Get(ConditionReady)
	if got := show([]metav1.Condition{ready}); got != "Ready=Unknown ReconcilingDependents \"NodeClassReady=Unknown\" min2 gen2\n" {
		t.Errorf("got %s", got)
	}
	pool.Status.Conditions = []metav1.Condition{{Type: ConditionReady, Status: metav1.ConditionTrue}}
	if !conditions.IsTrue(ConditionReady) {
		t.Error("a condition without a generation counts as old")
	}
}

func TestClear(t *testing.T) {
	claim := newClaim()
	conditions := claim.StatusConditions()
	conditions.SetTrue(ConditionLaunched, at(1))
	conditions.Set(metav1.Condition{Type: ConditionDrifted, Status: metav1.ConditionTrue, Reason: "AMIDrift"}, at(2))
	if !conditions.IsTrue(ConditionDrifted) || !conditions.Clear(ConditionDrifted) ||
		conditions.Clear(ConditionDrifted) {
		t.Error("Drifted comes and goes")
	}
	if conditions.Clear(ConditionLaunched) || conditions.Clear(ConditionReady) {
		t.Error("dependents and Ready stay")
	}
	expect(t, claim.Status.Conditions, `
Launched=True Launched "" min1 gen1
Ready=Unknown ReconcilingDependents "Registered=Unknown, Initialized=Unknown" min1 gen1
`)
}
