package rollouts_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	awsv1 "joiner.sh/pkg/api/aws/v1"
	api "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/controllers"
	"joiner.sh/pkg/controllers/rollouts"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/nodeclass"
)

// store keeps one rollout. The call of that number fails, before its deed or after it.
type store struct {
	r       cluster.Rollout
	class   *awsv1.EC2NodeClass
	kept    map[string]*awsv1.EC2NodeClass
	calls   int
	failAt  int
	after   bool
	events  []string
	denied  bool   // nobody may write a status
	writes  int    // of the status that were tried
	missing string // a revision that a status named and nobody kept
}

var errBroken = errors.New("the connection broke")

func (s *store) call(deed func()) error {
	s.calls++
	if s.calls == s.failAt && !s.after {
		return errBroken
	}
	deed()
	if s.calls == s.failAt {
		return errBroken
	}
	return nil
}

func (s *store) ListRollouts(context.Context) (out []cluster.Rollout, err error) {
	err = s.call(func() { out = []cluster.Rollout{s.r} })
	return out, err
}

func (s *store) ReadRevision(_ context.Context, _, revision string) (c *awsv1.EC2NodeClass, err error) {
	err = s.call(func() { c = s.kept[revision] })
	return c, err
}

func (s *store) ReadClass(context.Context, string) (c *awsv1.EC2NodeClass, err error) {
	err = s.call(func() { c = s.class })
	return c, err
}

func (s *store) KeepRevision(_ context.Context, _, revision string, c *awsv1.EC2NodeClass) error {
	return s.call(func() {
		if s.kept[revision] != nil {
			return
		}
		s.kept[revision] = c
		v := cluster.NodeRevision{Name: revision, Resolved: nodeclass.DescribeClass(c)}
		v.Resolved.Name = cluster.RevisionKey(c.Name, revision)
		s.r.Revisions = append(s.r.Revisions, v)
	})
}

func (s *store) ForgetRevision(_ context.Context, revision string) error {
	return s.call(func() {
		delete(s.kept, revision)
		s.r.Revisions = slices.DeleteFunc(s.r.Revisions, func(v cluster.NodeRevision) bool { return v.Name == revision })
	})
}

func (s *store) WriteRolloutStatus(_ context.Context, _ string, st cluster.RolloutStatus) error {
	if s.writes++; s.denied {
		return errBroken
	}
	return s.call(func() {
		for _, name := range []string{st.Revision, st.LastGood} {
			if name != "" && s.kept[name] == nil {
				s.missing = name
			}
		}
		s.r.Status = st
	})
}

func (s *store) RecordEvent(_ context.Context, e cluster.Event) error {
	return s.call(func() { s.events = append(s.events, e.Reason) })
}

func image(id string) *awsv1.EC2NodeClass {
	c := &awsv1.EC2NodeClass{}
	c.Name, c.Annotations = "default", map[string]string{awsv1.AnnotationHash: "1", awsv1.AnnotationHashVersion: awsv1.HashVersion}
	c.Status.AMIs = []awsv1.AMI{{ID: id}}
	c.Status.Conditions = []metav1.Condition{{Type: awsv1.ConditionReady, Status: "True"}}
	return c
}

// pass is a pass that may write: it reads, and takes the steps.
func pass(t *testing.T, s *store) (cluster.Snapshot, error) {
	t.Helper()
	c := &rollouts.Controller{Deps: controllers.Deps{Record: s, Log: slog.New(slog.DiscardHandler), Now: time.Now}, Store: s, Classes: s}
	snapshot := cluster.Snapshot{Now: time.Now(), Pools: []cluster.Pool{{Name: "p", Class: "default", Ready: true}},
		Classes: []instancetypes.Class{nodeclass.DescribeClass(s.class)}}
	ctx := controllers.BeginPass(t.Context(), func(context.Context) (bool, error) { return true, nil })
	snapshot, err := c.AddRollouts(ctx, snapshot)
	if err != nil {
		return snapshot, err
	}
	return c.AdvanceRollouts(ctx, snapshot)
}

