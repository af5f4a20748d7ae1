package binpack

import (
	"fmt"
	"slices"
	"strings"

	"joiner/pkg/model/cluster"
)

// Stages of packing at which tests let it fail.
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

// plantedFault is where a test wants the decision to fail.
type plantedFault struct {
	at      *cluster.Plant // nil for nowhere
	classes *podClasses
}

// planted panics where a test wants the decision to fail about pods of the class in the pool. It tells nothing about
// what is nil.
func (x plantedFault) planted(stage string, k *podClass, p *pool) {
	t := x.at
	if t == nil || t.Stage != stage {
		return
	}
	harmless := func(k *podClass) bool { return k.pod.DoNotDisrupt == "true" } // it runs, and was left out
	ofPod := t.Pod == "" || k != nil && !harmless(k) &&
		slices.ContainsFunc(k.pods, func(name string) bool { return strings.HasPrefix(name, t.Pod) })
	ofPod = ofPod && (t.With == "" || slices.ContainsFunc(x.classes.list,
		func(k *podClass) bool { return slices.Contains(k.pods, t.With) }))
	if ofPod && (t.Pool == "" || p != nil && p.Name == t.Pool) {
		panic(fmt.Sprintf("planted at %s for pod %q in NodePool %q", stage, t.Pod, t.Pool))
	}
}
