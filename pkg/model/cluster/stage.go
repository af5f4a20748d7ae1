package cluster

// Stage is the next step of a decision, for who follows it.
type Stage struct {
	Name string // by the package that decides
	// pods of one class, as namespace/name; or the one NodeClaim or Node that it is about; none where it is about none
	About []string
	// the pods run and may not be disrupted
	DoNotDisrupt bool
	// the NodePool that it is about, empty for none
	Pool string
	// all pods that are packed together, nil where none are
	Together func() []string
}

// Stages of packing, by their names.
const (
	StageDemand  = "demand"  // pods are read into classes
	StagePools   = "pools"   // what pools can launch is read
	StageRelax   = "relax"   // views of a class are made
	StageDomains = "domains" // pods are divided over domains
	StagePlace   = "place"   // pods are put where there is room
	StageOpen    = "open"    // a new node is made
	StagePrice   = "price"   // the linear program tells what pods are worth
	StageSearch  = "search"  // new nodes are taken apart for something cheaper
	StageOptions = "options" // what may stand in for a new node's offering
	StageExplain = "explain" // why pods stay without a place
	StageWhole   = "whole"   // whatever there is
)

// StageFollower is told each stage of a decision before it. It must not change what the decision sees. One that panics
// makes the decision fail there.
type StageFollower interface{ FollowStage(s Stage) }

// TellStage tells the follower, if there is one, of a stage about a NodeClaim or a Node.
func (s *Snapshot) TellStage(stage, name string) {
	if s.Follower != nil {
		s.Follower.FollowStage(Stage{Name: stage, About: []string{name}})
	}
}

// OutOfTime is the value of the panic that ends a decision that takes too long. The decision is not taken at all.
type OutOfTime struct{}
