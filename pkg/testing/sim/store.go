package sim

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	awsv1 "joiner/pkg/api/aws/v1"
	v1 "joiner/pkg/api/v1"
	"joiner/pkg/disruption"
	"joiner/pkg/model/cluster"
	"joiner/pkg/model/instancetypes"
	decided "joiner/pkg/model/plan"
)

// objectKind is a kind of object that is watched.
type objectKind string

const (
	aPod   objectKind = "pod"
	aClaim objectKind = "claim"
	aNode  objectKind = "node"
)

// objectChange is news for those who watch.
type objectChange struct {
	kind objectKind
	by   *invocation // nil for somebody else
	at   int
}

// watchWaiter is an invocation that waits for news.
type watchWaiter struct {
	r   *portRequest
	lag time.Duration
}

// notifyChange remembers news and wakes those who have not seen it, after the lag of their watch.
func (w *world) notifyChange(k objectKind, by *invocation) {
	w.version++
	w.news = append(w.news, objectChange{k, by, w.version})
	if len(w.news) > 400 {
		w.news = append([]objectChange(nil), w.news[200:]...)
	}
	w.answerWatchers()
}

// answerWatchers answers the watchers for whom there is news.
func (w *world) answerWatchers() {
	w.watchers = slices.DeleteFunc(w.watchers, func(x watchWaiter) bool {
		if w.isAbandoned(x.r) {
			return true
		}
		if !w.isNews(x.r) {
			return false
		}
		w.runAfter(x.lag, func() { w.answerRequest(x.r, portAnswer{value: struct{}{}}) })
		return true
	})
}

func (w *world) isNews(r *portRequest) bool {
	for i := len(w.news) - 1; i >= 0; i-- {
		if c := w.news[i]; c.by != r.inv && c.at > r.seen[c.kind] {
			return true
		}
	}
	return false
}

// Wait returns on news that no read of this invocation has shown.
func (p *Ports) Wait(ctx context.Context) error {
	_, err := callPort[struct{}](ctx, p, "wait", "", nil)
	return err
}

// claim is a NodeClaim as it is stored, and what the checks know of it.
type claim struct {
	cluster.Claim
	pods     []string // UIDs of the pods it was made for
	released bool     // we removed our finalizer
	asked    bool     // its instance was to be ended

	maker     *invocation // that stored it
	made      time.Time   // by it
	condemned time.Time   // because of a notice, by who handles it
	dropped   time.Time   // by a user, or because its instance ended, fails, or will be stopped before budgets allow it
	spared    time.Time   // when a disruption of it was taken back

	paid []instancetypes.CommitmentDraw // what it was to take of a commitment
}

// CreateClaim stores a claim with our finalizer.
func (p *Ports) CreateClaim(ctx context.Context, l decided.Launch, pool cluster.Pool) (cluster.Claim, error) {
	return callPort(ctx, p, "create claim", fmt.Sprint(l.Pods), func() (cluster.Claim, error) {
		w := p.w
		w.made++
		c := &claim{maker: p.inv, made: time.Now(),
			Claim: cluster.Claim{Name: fmt.Sprintf("%s-%d", pool.Name, w.made),
				UID:        fmt.Sprintf("uid-claim-%d", w.made),
				Generation: 1, Pool: pool.Name, PoolUID: pool.UID, Class: l.Class, Created: w.toSecond(),
				Finalizer: true,
				Labels: mergeAnnotations(l.Labels,
					map[string]string{v1.LabelNodePool: pool.Name, awsv1.LabelEC2NodeClass: l.Class}),
				Annotations: mergeAnnotations(l.Annotations,
					map[string]string{v1.AnnotationNodePoolHash: pool.Hash,
						v1.AnnotationNodePoolHashVersion: v1.NodePoolHashVersion}), Requirements: l.Requirements,
				Requests: l.Requests, Taints: l.Taints, StartupTaints: l.Startup, ExpireAfter: pool.ExpireAfter,
				TerminationGrace: pool.TerminationGrace}}
		for _, key := range l.Pods {
			if pod := w.pods[key]; pod != nil {
				c.pods = append(c.pods, pod.UID)
			}
		}
		w.checkNewClaim(c, l)
		w.checkLaunchZone(c, l)
		w.checkPrice(c, l)
		w.checkAgain(c, l)
		w.claims[c.Name], w.byUID[c.UID] = c, c
		return w.writeClaim(c, p.inv), nil
	})
}