// TestDiesAfterEveryCall breaks each call of a rollout that begins, before its deed and after it. No status ever names a
// revision that is not kept, and the passes after that come to where they would have come.
func TestDiesAfterEveryCall(t *testing.T) {
	for at := range 12 {
		for _, after := range []bool{false, true} {
			s := &store{class: image("ami-1"), kept: map[string]*awsv1.EC2NodeClass{}, failAt: at, after: after,
				r: cluster.Rollout{Name: "r", Pools: []string{"p"}, Steps: []cluster.RolloutStep{{Nodes: 2}}, ReadyWithin: time.Minute, MinPods: 5}}
			var last cluster.Snapshot
			for i := range 6 {
				if i == 3 {
					s.class = image("ami-2")
				}
				got, err := pass(t, s)
				if err != nil && !errors.Is(err, errBroken) {
					t.Fatal(err)
				}
				last = got
			}
			if s.missing != "" {
				t.Errorf("call %d: a status names revision %s, which is not kept", at, s.missing)
			}
			if len(s.kept) != 2 || s.r.Status.Phase != cluster.RolloutProgressing || s.r.Status.Allowed != 2 {
				t.Errorf("call %d: %d revisions, %+v", at, len(s.kept), s.r.Status)
			}
			p := last.Pools[0]
			if p.Rollout == nil || p.Revision != s.r.Status.LastGood || p.Rollout.Try != s.r.Status.Revision || p.Rollout.Slots != 2 ||
				p.Annotations[api.AnnotationNodeRevision] != p.Revision {
				t.Errorf("call %d: the pool launches %q, %+v", at, p.Revision, p.Rollout)
			}
			good, found := last.ClassOf(p.ClassKey())
			if !found || len(good.Images) != 1 || good.Images[0].ID != "ami-1" {
				t.Errorf("call %d: the pool launches with %+v", at, good)
			}
		}
	}
}

// A pass that finds that a revision failed and cannot store it launches no further node of it.
func TestAFailureThatCannotBeStored(t *testing.T) {
	for _, after := range []bool{false, true} {
		s := &store{class: image("ami-1"), kept: map[string]*awsv1.EC2NodeClass{}, failAt: -1,
			r: cluster.Rollout{Name: "r", Pools: []string{"p"}, Steps: []cluster.RolloutStep{{Nodes: 2}}, ReadyWithin: time.Minute, MinPods: 5}}
		slots := func() int {
			got, err := pass(t, s)
			if err != nil && !errors.Is(err, errBroken) {
				t.Fatal(err)
			}
			return got.Pools[0].Rollout.Slots
		}
		if slots(); s.r.Status.LastGood == "" {
			t.Fatalf("%+v", s.r.Status)
		}
		if s.class = image("ami-2"); slots() != 2 {
			t.Fatalf("%+v", s.r.Status)
		}
		s.r.Status.Tried = []cluster.TriedNode{{Name: "c", State: cluster.TriedFailed}}
		s.calls, s.failAt, s.after = 0, 2, after // the list is the first call, the status the second
		if n := slots(); n != 0 || (s.r.Status.Phase == cluster.RolloutProgressing) == after {
			t.Errorf("stored %t: %d more nodes of the revision may be launched, %+v", after, n, s.r.Status)
		}
	}
}

// A pass that may not write takes no step.
func TestDryRun(t *testing.T) {
	s := &store{class: image("ami-1"), kept: map[string]*awsv1.EC2NodeClass{}, failAt: -1,
		r: cluster.Rollout{Name: "r", Pools: []string{"p"}, Steps: []cluster.RolloutStep{{Nodes: 2}}}}
	c := &rollouts.Controller{Deps: controllers.Deps{Record: s, Log: slog.New(slog.DiscardHandler), Now: time.Now}, Store: s, Classes: s}
	ctx := controllers.BeginPass(t.Context(), func(context.Context) (bool, error) { return false, nil })
	snapshot, err := c.AddRollouts(ctx, cluster.Snapshot{Pools: []cluster.Pool{{Name: "p", Class: "default"}}, Classes: []instancetypes.Class{nodeclass.DescribeClass(s.class)}})
	if err == nil {
		_, err = c.AdvanceRollouts(ctx, snapshot)
	}
	if err != nil || s.r.Status.Phase != "" || len(s.kept) > 0 || len(s.events) > 0 {
		t.Errorf("%+v, %d kept, %v, error %v", s.r.Status, len(s.kept), s.events, err)
	}
}

