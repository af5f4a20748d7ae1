package provision_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"joiner.sh/pkg/controllers/provision"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/requirements"
	"joiner.sh/pkg/testing/controllertest"
	"joiner.sh/pkg/testing/fake"
)

// sleepyPods makes decisions slow about pods of a namespace, and counts how long they take.
type sleepyPods struct {
	namespace string
	slept     *time.Duration
}

// FollowStage takes a while for each stage about a pod of the namespace.
func (f sleepyPods) FollowStage(s cluster.Stage) {
	const each = 20 * time.Millisecond
	if len(s.About) > 0 && strings.HasPrefix(s.About[0], f.namespace+"/") {
		*f.slept += each
		time.Sleep(each)
	}
}

// A pass whose decision takes too long, because one tenant's pods are more work than they seem, decides nothing. The
// next one, of the same invocation, leaves out those that are most work, tells them, and serves all others.
func TestADecisionThatTakesTooLongIsAboutLessTheNextTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, slept := controllertest.WaitingPods(t), time.Duration(0)
		for i := range 300 {
			p := controllertest.PodOf(int64(100+i), 128)
			p.Namespace = "evil"
			for j := range 2 {
				p.NodeAffinity = append(p.NodeAffinity, []requirements.Requirement{requirements.Of("topology.kubernetes.io/zone", "us-west-2b", fmt.Sprint(i, j))})
			}
			f.World.RunApp(fmt.Sprintf("evil-%d", i), 1, p)
		}
		p := f.World.Ports(fake.Fault{})
		c := f.Provision(p)
		c.Now, c.VCPUs, c.Process = time.Now, 0.3, &provision.ProcessState{}
		f.World.Follower = sleepyPods{"evil", &slept}
		ctx, end := context.WithTimeout(t.Context(), time.Minute)
		defer end()
		began := time.Now()
		if err := c.Run(ctx, began.Add(time.Second)); err != nil || len(f.World.Instances()) != 0 {
			t.Fatalf("the first pass: %v, %d instances", err, len(f.World.Instances()))
		}
		if slept < 20*time.Second || slept > 21*time.Second {
			t.Errorf("the decision is given up after %v, a third of a minute", slept)
		}
		if err := c.Run(ctx, time.Now().Add(time.Second)); err != nil {
			t.Fatal(err)
		}
		var told, others []string
		for _, e := range f.World.Events("Pod") {
			if strings.Contains(e, "more than its share of one pass") {
				told = append(told, e)
			}
			if strings.HasPrefix(e, "Nominated: ") {
				others = append(others, e)
			}
		}
		if len(told) != 50 || len(told) > 0 && told[0] != "FailedScheduling: the pods of namespace evil that wait are about 360 ms of planning, more than its share of one pass: those that ask for most are left out" {
			t.Errorf("%d pods are told, the first %q", len(told), told)
		}
		if len(others) < 4 {
			t.Errorf("nominated: %q", others)
		}
	})
}
