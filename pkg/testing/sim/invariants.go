package sim

import (
	"fmt"
	"time"
)

// invariant is a rule that holds at every step of one kind.
type invariant struct {
	name  string
	check func(w *world, step any) []string // what is wrong, in sentences; nothing at steps of other kinds
}

// at is an invariant of the steps that its check takes.
func at[S any](name string, check func(*world, S) []string) invariant {
	return invariant{name, func(w *world, step any) []string {
		if s, ok := step.(S); ok {
			return check(w, s)
		}
		return nil
	}}
}

// stepInvariants returns the invariants that hold at every step, in the order in which they are looked at.
func stepInvariants() []invariant {
	return append(launchInvariants(), []invariant{
		at("foreign node", checkNodeOurs),
		at("node released alive", checkNodeRelease),
		at("finalizer gone before the instance", checkClaimRelease),
		at("foreign instance", checkInstanceOurs),
		at("instance of a living claim ended", checkInstanceUnneeded),
		at("instance ended before its drain", checkInstanceDrained),

		at("eviction before the taint", checkEvictionTaint),
		at("removal before replacement", checkEvictedAfterReplacement),
		at("removal before replacement", checkDeletedAfterReplacement),
		at("protected pod evicted", checkPodProtection),
		at("pod deleted past its budget", checkPodDeletion),
		at("out of load balancers too early", checkExclusion),
		at("grace cut short", checkGrace),
		at("pod removed alive", checkPodRemoval),

		at("protected node disrupted", checkNodeProtection),
		at("removal before replacement", checkRoomElsewhere),
		at("removal before replacement", checkReplacementsReady),
		at("budget of the pool", checkBudgetOfDeletion),
		at("budget of the pool", checkBudgetOfTaint),
		at("moved away from its volume", checkVolumesStay),
		at("in vain for a volume", checkUndone),
		at("moved within the payback time", checkPayback),
		at("to and fro", checkCircle),

		at("made before the finalizer", checkClassFinalizer),
		at("class forgotten too early", checkClassForgotten),
		at("class released too early", checkClassReleased),
		at("functions wake each other in a circle", checkChain),
		at("error without a fault", checkError),
		at("others wait for what nobody may write", checkWatchGoesOn),
		at("what may not be read is not told", checkDenialTold),
		at("own write not seen", checkOwnWrite),
		at("older than its invocation", checkSeenSinceStart),
		at("refresh is not told", checkRefreshTold),
		at("unavailable and not marked", checkUnavailableMarked),
		at("notice without effect", checkNoticeHandled),
		at("status without effect", checkStatusHandled),
		at("forced without need", checkForcedDrain),
	}...)
}

// launchInvariants returns the invariants about what is bought, started and stopped.
func launchInvariants() []invariant {
	return []invariant{
		at("capacity without the lease", checkCapacityLease),
		at("capacity counted twice", checkCapacityCounted),
		at("node where the volume is not", checkLaunchZone),
		at("price", checkPublicPrice),
		at("covered twice", checkCommitmentRoom),
		at("asks for more than there are claims", checkOrderSize),
		at("asks for what is unavailable", checkUnavailableOrdered),
		at("launch without a claim", checkLaunchHasClaim),
		at("launch before the finalizer", checkLaunchFinalizer),
		at("doubled instance", checkOneInstance),
		at("bought in vain again", checkVain),
		at("bought in vain again", checkUnusable),
		at("limit of the pool", checkPoolLimit),
		at("above the ceiling of the cluster", checkCeiling),
		at("claim changed its instance", checkInstanceKept),
		at("adopted the wrong instance", checkAdoption),
		at("more nodes than the step allows", checkTrialNodes),
		at("made with what failed", checkTrialFailed),
		at("step in spite of an alarm", checkTrialStep),
		at("started for nobody", checkStartNoted),
		at("stopped in use", checkStopUnused),
		at("refused start without a launch", checkRefusedLaunched),
	}
}

// checkStep looks at a step, and remembers what later checks ask about.
func (w *world) checkStep(step any) {
	for _, i := range w.invariants {
		for _, what := range i.check(w, step) {
			w.addViolation(i.name, "%s", what)
		}
	}
	w.remember(step)
}

// broken is one sentence that says what is wrong.
func broken(format string, args ...any) []string { return []string{fmt.Sprintf(format, args...)} }

// seconds is the largest age of what a decision read when it is carried out.
const seconds = 5 * time.Second

// late is the time by which an invocation may be older than the world when it acts: what it read, its lists, its way.
const late = 15 * time.Second

// replaceWithin is the time for which the pods of a node that EC2 takes back stay for their replacement.
const replaceWithin = 20 * time.Second
