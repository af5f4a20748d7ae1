package filter_test

import (
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"joiner.sh/infra/local/controlplane/client"
	"joiner.sh/infra/local/controlplane/filter"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/plan"
	"joiner.sh/pkg/nodeclass/translate"
	"joiner.sh/pkg/scheduling/binpack"
	"joiner.sh/pkg/testing/scenario"
)

var (
	draws = flag.Int("draws", 500, "how many clusters TestDraws draws")
	first = flag.Uint64("first", 1, "the first seed of TestDraws")
	other = flag.String("other", "", "a minor version of Kubernetes whose filters TestMinors asks as well, such as 1.36")
)

// gates are those that decide about what is drawn and are off in Kubernetes 1.36: 1.37 has them on.
const gates = "VolumeLimitScaling=true"

// declared is what a kubelet of the minor version declares with its default gates. Before 1.36 none did, and in 1.37 as
// in 1.36.
func declared(minor int) []string {
	if minor < 36 {
		return nil
	}
	return []string{"ExtendWebSocketsToKubelet", "InPlacePodLevelResourcesVerticalScaling", "InPlacePodVerticalScalingInitContainers",
		"RestartAllContainersOnContainerExits"}
}

// draw is a cluster as the API server has it, and what new nodes it may get.
type draw struct {
	r        *rand.Rand
	q        filter.Question
	world    *scenario.World
	kubelets map[string]int // by class

	placing       bool                                  // pods have rules about their place, in two zones
	disks         bool                                  // waiting pods want local volumes, and nodes have few
	rooted, mixed bool                                  // most claims are of devices on one PCIe root; others are too
	bundles       [2][2]int64                           // GPUs and interfaces of such claims
	rules         deviceRules                           // shared claims and rules about all devices of a driver
	planted       int64                                 // bundles that Joiner believes are on a node beyond those that are
	blind         func(n *cluster.Node, p *cluster.Pod) // what Joiner does not see of nodes and pods
}

func (d *draw) chance(n int) bool { return d.r.IntN(n) == 0 }

func newDraw(t *testing.T, seed uint64) *draw {
	t.Helper()
	d := &draw{r: rand.New(rand.NewPCG(seed, 1)), kubelets: map[string]int{}}
	script := []string{"type s cpu=2000 mem=4096 milliusd=50", "type m cpu=4000 mem=8192 milliusd=100", "type l cpu=8000 mem=16384 milliusd=210", "type g cpu=8000 mem=16384 milliusd=900\nresource nvidia.com/gpu 4",
		"type p4d.24xlarge cpu=8000 mem=16384 milliusd=1900\nresource nvidia.com/gpu 8\nresource vpc.amazonaws.com/efa 4",
		"type p6-b300.48xlarge cpu=8000 mem=16384 milliusd=2900\nresource nvidia.com/gpu 8\nresource vpc.amazonaws.com/efa 16"}
	d.placing = d.chance(2)
	d.disks = d.placing && seed%16 == 5
	for i := range 1 + d.r.IntN(2) {
		class, kubelet := fmt.Sprintf("c%d", i), 35+d.r.IntN(3)
		d.kubelets[class] = kubelet
		pool := fmt.Sprintf("pool p%d class=%s weight=%d", i, class, d.r.IntN(3))
		if d.placing {
			pool += "\nrequire zone In a b" + oneOf(d, "", "\ntaint t=x:PreferNoSchedule", "\ntaint t=x:NoSchedule", "\nlabel "+labelRack+"=r3")
		}
		script = append(script, fmt.Sprintf("class %s kubelet=%d", class, kubelet), pool)
	}
	d.world = scenario.Scripted(t, script...)
	if d.placing {
		d.addPlaces()
	}
	for _, name := range []string{"csi.a", "csi.b"} {
		optIn := d.chance(2)
		d.q.CSIDrivers = append(d.q.CSIDrivers, &storagev1.CSIDriver{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: storagev1.CSIDriverSpec{PreventPodSchedulingIfMissing: &optIn}})
	}
	d.addDeviceClasses()
	d.rules = newDeviceRules(seed)
	for i := range d.r.IntN(4) {
		d.addNode(fmt.Sprintf("n%d", i))
	}
	waiting, claiming := 1+d.r.IntN(6), 3
	if d.rooted && d.mixed { // pods that want the same devices in different ways
		waiting, claiming = waiting+6, 1
	}
	for i := range waiting {
		p := d.pod(fmt.Sprintf("wait-%d", i), nil)
		if d.chance(claiming) {
			d.claim(p)
		}
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable}}
		d.q.Pods = append(d.q.Pods, p)
	}
	d.rules.shareClaims(d.q)
	return d
}

