package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"

	"joiner.sh/infra/local/awsemulator"
	"joiner.sh/infra/local/env"
)

const (
	podsPerNode = 2 // of 800m on nodes of two processors
	notice      = 2 * time.Minute
	mayWait     = 20 * time.Second // pods for their replacement, at most
	look        = 250 * time.Millisecond
	tell        = 10 * time.Second
)

//go:embed manifest.yaml
var manifest []byte

// victim is a node with what happened to it.
type victim struct {
	id, node string
	noticed  time.Time
	tainted  time.Time // kept free of new pods
	leaving  time.Time // the first pod was asked to go
	empty    time.Time // the last pod was gone
}

// storm watches nodes and pods.
type storm struct {
	*env.Env
	dir     string // where the control plane writes
	apps    int    // that the pods belong to, each with a budget
	mu      sync.Mutex
	victims map[string]*victim   // by node
	on      map[string]string    // pods to their nodes
	pods    map[string]int       // by node
	first   map[string]time.Time // by node: when a pod was bound there first
	running map[string]time.Time // by instance: when it ran first
	ready   map[string]bool      // pods that are ready
	least   int                  // as few were ready at a time
}

func newStorm(ctx context.Context, e *env.Env, dir string, apps int) (*storm, error) {
	s := &storm{
		Env: e, dir: dir, apps: apps, victims: map[string]*victim{}, on: map[string]string{}, pods: map[string]int{},
		first:   map[string]time.Time{},
		running: map[string]time.Time{}, ready: map[string]bool{},
	}
	f := informers.NewSharedInformerFactory(e.Kube, 0)
	if _, err := f.Core().V1().Nodes().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		UpdateFunc: func(_, o any) { s.sawNode(o.(*corev1.Node)) },
	}); err != nil {
		return nil, err
	}
	if _, err := f.Core().V1().Pods().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { s.sawPod(o.(*corev1.Pod), false) },
		UpdateFunc: func(_, o any) { s.sawPod(o.(*corev1.Pod), false) },
		DeleteFunc: func(o any) {
			if p, ok := o.(*corev1.Pod); ok {
				s.sawPod(p, true)
			}
		},
	}); err != nil {
		return nil, err
	}
	f.Start(ctx.Done())
	f.WaitForCacheSync(ctx.Done())
	go s.recordFirstRuns(ctx)
	return s, e.Kube.ApplyManifest(ctx, manifest)
}

func (s *storm) sawNode(n *corev1.Node) {
	s.mu.Lock()
	defer s.mu.Unlock()
	v := s.victims[n.Name]
	if v != nil && v.tainted.IsZero() && slices.ContainsFunc(n.Spec.Taints,
		func(t corev1.Taint) bool { return t.Key == "karpenter.sh/disrupted" }) {
		v.tainted = time.Now()
	}
}

func (s *storm) sawPod(p *corev1.Pod, gone bool) {
	if p.Labels["app"] != "storm" || p.Spec.NodeName == "" {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	key, node := string(p.UID), p.Spec.NodeName
	if s.ready[key] = !gone && isReady(p); !s.ready[key] {
		delete(s.ready, key)
		s.least = min(s.least, len(s.ready))
	}
	if v := s.victims[node]; v != nil && v.leaving.IsZero() && p.DeletionTimestamp != nil {
		v.leaving = time.Now()
	}
	switch {
	case gone && s.on[key] != "":
		delete(s.on, key)
		if s.pods[node]--; s.pods[node] == 0 && s.victims[node] != nil {
			s.victims[node].empty = time.Now()
		}
	case !gone && s.on[key] == "":
		s.on[key] = node
		s.pods[node]++
		if s.first[node].IsZero() {
			s.first[node] = time.Now()
		}
	}
}

func isReady(p *corev1.Pod) bool {
	return p.DeletionTimestamp == nil && slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

// recordFirstRuns notes when instances run first, until the end of the context.
func (s *storm) recordFirstRuns(ctx context.Context) {
	for pauseFor(ctx, look) == nil {
		s.runningInstances()
	}
}

// runningInstances lists the running instances that are no victims, and notes when instances ran first.
func (s *storm) runningInstances() []awsemulator.Instance {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []awsemulator.Instance
	for _, i := range s.Cloud.DescribedInstances() {
		if i.State == "running" {
			if s.running[i.ID].IsZero() {
				s.running[i.ID] = time.Now()
			}
			if s.victims[i.PrivateDNSName] == nil {
				out = append(out, i)
			}
		}
	}
	return out
}

// fillNodes makes pods for so many nodes and waits until they run.
func (s *storm) fillNodes(ctx context.Context, nodes int, patience time.Duration) error {
	if _, err := s.Host.InvokeFunction(ctx, s.FunctionName("refresh"), "Event", nil); err != nil {
		return err
	}
	for i := range s.apps {
		if err := s.createApp(ctx, fmt.Sprintf("storm-%d", i),
			nodes*podsPerNode*(i+1)/s.apps-nodes*podsPerNode*i/s.apps); err != nil {
			return err
		}
	}
	n := nodes * podsPerNode
	began := time.Now()
	if _, err := s.Host.InvokeFunction(ctx, s.FunctionName("provision"), "Event", nil); err != nil {
		return err
	}
	if err := s.waitAllRunning(ctx, nodes, patience); err != nil {
		return err
	}
	fmt.Printf("%d nodes with %d pods run after %.0f s, %d CreateFleet requests\n", nodes, n,
		time.Since(began).Seconds(),
		s.Cloud.CallCounts()["ec2:CreateFleet"])
	return nil
}

// createApp makes an app of so many pods, with a budget of its own.
func (s *storm) createApp(ctx context.Context, name string, pods int) error {
	n, labels := int32(pods), map[string]string{"app": "storm", "name": name}
	requests := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("800m"),
		corev1.ResourceMemory: resource.MustParse("1Gi")}
	grace, most := int64(5), intstr.FromString(fmt.Sprintf("%d%%", mayBeDown))
	_, err := s.Kube.AppsV1().Deployments("default").Create(ctx, &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: appsv1.DeploymentSpec{Replicas: &n, Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{TerminationGracePeriodSeconds: &grace, Containers: []corev1.Container{{
					Name: "app", Image: "app", Resources: corev1.ResourceRequirements{Requests: requests},
				}}},
			}},
	}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("create deployment: %w", err)
	}
	_, err = s.Kube.PolicyV1().PodDisruptionBudgets("default").Create(ctx,
		&policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: policyv1.PodDisruptionBudgetSpec{MaxUnavailable: &most,
				Selector: &metav1.LabelSelector{MatchLabels: labels}}}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("create budget: %w", err)
	}
	return nil
}

