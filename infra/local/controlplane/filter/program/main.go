// Command program says what kube-scheduler's Filter plugins have against pods on nodes, with the feature gates of this
// Kubernetes unless -gates says otherwise. Each line of its input is a filter.Question, each of its output the
// verdicts. It runs the scheduler's own framework on what the line says, without an API server.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/cache"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/latest"
	schedulercache "k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodevolumelimits"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	"k8s.io/kubernetes/pkg/scheduler/metrics"

	"joiner.sh/infra/local/controlplane/filter"
)

func main() {
	gates := flag.String("gates", "", "feature gates, as kube-scheduler has them")
	flag.Parse()
	if err := answerAll(*gates, os.Stdin, os.Stdout); err != nil {
		log.Fatalf("filter: %v", err)
	}
}

func answerAll(gates string, in io.Reader, out io.Writer) error {
	if err := utilfeature.DefaultMutableFeatureGate.Set(gates); err != nil {
		return fmt.Errorf("set feature gates: %w", err)
	}
	ctx := context.Background()
	j, err := newJudge(ctx)
	if err != nil {
		return err
	}
	for questions := json.NewDecoder(in); ; {
		var q filter.Question
		if err := questions.Decode(&q); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("read question: %w", err)
		}
		verdicts, err := j.judge(ctx, q)
		if err != nil {
			return err
		}
		if err := json.NewEncoder(out).Encode(verdicts); err != nil {
			return fmt.Errorf("write verdicts: %w", err)
		}
	}
}

// judge runs the plugins on one cluster at a time.
type judge struct {
	framework framework.Framework
	informers informers.SharedInformerFactory
	cluster   clusterLister
	devices   *deviceManager
	asked     int
}

type clusterLister struct{ *schedulercache.Snapshot }

// newJudge runs the plugins of kube-scheduler's default profile.
func newJudge(ctx context.Context) (*judge, error) {
	metrics.Register()
	all, err := latest.Default()
	if err != nil {
		return nil, fmt.Errorf("read default configuration: %w", err)
	}
	client := fake.NewClientset()
	j := &judge{informers: informers.NewSharedInformerFactory(client, 0), devices: &deviceManager{}}
	j.cluster.Snapshot = schedulercache.NewEmptySnapshot()
	profile, csiNodes := all.Profiles[0], j.informers.Storage().V1().CSINodes().Lister()
	j.framework, err = frameworkruntime.NewFramework(ctx, plugins.NewInTreeRegistry(), &profile,
		frameworkruntime.WithClientSet(client), frameworkruntime.WithInformerFactory(j.informers),
		frameworkruntime.WithSnapshotSharedLister(&j.cluster), frameworkruntime.WithSharedDRAManager(j.devices),
		frameworkruntime.WithSharedCSIManager(nodevolumelimits.NewCSIManager(csiNodes)))
	if err != nil {
		return nil, fmt.Errorf("make framework: %w", err)
	}
	return j, nil
}

// judge answers a question.
func (j *judge) judge(ctx context.Context, q filter.Question) ([]filter.Verdict, error) {
	core, storage := j.informers.Core().V1(), j.informers.Storage().V1()
	var spaces []*corev1.Namespace
	for _, p := range q.Pods {
		spaces = append(spaces, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: p.Namespace}})
	}
	// What VolumeBinding assumed for the question before is of another version.
	j.asked++
	version := strconv.Itoa(j.asked)
	for _, c := range q.Claims {
		c.ResourceVersion = version
	}
	for _, v := range q.Volumes {
		v.ResourceVersion = version
	}
	if err := errors.Join(fill(core.Namespaces().Informer(), append(spaces, q.Namespaces...)),
		fill(core.Nodes().Informer(), q.Nodes), fill(storage.StorageClasses().Informer(), q.StorageClasses),
		fill(core.PersistentVolumes().Informer(), q.Volumes),
		fill(core.PersistentVolumeClaims().Informer(), q.Claims), fill(storage.CSINodes().Informer(), q.CSINodes),
		fill(storage.CSIDrivers().Informer(), q.CSIDrivers)); err != nil {
		return nil, fmt.Errorf("fill listers: %w", err)
	}
	j.devices.set(q)
	running := func(p *corev1.Pod) bool { return p.Status.Phase == corev1.PodRunning }
	there := slices.DeleteFunc(slices.Clone(q.Pods), func(p *corev1.Pod) bool { return !running(p) })
	out := []filter.Verdict{}
	for _, p := range slices.DeleteFunc(slices.Clone(q.Pods), running) {
		asked := p.DeepCopy()
		asked.Spec.NodeName = ""
		for _, n := range q.Nodes {
			if p.Spec.NodeName != "" && p.Spec.NodeName != n.Name {
				continue
			}
			j.cluster.Snapshot = schedulercache.NewSnapshot(there, q.Nodes)
			v, err := j.ask(ctx, asked, n.Name, p.Spec.NodeName != "")
			if err != nil {
				return nil, err
			}
			if v.Plugin == "" && p.Spec.NodeName != "" {
				there = append(there, p)
			}
			out = append(out, v)
		}
	}
	return out, nil
}

// fill has the informer's lister know these objects and no others.
func fill[T runtime.Object](informer cache.SharedIndexInformer, all []T) error {
	list := make([]any, len(all))
	for i := range all {
		list[i] = all[i]
	}
	return informer.GetIndexer().Replace(list, "")
}

// ask runs the plugins for the pod and the node, and reserves what the pod takes if it is to stay there.
func (j *judge) ask(ctx context.Context, p *corev1.Pod, node string, stays bool) (filter.Verdict, error) {
	v := filter.Verdict{Pod: p.Namespace + "/" + p.Name, Node: node}
	info, err := j.cluster.NodeInfos().Get(node)
	if err != nil {
		return v, fmt.Errorf("pod %s: %w", v.Pod, err)
	}
	state := framework.NewCycleState()
	allowed, status, _ := j.framework.RunPreFilterPlugins(ctx, state, p)
	if status.IsSuccess() && !allowed.AllNodes() && !allowed.NodeNames.Has(node) {
		v.Plugin, v.Why = "PreFilter", "the node is not among those that are looked at"
		return v, nil
	} else if status.IsSuccess() {
		status = j.framework.RunFilterPlugins(ctx, state, p, info)
	}
	if status.IsSuccess() && stays {
		status = j.framework.RunReservePluginsReserve(ctx, state, p, node)
	}
	if status.IsSuccess() {
		return v, nil
	}
	if status.Code() == fwk.Error {
		return v, fmt.Errorf("pod %s on node %s: plugin %s: %w", v.Pod, node, status.Plugin(), status.AsError())
	}
	v.Plugin, v.Why = status.Plugin(), status.Message()
	return v, nil
}
