package lifecycle_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	awsv1 "joiner.sh/pkg/api/aws/v1"
	v1 "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/plan"
	"joiner.sh/pkg/nodeclaim/lifecycle"
)

// model is a little cluster on which actions take effect: an API server with finalizers, kubelets that end pods, and
// EC2.
type model struct {
	s       cluster.Snapshot
	budget  map[string]bool          // pods that the eviction API refuses
	pauses  map[string]time.Duration // for which the shell does not ask for a refused pod
	told    map[string]bool
	errs    []string // what no pass may do
	stops   bool     // instances that stop come to a stop
	started time.Time
	next    time.Time // pass, if nobody is busy before
}

func newModel(s cluster.Snapshot) *model {
	m := &model{s: s, budget: map[string]bool{}, pauses: map[string]time.Duration{}, told: map[string]bool{}, started: s.Now}
	m.s.Claims, m.s.Nodes = slices.Clone(s.Claims), slices.Clone(s.Nodes)
	m.s.Pods, m.s.Instances, m.s.Pools = slices.Clone(s.Pods), slices.Clone(s.Instances), slices.Clone(s.Pools)
	return m
}

// run passes once a second until nothing is left to do, at most for so many seconds, and prints the passes that did
// something. What is told is printed the first time. What nobody is busy with is looked at once a minute.
func (m *model) run(seconds int) string {
	var b strings.Builder
	for range seconds {
		if m.s.Now.Before(m.next) {
			m.tick(time.Second)
			continue
		}
		next := lifecycle.Next(m.s)
		for _, a := range next.Actions {
			if a.Do == plan.Tell && m.told[a.String()] {
				continue
			}
			m.told[a.String()] = true
			fmt.Fprintf(&b, "%s: %s\n", m.s.Now.Sub(m.started), a)
		}
		m.errs = append(m.errs, listWrongSteps(m.s, next)...)
		m.apply(next.Actions)
		if !next.Busy && !slices.ContainsFunc(next.Actions, func(a plan.Action) bool { return a.Do != plan.Tell }) {
			if !slices.ContainsFunc(m.s.Claims, func(c cluster.Claim) bool { return !c.Deleting.IsZero() && c.Finalizer }) {
				break
			}
			m.next = m.s.Now.Add(time.Minute)
		}
		m.tick(time.Second)
	}
	return b.String()
}

func (m *model) apply(actions []plan.Action) {
	for _, a := range actions {
		switch a.Do {
		case plan.WriteStatus, plan.SetDeadline, plan.LeaveNode, plan.TagInstance, plan.DeleteClaim, plan.ReleaseClaim, plan.AdoptClaim, plan.Unreserve:
			m.onClaim(a)
		case plan.RegisterNode, plan.InitializeNode, plan.TaintForTermination, plan.TaintNode, plan.ExcludeNode, plan.DeleteNode, plan.ReleaseNode:
			m.onNode(a)
		case plan.Terminate:
			for i := range m.s.Instances {
				if n := &m.s.Instances[i]; n.ID == a.Instance && n.State != "terminated" {
					n.State = "shutting-down"
				}
			}
		case plan.StopInstance:
			m.turn(a.Instance, func(i *cluster.Instance) { i.State = "stopping" })
		case plan.Evict, plan.DeletePod:
			m.onPod(a)
		case plan.CountPool:
			for i := range m.s.Pools {
				if m.s.Pools[i].Name == a.Pool {
					m.s.Pools[i].Counted, m.s.Pools[i].Uncounted = a.Has, false
				}
			}
		case plan.NoteShifts:
			for i := range m.s.Pools {
				if m.s.Pools[i].Name == a.Pool {
					m.s.Pools[i].ToldShifts = a.Zones
				}
			}
		case plan.Tell, plan.Registrations:
		default:
			m.errs = append(m.errs, "unknown action "+a.String())
		}
	}
}

func (m *model) onClaim(a plan.Action) {
	i := slices.IndexFunc(m.s.Claims, func(c cluster.Claim) bool { return c.Name == a.Claim })
	if i < 0 {
		m.errs = append(m.errs, "no claim for "+a.String())
		return
	}
	c := &m.s.Claims[i]
	switch a.Do {
	case plan.WriteStatus:
		c.Conditions = slices.Clone(c.Conditions)
		for _, k := range a.Conditions {
			m.setCondition(c, k)
		}
		if a.NodeName != "" || a.NoNode {
			c.NodeName = a.NodeName
		}
	case plan.SetDeadline:
		c.Annotations = with(c.Annotations, v1.AnnotationTerminationTimestamp, a.Deadline.Format(time.RFC3339))
	case plan.LeaveNode:
		c.Annotations = with(c.Annotations, v1.AnnotationReplaceRequested, a.Leave)
	case plan.TagInstance:
		c.Annotations = with(c.Annotations, "karpenter.k8s.aws/tagged", "true")
		c.Annotations = with(c.Annotations, "compatibility.karpenter.k8s.aws/cluster-name-tagged", "true")
	case plan.AdoptClaim:
		c.Finalizer, c.Labels = true, with(c.Labels, awsv1.LabelEC2NodeClass, c.Class)
		for k, v := range a.Labels {
			c.Labels = with(c.Labels, k, v)
		}
		if c.ProviderID != "" {
			c.Labels = with(c.Labels, v1.LabelInstance, c.InstanceID())
		}
	case plan.DeleteClaim:
		if c.Deleting.IsZero() {
			c.Deleting = m.s.Now
		}
	case plan.Unreserve:
		c.Labels = with(c.Labels, v1.LabelCapacityType, "on-demand")
	case plan.ReleaseClaim:
		c.Finalizer = false
	}
	if !c.Deleting.IsZero() && !c.Finalizer {
		m.s.Claims = slices.Delete(m.s.Claims, i, i+1)
	}
}

