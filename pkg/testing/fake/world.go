package fake

import (
	"cmp"
	"maps"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	awsv1 "joiner.sh/pkg/api/aws/v1"
	"joiner.sh/pkg/disruption"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/requirements"
)

// Times of the world.
const (
	joinTime = 15 * time.Second // from launch to a node that is not Ready
	bootTime = 20 * time.Second // from launch to a Ready node
	listLag  = 3 * time.Second  // from launch to being listed
)

// World is the state that outlives invocations, and the clock that moves it. Catalog and Cluster are set before use.
type World struct {
	*engine
	*claimStore
	*nodeStore
	*podStore
	*poolStore
	*ec2
	*records
}

// engine holds what all parts of a world share: one lock, one clock, and the way to the others.
type engine struct {
	Catalog  instancetypes.Catalog
	Cluster  string
	Follower cluster.StageFollower // of decisions about what is read of the world; nil for nobody

	mu    sync.Mutex // guards the state of all parts
	now   time.Time
	made  int // for names, UIDs and versions
	types map[string]instancetypes.Type

	parts
}

// parts are the parts of a world. One that needs another one's state finds it here.
type parts struct {
	claimStore *claimStore
	nodeStore  *nodeStore
	podStore   *podStore
	poolStore  *poolStore
	ec2        *ec2
	records    *records
}

// records holds what functions tell each other.
type records struct {
	*engine
	Quota int // how many things Take lets through; set before use

	leases map[string]lease
	marks  []instancetypes.UnavailableOffering
	unused []instancetypes.UnavailableEntry // about nodes that were bought in vain
	events []cluster.Event
	wakes  map[string]int
	taken  []string
	memory disruption.Memory
}

type budget struct {
	app          string
	selector     *cluster.Selector
	minAvailable int
	lowest       int // pods available at the worst time
}

type lease struct {
	holder string
	until  time.Time
}

// machine is an EC2 instance and what its user data tells the kubelet.
type machine struct {
	cluster.Instance
	labels       map[string]string
	taints       []cluster.Taint
	name         string // tag Name
	joined       bool
	booted       bool // its node has been Ready
	failsToStart bool // it ends before it runs
	ended        time.Time
}

// answer is EC2's answer to a token.
type answer struct {
	asked string
	id    string
	err   error
}

// New makes a world with the pool "general" of the class "default", which has a subnet in every zone.
func New(c instancetypes.Catalog, now time.Time) *World {
	e := &engine{Catalog: c, Cluster: "demo", now: now, types: map[string]instancetypes.Type{}}
	e.parts = parts{
		claimStore: &claimStore{engine: e, claims: map[string]*cluster.Claim{}},
		nodeStore:  &nodeStore{engine: e, nodes: map[string]*cluster.Node{}},
		podStore:   &podStore{engine: e, pods: map[string]*cluster.Pod{}, apps: map[string]cluster.Pod{}},
		poolStore: &poolStore{engine: e, classes: map[string]*awsv1.EC2NodeClass{},
			failedLaunches: map[string][]string{}, registrations: map[string][]cluster.Registration{}},
		ec2: &ec2{engine: e, instances: map[string]*machine{}, tokens: map[string]answer{},
			recovers: map[string]time.Time{}},
		records: &records{engine: e, leases: map[string]lease{}, wakes: map[string]int{}},
	}
	w := &World{e, e.claimStore, e.nodeStore, e.podStore, e.poolStore, e.ec2, e.records}
	class := instancetypes.Class{Name: "default", Ready: true, Family: instancetypes.AL2023, ZoneIDs: c.Zones,
		MemoryOverhead: 0.075,
		Images:         []instancetypes.Image{{ID: "ami-1"}}}
	w.resolved = []instancetypes.Class{class}
	for _, t := range instancetypes.ResolveTypes(c, class, nil, now) {
		w.types[t.Name] = t
	}
	object := &awsv1.EC2NodeClass{}
	object.Name = class.Name
	object.Spec.AMISelectorTerms = []awsv1.AMISelectorTerm{{Alias: "al2023@latest"}}
	object.Status.Conditions = readyCondition(metav1.ConditionTrue, "")
	object.Status.InstanceProfile = "demo-profile"
	object.Status.SecurityGroups = []awsv1.SecurityGroup{{ID: "sg-1"}}
	object.Status.AMIs = []awsv1.AMI{{ID: "ami-1"}}
	for _, zone := range slices.Sorted(maps.Keys(c.Zones)) {
		object.Status.Subnets = append(object.Status.Subnets,
			awsv1.Subnet{ID: "subnet-" + zone, Zone: zone, ZoneID: c.Zones[zone]})
		w.resolved[0].Subnets = append(w.resolved[0].Subnets, instancetypes.Subnet{ID: "subnet-" + zone, Zone: zone})
	}
	w.classes[class.Name] = object
	w.pools = []cluster.Pool{{Name: "general", UID: "uid-general", Class: "default", Ready: true, Uncounted: true}}
	return w
}

func readyCondition(status metav1.ConditionStatus, message string) []metav1.Condition {
	return []metav1.Condition{{Type: awsv1.ConditionReady, Status: status, Reason: awsv1.ConditionReady,
		Message: message}}
}

// Now is the world's time.
func (w *engine) Now() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.now
}

// ChangePool changes the one pool.
func (w *poolStore) ChangePool(edit func(*cluster.Pool)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	edit(&w.pools[0])
}

// BreakClass makes the class and with it the pool not ready, without saying so to those who read before.
func (w *poolStore) BreakClass(why string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.resolved[0].Ready, w.resolved[0].Message = false, why
	w.classes["default"].Status.Conditions = readyCondition(metav1.ConditionFalse, why)
	w.pools[0].Ready, w.pools[0].Message = false, "its EC2NodeClass default is not ready: "+why
}

// RunApp keeps n pods of an app running, made after the pattern, which needs no names and is in the namespace default
// unless it says another.
func (w *podStore) RunApp(app string, n int, pattern cluster.Pod) {
	w.mu.Lock()
	defer w.mu.Unlock()
	pattern.Namespace = cmp.Or(pattern.Namespace, "default")
	pattern.Labels, pattern.Owner = map[string]string{"app": app}, cluster.OwnerOther
	pattern.Need.Pods, pattern.Controller = 1, "uid-"+app
	w.apps[app] = pattern
	for range n {
		w.addPod(app)
	}
	w.schedulePods()
}

// StopApp ends an app and its pods.
func (w *podStore) StopApp(app string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.apps, app)
	maps.DeleteFunc(w.pods, func(_ string, p *cluster.Pod) bool { return p.Labels["app"] == app })
}

// ProtectApp makes a PodDisruptionBudget that keeps so many pods of the app available.
func (w *podStore) ProtectApp(app string, minAvailable int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := &cluster.Selector{Requirements: []requirements.Requirement{requirements.Of("app", app)}}
	w.budgets = append(w.budgets, budget{app: app, selector: s, minAvailable: minAvailable, lowest: -1})
}
