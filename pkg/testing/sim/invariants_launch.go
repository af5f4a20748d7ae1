package sim

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	v1 "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/disruption"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/nodeclaim/launch"
)

// checkCapacityLease: only the holder of the lease makes capacity.
func checkCapacityLease(w *world, s callMade) []string {
	r := s.request
	if r.call != "create claim" && r.call != "launch" && r.call != "launch batch" {
		return nil
	}
	held := w.api.leases[capacityLease]
	if held.holder == r.inv.String() && time.Now().Before(held.until) {
		return nil
	}
	return broken("%s calls %s %s while the lease is %q's until %s", r.inv, r.call, r.key, held.holder,
		held.until.Sub(w.began))
}

// checkCapacityCounted: the pods that a new claim is for must not all be waiting for others already.
func checkCapacityCounted(w *world, s claimCreated) []string {
	c := s.claim
	if len(c.pods) == 0 {
		return nil
	}
	waiting, runs, had := map[string]string{}, map[string]bool{}, ownersWithNodes(w)
	pods := map[string]*pod{} // by UID
	for _, p := range w.api.pods {
		runs[p.UID], pods[p.UID] = p.NodeName != "", p
	}
	for _, name := range slices.Sorted(maps.Keys(w.api.claims)) {
		have := w.api.claims[name]
		by := time.Now().Add(w.plan.skew)
		late := have.Overdue(by, w.rules.RegistrationTimeout) || have.NeverLaunched(by, w.rules) // nobody waits for it
		if !have.Deleting.IsZero() || late || had[have.UID] || sameCommand(have, c) || tooMany(w, have) ||
			isKept(have) {
			continue
		}
		for _, uid := range withRoom(w, have, waitFor(w, have), pods) {
			// what runs may wait for the replacement of its node only
			if !runs[uid] || have.Annotations[disruption.AnnotationReplaces] != "" {
				waiting[uid] = have.Name
			}
		}
	}
	for _, uid := range c.pods {
		if waiting[uid] == "" {
			return nil
		}
	}
	return broken("a claim is made for %v, which wait for claim %s already", s.launch.Pods, waiting[c.pods[0]])
}

// withRoom returns those of the pods, by UID, whose volumes let them be on the claim's node.
func withRoom(w *world, c *claim, uids []string, pods map[string]*pod) []string {
	beyond := beyondVolumes(w, c)
	return slices.DeleteFunc(slices.Clone(uids), func(uid string) bool {
		return beyond[uid] || pods[uid] != nil && wasPlacedElsewhere(w, pods[uid], c)
	})
}

// wasPlacedElsewhere reports whether a volume of the pod was placed where the claim does not come to, or, as long as
// nobody knows where it comes to, anywhere since it was made.
func wasPlacedElsewhere(w *world, p *pod, c *claim) bool {
	zone, comesTo := w.volumes.zoneOf(p.volumeClaims, 0), c.Labels[labelZone]
	if zone == "" || comesTo != "" {
		return zone != "" && zone != comesTo
	}
	return w.volumes.zoneOf(p.volumeClaims, time.Since(c.Created)) == ""
}

// waitFor are the UIDs of the pods that wait for the claim: those that it was given to since it was made, as long as
// one of them has no node, or else those that it was made for. What a pod leaves to others because it has room
// elsewhere is not capacity for it any more.
func waitFor(w *world, c *claim) []string {
	var given []string
	for _, key := range strings.Split(c.Annotations[v1.AnnotationNominatedPods], ",") {
		if p := w.api.pods[key]; p != nil && p.NodeName == "" && p.Active() {
			given = append(given, p.UID)
		}
	}
	if len(given) == 0 || c.Annotations[disruption.AnnotationReplaces] != "" {
		return c.pods
	}
	return given
}

// beyondVolumes are the UIDs of the pods given to the claim whose volumes its node will not attach beside those of the
// pods before them. Since nodes have told so, nobody counts on the claim for those any more.
func beyondVolumes(w *world, c *claim) map[string]bool {
	out, room := map[string]bool{}, w.volumes.most
	if !w.volumes.told {
		return out
	}
	for _, key := range strings.Split(c.Annotations[v1.AnnotationNominatedPods], ",") {
		p := w.api.pods[key]
		if p == nil || !p.Active() || p.NodeName != "" && c.Annotations[disruption.AnnotationReplaces] == "" {
			continue
		}
		if n := int64(len(p.volumeClaims)); n > room {
			out[p.UID] = true
		} else {
			room -= n
		}
	}
	return out
}

