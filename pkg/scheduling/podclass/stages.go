package podclass

import "joiner.sh/pkg/model/cluster"

// StageTeller tells the follower of the decision, if there is one, what comes next.
type StageTeller struct {
	to      cluster.StageFollower
	classes *Classes
}

// Tell tells of a stage about pods of the class in the pool: nil and empty where it is about none.
func (t StageTeller) Tell(stage string, class *Class, pool string) {
	if t.to == nil {
		return
	}
	s := cluster.Stage{Name: stage, Pool: pool, Together: t.listPods}
	if class != nil {
		s.About, s.DoNotDisrupt = class.Pods, class.Pod.DoNotDisrupt == "true"
	}
	t.to.FollowStage(s)
}

func (t StageTeller) listPods() (out []string) {
	for _, class := range t.classes.List {
		out = append(out, class.Pods...)
	}
	return out
}