// waitAllRunning waits until every pod runs and every node has its pods.
func (s *storm) waitAllRunning(ctx context.Context, nodes int, patience time.Duration) error {
	end, told := time.Now().Add(patience), time.Now()
	for {
		alive, up := s.runningInstances(), 0
		s.mu.Lock()
		for _, i := range alive {
			up += s.pods[i.PrivateDNSName]
		}
		s.mu.Unlock()
		if up >= nodes*podsPerNode {
			return nil
		}
		if time.Since(told) > tell {
			told = time.Now()
			fmt.Printf("  %d instances run, %d of %d pods have a node\n", len(alive), up, nodes*podsPerNode)
		}
		if time.Now().After(end) {
			return fmt.Errorf("%d of %d pods have a node after %s", up, nodes*podsPerNode, patience)
		}
		if err := pauseFor(ctx, look); err != nil {
			return err
		}
	}
}

// sendNotice gives the instance its notice.
func (s *storm) sendNotice(i awsemulator.Instance) (*victim, error) {
	v := &victim{id: i.ID, node: i.PrivateDNSName, noticed: time.Now()}
	s.mu.Lock()
	s.victims[v.node] = v
	s.mu.Unlock()
	if err := s.Cloud.InterruptSpot(i.ID, false); err != nil {
		return nil, fmt.Errorf("interrupt %s: %w", i.ID, err)
	}
	return v, nil
}

// measureSingles measures notices that come one at a time.
func (s *storm) measureSingles(ctx context.Context, n int) error {
	if n == 0 {
		return nil
	}
	var taint, fleet, first, bound spread
	early := 0
	for range n {
		before, known := s.runningInstances(), s.Cloud.InstanceIDs()
		v, err := s.sendNotice(before[0])
		if err != nil {
			return err
		}
		if err := s.waitAllRunning(ctx, len(before), notice); err != nil {
			return err
		}
		s.mu.Lock()
		taint = append(taint, v.tainted.Sub(v.noticed))
		leaving := v.leaving
		s.mu.Unlock()
		for _, at := range s.Cloud.LaunchTimes(known) {
			fleet = append(fleet, at.Sub(v.noticed))
			if first = append(first, leaving.Sub(at)); leaving.Before(at) && leaving.Sub(v.noticed) < mayWait {
				early++
			}
		}
		bound = append(bound, s.bootTimes(known)...)
	}
	fmt.Printf("%d notices, one at a time, in seconds:           median     p99   worst\n", n)
	fmt.Printf("  notice to taint                                %s\n", taint)
	fmt.Printf("  notice to CreateFleet of the replacement       %s\n", fleet)
	fmt.Printf("  CreateFleet to the first pod that goes         %s\n", first)
	fmt.Printf("  running to a pod bound (2 s until the kubelet) %s\n", bound)
	if early > 0 {
		return fmt.Errorf("%d of %d nodes lost a pod before their replacement was asked for", early, n)
	}
	return nil
}

// holdStorm runs the storm itself.
func (s *storm) holdStorm(ctx context.Context, nodes int, over time.Duration) error {
	targets := s.runningInstances()
	if len(targets) < nodes {
		return fmt.Errorf("%d instances run, want %d", len(targets), nodes)
	}
	o := outcome{known: s.Cloud.InstanceIDs(), pods: nodes * podsPerNode}
	s.Cloud.ForgetCalls()
	_, size, err := s.countRequests(0)
	if err != nil {
		return err
	}
	s.mu.Lock()
	s.least = len(s.ready)
	s.mu.Unlock()
	began := time.Now()
	for i, t := range targets[:nodes] {
		if err := pauseFor(ctx, time.Until(began.Add(over*time.Duration(i)/time.Duration(nodes)))); err != nil {
			return err
		}
		v, err := s.sendNotice(t)
		if err != nil {
			return err
		}
		o.struck = append(o.struck, v)
	}
	fmt.Printf("%d notices were given in %.0f s\n", nodes, time.Since(began).Seconds())
	late := s.waitAllRunning(ctx, nodes, notice+time.Minute)
	if o.requests, _, err = s.countRequests(size); err != nil {
		return err
	}
	if o.forced, err = s.countForced(ctx); err != nil {
		return err
	}
	return errors.Join(late, s.judgeOutcome(o))
}

func pauseFor(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}
