package rollouts_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	awsv1 "joiner.sh/pkg/api/aws/v1"
	"joiner.sh/pkg/controllers"
	"joiner.sh/pkg/controllers/rollouts"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/nodeclass"
)

// registry is EC2 with the AMIs that it has.
type registry struct {
	has   []string
	err   error
	calls int
}

func (e *registry) FindImages(context.Context, []string) ([]string, error) {
	e.calls++
	return e.has, e.err
}

// TestGoneImageIsTold deregisters the AMI of the last good revision while another is tried. It is told before a launch
// fails, EC2 is asked once in ten minutes, and not at all while the class has the AMI. An answer that fails tells nothing.
func TestGoneImageIsTold(t *testing.T) {
	s := &store{class: image("ami-1"), kept: map[string]*awsv1.EC2NodeClass{},
		r: cluster.Rollout{Name: "r", Pools: []string{"p"}, Steps: []cluster.RolloutStep{{Nodes: 2}}, ReadyWithin: time.Minute, MinPods: 5}}
	e, told, now := &registry{err: errors.New("throttled")}, &rollouts.Told{}, time.Now()
	step := func(wantCalls int, want string) {
		t.Helper()
		c := &rollouts.Controller{Deps: controllers.Deps{Record: s, Log: slog.New(slog.DiscardHandler), Now: time.Now}, Store: s, Classes: s,
			Images: e, Told: told}
		snapshot := cluster.Snapshot{Now: now, Pools: []cluster.Pool{{Name: "p", Class: "default", Ready: true}},
			Classes: []instancetypes.Class{nodeclass.DescribeClass(s.class)}}
		ctx := controllers.BeginPass(t.Context(), func(context.Context) (bool, error) { return true, nil })
		snapshot, err := c.AddRollouts(ctx, snapshot)
		if err == nil {
			_, err = c.AdvanceRollouts(ctx, snapshot)
		}
		if got := s.r.Status.Unavailable; err != nil || e.calls != wantCalls || !strings.Contains(got, want) || want == "" && got != "" {
			t.Errorf("%v, %d calls and %q, want %d and %q", err, e.calls, got, wantCalls, want)
		}
	}
	step(0, "")
	step(0, "")
	s.class = image("ami-2")
	step(1, "") // nobody knows
	e.err, e.has = nil, []string{"ami-1"}
	step(2, "")
	e.has = nil
	step(2, "")
	now = now.Add(10 * time.Minute)
	step(3, "EC2 has no AMI ami-1 any more")
	step(3, "EC2 has no AMI ami-1 any more")
	s.class = image("ami-1")
	step(3, "")
}