// A class that changed since it was decided about is not kept under the wrong name.
func TestClassThatChanges(t *testing.T) {
	s := &store{class: image("ami-1"), kept: map[string]*awsv1.EC2NodeClass{}, failAt: -1,
		r: cluster.Rollout{Name: "r", Pools: []string{"p"}, Steps: []cluster.RolloutStep{{Nodes: 2}}}}
	c := &rollouts.Controller{Deps: controllers.Deps{Record: s, Log: slog.New(slog.DiscardHandler), Now: time.Now}, Store: s, Classes: s}
	ctx := controllers.BeginPass(t.Context(), func(context.Context) (bool, error) { return true, nil })
	snapshot := cluster.Snapshot{Pools: []cluster.Pool{{Name: "p", Class: "default"}}, Classes: []instancetypes.Class{nodeclass.DescribeClass(s.class)}}
	snapshot, err := c.AddRollouts(ctx, snapshot)
	s.class = image("ami-2")
	if err == nil {
		_, err = c.AdvanceRollouts(ctx, snapshot)
	}
	if err != nil || len(s.kept) > 0 || s.r.Status.Phase != "" {
		t.Errorf("%s, %+v, error %v", fmt.Sprint(s.kept), s.r.Status, err)
	}
}

// forbiddenError is a right that lacks.
type forbiddenError struct{}

func (forbiddenError) Error() string   { return "list noderollouts: forbidden" }
func (forbiddenError) Forbidden() bool { return true }

// forbidden lets nobody read NodeRollouts while it is true.
type forbidden struct {
	*store
	now bool
}

func (f *forbidden) ListRollouts(ctx context.Context) ([]cluster.Rollout, error) {
	if f.now {
		return nil, forbiddenError{}
	}
	return f.store.ListRollouts(ctx)
}

// NodeRollouts that may not be read count as none, which is logged once until they can be.
func TestRolloutsThatMayNotBeRead(t *testing.T) {
	s := &forbidden{store: &store{class: image("ami-1"), failAt: -1, r: cluster.Rollout{Name: "r", Pools: []string{"p"}}}}
	var log bytes.Buffer
	told := &rollouts.Told{}
	for i, now := range []bool{true, true, false, true} {
		s.now = now
		c := &rollouts.Controller{Deps: controllers.Deps{Log: slog.New(slog.NewTextHandler(&log, nil))}, Store: s, Told: told}
		got, err := c.AddRollouts(t.Context(), cluster.Snapshot{})
		if err != nil || len(got.Rollouts) == 0 != now {
			t.Errorf("pass %d: %d rollouts, error %v", i, len(got.Rollouts), err)
		}
	}
	if n := strings.Count(log.String(), "NodeRollouts are not followed"); n != 2 {
		t.Errorf("logged %d times:\n%s", n, log.String())
	}
}

// alarms are what CloudWatch and the API server say.
type alarms struct {
	states map[string]string
	err    error
	asked  int
}

func (a *alarms) ReadAlarms(context.Context, []string) (map[string]string, error) {
	a.asked++
	return a.states, a.err
}

func (a *alarms) ReadVersion(context.Context) (string, error) { return "1.36", a.err }

