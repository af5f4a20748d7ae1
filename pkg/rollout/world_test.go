package rollout_test

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	awsv1 "joiner.sh/pkg/api/aws/v1"
	api "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/plan"
	"joiner.sh/pkg/rollout"
)

// world is a cluster with one NodePool, its class and its NodeRollout, and what the functions do about it.
type world struct {
	s      cluster.Snapshot
	r      cluster.Rollout
	events []string
}

func newWorld() *world {
	return &world{
		s: cluster.Snapshot{Now: time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC),
			Pools:   []cluster.Pool{{Name: "p", Class: "default", Ready: true}},
			Classes: []instancetypes.Class{class("1", "ami-1")}},
		r: cluster.Rollout{Name: "r", Pools: []string{"p"}, ReadyWithin: 10 * time.Minute, MinPods: 5,
			Steps: []cluster.RolloutStep{{Nodes: 1}}},
	}
}

func class(hash, image string) instancetypes.Class {
	return instancetypes.Class{Name: "default", Ready: true, Hash: hash, HashVersion: "v", Images: []instancetypes.Image{{ID: image}}}
}

// advance is a pass of disrupt until it has stored the status; stop is where it dies: before it keeps a revision, or
// before it stores the status.
func (w *world) advance(stop string) rollout.Plan {
	s := w.snapshot()
	r := s.Rollouts[0]
	r.Workloads = rollout.CountPods(s, r)
	out := rollout.Advance(s, r)
	if stop == "keep" {
		return out
	}
	if out.Keep != "" {
		c, _ := w.s.ClassOf("default")
		c.Name = cluster.RevisionKey("default", out.Keep)
		w.r.Revisions = append(w.r.Revisions, cluster.NodeRevision{Name: out.Keep, Resolved: c})
	}
	if stop == "status" {
		return out
	}
	w.r.Status = out.Status
	for _, e := range out.Events {
		w.events = append(w.events, e.Reason)
	}
	w.r.Revisions = slices.DeleteFunc(w.r.Revisions, func(v cluster.NodeRevision) bool { return slices.Contains(out.Forget, v.Name) })
	return out
}

func (w *world) snapshot() cluster.Snapshot {
	s := w.s
	s.Rollouts = []cluster.Rollout{w.r}
	return rollout.Gate(s)
}

// node adds a node of the revision that stands on its claim, or as the class is now.
func (w *world) node(name, revision string) *cluster.Claim {
	c := cluster.Claim{Name: name, Pool: "p", Class: "default", Created: w.s.Now, NodeName: "n-" + name, ProviderID: "aws:///a/i-" + name,
		Annotations: map[string]string{awsv1.AnnotationHash: w.s.Classes[0].Hash, awsv1.AnnotationHashVersion: "v"},
		ImageID:     w.s.Classes[0].Images[0].ID,
		Conditions:  []cluster.Condition{{Type: api.ConditionInitialized, Status: "True", Since: w.s.Now}, {Type: api.ConditionLaunched, Status: "True", Since: w.s.Now}}}
	if revision != "" {
		c.Annotations[api.AnnotationNodeRevision] = revision
	}
	w.s.Claims = append(w.s.Claims, c)
	w.s.Nodes = append(w.s.Nodes, cluster.Node{Name: c.NodeName, ProviderID: c.ProviderID, Ready: true, ReadySince: w.s.Now,
		Labels: map[string]string{api.LabelInitialized: "true", api.LabelRegistered: "true"}})
	return &w.s.Claims[len(w.s.Claims)-1]
}

func (w *world) claim(name string) *cluster.Claim {
	return &w.s.Claims[slices.IndexFunc(w.s.Claims, func(c cluster.Claim) bool { return c.Name == name })]
}

func (w *world) drop(name string) {
	w.s.Claims = slices.DeleteFunc(slices.Clone(w.s.Claims), func(c cluster.Claim) bool { return c.Name == name })
	w.s.Nodes = slices.DeleteFunc(slices.Clone(w.s.Nodes), func(n cluster.Node) bool { return n.Name == "n-"+name })
	w.s.Pods = slices.DeleteFunc(slices.Clone(w.s.Pods), func(p cluster.Pod) bool { return p.NodeName == "n-"+name })
}

// named gives revisions names that do not depend on how they are digested.
func (w *world) named(text string) string {
	for i, v := range w.r.Revisions {
		text = strings.ReplaceAll(text, v.Name, "rev"+strconv.Itoa(i+1))
	}
	return text
}

