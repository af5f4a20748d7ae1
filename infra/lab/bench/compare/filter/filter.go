// Package filter asks the plugins of kube-scheduler itself whether pods may go where an outcome has them.
//
// Start with Refused. The plugins run as a library: PreFilter and Filter of everything that decides where a pod may be,
// but for dynamic resource allocation. Nothing is scored, and nothing is preempted.
package filter

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/latest"
	"k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/defaultbinder"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodevolumelimits"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/queuesort"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	"k8s.io/kubernetes/pkg/scheduler/metrics"

	"joiner.sh/infra/lab/bench/manifests"
)

// orders is in how many orders pods are tried.
const orders = 24

// PreparePlugins registers what the plugins measure and turns their log off. It is called once.
func PreparePlugins() {
	metrics.Register()
	klog.SetLogger(klog.Logger{})
}

// RefusedPods are the pods of the outcome that no order of pods brings to their nodes, each with what the scheduler
// says. It is empty where one of the orders brings all pods there. Of claims that have no instance yet, coming says
// what they will be.
func RefusedPods(ctx context.Context, c *manifests.Cluster, o manifests.Outcome,
	coming []manifests.NewNode) (map[string]string, error) {
	s, err := newScheduler(ctx, c, o, coming)
	if err != nil {
		return nil, err
	}
	s.addDaemons(c)
	start := s.bound
	r := rand.New(rand.NewPCG(1, 1))
	pods := slices.Sorted(maps.Keys(s.waiting))
	var best map[string]string
	for i := range orders {
		s.bound = slices.Clone(start)
		switch i {
		case 0:
		case 1:
			slices.Reverse(pods)
		default:
			r.Shuffle(len(pods), func(i, j int) { pods[i], pods[j] = pods[j], pods[i] })
		}
		left := s.bindAll(pods)
		if len(left) == 0 {
			return nil, nil
		}
		if best == nil || len(left) < len(best) {
			best = left
		}
	}
	return best, nil
}

// scheduler is kube-scheduler's framework over nodes and the pods on them, and the lister that its plugins ask.
type scheduler struct {
	*cache.Snapshot // as of now

	ctx     context.Context
	fw      framework.Framework
	nodes   []*corev1.Node
	bound   []*corev1.Pod
	waiting map[string]*corev1.Pod
	place   map[string]string // of those
}

func newScheduler(ctx context.Context, c *manifests.Cluster, o manifests.Outcome,
	coming []manifests.NewNode) (*scheduler, error) {
	s := &scheduler{ctx: ctx, place: o.PlacedPods(), waiting: map[string]*corev1.Pod{}}
	s.nodes = nodesOf(c, slices.Concat(o.New, coming))
	known := map[string]bool{}
	for _, n := range s.nodes {
		known[n.Name] = true
	}
	for i := range c.Pods {
		p := c.Pods[i].DeepCopy()
		key := p.Namespace + "/" + p.Name
		if s.place[key] != "" {
			p.Spec.NodeName, p.DeletionTimestamp, p.Status.NominatedNodeName = "", nil, ""
			s.waiting[key] = p
		} else if known[p.Spec.NodeName] {
			s.bound = append(s.bound, p)
		}
	}
	factory, client := informersOf(c)
	s.Snapshot = cache.NewSnapshot(s.bound, s.nodes)
	profile, err := checkingProfile()
	if err != nil {
		return nil, err
	}
	s.fw, err = frameworkruntime.NewFramework(ctx, plugins.NewInTreeRegistry(), profile,
		frameworkruntime.WithClientSet(client), frameworkruntime.WithInformerFactory(factory),
		frameworkruntime.WithSnapshotSharedLister(s),
		frameworkruntime.WithSharedCSIManager(nodevolumelimits.NewCSIManager(
			factory.Storage().V1().CSINodes().Lister())),
		frameworkruntime.WithLogger(klog.Logger{}))
	if err != nil {
		return nil, fmt.Errorf("make the scheduler's framework: %w", err)
	}
	return s, nil
}

// checkingProfile is a profile of the plugins that say where a pod may be, with the arguments that they have by
// default.
func checkingProfile() (*config.KubeSchedulerProfile, error) {
	var before, all config.PluginSet
	for _, name := range []string{names.NodeAffinity, names.NodePorts, names.NodeResourcesFit, names.VolumeRestrictions,
		names.NodeVolumeLimits,
		names.VolumeBinding, names.VolumeZone, names.PodTopologySpread, names.InterPodAffinity} {
		before.Enabled = append(before.Enabled, config.Plugin{Name: name})
	}
	all.Enabled = before.Enabled
	for _, name := range []string{names.NodeUnschedulable, names.NodeName, names.TaintToleration} {
		all.Enabled = append(all.Enabled, config.Plugin{Name: name})
	}
	defaults, err := latest.Default()
	if err != nil {
		return nil, fmt.Errorf("read the scheduler's defaults: %w", err)
	}
	one := func(name string) config.PluginSet { return config.PluginSet{Enabled: []config.Plugin{{Name: name}}} }
	return &config.KubeSchedulerProfile{SchedulerName: "default-scheduler",
		PluginConfig: defaults.Profiles[0].PluginConfig,
		Plugins: &config.Plugins{QueueSort: one(queuesort.Name), Bind: one(defaultbinder.Name), PreFilter: before,
			Filter: all}}, nil
}

// bindAll puts pods where they belong, again and again as long as one more is let there. It returns those that are
// left, with why.
func (s *scheduler) bindAll(pods []string) map[string]string {
	left := slices.Clone(pods)
	for {
		why := map[string]string{}
		var still []string
		for _, key := range left {
			if reason := s.refusalReason(s.waiting[key], s.place[key]); reason != "" {
				why[key] = reason
				still = append(still, key)
				continue
			}
			s.bindPod(s.waiting[key], s.place[key])
		}
		if len(still) == 0 || len(still) == len(left) {
			return why
		}
		left = still
	}
}

func (s *scheduler) bindPod(p *corev1.Pod, node string) {
	p = p.DeepCopy()
	p.Spec.NodeName = node
	s.bound = append(s.bound, p)
	s.Snapshot = cache.NewSnapshot(s.bound, s.nodes)
}

// refusalReason says why the pod may not go to the node now, or nothing.
func (s *scheduler) refusalReason(p *corev1.Pod, node string) string {
	s.Snapshot = cache.NewSnapshot(s.bound, s.nodes)
	info, err := s.NodeInfos().Get(node)
	if err != nil {
		return "there is no node " + node
	}
	state := framework.NewCycleState()
	result, status, _ := s.fw.RunPreFilterPlugins(s.ctx, state, p)
	if !status.IsSuccess() {
		return status.Plugin() + ": " + status.Message()
	}
	if !result.AllNodes() && !result.NodeNames.Has(node) {
		return "PreFilter leaves the node out"
	}
	if status := s.fw.RunFilterPlugins(s.ctx, state, p, info); !status.IsSuccess() {
		return status.Plugin() + ": " + status.Message()
	}
	return ""
}
