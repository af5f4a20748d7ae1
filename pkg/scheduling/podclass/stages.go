package podclass

import "joiner.sh/pkg/model/cluster"

// StageTeller tells the follower of the decision, if there is one, what comes next.
type StageTeller struct {
	to      cluster.StageFollower
	classes *Classes
}

// Tell tells of a stage about pods of the class in the pool: nil and empty where it is about none.
func (x StageTeller) Tell(stage string, k *Class, pool string) {
	if x.to == nil {
		return
	}
	s := cluster.Stage{Name: stage, Pool: pool, Together: x.listPods}
	if k != nil {
		s.About, s.DoNotDisrupt = k.Pods, k.Pod.DoNotDisrupt == "true"
	}
	x.to.FollowStage(s)
}

func (x StageTeller) listPods() (out []string) {
	for _, k := range x.classes.List {
		out = append(out, k.Pods...)
	}
	return out
}