// toSecond is the time as Kubernetes stores it.
func (w *world) toSecond() time.Time { return time.Now().Truncate(time.Second) }

// writeClaim gives the claim a new version and returns a copy.
func (w *world) writeClaim(c *claim, by *invocation) cluster.Claim {
	w.notifyChange(aClaim, by)
	c.Version = strconv.Itoa(w.version)
	return c.Claim
}

// AnnotateClaim sets annotations of the claim given.
func (p *Ports) AnnotateClaim(ctx context.Context, c cluster.Claim, set map[string]string) (cluster.Claim, error) {
	return p.changeClaim(ctx, "annotate claim", c, func(have *claim) bool {
		if isWithin(set, have.Annotations) {
			return false
		}
		p.w.checkMove(have, set)
		if end, ok := set[v1.AnnotationTerminationTimestamp]; ok {
			p.w.checkDeadline(p.inv, have, end)
		}
		if mark, ok := set[disruption.AnnotationMark]; ok && mark == "" {
			have.spared = time.Now()
		}
		have.Annotations = mergeAnnotations(have.Annotations, set)
		if pods, ok := set[v1.AnnotationNominatedPods]; ok {
			p.w.noteNomination(have, strings.Split(pods, ","))
		}
		return true
	})
}

// noteNomination notes who waits for the claim: the pods named, and of those before them the ones that have found no
// other node meanwhile.
func (w *world) noteNomination(c *claim, named []string) {
	before := c.pods
	c.pods = nil
	for key, pod := range w.pods { // each pod on its own
		if slices.Contains(named, key) || pod.NodeName == "" && slices.Contains(before, pod.UID) {
			c.pods = append(c.pods, pod.UID)
		}
	}
	slices.Sort(c.pods)
}

// UnreserveClaim is not asked for: nothing is reserved in this EC2.
func (p *Ports) UnreserveClaim(_ context.Context, c cluster.Claim) (cluster.Claim, error) {
	return c, errors.New("unreserve claim " + c.Name + ": nothing is reserved")
}

// LabelClaim sets labels and annotations of the claim given.
func (p *Ports) LabelClaim(ctx context.Context, c cluster.Claim, labels, annotations map[string]string) (cluster.Claim,
	error) {
	return p.changeClaim(ctx, "label claim", c, func(have *claim) bool {
		if isWithin(labels, have.Labels) && isWithin(annotations, have.Annotations) {
			return false
		}
		have.Labels, have.Annotations = mergeAnnotations(have.Labels, labels),
			mergeAnnotations(have.Annotations, annotations)
		return true
	})
}

// WriteClaimStatus replaces the status. The time of a condition moves with its status only.
func (p *Ports) WriteClaimStatus(ctx context.Context, c cluster.Claim) (cluster.Claim, error) {
	return p.changeClaim(ctx, "write status of claim", c, func(have *claim) bool {
		before := have.Claim
		have.ProviderID, have.NodeName, have.ImageID = c.ProviderID, c.NodeName, c.ImageID
		have.Capacity, have.Allocatable, have.LastPodEvent = c.Capacity, c.Allocatable, c.LastPodEvent
		var next []cluster.Condition
		for _, k := range c.Conditions {
			old := before.Condition(k.Type)
			if k.Since = old.Since; old.Status != k.Status || !slices.ContainsFunc(before.Conditions, isType(k.Type)) {
				k.Since = p.w.toSecond()
			}
			next = append(next, k)
		}
		slices.SortFunc(next, func(a, b cluster.Condition) int { return strings.Compare(a.Type, b.Type) })
		have.Conditions = next
		p.w.checkStatus(have, before)
		return before.ProviderID != have.ProviderID || before.NodeName != have.NodeName ||
			!before.LastPodEvent.Equal(have.LastPodEvent) || !slices.Equal(before.Conditions, next)
	})
}