func (w *world) say() string {
	var b strings.Builder
	st := w.r.Status
	fmt.Fprintf(&b, "%s step=%d revision=%s good=%s allowed=%d new=%d old=%d\n", st.Phase, st.Step, st.Revision, st.LastGood, st.Allowed, st.NewNodes, st.OldNodes)
	for _, line := range append([]string{st.Message}, st.Evidence...) {
		if line != "" {
			b.WriteString("  " + line + "\n")
		}
	}
	if st.Unavailable != "" {
		b.WriteString("  unavailable: " + st.Unavailable + "\n")
	}
	if st.NoAlarm != "" {
		b.WriteString("  no alarm: " + st.NoAlarm + "\n")
	}
	s := w.snapshot()
	if g := s.Pools[0].Rollout; g != nil {
		fmt.Fprintf(&b, "launch=%s try=%s slots=%d", s.Pools[0].Revision, g.Try, g.Slots)
		for _, c := range s.Claims {
			fmt.Fprintf(&b, " %s~%s", c.Name, g.ComparedWith(c))
		}
		if len(g.RolledBack) > 0 {
			fmt.Fprintf(&b, " rolled back %s", strings.Join(g.RolledBack, " "))
		}
		b.WriteByte('\n')
	}
	if len(w.events) > 0 {
		fmt.Fprintf(&b, "events: %s\n", strings.Join(w.events, " "))
	}
	w.events = nil
	return w.named(b.String())
}

func TestScenarios(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		w := newWorld()
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string { return w.run(t, d) })
	})
}

