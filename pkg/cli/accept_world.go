package cli

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/arn"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"

	v1 "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/cli/accept"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/naming"
	"joiner.sh/pkg/nodeclass/translate"
)

// firstPoll and acceptPoll are the least and the most time between two looks.
const (
	firstPoll  = 500 * time.Millisecond
	acceptPoll = 5 * time.Second
)

// liveWorld is a real cluster with its account.
type liveWorld struct {
	l      clusterLink
	cfg    aws.Config
	names  naming.Names
	at     accept.Place
	run    accept.Run
	before []accept.Item
}

// openWorld connects to both, and wants them to belong together.
func (f acceptFlags) openWorld(ctx context.Context, run accept.Run) (*liveWorld, error) {
	l, err := f.connectCluster()
	if err != nil {
		return nil, err
	}
	cfg, err := f.awsConfig(ctx)
	if err != nil {
		return nil, err
	}
	w := &liveWorld{l: l, cfg: cfg, names: f.names(), run: run}
	who, err := sts.NewFromConfig(cfg).GetCallerIdentity(ctx, &sts.GetCallerIdentityInput{})
	if err != nil {
		return nil, fmt.Errorf("ask AWS who this is: %w", err)
	}
	self, err := arn.Parse(aws.ToString(who.Arn))
	if err != nil {
		return nil, fmt.Errorf("read the ARN of this identity: %w", err)
	}
	w.at = accept.Place{Partition: self.Partition, Region: cfg.Region, Account: self.AccountID}
	described, err := eks.NewFromConfig(cfg).DescribeCluster(ctx, &eks.DescribeClusterInput{Name: &run.Cluster})
	if err != nil {
		return nil, fmt.Errorf("find cluster %s: %w", run.Cluster, err)
	}
	if k := described.Cluster; !isThisCluster(l.rest, aws.ToString(k.Endpoint), k.CertificateAuthority.Data) {
		return nil, &inputError{fmt.Errorf("context %q leads to %s, which is not cluster %s of region %s: name its context by --context", l.name, l.rest.Host, run.Cluster, cfg.Region)}
	}
	return w, nil
}

// isThisCluster reports whether a kubeconfig leads to the cluster that EKS describes, if need be by another way.
func isThisCluster(c *rest.Config, endpoint string, authority *string) bool {
	if strings.EqualFold(strings.TrimSuffix(c.Host, "/"), strings.TrimSuffix(endpoint, "/")) {
		return true
	}
	copied := rest.CopyConfig(c)
	want, err := base64.StdEncoding.DecodeString(aws.ToString(authority))
	return err == nil && len(want) > 0 && rest.LoadTLSFiles(copied) == nil &&
		bytes.Equal(bytes.TrimSpace(copied.CAData), bytes.TrimSpace(want))
}

// readFacts reads all that decides whether a run may begin.
func (w *liveWorld) readFacts(ctx context.Context, stack string) (f accept.Facts, err error) {
	functions := functionFacts(ctx, lambda.NewFromConfig(w.cfg), w.names)
	if functions.Unknown != "" {
		return f, fmt.Errorf("look at the functions: %s", functions.Unknown)
	}
	f.Functions, f.Stack = functions.List, cmp.Or(stack, w.names.Stack())
	deployed, err := describeStack(ctx, w.cfg, f.Stack)
	if err != nil {
		return f, err
	}
	f.StackStatus = deployed.Status
	s := storedObjects{w.l, &[]string{}}
	leader := s.readLeader(ctx)
	if f.Leader = leader.Holder; leader.Unknown != "" {
		return f, fmt.Errorf("look for Karpenter: %s", leader.Unknown)
	}
	err = w.l.kube.Objects.List(ctx, atClasses, func(o *unstructured.Unstructured) error {
		spec, _, _ := unstructured.NestedMap(o.Object, "spec")
		f.Classes = append(f.Classes, accept.Class{Name: o.GetName(), Ready: isReady(o), Spec: spec})
		return nil
	})
	if err != nil {
		return f, err
	}
	if f.Pods, err = w.readPods(ctx); err != nil {
		return f, err
	}
	for _, path := range []string{accept.AtNamespace, accept.AtPool, accept.AtClass} {
		o, found, err := w.l.kube.Objects.Get(ctx, path)
		if err != nil {
			return f, err
		}
		if found {
			f.Existing = append(f.Existing, strings.ToLower(o.GetKind())+"/"+o.GetName())
		}
	}
	left, err := w.readLeft(ctx)
	f.Existing = append(f.Existing, left...)
	return f, err
}

