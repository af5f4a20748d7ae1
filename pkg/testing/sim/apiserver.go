package sim

import (
	"slices"
	"strconv"
	"time"

	awsv1 "joiner.sh/pkg/api/aws/v1"
	v1 "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/model/cluster"
)

// apiServer keeps the objects of the cluster, tells watchers of changes, and collects garbage.
type apiServer struct {
	*engine
	kubelets  *kubelets
	network   *network
	scheduler *scheduler
	volumes   *volumes
	workloads *workloads

	version  int // of the last change; also a resourceVersion
	news     []objectChange
	watchers []watchWaiter

	claims        map[string]*claim // by name
	byUID         map[string]*claim // every claim there ever was
	nodes         map[string]*node
	pods          map[string]*pod
	namespaces    []cluster.Namespace
	pools         []cluster.Pool
	buffers       []cluster.StoppedBuffer
	nodePools     map[string]*v1.NodePool
	classes       map[string]*awsv1.EC2NodeClass
	leases        map[string]storedLease
	leaders       *leaderLeases                     // nil: nobody looks
	registrations map[string][]cluster.Registration // by pool
}

func newAPIServer(e *engine) *apiServer {
	return &apiServer{engine: e, claims: map[string]*claim{}, byUID: map[string]*claim{}, nodes: map[string]*node{},
		pods: map[string]*pod{}, namespaces: namespaces(), nodePools: map[string]*v1.NodePool{},
		classes: map[string]*awsv1.EC2NodeClass{},
		leases:  map[string]storedLease{}, registrations: map[string][]cluster.Registration{}}
}

// deleteNode does what the API server does when somebody deletes a node.
func (s *apiServer) deleteNode(n *node, by *invocation) {
	if n.Deleting.IsZero() {
		s.mutatedBy(by, "delete node")
		n.Deleting = s.toSecond()
		s.notifyChange(aNode, by)
	}
	s.collectDeleted()
}

// removeNode takes the object away. The pods on it are collected, whether they run or not.
func (s *apiServer) removeNode(n *node) {
	delete(s.nodes, n.Name)
	s.volumes.leave(n.Name)
	s.addTrace("node %s is gone", n.Name)
	s.notifyChange(aNode, nil)
	s.scheduler.retryScheduling()
	s.runAfter(s.drawDuration(5*time.Second, 20*time.Second), func() {
		for _, pod := range s.podsOn(n.Name) {
			s.kubelets.removePod(pod)
		}
	})
}

// writeClaim gives the claim a new version and returns a copy.
func (s *apiServer) writeClaim(c *claim, by *invocation) cluster.Claim {
	s.notifyChange(aClaim, by)
	c.Version, c.writer, c.written = strconv.Itoa(s.version), by, time.Now()
	return c.Claim
}

// noteNomination notes who waits for the claim: the pods named, and of those before them the ones that have found no
// other node meanwhile.
func (s *apiServer) noteNomination(c *claim, named []string) {
	before := c.pods
	c.pods = nil
	for key, pod := range s.pods { // each pod on its own
		if slices.Contains(named, key) || pod.NodeName == "" && slices.Contains(before, pod.UID) {
			c.pods = append(c.pods, pod.UID)
		}
	}
	slices.Sort(c.pods)
}

// deleteClaim does what the API server does when somebody deletes a claim.
func (s *apiServer) deleteClaim(c *claim, by *invocation) {
	if c.Deleting.IsZero() {
		s.mutatedBy(by, "delete claim")
		c.Deleting = s.toSecond()
		if by == nil {
			c.dropped = time.Now()
		}
		s.writeClaim(c, by)
	}
	s.collectDeleted()
}

// collectDeleted removes what is being deleted and has no finalizer left, and has the garbage collector look at what
// they owned.
func (s *apiServer) collectDeleted() {
	for _, c := range selectInOrder(s.claims, func(c *claim) bool { return !c.Deleting.IsZero() && !c.Finalizer }) {
		delete(s.claims, c.Name)
		s.notifyChange(aClaim, nil)
		s.runAfter(s.drawDuration(time.Second, 5*time.Second), func() { s.deleteOrphans(c.UID) })
	}
	for _, n := range selectInOrder(s.nodes, func(n *node) bool { return !n.Deleting.IsZero() && !n.Finalizer }) {
		s.removeNode(n)
	}
}

// deleteOrphans deletes the nodes that a claim owned.
func (s *apiServer) deleteOrphans(uid string) {
	for _, n := range selectInOrder(s.nodes, func(n *node) bool { return n.owner == uid }) {
		s.deleteNode(n, nil)
	}
}
