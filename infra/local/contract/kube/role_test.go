package kube_test

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"joiner.sh/pkg/install"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
	units "joiner.sh/pkg/model/resources"
	"joiner.sh/pkg/providers/kube"
	"joiner.sh/pkg/providers/store"
)

// as is a client with the rights of one function's group.
func (c env) as(t *testing.T, group string) *kube.Client {
	t.Helper()
	k, r := c.client(t)
	r.header = http.Header{"Impersonate-User": {"arn:aws:sts::1:assumed-role/" + group}, "Impersonate-Group": {group, "system:authenticated"}}
	return k
}

// Each function can do through the client what its job needs.
func TestRightsOfTheFunctions(t *testing.T) {
	c := newEnv(t)
	c.applyText(t, classText)
	c.applyText(t, poolText)
	admin, _ := c.client(t)
	c.addNode(t, c.name, unregistered())
	node := c.readyNode(t, admin, c.name)
	claim := c.addClaim(t, admin)
	c.forgetUnavailable(t)
	ctx := t.Context()
	event := cluster.Event{Kind: "NodeClaim", Name: claim.Name, Reason: "Test"}
	told := func(k *kube.Client, who string) func() error {
		return func() error { event.Message = who; return k.RecordEvent(ctx, event) }
	}
	must := func(who, what string, f func() error) {
		t.Helper()
		if err := f(); err != nil {
			t.Errorf("%s: %s: %v", who, what, err)
		}
	}
	p, l, f := c.as(t, install.GroupProvision), c.as(t, install.GroupLifecycle), c.as(t, install.GroupRefresh)
	must("provision", "pending pods", func() error { _, err := p.PendingPods(ctx); return err })
	must("provision", "snapshot", func() error { _, err := p.ReadSnapshot(ctx); return err })
	for who, k := range map[string]*kube.Client{"provision": p, "lifecycle": l, "disrupt": c.as(t, install.GroupDisrupt)} {
		must(who, "volumes", func() error {
			_, err := k.WithVolumes(ctx, cluster.Snapshot{Pods: []cluster.Pod{{Namespace: c.name, Name: "db", UnreadClaims: []string{"data"}}}})
			return err
		})
	}
	c.rightsOfWishes(t, p, l, f)
	must("provision", "event", told(p, "provision"))
	must("provision", "claim", func() (err error) { claim, err = p.AnnotateClaim(ctx, claim, map[string]string{"a": "b"}); return err })
	must("provision", "status", func() (err error) { claim.ImageID = "ami-1"; claim, err = p.WriteClaimStatus(ctx, claim); return err })
	must("provision", "lease", func() error {
		release, ok, err := p.Acquire(ctx, c.name, "me", time.Minute)
		if err != nil || !ok {
			return err
		}
		return release(ctx)
	})
	must("provision", "ledger", func() error {
		return store.NewUnavailableOfferings(p, time.Now).MarkUnavailable(ctx, []instancetypes.UnavailableOffering{{}}, time.Minute)
	})
	must("provision", "DNS", func() error { _, err := p.ReadDNSAddress(ctx); return err })
	must("provision", "version", func() error { _, err := p.ReadVersion(ctx); return err })

	must("lifecycle", "snapshot", func() error { _, err := l.ReadSnapshot(ctx); return err })
	must("provision", "adopt", func() (err error) { claim, err = p.AdoptClaim(ctx, claim); return err })
	must("lifecycle", "adopt", func() (err error) { claim, err = l.AdoptClaim(ctx, claim); return err })
	must("lifecycle", "attachments", func() error { _, err := l.ListAttachments(ctx, []string{node.Name}); return err })
	must("lifecycle", "count", func() error { return l.CountPool(ctx, c.name, units.List{CPU: 1000}) })
	must("lifecycle", "registrations", func() error {
		return l.RecordRegistrations(ctx, c.name, []cluster.Registration{{ClaimUID: "a", OK: true}})
	})
	must("refresh", "hash of a claim", func() (err error) { claim, err = f.AnnotateClaim(ctx, claim, map[string]string{"c": "d"}); return err })
	must("lifecycle", "register", func() error { return l.RegisterNode(ctx, node, claim) })
	must("lifecycle", "status", func() (err error) {
		claim.NodeName = node.Name
		claim, err = l.WriteClaimStatus(ctx, claim)
		return err
	})
	must("lifecycle", "event", told(l, "lifecycle"))

	b := c.as(t, install.GroupRebalance)
	must("rebalance", "claims", func() error { _, err := b.ListClaims(ctx); return err })
	must("rebalance", "pool", func() error { _, err := b.PoolAnnotations(ctx, c.name); return err })
	must("rebalance", "claim", func() (err error) { claim, err = b.AnnotateClaim(ctx, claim, map[string]string{"a": "c"}); return err })
	must("rebalance", "quota", func() error {
		_, err := store.NewQuota(b, c.name, 1, time.Hour, time.Now).TakeOne(ctx, "x")
		return err
	})
	must("rebalance", "ledger", func() error {
		return store.NewUnavailableOfferings(b, time.Now).MarkUnavailable(ctx, []instancetypes.UnavailableOffering{{}}, time.Minute)
	})
	must("rebalance", "event", told(b, "rebalance"))

	h := c.as(t, install.GroupScheduledChange)
	must("scheduledchange", "claim", func() (err error) { claim, err = h.AnnotateClaim(ctx, claim, map[string]string{"a": "d"}); return err })
	must("scheduledchange", "taint", func() error { return h.TaintForTermination(ctx, node) })
	must("scheduledchange", "event", told(h, "scheduledchange"))

	e := c.as(t, install.GroupStateChange)
	must("statechange", "claim", func() (err error) { claim, err = e.AnnotateClaim(ctx, claim, map[string]string{"a": "e"}); return err })
	must("statechange", "pods", func() error {
		pod := podOf(c.addPod(t, "gone", node.Name, func(p *corev1.Pod) { // which no taint of the node evicts meanwhile
			p.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
		}))
		all, err := e.PodsOn(ctx, node.Name)
		if err != nil || len(all) != 1 || all[0].UID != pod.UID {
			return fmt.Errorf("pods on %s: %v, %w", node.Name, all, err)
		}
		for range 2 { // it may be repeated
			if err := e.RemovePod(ctx, pod); err != nil {
				return err
			}
		}
		if all, err = e.PodsOn(ctx, node.Name); len(all) != 0 {
			return fmt.Errorf("pods on %s after their removal: %v, %w", node.Name, all, err)
		}
		return err
	})
	must("statechange", "event", told(e, "statechange"))

	s := c.as(t, install.GroupSpotInterruption)
	must("spotinterruption", "claims", func() error { _, err := s.ListClaims(ctx); return err })
	must("spotinterruption", "node", func() error { _, err := s.ReadNode(ctx, node.Name); return err })
	must("spotinterruption", "taint", func() error { return s.TaintForTermination(ctx, node) })
	must("spotinterruption", "delete", func() error { return s.DeleteClaim(ctx, claim) })
	must("spotinterruption", "ledger", func() error {
		return store.NewUnavailableOfferings(s, time.Now).MarkUnavailable(ctx, []instancetypes.UnavailableOffering{{}}, time.Minute)
	})
	must("spotinterruption", "event", told(s, "spotinterruption"))

	must("lifecycle", "evict", func() error {
		pod := c.addPod(t, "web", "", nil)
		_, err := l.EvictPod(ctx, podOf(pod))
		return err
	})
	must("lifecycle", "end of the node", func() error { return l.DeleteNode(ctx, node) })
	must("lifecycle", "release", func() error { return l.ReleaseNode(ctx, node) })
	must("lifecycle", "release of the claim", func() error { return l.ReleaseClaim(ctx, claim) })
	c.refreshWrites(t, f)
}