// isReady reads the condition Ready of an object.
func isReady(o *unstructured.Unstructured) bool {
	conditions, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
	return slices.ContainsFunc(conditions, func(c any) bool {
		k, _ := c.(map[string]any)
		return k["type"] == "Ready" && k["status"] == "True"
	})
}

// whyNotReady returns what those conditions say that are not true.
func whyNotReady(o *unstructured.Unstructured) string {
	conditions, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
	var why []string
	for _, c := range conditions {
		if k, _ := c.(map[string]any); k["status"] != "True" && k["type"] != "Ready" {
			why = append(why, fmt.Sprintf("%v %v", k["type"], k["message"]))
		}
	}
	return strings.ToLower(o.GetKind()) + " not ready " + strings.Join(why, "; ")
}

func (w *liveWorld) listPods(ctx context.Context, path string, each func(corev1.Pod)) error {
	return w.l.kube.Objects.List(ctx, path, func(o *unstructured.Unstructured) error {
		var p corev1.Pod
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &p); err != nil {
			return fmt.Errorf("read pod %s: %w", o.GetName(), err)
		}
		each(p)
		return nil
	})
}

func (w *liveWorld) readPods(ctx context.Context) (out []accept.Pod, err error) {
	err = w.listPods(ctx, atPods, func(p corev1.Pod) {
		c := translate.Pod(&p)
		out = append(out, accept.Pod{Name: c.Key(), OfNode: ofNode(c), Selector: p.Spec.NodeSelector, Tolerations: c.Tolerations,
			Ended: p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed})
	})
	return out, err
}

// ofNode reports whether the pod goes onto every node, or belongs to one.
func ofNode(p cluster.Pod) bool {
	return p.Owner == cluster.OwnerDaemonSet || p.Owner == cluster.OwnerNode
}

// Look reads what there is of the run.
func (w *liveWorld) Look(ctx context.Context, deep bool) (o accept.Observation, err error) {
	for _, path := range []string{accept.AtDeployment, accept.AtPool, accept.AtClass, accept.AtNamespace} {
		object, found, err := w.l.kube.Objects.Get(ctx, path)
		if err != nil {
			return o, err
		}
		if found {
			noteObject(&o, path, object)
		}
	}
	err = w.listPods(ctx, accept.AtPods, func(p corev1.Pod) {
		o.Pods = append(o.Pods, accept.PodState{Name: p.Name, Node: p.Spec.NodeName, Running: p.Status.Phase == corev1.PodRunning,
			Leaving: p.DeletionTimestamp != nil})
	})
	if err != nil {
		return o, err
	}
	if o.Claims, err = w.readClaims(ctx); err != nil || !deep {
		return o, err
	}
	err = w.listPods(ctx, atPods, func(p corev1.Pod) {
		ours := slices.ContainsFunc(o.Claims, func(c accept.Claim) bool { return c.Node == p.Spec.NodeName && c.Node != "" })
		if ours && p.Namespace != accept.Name && !ofNode(translate.Pod(&p)) {
			o.Strays = append(o.Strays, p.Namespace+"/"+p.Name)
		}
	})
	if err == nil {
		o.Left, err = w.readLeft(ctx)
	}
	return o, err
}

// noteObject enters an object of the run into the observation.
func noteObject(o *accept.Observation, path string, object *unstructured.Unstructured) {
	ready := isReady(object)
	switch path {
	case accept.AtNamespace:
		o.Namespace = true
		return
	case accept.AtPool:
		o.PoolReady = ready
	case accept.AtClass:
		o.ClassReady = ready
	}
	o.Objects = append(o.Objects, strings.ToLower(object.GetKind())+"/"+object.GetName())
	if path != accept.AtDeployment && !ready {
		o.Why = strings.TrimPrefix(o.Why+"; "+whyNotReady(object), "; ")
	}
}

