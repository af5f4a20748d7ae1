package sim

import (
	"maps"
	"slices"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	awsv1 "joiner.sh/pkg/api/aws/v1"
	v1 "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/requirements"
	"joiner.sh/pkg/testing/objects"
)

// users change what runs, and what nodes are to be like.
type users struct {
	*engine
	api       *apiServer
	account   *account
	kubelets  *kubelets
	scheduler *scheduler
	workloads *workloads
}

// changeClasses is an edit of a class, a new image, or a class that comes or goes.
func (u *users) changeClasses() {
	extra, there := u.api.classes["extra"]
	u.account.edited = true
	switch what := u.rng.IntN(4); {
	case what == 0:
		u.editClass(u.api.classes["default"])
	case what == 1:
		u.account.newImage()
	case !there:
		u.addTrace("class extra is made")
		u.api.addClass("extra")
	case extra.DeletionTimestamp == nil && what == 2:
		u.editClass(extra)
	case extra.DeletionTimestamp == nil:
		u.addTrace("somebody deletes class extra")
		now := metav1.NewTime(u.toSecond())
		extra.DeletionTimestamp = &now
		u.api.writeClass(extra)
		u.api.collectClass(extra)
	}
}

// editClass changes a tag, after which the class's nodes have drifted.
func (u *users) editClass(c *awsv1.EC2NodeClass) {
	if c.DeletionTimestamp != nil {
		return
	}
	c.Generation++
	c.Spec.Tags = map[string]string{"edit": strconv.FormatInt(c.Generation, 10)}
	u.addTrace("class %s is edited", c.Name)
	u.api.writeClass(c)
}

// causeDrift is something after which nodes are not what their pools ask for.
func (u *users) causeDrift() {
	p := &u.api.pools[u.rng.IntN(len(u.api.pools))]
	switch u.rng.IntN(4) {
	case 0:
		u.account.newImage()
	case 1:
		u.editClass(u.api.classes["default"])
	case 2:
		p.Hash += "1"
		u.addTrace("the template of pool %s is changed", p.Name)
	default:
		if _, limits := p.Requirements.Get(labelCapacity); limits {
			p.Requirements = p.Requirements.Without(labelCapacity)
		} else {
			p.Requirements = p.Requirements.And(requirements.Of(labelCapacity, instancetypes.OnDemand))
		}
		u.addTrace("pool %s requires %s", p.Name, p.Requirements)
	}
}

// guardNode keeps a node from being disrupted by choice for so long, as a user does who annotates it.
func (u *users) guardNode(n *node, d time.Duration) {
	if u.api.nodes[n.Name] != n {
		return
	}
	u.addTrace("somebody protects node %s for %s", n.Name, d)
	if n.Annotations[v1.AnnotationDoNotDisrupt] == "" {
		n.guarded = time.Now()
	}
	n.Annotations = objects.Merge(n.Annotations, map[string]string{v1.AnnotationDoNotDisrupt: "true"})
	until := time.Now().Add(d)
	n.guardEnds = laterOf(until, n.guardEnds)
	u.api.notifyChange(aNode, nil)
	u.runAfter(d, func() {
		if !n.guardEnds.After(until) {
			u.unguardNode(n)
		}
	})
}

func laterOf(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// unguardNode takes the annotation off.
func (u *users) unguardNode(n *node) {
	if u.api.nodes[n.Name] != n || n.Annotations[v1.AnnotationDoNotDisrupt] == "" {
		return
	}
	u.addTrace("node %s is not protected any more", n.Name)
	n.Annotations = objects.Merge(n.Annotations, nil)
	delete(n.Annotations, v1.AnnotationDoNotDisrupt)
	u.api.notifyChange(aNode, nil)
}

// guardRecommended protects a node that is to be left on a recommendation until it is too late for that, so that the
// recommendation is in vain. It has drifted by then as likely as not, and must go in the end.
func (u *users) guardRecommended(m *machine) {
	if old := time.Since(m.Launched) > 15*time.Minute; u.plan.drifts && old && m.node != nil && u.drawChance(0.7) {
		u.guardNode(m.node, u.drawDuration(15*time.Minute+30*time.Second, 17*time.Minute))
	}
}

// calmGuards takes all protection off that would go on for ever; that of recommendations ends in time.
func (u *users) calmGuards() {
	for _, name := range slices.Sorted(maps.Keys(u.api.nodes)) {
		if !u.plan.drifts {
			u.unguardNode(u.api.nodes[name])
		}
	}
}

// changeStatic is kubectl scale, or an edit of the template, after which every node of the pool has drifted.
func (u *users) changeStatic() {
	p := u.api.staticPool()
	switch {
	case p == nil:
	case u.drawChance(0.7):
		p.Replicas = u.drawInt(0, 4)
		u.addTrace("pool %s is to have %d nodes", p.Name, p.Replicas)
	default:
		p.Hash += "1"
		u.addTrace("the template of pool %s is changed", p.Name)
	}
}

func (u *users) usersAct() {
	switch u.rng.IntN(11) {
	case 0, 1:
		if len(u.workloads.apps) < 7 {
			u.workloads.startApp(u.workloads.drawApp())
		}
	case 2, 3:
		if a := u.workloads.anyApp(); a != nil {
			u.workloads.setReplicas(a, int(u.drawInt(0, 7)))
		}
	case 4:
		if a := u.workloads.anyApp(); a != nil && u.drawChance(0.5) {
			u.workloads.stopApp(a)
		}
	case 5:
		if names := slices.Sorted(maps.Keys(u.api.claims)); len(names) > 0 {
			c := u.api.claims[names[u.rng.IntN(len(names))]]
			u.addTrace("somebody deletes claim %s", c.Name)
			u.api.deleteClaim(c, nil)
		}
	case 6:
		if names := slices.Sorted(maps.Keys(u.api.nodes)); len(names) > 0 {
			if n := u.api.nodes[names[u.rng.IntN(len(names))]]; n.machine != nil {
				u.addTrace("somebody deletes node %s", n.Name)
				u.api.deleteNode(n, nil)
			}
		}
	case 7:
		if pods := slices.Sorted(maps.Keys(u.api.pods)); len(pods) > 0 {
			p := u.api.pods[pods[u.rng.IntN(len(pods))]]
			u.addTrace("somebody deletes pod %s", p.Name)
			u.kubelets.endPod(p, p.GraceSec)
		}
	case 8, 9:
		u.changeStatic()
	case 10:
		if names := slices.Sorted(maps.Keys(u.api.nodes)); len(names) > 0 {
			u.guardNode(u.api.nodes[names[u.rng.IntN(len(names))]], u.drawDuration(30*time.Second, 4*time.Minute))
		}
	}
}