// refreshWrites is what the refresh function does, and that its writes are conditional.
func (c env) refreshWrites(t *testing.T, k *kube.Client) {
	t.Helper()
	ctx := context.Background()
	class, err := k.ReadClass(ctx, c.name)
	if err != nil {
		t.Fatal(err)
	}
	old := class.DeepCopy()
	class.Status.InstanceProfile = "profile"
	if err := k.WriteClassStatus(ctx, class); err != nil {
		t.Fatal(err)
	}
	if class.ResourceVersion == old.ResourceVersion || class.Status.InstanceProfile != "profile" {
		t.Error("the class given is not as stored")
	}
	if err := k.WriteClassStatus(ctx, old); !isConflict(err) {
		t.Errorf("status on an old version: %v, want a ConflictError", err)
	}
	m := kube.MetaChange{Annotations: map[string]string{"karpenter.k8s.aws/ec2nodeclass-hash": "1"}, AddFinalizer: "karpenter.k8s.aws/termination"}
	for range 2 {
		if err := k.PatchClassMeta(ctx, c.name, m); err != nil {
			t.Fatal(err)
		}
	}
	if class, err = k.ReadClass(ctx, c.name); err != nil || len(class.Finalizers) != 1 || class.Annotations["karpenter.k8s.aws/ec2nodeclass-hash"] != "1" {
		t.Errorf("after the patch: %v %v %v", class.Finalizers, class.Annotations, err)
	}
	for _, name := range []string{c.name, "nobody"} {
		if err := k.PatchClassMeta(ctx, name, kube.MetaChange{DropFinalizer: "karpenter.k8s.aws/termination"}); err != nil {
			t.Errorf("drop the finalizer of %s: %v", name, err)
		}
	}
	if class, err = k.ReadClass(ctx, c.name); err != nil || len(class.Finalizers) != 0 {
		t.Errorf("after dropping the finalizer: %v %v", class.Finalizers, err)
	}
	if err := k.PatchPoolMeta(ctx, c.name, map[string]string{"karpenter.sh/nodepool-hash": "1"}); err != nil {
		t.Fatal(err)
	}
	pools, err := k.ListPools(ctx)
	if err != nil || len(pools) != 1 {
		t.Fatalf("pools %v %v", pools, err)
	}
	nodes := int64(3)
	pools[0].Status.Nodes = &nodes
	if err := k.WritePoolStatus(ctx, &pools[0]); err != nil || *pools[0].Status.Nodes != 3 || pools[0].Annotations["karpenter.sh/nodepool-hash"] != "1" {
		t.Errorf("pool status: %v, pool %+v", err, pools[0].Status)
	}
}
