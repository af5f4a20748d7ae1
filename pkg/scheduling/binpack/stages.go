package binpack

import "joiner.sh/pkg/model/cluster"

// Stages of packing, as a follower is told of them.
const (
	StageDemand  = "demand"  // pods are read into classes
	StagePools   = "pools"   // what pools can launch is read
	StageRelax   = "relax"   // views of a class are made
	StageDomains = "domains" // pods are divided over domains
	StagePlace   = "place"   // pods are put where there is room
	StageOpen    = "open"    // a new node is made
	StagePrice   = "price"   // the linear program tells what pods are worth
	StageSearch  = "search"  // new nodes are taken apart for something cheaper
	StageOptions = "options" // what may stand in for a new node's offer
	StageExplain = "explain" // why pods stay without a place
	StageWhole   = "whole"   // whatever there is
)

// stageTeller tells the follower of the decision, if there is one, what comes next.
type stageTeller struct {
	to      cluster.StageFollower
	classes *podClasses
}

// tellStage tells of a stage about pods of the class in the pool, both or one of which may be nil.
func (x stageTeller) tellStage(stage string, k *podClass, p *pool) {
	if x.to == nil {
		return
	}
	s := cluster.Stage{Name: stage, Together: x.listPods}
	if k != nil {
		s.About, s.DoNotDisrupt = k.pods, k.pod.DoNotDisrupt == "true"
	}
	if p != nil {
		s.Pool = p.Name
	}
	x.to.FollowStage(s)
}

func (x stageTeller) listPods() (out []string) {
	for _, k := range x.classes.list {
		out = append(out, k.pods...)
	}
	return out
}