// addNode adds a node of any version with pods, some of which are being resized.
func (d *draw) addNode(name string) {
	cpu, drivers := []string{"2", "4", "8"}[d.r.IntN(3)], []storagev1.CSINodeDriver(nil)
	room := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse("8Gi"), corev1.ResourcePods: resource.MustParse("20")}
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelHostname: name, corev1.LabelTopologyZone: "a"}},
		Status: corev1.NodeStatus{Capacity: room, Allocatable: room, DeclaredFeatures: declared(35 + d.r.IntN(2)), Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}}}
	d.q.Nodes = append(d.q.Nodes, n)
	if d.placing {
		d.placeNode(n)
	}
	for _, driver := range d.q.CSIDrivers {
		if d.chance(2) {
			drivers = append(drivers, storagev1.CSINodeDriver{Name: driver.Name, NodeID: name})
		}
	}
	if len(drivers) > 0 || d.chance(2) {
		d.q.CSINodes = append(d.q.CSINodes, &storagev1.CSINode{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: storagev1.CSINodeSpec{Drivers: drivers}})
	}
	if d.rooted || d.chance(2) {
		d.addSlices(name)
	}
	for i := range d.r.IntN(3) {
		p := d.pod(fmt.Sprintf("on-%s-%d", name, i), n)
		p.Spec.NodeName, p.Status.Phase = name, corev1.PodRunning
		if d.chance(2) {
			d.claim(p)
		}
		d.resize(p)
		d.q.Pods = append(d.q.Pods, p)
	}
}

// resize has the kubelet report other requests than the pod's, of its container or as a whole.
func (d *draw) resize(p *corev1.Pod) {
	has := d.amounts(1)
	switch d.r.IntN(4) {
	case 0:
		p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "a", AllocatedResources: has, Resources: &corev1.ResourceRequirements{Requests: has}}}
	case 1:
		if p.Spec.Resources != nil {
			p.Status.AllocatedResources, p.Status.Resources = has, &corev1.ResourceRequirements{Requests: has}
		}
	default:
		return
	}
	if d.chance(2) {
		p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: corev1.PodResizePending, Status: corev1.ConditionTrue,
			Reason: []string{corev1.PodReasonDeferred, corev1.PodReasonInfeasible}[d.r.IntN(2)]})
	}
}

func (d *draw) amounts(least int) corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceCPU: *resource.NewMilliQuantity(int64(100*(least+d.r.IntN(22))), resource.DecimalSI),
		corev1.ResourceMemory: *resource.NewQuantity(int64(least+d.r.IntN(12))<<28, resource.BinarySI)}
}

// pod is one that may have requests as a whole, a rule to restart all containers, and volumes, on the node unless that
// is nil.
func (d *draw) pod(name string, on *corev1.Node) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID("u-" + name)}, Spec: corev1.PodSpec{SchedulerName: corev1.DefaultSchedulerName,
		Containers: []corev1.Container{{Name: "a", Resources: corev1.ResourceRequirements{Requests: d.amounts(1)}}}}}
	if d.placing {
		d.place(p, on)
	}
	if d.chance(3) {
		p.Spec.Resources = &corev1.ResourceRequirements{Requests: d.amounts(23)}
	}
	if d.chance(3) {
		p.Spec.Containers[0].RestartPolicyRules = []corev1.ContainerRestartRule{{Action: corev1.ContainerRestartRuleActionRestartAllContainers}}
	}
	for _, driver := range d.q.CSIDrivers {
		if !d.chance(4) {
			continue
		}
		claim, volume := name+"-"+driver.Name, "pv-"+name+"-"+driver.Name
		d.q.Claims = append(d.q.Claims, &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: claim, Annotations: map[string]string{"pv.kubernetes.io/bind-completed": "yes"}},
			Spec: corev1.PersistentVolumeClaimSpec{VolumeName: volume}, Status: corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimBound}})
		d.q.Volumes = append(d.q.Volumes, &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: volume}, Spec: corev1.PersistentVolumeSpec{
			PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: driver.Name, VolumeHandle: volume}}}})
		p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: "v" + claim, VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim}}})
	}
	return p
}

