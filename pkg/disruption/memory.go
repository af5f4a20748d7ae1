package disruption

import (
	"time"

	v1 "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/model/cluster"
)

// Memory holds what a pass leaves for the next one. Without it nothing is decided wrongly, only later.
type Memory struct {
	Quiet     map[string]PodStability   `json:"quiet,omitempty"`     // by NodeClaim
	Proposals []Proposal                `json:"proposals,omitempty"` // commands that wait to be confirmed
	Failed    map[string]CommandFailure `json:"failed,omitempty"`    // by NodeClaim: failures of commands about it
	// by NodePool: commands that launched nodes in vain, one after another
	FailedInRow map[string]FailuresInRow `json:"failedInRow,omitempty"`
	// by ID of a command under way: since when it has been found stalled
	StalledSince map[string]time.Time `json:"inVain,omitempty"`
	// the drifted NodeClaim that was asked about last
	Drifted string `json:"drifted,omitempty"`
	// the same of those that a NodeRollout replaces
	Tried string `json:"tried,omitempty"`
	// the last command that was found to move pods was about drifted nodes
	LastWasDrift bool                 `json:"driftWas,omitempty"`
	Search       SearchState          `json:"asked,omitzero"`  // about pools that act
	Overruns     Overruns             `json:"late,omitzero"`   // zero while passes end in time
	Retained     map[string]Retention `json:"stays,omitempty"` // by NodeClaim
	// by NodeClaim: since when its node is tainted and nothing is under way
	OrphanedSince map[string]time.Time `json:"stray,omitempty"`
	Report        ReportState          `json:"report,omitzero"` // about pools that only report
	Aside         []cluster.Aside      `json:"aside,omitempty"` // what decisions fail about
}

// ReportState holds the point at which the search about pools that only report goes on.
type ReportState struct {
	Drifted      string      `json:"drifted,omitempty"`  // as in Memory
	LastWasDrift bool        `json:"driftWas,omitempty"` // as in Memory
	Search       SearchState `json:"asked,omitzero"`     // as in Memory
	Found        []Proposal  `json:"found,omitempty"`    // commands that would save, as found last
}

// Retention tells why a node stays, and what was told of that. Whoever tells it keeps it; nothing is decided by it.
type Retention struct {
	Kind   string           `json:"kind,omitempty"`  // of the reason
	Since  time.Time        `json:"since"`           // for that kind
	Told   string           `json:"told,omitempty"`  // the kind that an event told last
	ToldAt time.Time        `json:"toldAt,omitzero"` // by an event; zero for never
	Reason IneligibleReason `json:"word,omitempty"`  // that was logged last
	Logged time.Time        `json:"logged,omitzero"` // when; zero for never
}

// SearchState holds the questions that the search for something cheaper has answered with no.
type SearchState struct {
	World uint64   `json:"world,omitempty"` // digest of all that the answers depend on
	Sets  []uint64 `json:"sets,omitempty"`  // digests of the sets of nodes that were refused, sorted
	// sets that were refused with other inputs, when the questions were used up: others come first
	Later []uint64 `json:"later,omitempty"`
	// NodeClaims of a set to go on with, for which no work was left
	Rest   []string     `json:"rest,omitempty"`
	Window SearchWindow `json:"window,omitzero"` // where the search has come to among sets further down
	// by the number of binary digits of their size: sets that were asked about
	Missed []Shortfall `json:"missed,omitempty"`
	Done   bool        `json:"done,omitempty"` // all was asked
	// if done, by NodeClaim: why it stays, where it is not that nothing cheaper was found
	Kept map[string]RetainedReason `json:"kept,omitempty"`
}

// Shortfall is the amount by which sets of about one size earned less than was estimated.
type Shortfall struct {
	Sets  int     `json:"sets"`  // how many were asked about
	Least float64 `json:"least"` // the least of them fell short by this, USD
}

// RetainedReason tells why a node stays.
type RetainedReason struct {
	Reason IneligibleReason `json:"word"` // as NotDisrupted.Reason
	Why    string           `json:"why"`  // as NotDisrupted.Why
}

// Proposal is a disruption that waits to be confirmed.
type Proposal struct {
	Reason v1.DisruptionReason `json:"reason"` // as Command.Reason
	Claims []string            `json:"claims"` // sorted
	Since  time.Time           `json:"since"`  // of the first pass that found it
}