func (w *world) run(t *testing.T, d *datadriven.TestData) string {
	arg := func(key string) (v string) {
		if d.HasArg(key) {
			d.ScanArgs(t, key, &v)
		}
		return v
	}
	number := func(key string) int { n, _ := strconv.Atoi(arg(key)); return n }
	names := func() (out []string) {
		for _, a := range d.CmdArgs {
			if len(a.Vals) == 0 && !slices.Contains([]string{"starting", "forever", "rollback"}, a.Key) {
				out = append(out, a.Key)
			}
		}
		return out
	}
	switch d.Cmd {
	case "steps":
		w.r.Steps = nil
		for _, a := range d.CmdArgs {
			step := cluster.RolloutStep{Pause: a.Key == "pause" || a.Key == "forever"}
			switch a.Key {
			case "nodes":
				step.Nodes, _ = strconv.Atoi(a.Vals[0])
			case "percent":
				step.Percent, _ = strconv.Atoi(a.Vals[0])
			case "pause":
				step.For, _ = time.ParseDuration(a.Vals[0])
			case "rollback":
				w.r.Rollback = true
				continue
			}
			w.r.Steps = append(w.r.Steps, step)
		}
	case "class":
		w.s.Classes = []instancetypes.Class{class(arg("hash"), arg("image"))}
	case "unseen":
		c := w.s.Classes[0]
		c.Unseen, c.Ready = true, false
		w.s.Classes = []instancetypes.Class{c}
	case "node":
		for _, name := range names() {
			revision := ""
			if n, err := strconv.Atoi(strings.TrimPrefix(arg("rev"), "rev")); err == nil {
				revision = w.r.Revisions[n-1].Name
			}
			c := w.node(name, revision)
			if d.HasArg("starting") {
				c.Conditions = c.Conditions[1:]
			}
		}
	case "start": // it becomes initialized
		for _, name := range names() {
			c := w.claim(name)
			c.Conditions = append(c.Conditions, cluster.Condition{Type: api.ConditionInitialized, Status: "True", Since: w.s.Now})
		}
	case "leave":
		for _, name := range names() {
			c := w.claim(name)
			c.Deleting = w.s.Now
			if reason := arg("notice"); reason != "" {
				c.Annotations = maps.Clone(c.Annotations)
				c.Annotations[api.AnnotationDeletionReason] = reason
			}
		}
	case "gone":
		for _, name := range names() {
			w.drop(name)
		}
	case "replace": // the node is being replaced
		for _, name := range names() {
			c := w.claim(name)
			c.Annotations = maps.Clone(c.Annotations)
			c.Annotations[api.AnnotationDisruptionCommand] = "{}"
		}
	case "unready", "condition":
		for i := range w.s.Nodes {
			if n := &w.s.Nodes[i]; slices.Contains(names(), strings.TrimPrefix(n.Name, "n-")) {
				if d.Cmd == "unready" {
					n.Ready, n.ReadySince = false, w.s.Now
				} else {
					n.Conditions = []cluster.Condition{{Type: arg("type"), Status: "True"}}
				}
			}
		}
	case "alarms": // what CloudWatch says of each that the NodeRollout names; with unread, nothing
		w.r.Alarms, w.r.AlarmsUnread = nil, ""
		for _, a := range d.CmdArgs {
			switch {
			case a.Key == "unread":
				w.r.AlarmsUnread = "describe alarms: AccessDenied"
			case a.Vals[0] == "none":
				w.r.Alarms = append(w.r.Alarms, cluster.Alarm{Name: a.Key})
			default:
				w.r.Alarms = append(w.r.Alarms, cluster.Alarm{Name: a.Key, State: a.Vals[0]})
			}
		}
	case "kubelet": // of the images of a revision
		n, _ := strconv.Atoi(strings.TrimPrefix(arg("rev"), "rev"))
		w.r.Revisions[n-1].KubeletVersions = []string{arg("version")}
	case "cluster":
		w.r.ClusterVersion = arg("version")
	case "forbid":
		w.r.NodeConditions = []cluster.Condition{{Type: arg("type"), Status: "True"}}
	case "pods": // those of a workload on a node, some of which are bad
		n, bad := number("n"), number("bad")
		for i := range n {
			p := cluster.Pod{Namespace: "d", Name: fmt.Sprintf("%s-%s-%d", arg("of"), arg("on"), i), Controller: arg("of"), NodeName: "n-" + arg("on"),
				Created: w.s.Now, Phase: "Running", Ready: true}
			if i < bad {
				p.Trouble = "Crashed"
			}
			w.s.Pods = append(w.s.Pods, p)
		}
	case "trouble": // the pods of a node crash
		for i := range w.s.Pods {
			if p := &w.s.Pods[i]; p.NodeName == "n-"+names()[0] {
				p.Trouble = "Crashed"
			}
		}
	case "falter": // the pods of a node are not Ready any more
		for i := range w.s.Pods {
			if p := &w.s.Pods[i]; p.NodeName == "n-"+names()[0] {
				p.Ready, p.ReadySince, p.UnreadySince = false, time.Time{}, w.s.Now
			}
		}
	case "after":
		span, err := time.ParseDuration(d.CmdArgs[0].Key)
		if err != nil {
			t.Fatal(err)
		}
		w.s.Now = w.s.Now.Add(span)
	case "resume":
		w.r.Resume, w.r.Abort = w.r.Status.ResumeToken, ""
	case "abort":
		w.r.Abort, w.r.Resume = w.r.Status.Revision, ""
	case "pin": // the last good revision, or the one before it
		w.r.Pinned = w.r.Status.LastGood
		if d.HasArg("previous") {
			w.r.Pinned = w.r.Status.PreviousGood
		}
	case "refuse": // a launch with an image that is gone
		w.claim(d.CmdArgs[0].Key).Conditions = []cluster.Condition{{Type: api.ConditionLaunched, Status: "Unknown", Reason: "LaunchFailed", Message: "InvalidAMIID.NotFound: ami-1"}}
	case "deregister": // what EC2 has no more, of the images that are asked for
		w.r.GoneImages = nil
		for _, id := range rollout.DoubtfulImages(w.snapshot(), w.r) {
			if slices.Contains(names(), id) {
				w.r.GoneImages = append(w.r.GoneImages, id)
			}
		}
		return fmt.Sprintf("asked for %v\n", rollout.DoubtfulImages(w.snapshot(), w.r))
	case "pool": // another pool
		w.s.Pools = append(w.s.Pools, cluster.Pool{Name: arg("name"), Class: arg("class"), Ready: true})
		w.r.Pools = append(w.r.Pools, arg("name"))
	case "launch": // so many pods that wait, and as many that stand on a node that goes
		n, standing := number("n"), number("standing")
		s := w.snapshot()
		var all []plan.Launch
		for i := range n + standing {
			p := cluster.Pod{Namespace: "d", Name: fmt.Sprintf("w-%d", i)}
			if i < standing {
				p.NodeName = "n-a"
			}
			s.Pods = append(slices.Clone(s.Pods), p)
			all = append(all, plan.Launch{Pool: "p", Pods: []string{p.Key()}, Annotations: s.Pools[0].Annotations})
		}
		var out []string
		for _, l := range rollout.AssignLaunches(s, all) {
			out = append(out, l.Annotations[api.AnnotationNodeRevision])
		}
		return w.named(strings.Join(out, " ")) + "\n"
	case "pass":
		w.advance("")
		return w.say()
	default:
		t.Fatalf("%s: unknown command %s", d.Pos, d.Cmd)
	}
	return ""
}