// plan is what Joiner decides about the draw.
func (d *draw) plan() plan.Plan {
	s := d.world.Snapshot
	known := translate.Storage{Claims: map[string]corev1.PersistentVolumeClaim{}, Volumes: map[string]corev1.PersistentVolume{}, Classes: map[string]storagev1.StorageClass{}, OptIn: map[string]bool{}}
	for _, c := range d.q.StorageClasses {
		known.Classes[c.Name] = *c
	}
	for _, n := range d.q.Namespaces {
		s.Namespaces = append(s.Namespaces, cluster.Namespace{Name: n.Name, Labels: n.Labels})
	}
	for _, c := range d.q.Claims {
		known.Claims[c.Namespace+"/"+c.Name] = *c
	}
	for _, v := range d.q.Volumes {
		known.Volumes[v.Name] = *v
	}
	for _, driver := range d.q.CSIDrivers {
		known.OptIn[driver.Name] = *driver.Spec.PreventPodSchedulingIfMissing
	}
	for _, n := range d.q.Nodes {
		one := translate.Node(n)
		for _, said := range d.q.CSINodes {
			if said.Name == n.Name {
				one.VolumeLimits = translate.VolumeLimits(said)
				known.AddDrivers(&one, slices.Collect(func(yield func(string) bool) {
					for _, x := range said.Spec.Drivers {
						yield(x.Name)
					}
				}))
			}
		}
		s.Nodes = append(s.Nodes, one)
	}
	known.AddVolumes(s.Nodes)
	var shapes translate.PodShapes
	for _, p := range d.q.Pods {
		s.Pods = append(s.Pods, shapes.ListPod(p).Pod())
	}
	known.NoteUsers(s.Pods)
	for i := range s.Pods {
		known.FillPod(&s.Pods[i])
	}
	d.fillDevices(&s)
	if d.blind != nil {
		for i := range s.Nodes {
			d.blind(&s.Nodes[i], &cluster.Pod{})
		}
		for i := range s.Pods {
			d.blind(&cluster.Node{}, &s.Pods[i])
		}
	}
	return binpack.PodsFrom(s, d.world.Market)
}

// newNode is the node that a launch becomes, or one of the type and pool that nobody uses.
func (d *draw) newNode(name string, t instancetypes.Type, pool cluster.Pool, zone string) (*corev1.Node, *storagev1.CSINode) {
	labels := t.Requirements.Labels()
	maps.Copy(labels, pool.Labels)
	labels[corev1.LabelHostname], labels[corev1.LabelTopologyZone], labels["karpenter.sh/nodepool"] = name, zone, pool.Name
	room := translate.Quantities(t.Allocatable)
	said := &storagev1.CSINode{ObjectMeta: metav1.ObjectMeta{Name: name}}
	for _, driver := range d.q.CSIDrivers {
		said.Spec.Drivers = append(said.Spec.Drivers, storagev1.CSINodeDriver{Name: driver.Name, NodeID: name})
	}
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}, Spec: corev1.NodeSpec{Taints: translate.CoreTaints(pool.Taints)},
		Status: corev1.NodeStatus{Capacity: room, Allocatable: room, DeclaredFeatures: declared(d.kubelets[pool.Class])}}, said
}

// seated is the question whether the scheduler takes what the plan has. Free disks come with new nodes.
func (d *draw) seated(p plan.Plan) filter.Question {
	q, on := d.q, map[string]string{}
	q.Pods = nil
	for _, e := range p.Existing {
		on[e.Pod] = e.Node
	}
	for i, l := range p.Launches {
		name := fmt.Sprintf("new-%d", i)
		pool, _ := d.world.Snapshot.PoolOf(l.Pool)
		d.addNew(&q, name, l.Choice.Type, pool, l.Choice.Zone)
		for _, key := range l.Pods {
			on[key] = name
		}
	}
	for _, pod := range d.q.Pods {
		key := pod.Namespace + "/" + pod.Name
		if on[key] == "" && pod.Spec.NodeName == "" {
			continue
		}
		if on[key] != "" {
			pod = pod.DeepCopy()
			pod.Spec.NodeName = on[key]
		}
		q.Pods = append(q.Pods, pod)
	}
	return q
}

// addNew adds a new node with its CSI drivers, devices and disks.
func (d *draw) addNew(q *filter.Question, name, typ string, pool cluster.Pool, zone string) {
	t := d.world.Types[slices.IndexFunc(d.world.Types, func(t instancetypes.Type) bool { return t.Name == typ })]
	n, said := d.newNode(name, t, pool, zone)
	q.Nodes, q.CSINodes = append(slices.Clip(q.Nodes), n), append(slices.Clip(q.CSINodes), said)
	q.ResourceSlices = append(slices.Clip(q.ResourceSlices), slicesOf(name, t)...)
	if d.placing {
		had := d.q.Volumes
		d.q.Volumes = slices.Clip(q.Volumes)
		for i := range 16 { // how many it brings nobody knows; enough for all
			d.addVolume(fmt.Sprintf("disk-%s-%d", name, i), "", name)
		}
		q.Volumes, d.q.Volumes = d.q.Volumes, had
	}
}