func (m *model) setCondition(c *cluster.Claim, k cluster.Condition) {
	k.Since = m.s.Now
	if k.Reason == "" {
		k.Reason = k.Type
	}
	i := slices.IndexFunc(c.Conditions, func(have cluster.Condition) bool { return have.Type == k.Type })
	switch {
	case i < 0:
		c.Conditions = append(c.Conditions, k)
	case c.Conditions[i].Status == k.Status:
		k.Since = c.Conditions[i].Since
		c.Conditions[i] = k
	default:
		c.Conditions[i] = k
	}
}

func (m *model) onNode(a plan.Action) {
	i := slices.IndexFunc(m.s.Nodes, func(n cluster.Node) bool { return n.Name == a.Node })
	if i < 0 {
		return // gone is no error
	}
	n := &m.s.Nodes[i]
	switch a.Do {
	case plan.RegisterNode:
		n.Finalizer = true
		n.Labels = with(with(n.Labels, v1.LabelRegistered, "true"), awsv1.LabelEC2NodeClass, "default")
		n.Taints = slices.DeleteFunc(slices.Clone(n.Taints), func(t cluster.Taint) bool { return t.Key == v1.TaintUnregistered })
	case plan.InitializeNode:
		n.Labels = with(n.Labels, v1.LabelInitialized, "true")
	case plan.TaintForTermination, plan.TaintNode, plan.ExcludeNode:
		t := cluster.Taint{Key: v1.TaintDisrupted, Effect: "NoSchedule"}
		n.Taints = append(slices.DeleteFunc(slices.Clone(n.Taints), func(have cluster.Taint) bool { return have == t }), t)
		if a.Do != plan.TaintNode {
			n.Labels = with(n.Labels, v1.LabelExcludeBalancers, "karpenter")
		}
	case plan.DeleteNode:
		if n.Deleting.IsZero() {
			n.Deleting = m.s.Now
		}
	case plan.ReleaseNode:
		n.Finalizer = false
	}
	if !n.Deleting.IsZero() && !n.Finalizer {
		name := n.Name
		m.s.Nodes = slices.Delete(m.s.Nodes, i, i+1)
		m.s.Pods = slices.DeleteFunc(m.s.Pods, func(p cluster.Pod) bool { return p.NodeName == name })
	}
}

func (m *model) onPod(a plan.Action) {
	i := slices.IndexFunc(m.s.Pods, func(p cluster.Pod) bool { return p.Key() == a.Pod })
	if i < 0 {
		m.errs = append(m.errs, "no pod for "+a.String())
		return
	}
	p := &m.s.Pods[i]
	end := m.s.Now.Add(time.Duration(p.GraceSec) * time.Second)
	if a.Do == plan.DeletePod {
		end = m.s.Now.Add(time.Duration(a.GraceSec) * time.Second)
	} else if m.budget[p.Name] {
		m.pauses[p.Name] = min(max(2*m.pauses[p.Name], time.Second), 10*time.Second)
		p.AskAgain = m.s.Now.Add(m.pauses[p.Name])
		return
	}
	if p.Deleting.IsZero() || end.Before(p.Deleting) {
		p.Deleting = end
	}
}

// tick lets time go by: kubelets of live nodes end pods whose time is over, and EC2 ends what shuts down.
func (m *model) tick(d time.Duration) {
	m.s.Now = m.s.Now.Add(d)
	for i := range m.s.Instances {
		n := &m.s.Instances[i]
		ends := map[string]string{"shutting-down": "terminated", "stopping": "stopped"}
		if ends[n.State] == "" || n.State == "stopping" && !m.stops {
			continue
		}
		n.State = ends[n.State]
		for j := range m.s.Nodes {
			m.s.Nodes[j].Ready = m.s.Nodes[j].Ready && m.s.Nodes[j].ProviderID != n.ProviderID()
		}
	}
	ready := map[string]bool{}
	for _, n := range m.s.Nodes {
		ready[n.Name] = n.Ready
	}
	m.s.Pods = slices.DeleteFunc(m.s.Pods, func(p cluster.Pod) bool {
		return p.Terminating() && !m.s.Now.Before(p.Deleting) && ready[p.NodeName]
	})
}

// turn changes an instance.
func (m *model) turn(id string, change func(*cluster.Instance)) {
	for i := range m.s.Instances {
		if m.s.Instances[i].ID == id {
			change(&m.s.Instances[i])
		}
	}
}

// rest lists what is left, one line for each object.
func (m *model) rest() string {
	var out []string
	for _, c := range m.s.Claims {
		out = append(out, "claim "+c.Name)
	}
	for _, n := range m.s.Nodes {
		out = append(out, "node "+n.Name)
	}
	for _, p := range m.s.Pods {
		out = append(out, "pod "+p.Name)
	}
	for _, i := range m.s.Instances {
		if i.State != "terminated" {
			out = append(out, "instance "+i.ID+" "+i.State)
		}
	}
	if len(out) == 0 {
		return "nothing is left\n"
	}
	return "left: " + strings.Join(out, ", ") + "\n"
}

func with(m map[string]string, k, v string) map[string]string {
	out := maps.Clone(m)
	if out == nil {
		out = map[string]string{}
	}
	out[k] = v
	return out
}
