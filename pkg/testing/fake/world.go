package fake

import (
	"cmp"
	"maps"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	awsv1 "joiner/pkg/api/aws/v1"
	"joiner/pkg/disruption"
	"joiner/pkg/model/cluster"
	"joiner/pkg/model/instancetypes"
	"joiner/pkg/model/requirements"
	"joiner/pkg/nodeclaim/launch"
)

// Times of the world.
const (
	joinTime = 15 * time.Second // from launch to a node that is not Ready
	bootTime = 20 * time.Second // from launch to a Ready node
	listLag  = 3 * time.Second  // from launch to being listed
)

// World is the state that outlives invocations. Its exported fields are set before use.
type World struct {
	Catalog instancetypes.Catalog
	Cluster string

	Refuse     func(instancetypes.Offer) bool // offers that EC2 has no capacity for; nil for none
	Free       map[string]int64               // addresses of subnets; of one that is missing nobody knows
	FailLaunch func(o launch.Order) error     // another error of CreateFleet; nil for none
	EndEarly   func(o launch.Order) string    // why EC2 ends an instance before it runs, empty or nil for not
	Launches   int                            // instances that were ever started
	Quota      int                            // how many things Take lets through
	FailEnd    func(id string) error          // of TerminateInstances; nil for none
	Stopped    []cluster.StoppedBuffer

	mu             sync.Mutex
	now            time.Time
	made           int // for names, UIDs and versions
	claims         map[string]*cluster.Claim
	nodes          map[string]*cluster.Node
	pods           map[string]*cluster.Pod
	pools          []cluster.Pool
	classes        map[string]*awsv1.EC2NodeClass
	resolved       []instancetypes.Class
	types          map[string]instancetypes.Type
	budgets        []budget
	apps           map[string]cluster.Pod // pods that are made anew when they go, by app
	leases         map[string]lease
	marks          []instancetypes.UnavailableOffering
	failedLaunches map[string][]string // instances that ended before they joined, by class
	events         []cluster.Event
	instances      map[string]*machine
	tokens         map[string]answer
	wakes          map[string]int
	taken          []string
	poolNotes      map[string]string // annotations of the one pool itself
	doubled        []string
	memory         disruption.Memory

	registrations map[string][]cluster.Registration // by pool
	attachments   []cluster.Attachment
	impaired      []cluster.Impairment
	recovers      map[string]time.Time // by instance
	changes       []cluster.ScheduledChange
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
	labels map[string]string
	taints []cluster.Taint
	name   string // tag Name
	joined bool
	booted bool // its node has been Ready
	doomed bool // it ends before it runs
	ended  time.Time
}

// answer is what EC2 said to a token.
type answer struct {
	asked string
	id    string
	err   error
}

// New makes a world with the pool "general" of the class "default", which has a subnet in every zone.
func New(c instancetypes.Catalog, now time.Time) *World {
	w := &World{
		Catalog: c, Cluster: "demo", now: now, claims: map[string]*cluster.Claim{}, nodes: map[string]*cluster.Node{},
		pods: map[string]*cluster.Pod{}, classes: map[string]*awsv1.EC2NodeClass{},
		types: map[string]instancetypes.Type{},
		apps:  map[string]cluster.Pod{}, leases: map[string]lease{}, instances: map[string]*machine{},
		tokens: map[string]answer{},
		wakes:  map[string]int{}, recovers: map[string]time.Time{}, failedLaunches: map[string][]string{},
		registrations: map[string][]cluster.Registration{},
	}
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
func (w *World) Now() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.now
}

// ChangePool changes the one pool.
func (w *World) ChangePool(edit func(*cluster.Pool)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	edit(&w.pools[0])
}

// BreakClass makes the class and with it the pool not ready, without saying so to those who read before.
func (w *World) BreakClass(why string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.resolved[0].Ready, w.resolved[0].Message = false, why
	w.classes["default"].Status.Conditions = readyCondition(metav1.ConditionFalse, why)
	w.pools[0].Ready, w.pools[0].Message = false, "its EC2NodeClass default is not ready: "+why
}

// RunApp keeps n pods of an app running, made after the pattern, which needs no names and is in the namespace default
// unless it says another.
func (w *World) RunApp(app string, n int, pattern cluster.Pod) {
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
func (w *World) StopApp(app string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.apps, app)
	maps.DeleteFunc(w.pods, func(_ string, p *cluster.Pod) bool { return p.Labels["app"] == app })
}

// ProtectApp makes a PodDisruptionBudget that keeps so many pods of the app available.
func (w *World) ProtectApp(app string, minAvailable int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := &cluster.Selector{Requirements: []requirements.Requirement{requirements.Of("app", app)}}
	w.budgets = append(w.budgets, budget{app: app, selector: s, minAvailable: minAvailable, lowest: -1})
}