// readClaims reads the NodeClaims of the run's NodePool.
func (w *liveWorld) readClaims(ctx context.Context) (out []accept.Claim, err error) {
	err = w.l.kube.Objects.List(ctx, atClaims, func(o *unstructured.Unstructured) error {
		if o.GetLabels()[v1.LabelNodePool] != accept.Name {
			return nil
		}
		provider, _, _ := unstructured.NestedString(o.Object, "status", "providerID")
		node, _, _ := unstructured.NestedString(o.Object, "status", "nodeName")
		out = append(out, accept.Claim{Name: o.GetName(), Instance: provider[strings.LastIndex(provider, "/")+1:], Node: node,
			InService: isReady(o), Leaving: o.GetDeletionTimestamp() != nil})
		return nil
	})
	return out, err
}

// Do carries out an action.
func (w *liveWorld) Do(ctx context.Context, a accept.Action, m accept.Memory) error {
	switch a {
	case accept.DoMake:
		return w.makeAll(ctx)
	case accept.DoPods, accept.DoFewer, accept.DoNoPods:
		return w.l.kube.Objects.Apply(ctx, accept.AtDeployment, &unstructured.Unstructured{Object: w.run.Deployment(a.Replicas())})
	case accept.DoNotice:
		return w.sendNotice(ctx, m.Victim)
	case accept.DoRemove:
		if err := w.removeExperiments(ctx); err != nil {
			return err
		}
		return w.removeAll(ctx, accept.AtDeployment, accept.AtPool, accept.AtClass)
	case accept.DoForget:
		return w.removeAll(ctx, accept.AtNamespace)
	}
	return nil
}

// makeAll makes the namespace, with what there was before, first, so that --clean finds it.
func (w *liveWorld) makeAll(ctx context.Context) error {
	before, err := json.Marshal(w.before)
	if err != nil {
		return err
	}
	for _, one := range []struct {
		path   string
		object map[string]any
	}{{accept.AtNamespace, w.run.Namespace()}, {accept.AtRecord, w.run.BeforeMap(string(before))},
		{accept.AtClass, w.run.Class()}, {accept.AtPool, w.run.Pool()}} {
		if err := w.l.kube.Objects.Apply(ctx, one.path, &unstructured.Unstructured{Object: one.object}); err != nil {
			return err
		}
	}
	return nil
}

// removeAll deletes objects that carry the mark of a run in this cluster, and refuses where one has only the name.
func (w *liveWorld) removeAll(ctx context.Context, paths ...string) error {
	for _, path := range paths {
		o, found, err := w.l.kube.Objects.Get(ctx, path)
		if err != nil {
			return err
		}
		if !found || o.GetDeletionTimestamp() != nil {
			continue
		}
		if !strings.HasPrefix(o.GetLabels()[accept.Mark], accept.Owner(w.run.Cluster)) {
			return &foundError{fmt.Sprintf("%s %s is not of a run in cluster %s: it has no such label %s", o.GetKind(), o.GetName(), w.run.Cluster, accept.Mark)}
		}
		if err := w.l.kube.Objects.Delete(ctx, path); err != nil {
			return err
		}
	}
	return nil
}

// Before reads what the run wrote down when it began.
func (w *liveWorld) Before(ctx context.Context) (before []accept.Item, known bool, err error) {
	o, found, err := w.l.kube.Objects.Get(ctx, accept.AtRecord)
	if err != nil || !found {
		return nil, false, err
	}
	text, _, _ := unstructured.NestedString(o.Object, "data", "inventory")
	if err := json.Unmarshal([]byte(text), &before); err != nil {
		return nil, false, fmt.Errorf("read what there was before the run: %w", err)
	}
	return before, true, nil
}

// Rest waits for the next look: the longer, the longer the step takes.
func (w *liveWorld) Rest(ctx context.Context, took time.Duration) error {
	return restFor(ctx, min(max(firstPoll, took/4), acceptPoll))
}

// Now is the time.
func (w *liveWorld) Now() time.Time { return time.Now() }