// sameCommand reports whether both replace nodes of one disruption. Such a command brings what its pods need in
// whatever order the scheduler places them, so that a pod may be named twice.
func sameCommand(a, b *claim) bool {
	id := a.Annotations[disruption.AnnotationReplaces]
	return id != "" && id == b.Annotations[disruption.AnnotationReplaces]
}

// ownersWithNodes are the UIDs of the claims that have had a node, whatever became of it. A claim of a batch whose
// status was never written has its instance by its label: other pods may run there by then.
func ownersWithNodes(w *world) map[string]bool {
	out := map[string]bool{}
	for _, m := range w.ec2.machines {
		if m.node != nil {
			out[m.owner] = true
		}
	}
	for _, c := range w.api.claims {
		if m := w.ec2.machines[c.Labels[v1.LabelInstance]]; m != nil && m.node != nil {
			out[c.UID] = true
		}
	}
	return out
}

// checkLaunchZone: a new claim comes where the volumes of its pods are, whatever EC2 gives of it.
func checkLaunchZone(w *world, s claimCreated) []string {
	for _, key := range s.launch.Pods {
		p := w.api.pods[key]
		if p == nil {
			continue
		}
		zone := w.volumes.zoneOf(p.volumeClaims, late)
		if zone == "" {
			continue
		}
		for _, z := range w.catalog.zoneNames() {
			if z != zone && s.launch.Requirements.Has(labelZone, z) {
				return broken("claim %s for pod %s may come in %s, and the pod's volume is in %s", s.claim.Name, key, z,
					zone)
			}
		}
	}
	return nil
}

// checkPublicPrice: a new claim is reckoned to cost what its offering costs in public and its volume, and less only
// where a commitment covers the instance.
func checkPublicPrice(w *world, s claimCreated) []string {
	public, choice := 0.0, s.launch.Choice
	for _, o := range w.catalog.types[choice.Type].Offerings {
		if o.CapacityType == choice.CapacityType && o.Zone == choice.Zone {
			public = o.Price
		}
	}
	disk := instancetypes.Catalog{}.NodeCostOf(instancetypes.Class{
		Disks: instancetypes.FamilyDisks(instancetypes.AL2023)}).Total()
	const rounding = 1e-9
	usd := choice.Price
	if usd > public+disk+rounding || usd < disk-rounding ||
		usd < public+disk-rounding && len(choice.Paid) == 0 {
		return broken("claim %s is to cost %g USD/h as %s, which is sold for %g, and %g for its volume", s.claim.Name,
			usd, choice.OfferingKey, public, disk)
	}
	return nil
}

// checkCommitmentRoom: a commitment that covers a new claim has room for all claims that were stored on its account and
// are still wanted.
func checkCommitmentRoom(w *world, s claimCreated) []string {
	paid := s.launch.Choice.Paid
	if len(paid) == 0 {
		return nil
	}
	sum, of := int64(0), ""
	for _, name := range slices.Sorted(maps.Keys(w.api.claims)) {
		have := w.api.claims[name]
		host := w.api.nodeOf(have)
		_, goes := markOf(have)
		// since whoever decided has read
		goes = goes || time.Since(have.spared) < seconds
		// its handler died before it could delete the claim, and is tried again
		goes = goes || host != nil && host.isTainted()
		// what replaces it has its share
		if goes = goes || !have.Deleting.IsZero() || host != nil && !host.Deleting.IsZero(); len(have.paid) > 0 &&
			!goes {
			sum += have.paid[0].Amount
			of += fmt.Sprintf(" %s:%d", name, have.paid[0].Amount)
		}
	}
	if k := w.catalog.market.Commitments[0]; sum+paid[0].Amount > k.Room {
		return broken("claim %s takes %d of a commitment of %d, of which these have some:%s", s.claim.Name,
			paid[0].Amount, k.Room, of)
	}
	return nil
}

// checkOrderSize: no more instances are asked for than there are claims.
func checkOrderSize(w *world, s fleetOrdered) []string {
	members := 0
	for _, c := range w.api.byUID {
		if b, _ := c.Batch(); b.ID == s.order.Batch.ID {
			members++
		}
	}
	if s.order.Batch.ID == "" || members >= s.order.Count() {
		return nil
	}
	return broken("%s asks for %d instances for the %d claims of batch %s", s.by, s.order.Count(), members,
		s.order.Batch.ID)
}

