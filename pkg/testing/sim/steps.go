package sim

import (
	"joiner.sh/pkg/model/cluster"
	decided "joiner.sh/pkg/model/plan"
	"joiner.sh/pkg/nodeclaim/launch"
)

// The steps at which invariants are looked at. Each is told before the world changes, unless it says otherwise.

// callMade is a call of an invocation that is on its way.
type callMade struct{ request *portRequest }

// callAnswered holds the answer that an invocation is told.
type callAnswered struct {
	to     *invocation
	answer portAnswer
}

// invocationStarted is an invocation that has just started.
type invocationStarted struct{ inv *invocation }

// invocationReturned is an invocation that has come to its end by itself.
type invocationReturned struct{ inv *invocation }

// claimCreated is a claim that is about to be stored.
type claimCreated struct {
	claim  *claim
	launch decided.Launch
}

// claimAnnotated is a claim that is about to get these annotations.
type claimAnnotated struct {
	by    *invocation
	claim *claim
	set   map[string]string
}

// claimStatusWritten is a claim that has got a new status.
type claimStatusWritten struct {
	claim  *claim
	before cluster.Claim
}

// writeRefused is a claim that an invocation knows in another version than is stored.
type writeRefused struct {
	by    *invocation
	claim *claim
}

// claimDeleted is a claim that an invocation marks for deletion.
type claimDeleted struct {
	by    *invocation
	claim *claim
}

// claimReleased is a claim that is about to lose our finalizer.
type claimReleased struct{ claim *claim }

// fleetOrdered is an order of an invocation to EC2.
type fleetOrdered struct {
	by    *invocation
	order launch.Order
}

// instanceStarted is an instance that is about to start.
type instanceStarted struct {
	machine *machine
	order   launch.Order
}

// instanceTerminated is an instance that an invocation is about to end.
type instanceTerminated struct {
	by      *invocation
	machine *machine
}

// instanceStopped is an instance that an invocation is about to stop.
type instanceStopped struct {
	by      *invocation
	machine *machine
}

// instanceRestarted is a stopped instance that an invocation is about to start.
type instanceRestarted struct {
	by      *invocation
	machine *machine
}

// podRan is a pod that has become ready.
type podRan struct{ pod *pod }

// nodeChanged is a node to which an invocation does something.
type nodeChanged struct {
	node *node
	what string
}

// nodeTainted is a node that is about to take no pods any more, for a disruption by choice.
type nodeTainted struct{ node *node }

// nodeExcluded is a node that lifecycle is about to take out of load balancers.
type nodeExcluded struct{ node *node }

// nodeReleased is a node that is about to lose our finalizer.
type nodeReleased struct{ node *node }

// podEvicted is a pod that is about to be evicted.
type podEvicted struct{ pod *pod }

// podMoved is a pod that is evicted: no budget is in the way.
type podMoved struct{ pod *pod }

// podStarted is a pod that has started, and may have crashed.
type podStarted struct {
	pod   *pod
	image string
}

// rolloutWritten is a NodeRollout with a new status, which is stored.
type rolloutWritten struct {
	alarm string // what the pass read of its alarm; empty when it could not
}

// podDeleted is a pod that is about to be deleted past its budget.
type podDeleted struct {
	pod      *pod
	graceSec int64
}

// podRemoved is a pod whose object is about to go without a word from its kubelet.
type podRemoved struct{ pod *pod }

// eventRecorded is an event that is written.
type eventRecorded struct{ event cluster.Event }

// classResolved is a class for which things are looked up, and an instance profile made.
type classResolved struct{ name string }

// classForgotten is a class whose instance profile is about to go.
type classForgotten struct{ name string }

// classReleased is a class that is about to lose our finalizer.
type classReleased struct{ name string }