func isType(name string) func(cluster.Condition) bool {
	return func(k cluster.Condition) bool { return k.Type == name }
}

// changeClaim changes a claim that is still as given. A change that changes nothing makes no new version.
func (p *Ports) changeClaim(ctx context.Context, call string, c cluster.Claim, edit func(*claim) bool) (cluster.Claim,
	error) {
	return callPort(ctx, p, call, c.Name, func() (cluster.Claim, error) {
		have, ok := p.w.claims[c.Name]
		if !ok || have.UID != c.UID || have.Version != c.Version && (c.Version != "" || call != "annotate claim") {
			return cluster.Claim{}, &ConflictError{"claim " + c.Name}
		}
		before := have.Claim
		if !edit(have) {
			return have.Claim, nil
		}
		if !onlyStability(before, have.Claim) {
			p.w.countMutation(call)
		}
		return p.w.writeClaim(have, p.inv), nil
	})
}

// onlyStability reports whether nothing is new but how quiet the claim's node is. That follows pods by up to a minute,
// and is no unrest.
func onlyStability(before, after cluster.Claim) bool {
	rest := func(all []cluster.Condition) []cluster.Condition {
		return slices.DeleteFunc(slices.Clone(all), isType(v1.ConditionConsolidatable))
	}
	news := !before.LastPodEvent.Equal(after.LastPodEvent) || len(before.Conditions) != len(after.Conditions)
	return news && before.ProviderID == after.ProviderID && before.NodeName == after.NodeName &&
		slices.Equal(rest(before.Conditions), rest(after.Conditions))
}

// AdoptClaim puts our finalizer and the class's label on the claim.
func (p *Ports) AdoptClaim(ctx context.Context, c cluster.Claim) (cluster.Claim, error) {
	return callPort(ctx, p, "adopt claim", c.Name, func() (cluster.Claim, error) {
		have, ok := p.w.claims[c.Name]
		if !ok || have.UID != c.UID || !have.Deleting.IsZero() {
			return cluster.Claim{}, &ConflictError{"claim " + c.Name}
		}
		set := map[string]string{awsv1.LabelEC2NodeClass: have.Class}
		if have.ProviderID != "" {
			set[v1.LabelInstance] = have.ProviderID[strings.LastIndexByte(have.ProviderID, '/')+1:]
		}
		if n := c.Labels[awsv1.LabelPlacementGroupPartition]; n != "" {
			set[awsv1.LabelPlacementGroupPartition] = n
		}
		if have.Finalizer && isWithin(set, have.Labels) {
			return have.Claim, nil
		}
		have.Finalizer, have.Labels = true, mergeAnnotations(have.Labels, set)
		p.w.countMutation("adopt claim")
		return p.w.writeClaim(have, p.inv), nil
	})
}

// DeleteClaim gives the claim a deletion time.
func (p *Ports) DeleteClaim(ctx context.Context, c cluster.Claim) error {
	return tryPort(ctx, p, "delete claim", c.Name, func() error {
		if have, ok := p.w.claims[c.Name]; ok && have.UID == c.UID {
			if have.Deleting.IsZero() {
				p.w.checkLeave(p.inv, have)
			}
			if strings.HasSuffix(p.inv.fn.Name, "interruption") && have.Deleting.IsZero() {
				have.condemned = time.Now()
			}
			told := p.inv.fn.Name == "statechange" || p.inv.fn.Name == "scheduledchange"
			if (told || p.inv.fn.Name == "lifecycle" && p.w.isDisturbed(have)) && have.Deleting.IsZero() {
				have.dropped = time.Now()
			}
			p.w.deleteClaim(have, p.inv)
		}
		return nil
	})
}