// checkUnavailableOrdered: nothing is asked for that was marked as unavailable before the invocation began. A claim of
// an earlier invocation may ask for all, once, to find what was launched for it. So may one of an earlier pass of the
// same invocation, which a conflict on another claim of its batch left without a launch: what passes know of each other
// is on the objects, and a token stands there before it is used. A request that EC2 throttles was not made, and what is
// asked for without the marks is no such request.
func checkUnavailableOrdered(w *world, s fleetOrdered) (bad []string) {
	if ofAnother(w, s) && !s.by.recalled[orderedBy(s.order)] || w.api.orderedFor(s.order) == nil {
		return nil
	}
	return unavailableOrdered(w, s)
}

// unavailableOrdered returns what the order asks for although it was marked as unavailable before the invocation began.
func unavailableOrdered(w *world, s fleetOrdered) (bad []string) {
	lasts := time.Now().Add(2*w.plan.skew + time.Second)
	for _, offering := range s.order.Offerings() {
		for _, m := range w.state.marks {
			if m.OfferingKey == offering && m.made.Before(s.by.started) && m.Until.After(lasts) {
				bad = append(bad, fmt.Sprintf("%s asks for %s, which is marked until %s", s.by, offering,
					m.Until.Sub(w.began)))
			}
		}
	}
	return bad
}

// ofAnother reports whether the order is for no claim that is stored, or for one of another pass.
func ofAnother(w *world, s fleetOrdered) bool {
	c := w.api.orderedFor(s.order)
	return c == nil || c.maker != s.by || c.made.Before(s.by.leased)
}

func orderedBy(o launch.Order) string { return cmp.Or(o.ClaimUID, o.Batch.ID) }

// checkLaunchHasClaim: an instance starts for a claim that was stored.
func checkLaunchHasClaim(w *world, s instanceStarted) []string {
	if w.api.orderedFor(s.order) != nil {
		return nil
	}
	return broken("instance %s starts for claim %s%s, which was never stored", s.machine.ID, s.order.ClaimName,
		s.order.Batch.ID)
}

// checkLaunchFinalizer: an instance starts for a claim that something keeps from vanishing.
func checkLaunchFinalizer(w *world, s instanceStarted) []string {
	if c := w.api.orderedFor(s.order); c == nil || c.Finalizer || c.released {
		return nil
	}
	return broken("instance %s starts for claim %s, which nothing keeps from vanishing", s.machine.ID,
		w.api.orderedFor(s.order).Name)
}

// checkOneInstance: each claim has one instance.
func checkOneInstance(w *world, s instanceStarted) (bad []string) {
	batch, have := s.order.Batch.ID, 0
	for _, other := range w.ec2.livingInstances() {
		if other.owner == s.machine.owner && s.machine.owner != "" {
			bad = append(bad, fmt.Sprintf("%s and %s both run for claim %s", other.ID, s.machine.ID, s.machine.Claim))
		}
		if batch != "" && other.Batch == batch {
			have++
		}
	}
	if batch != "" && have >= s.order.Count() {
		bad = append(bad, fmt.Sprintf("batch %s has %d instances for %d claims when %s starts", batch, have,
			s.order.Count(), s.machine.ID))
	}
	return bad
}

// checkPoolLimit: no pool goes beyond its limits.
func checkPoolLimit(w *world, s instanceStarted) (bad []string) {
	c := w.api.orderedFor(s.order)
	if c == nil {
		return nil
	}
	pool, ok := w.api.poolOf(c.Pool)
	if !ok || len(pool.Limited) == 0 || !c.Deleting.IsZero() {
		return nil
	}
	for _, over := range overLimit(w, pool, c.UID, w.catalog.types[s.machine.Type]) {
		bad = append(bad, fmt.Sprintf("with %s pool %s has %s", s.machine.ID, pool.Name, over))
	}
	return bad
}

// checkInstanceKept: a claim keeps the instance that it has.
func checkInstanceKept(_ *world, s claimStatusWritten) []string {
	if s.before.ProviderID == "" || s.claim.ProviderID == s.before.ProviderID {
		return nil
	}
	return broken("claim %s had %s and is given %s", s.claim.Name, s.before.ProviderID, s.claim.ProviderID)
}

// checkAdoption: a claim is given the instance that was launched for it.
func checkAdoption(w *world, s claimStatusWritten) []string {
	if s.claim.ProviderID == "" || s.before.ProviderID != "" {
		return nil
	}
	if m := w.ec2.instanceOf(s.claim); m != nil && m.owner == s.claim.UID {
		return nil
	}
	return broken("claim %s is given %s, which was not launched for it", s.claim.Name, s.claim.ProviderID)
}