// unseated are the questions whether a new node of any type, pool and zone beside those of the plan takes a pod that the
// plan leaves. Where nothing but room and devices matters, one node of each is asked about at once, without others.
func (d *draw) unseated(p plan.Plan, taken filter.Question) (out []filter.Question) {
	var left []*corev1.Pod
	for _, u := range p.Unplaced {
		pod := d.q.Pods[slices.IndexFunc(d.q.Pods, func(x *corev1.Pod) bool { return x.Namespace+"/"+x.Name == u.Pod })]
		if why := strings.Join(u.Why, ""); !strings.Contains(why, notCounted) && !strings.Contains(why, promised) && !spreadsPastItsNodes(pod) && !d.rules.shares(pod) {
			left = append(left, pod)
		}
	}
	all := d.q
	all.Nodes, all.CSINodes, all.Pods, all.ResourceSlices = nil, nil, left, nil
	for _, pool := range d.world.Snapshot.Pools {
		for _, t := range d.world.Types {
			d.addNew(&all, extra+pool.Name+"-"+t.Name, t.Name, pool, "a")
		}
		for _, zone := range []string{"a", "b"} {
			q := taken
			q.Pods = slices.Concat(q.Pods, left)
			d.addNew(&q, extra+pool.Name+zone, oneOf(d, d.world.Types...).Name, pool, zone)
			out = append(out, q)
		}
	}
	if len(left) == 0 || !d.placing {
		return []filter.Question{all}
	}
	return out
}

// promised is what a refusal says of a claim for one pod at a time that another pod waits with, which may find no place.
const promised = "is for one pod at a time"

// spreadsPastItsNodes reports whether a spread of the pod may count domains in which it cannot be itself, such as zones
// without its volume or without the pods that it must be near. Joiner counts those that may get a node, the scheduler
// those that have one.
func spreadsPastItsNodes(p *corev1.Pod) bool {
	return slices.ContainsFunc(p.Spec.TopologySpreadConstraints, func(c corev1.TopologySpreadConstraint) bool {
		a := p.Spec.Affinity
		return c.NodeAffinityPolicy != nil || len(p.Spec.Volumes) > 0 || a != nil && a.PodAffinity != nil &&
			slices.ContainsFunc(a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution,
				func(t corev1.PodAffinityTerm) bool { return t.TopologyKey == c.TopologyKey })
	})
}

// extra begins the names of nodes that no plan has.
const extra = "extra-"

// kube-scheduler refuses no pod that Joiner seats, and takes none onto a new node that Joiner leaves without a place, in
// clusters of mixed versions with resized pods, CSI drivers that opt in, and claims of devices.
func TestDraws(t *testing.T) {
	a, refusing, rooted, ruled := newAsker(t, client.Minor(), gates), map[string]int{}, map[string]int{}, map[string]int{}
	for i := range *draws {
		seed := *first + uint64(i)
		d := newDraw(t, seed)
		p := d.plan()
		d.countRooted(p, rooted)
		d.rules.count(d.q, p, ruled)
		for _, v := range a.ask(d.rules.taint(d.q)) {
			refusing[v.Plugin]++
		}
		for _, why := range a.disagreements(d, p) {
			t.Errorf("seed %d: %s\n%s", seed, why, p.String())
		}
	}
	for _, plugin := range []string{"", "NodeResourcesFit", "NodeDeclaredFeatures", "NodeVolumeLimits", "DynamicResources"} {
		if refusing[plugin] < *draws/10 {
			t.Errorf("of the pods on nodes that there are %q decides about %d, too few to tell: %v", plugin, refusing[plugin], refusing)
		}
	}
	for _, where := range []string{"on a node", "on a new node", "not counted", "without a place"} {
		if rooted[where] < *draws/50 {
			t.Errorf("of the pods that claim devices on one PCIe root %d are %s, too few to tell: %v", rooted[where], where, rooted)
		}
	}
	for _, what := range []string{"share a claim", "tolerate a rule", "tolerate no rule"} {
		if ruled[what] < *draws/100 {
			t.Errorf("%d of the pods that claim devices %s, too few to tell: %v", ruled[what], what, ruled)
		}
	}
	t.Logf("plugins %v, pods with devices on one PCIe root %v, others %v", refusing, rooted, ruled)
}
