package binpack

import "joiner.sh/pkg/model/cluster"

// stageTeller tells the follower of the decision, if there is one, what comes next.
type stageTeller struct {
	to      cluster.StageFollower
	classes *podClasses
}

// tellStage tells of a stage about pods of the class in the pool: nil and empty where it is about none.
func (x stageTeller) tellStage(stage string, k *podClass, pool string) {
	if x.to == nil {
		return
	}
	s := cluster.Stage{Name: stage, Pool: pool, Together: x.listPods}
	if k != nil {
		s.About, s.DoNotDisrupt = k.pods, k.pod.DoNotDisrupt == "true"
	}
	x.to.FollowStage(s)
}

func (x stageTeller) listPods() (out []string) {
	for _, k := range x.classes.list {
		out = append(out, k.pods...)
	}
	return out
}