// ReleaseClaim removes our finalizer.
func (p *Ports) ReleaseClaim(ctx context.Context, c cluster.Claim) error {
	return tryPort(ctx, p, "release claim", c.Name, func() error {
		have, ok := p.w.claims[c.Name]
		if !ok || have.UID != c.UID || !have.Finalizer {
			return nil
		}
		p.w.checkRelease(have)
		p.w.countMutation("release claim")
		have.Finalizer, have.released = false, true
		p.w.writeClaim(have, p.inv)
		p.w.collectDeleted()
		return nil
	})
}

// ListClaims lists the claims.
func (p *Ports) ListClaims(ctx context.Context) ([]cluster.Claim, error) {
	return callPort(ctx, p, "list claims", "", func() ([]cluster.Claim, error) { return p.listClaims(), nil })
}

// ClaimsOf lists the claims of the instances, and those without the label of an instance, up to the first that is
// enough.
func (p *Ports) ClaimsOf(ctx context.Context, instances []string, enough func(cluster.Claim) bool) ([]cluster.Claim,
	error) {
	return callPort(ctx, p, "list claims of instances", "", func() ([]cluster.Claim, error) {
		over := false
		return slices.DeleteFunc(p.listClaims(), func(c cluster.Claim) bool {
			id, named := c.Labels[v1.LabelInstance]
			drop := named && !slices.Contains(instances, id) || !named && over
			over = over || !named && enough != nil && enough(c)
			return drop
		}), nil
	})
}

func (p *Ports) listClaims() []cluster.Claim {
	p.seen[aClaim] = p.w.version
	var out []cluster.Claim
	for _, name := range slices.Sorted(maps.Keys(p.w.claims)) {
		out = append(out, p.w.claims[name].Claim)
	}
	return out
}

// deleteClaim is what the API server does when somebody deletes a claim.
func (w *world) deleteClaim(c *claim, by *invocation) {
	if c.Deleting.IsZero() {
		w.mutatedBy(by, "delete claim")
		c.Deleting = w.toSecond()
		if by == nil {
			c.dropped = time.Now()
		}
		w.writeClaim(c, by)
	}
	w.collectDeleted()
}

// collectDeleted removes what is being deleted and has no finalizer left, and has the garbage collector look at what
// they owned.
func (w *world) collectDeleted() {
	for _, name := range slices.Sorted(maps.Keys(w.claims)) {
		c := w.claims[name]
		if c.Deleting.IsZero() || c.Finalizer {
			continue
		}
		delete(w.claims, name)
		w.notifyChange(aClaim, nil)
		w.runAfter(w.drawDuration(time.Second, 5*time.Second), func() { w.deleteOrphans(c.UID) })
	}
	for _, name := range slices.Sorted(maps.Keys(w.nodes)) {
		if n := w.nodes[name]; !n.Deleting.IsZero() && !n.Finalizer {
			w.removeNode(n)
		}
	}
}

// deleteOrphans deletes the nodes that a claim owned.
func (w *world) deleteOrphans(uid string) {
	for _, name := range slices.Sorted(maps.Keys(w.nodes)) {
		if n := w.nodes[name]; n.owner == uid {
			w.deleteNode(n, nil)
		}
	}
}

func mergeAnnotations(base, top map[string]string) map[string]string {
	out := make(map[string]string, len(base)+len(top))
	maps.Copy(out, base)
	maps.Copy(out, top)
	return out
}

func isWithin(part, all map[string]string) bool {
	for k, v := range part {
		if have, ok := all[k]; !ok || have != v {
			return false
		}
	}
	return true
}
