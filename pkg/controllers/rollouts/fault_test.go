package rollouts_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	awsv1 "joiner.sh/pkg/api/aws/v1"
	"joiner.sh/pkg/controllers"
	"joiner.sh/pkg/controllers/rollouts"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/nodeclass"
)

// fragileAlarms panic when they are asked.
type fragileAlarms struct{}

func (fragileAlarms) ReadAlarms(context.Context, []string) (map[string]string, error) {
	panic("it fails")
}

// A panic about one NodeRollout takes no step of it, and leaves the others theirs.
func TestARolloutThatFails(t *testing.T) {
	s := &store{class: image("ami-1"), kept: map[string]*awsv1.EC2NodeClass{}}
	c := &rollouts.Controller{Deps: controllers.Deps{Record: s, Log: slog.New(slog.DiscardHandler), Now: time.Now}, Store: s, Classes: s, Alarms: fragileAlarms{}}
	steps := []cluster.RolloutStep{{Nodes: 2}}
	snapshot := cluster.Snapshot{Now: time.Now(), Pools: []cluster.Pool{{Name: "p", Class: "default", Ready: true}},
		Classes: []instancetypes.Class{nodeclass.DescribeClass(s.class)}, Rollouts: []cluster.Rollout{
			{Name: "evil", Steps: steps, Alarms: []cluster.Alarm{{Name: "errors"}}, Status: cluster.RolloutStatus{Allowed: 1}},
			{Name: "r", Pools: []string{"p"}, Steps: steps, ReadyWithin: time.Minute, MinPods: 5}}}
	ctx := controllers.BeginPass(t.Context(), func(context.Context) (bool, error) { return true, nil })
	after, err := c.AdvanceRollouts(ctx, snapshot)
	if _, is := errors.AsType[*controllers.FaultError](err); !is {
		t.Errorf("error %v", err)
	}
	if after.Rollouts[0].Status.Allowed != 0 || s.r.Status.LastGood == "" {
		t.Errorf("the one that fails is %+v, the other %+v", after.Rollouts[0].Status, s.r.Status)
	}
}