// Alarms are read for NodeRollouts that name some, and what cannot be read is told and takes no step.
func TestAlarmsAreRead(t *testing.T) {
	s := &store{class: image("ami-1"), kept: map[string]*awsv1.EC2NodeClass{}, failAt: -1,
		r: cluster.Rollout{Name: "r", Pools: []string{"p"}, Steps: []cluster.RolloutStep{{Nodes: 2}}, ReadyWithin: time.Minute, MinPods: 5}}
	a := &alarms{states: map[string]string{"errors": "OK"}}
	play := func() cluster.RolloutStatus {
		c := &rollouts.Controller{Deps: controllers.Deps{Record: s, Log: slog.New(slog.DiscardHandler), Now: time.Now}, Store: s, Classes: s, Alarms: a, Version: a}
		snapshot := cluster.Snapshot{Now: time.Now(), Pools: []cluster.Pool{{Name: "p", Class: "default", Ready: true}},
			Classes: []instancetypes.Class{nodeclass.DescribeClass(s.class)}}
		ctx := controllers.BeginPass(t.Context(), func(context.Context) (bool, error) { return true, nil })
		snapshot, err := c.AddRollouts(ctx, snapshot)
		if err == nil {
			snapshot, err = c.AdvanceRollouts(ctx, snapshot)
		}
		if err != nil || snapshot.Rollouts[0].ClusterVersion != "" && snapshot.Rollouts[0].ClusterVersion != "1.36" {
			t.Fatalf("version %q, error %v", snapshot.Rollouts[0].ClusterVersion, err)
		}
		return s.r.Status
	}
	if play(); a.asked != 0 {
		t.Errorf("alarms are read %d times for a NodeRollout that names none", a.asked)
	}
	s.r.Alarms, s.class = []cluster.Alarm{{Name: "errors"}, {Name: "gone"}}, image("ami-2")
	a.err = errBroken
	if st := play(); st.Allowed != 0 || st.Message != "waits for alarms that can be read" || st.NoAlarm != "spec.analysis.alarms: the connection broke" {
		t.Errorf("while they cannot be read: %+v", st)
	}
	a.err = nil
	if st := play(); st.Allowed != 2 || st.NoAlarm != "spec.analysis.alarms: there is no alarm gone in this region and account" {
		t.Errorf("%+v", st)
	}
	if s.r.Alarms[0].State != "" {
		t.Error("what was listed is changed")
	}
}

// A status that cannot be written is tried again later and later, in whatever invocation, and soon again once it could.
func TestAStatusThatNobodyMayWrite(t *testing.T) {
	s := &store{class: image("ami-1"), kept: map[string]*awsv1.EC2NodeClass{},
		r: cluster.Rollout{Name: "r", Pools: []string{"p"}, Steps: []cluster.RolloutStep{{Nodes: 2}}, ReadyWithin: time.Minute, MinPods: 5}}
	now, told := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC), &rollouts.Told{}
	run := func() error {
		c := &rollouts.Controller{Deps: controllers.Deps{Record: s, Log: slog.New(slog.DiscardHandler), Now: func() time.Time { return now }}, Store: s,
			Classes: s, Told: told}
		snapshot := cluster.Snapshot{Now: now, Pools: []cluster.Pool{{Name: "p", Class: "default", Ready: true}},
			Classes: []instancetypes.Class{nodeclass.DescribeClass(s.class)}}
		ctx := controllers.BeginPass(t.Context(), func(context.Context) (bool, error) { return true, nil })
		snapshot, err := c.AddRollouts(ctx, snapshot)
		if err != nil {
			return err
		}
		_, err = c.AdvanceRollouts(ctx, snapshot)
		return err
	}
	s.denied = true
	for range 10 * 12 {
		if err := run(); !errors.Is(err, errBroken) {
			t.Fatalf("the error is told in each pass: %v", err)
		}
		now = now.Add(5 * time.Second)
	}
	if s.writes != 15 {
		t.Errorf("%d writes in ten minutes, want 15", s.writes)
	}
	s.denied, now = false, now.Add(time.Minute)
	if err := run(); err != nil || s.r.Status.LastGood == "" {
		t.Errorf("%v, status %+v", err, s.r.Status)
	}
}
