package gitops_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	argocd "github.com/argoproj/argo-cd/v3/resource_customizations"
	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	lua "github.com/yuin/gopher-lua"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	awsv1 "joiner.sh/pkg/api/aws/v1"
	v1 "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/api/v1alpha1"
	"joiner.sh/pkg/model/overlays"
	"joiner.sh/pkg/nodeclass"
)

func noon() time.Time { return time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC) }

// class is one that refresh has looked at, unless found is nil.
func class(found *nodeclass.Resolved) *awsv1.EC2NodeClass {
	discovery := map[string]string{"karpenter.sh/discovery": "demo"}
	c := &awsv1.EC2NodeClass{TypeMeta: metav1.TypeMeta{APIVersion: "karpenter.k8s.aws/v1", Kind: "EC2NodeClass"},
		ObjectMeta: metav1.ObjectMeta{Name: "default", Generation: 3, CreationTimestamp: metav1.NewTime(noon().Add(-time.Hour))},
		Spec: awsv1.EC2NodeClassSpec{Role: "node", AMISelectorTerms: []awsv1.AMISelectorTerm{{Alias: "al2023@latest"}},
			SubnetSelectorTerms: []awsv1.SubnetSelectorTerm{{Tags: discovery}}, SecurityGroupSelectorTerms: []awsv1.SecurityGroupSelectorTerm{{Tags: discovery}}}}
	if found != nil {
		nodeclass.UpdateStatus(c, *found, noon())
	}
	return c
}

// found is what a class stands for, with a change.
func found(change func(*nodeclass.Resolved)) *nodeclass.Resolved {
	f := &nodeclass.Resolved{Images: []nodeclass.Image{{ID: "ami-1", Name: "one", Arch: "amd64", Created: noon()}},
		Subnets: []nodeclass.Subnet{{ID: "subnet-1", Zone: "a", ZoneID: "z-a", Free: 5}}, SecurityGroups: []awsv1.SecurityGroup{{ID: "sg-1", Name: "nodes"}},
		Profile: "profile", ServiceCIDR: "10.100.0.0/16", Region: "us-west-2"}
	change(f)
	return f
}

func all(*nodeclass.Resolved) {}

// pool is one of the class that refresh has looked at.
func pool(c *awsv1.EC2NodeClass, change func(*v1.NodePool)) *v1.NodePool {
	p := newPool()
	change(p)
	classes := []awsv1.EC2NodeClass{}
	if c != nil {
		classes = append(classes, *c)
	}
	nodeclass.UpdatePool(p, classes, noon())
	return p
}

func newPool() *v1.NodePool {
	p := &v1.NodePool{TypeMeta: metav1.TypeMeta{APIVersion: "karpenter.sh/v1", Kind: "NodePool"}, ObjectMeta: metav1.ObjectMeta{Name: "general", Generation: 2}}
	p.Spec.Template.Spec.NodeClassRef = &v1.NodeClassReference{Group: "karpenter.k8s.aws", Kind: "EC2NodeClass", Name: "default"}
	return p
}

func same(*v1.NodePool) {}

func overlay(v overlays.Verdict) *v1alpha1.NodeOverlay {
	o := &v1alpha1.NodeOverlay{TypeMeta: metav1.TypeMeta{APIVersion: "karpenter.sh/v1alpha1", Kind: "NodeOverlay"}, ObjectMeta: metav1.ObjectMeta{Name: "price", Generation: 1}}
	overlays.UpdateStatus(o, v, noon())
	return o
}

// deleted is an object that waits for our finalizer.
func deleted[T metav1.Object](o T) T {
	at := metav1.NewTime(noon())
	o.SetDeletionTimestamp(&at)
	o.SetFinalizers([]string{"karpenter.sh/termination"})
	return o
}

// judged is an object with what is to be said of it.
type judged struct {
	object any
	argo   string // status and message; empty: Argo CD has no script for the kind
	flux   string // kstatus
}

// states are all that our statuses can be. An object is Healthy and Current if Joiner launches by it; what Argo CD says of
// a Degraded one names the condition. Neither looks at a deletion as Kubernetes does: Argo CD does before it asks its
// script. kstatus takes an object without a status for Current, until refresh has looked at it.
func states() map[string]judged {
	const (
		waiting  = "Progressing: Waiting for EC2NodeClass to be ready"
		noClass  = "Degraded: NodeClassReady=False"
		progress = "InProgress"
		current  = "Current"
	)
	lookUp := errors.New("connection reset")
	ready := class(found(all))
	out := map[string]judged{
		"class, ready":             {ready, "Healthy: EC2NodeClass is ready", current},
		"class, new":               {class(nil), waiting, current},
		"class, deleted":           {deleted(class(found(all))), "Healthy: EC2NodeClass is ready", "Terminating"},
		"overlay, in force":        {overlay(overlays.Verdict{}), "", current},
		"overlay, wrong":           {overlay(overlays.Verdict{Invalid: "no such label"}), "", progress},
		"overlay, in conflict":     {overlay(overlays.Verdict{Conflict: "as another"}), "", progress},
		"pool, new":                {newPool(), "Progressing: Waiting for NodePool to be ready", current},
		"pool, ready":              {pool(ready, same), "Healthy: ", current},
		"pool, without class":      {pool(nil, same), noClass, progress},
		"pool, class is new":       {pool(class(nil), same), "Progressing: Waiting for NodePool to be ready", progress},
		"pool, class fails":        {pool(class(found(func(f *nodeclass.Resolved) { f.Images = nil })), same), noClass, progress},
		"pool, class goes":         {pool(deleted(class(found(all))), same), noClass, progress},
		"pool, wrong":              {pool(ready, func(p *v1.NodePool) { p.Spec.Template.Labels = map[string]string{"karpenter.sh/nodepool": "x"} }), "Degraded: ValidationSucceeded=False", progress},
		"pool, disruption unclear": {pool(ready, func(p *v1.NodePool) { p.Spec.Disruption.Budgets = []v1.Budget{{Nodes: "many"}} }), "Healthy: ", current},
		"pool, deleted":            {deleted(pool(ready, same)), "Healthy: ", "Terminating"},
	}
	for part, change := range map[string]func(*nodeclass.Resolved){
		"AMIsReady":           func(f *nodeclass.Resolved) { f.Images = nil },
		"SubnetsReady":        func(f *nodeclass.Resolved) { f.Subnets = nil },
		"SecurityGroupsReady": func(f *nodeclass.Resolved) { f.SecurityGroups = nil },
		"InstanceProfileReady": func(f *nodeclass.Resolved) {
			f.ProfileErr = &nodeclass.ProfileError{Reason: nodeclass.ReasonRoleNotFound, Why: "no role"}
		},
	} {
		out["class, wrong "+part] = judged{class(found(change)), "Degraded: " + part + "=False, ValidationSucceeded=False", progress}
	}
	out["class, refused launch"] = judged{class(found(func(f *nodeclass.Resolved) {
		f.Verdict = &nodeclass.DryRunVerdict{Reason: "Denied", Message: "no"}
	})), "Degraded: ValidationSucceeded=False", progress}
	for part, change := range map[string]func(*nodeclass.Resolved){
		"images":          func(f *nodeclass.Resolved) { f.ImagesErr = lookUp },
		"subnets":         func(f *nodeclass.Resolved) { f.SubnetsErr = lookUp },
		"security groups": func(f *nodeclass.Resolved) { f.GroupsErr = lookUp },
		"profile":         func(f *nodeclass.Resolved) { f.ProfileErr = lookUp },
	} {
		out["class, unknown "+part] = judged{class(found(change)), waiting, progress}
	}
	return out
}

// Argo CD, by its own scripts, and Flux, by kstatus, see our objects as they are.
func TestHealthAsArgoCDAndFluxSeeIt(t *testing.T) {
	for name, want := range states() {
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(want.object)
		if err != nil {
			t.Fatal(err)
		}
		o := &unstructured.Unstructured{Object: content}
		got := judged{want.object, "", ""}
		if want.argo != "" {
			got.argo = argoHealth(t, o)
		}
		result, err := status.Compute(o)
		if err != nil {
			t.Fatalf("%s: kstatus: %v", name, err)
		}
		got.flux = string(result.Status)
		if want.argo != got.argo || want.flux != got.flux {
			t.Errorf("%s: Argo CD says %q and kstatus %q, want %q and %q", name, got.argo, got.flux, want.argo, want.flux)
		}
	}
}

// argoHealth is what Argo CD's script for the kind answers.
func argoHealth(t *testing.T, o *unstructured.Unstructured) string {
	t.Helper()
	script, err := argocd.Embedded.ReadFile(o.GroupVersionKind().Group + "/" + o.GetKind() + "/health.lua")
	if err != nil {
		t.Fatal(err)
	}
	l := lua.NewState()
	defer l.Close()
	l.SetGlobal("obj", luaValue(l, o.Object))
	if err := l.DoString(string(script)); err != nil {
		t.Fatal(err)
	}
	answer, ok := l.Get(-1).(*lua.LTable)
	if !ok {
		t.Fatalf("the script of %s answers %v", o.GetKind(), l.Get(-1))
	}
	return fmt.Sprintf("%v: %v", answer.RawGetString("status"), answer.RawGetString("message"))
}

// luaValue is a value of JSON in Lua.
func luaValue(l *lua.LState, v any) lua.LValue {
	switch v := v.(type) {
	case map[string]any:
		out := l.NewTable()
		for key, value := range v {
			out.RawSetString(key, luaValue(l, value))
		}
		return out
	case []any:
		out := l.NewTable()
		for _, value := range v {
			out.Append(luaValue(l, value))
		}
		return out
	case string:
		return lua.LString(v)
	case bool:
		return lua.LBool(v)
	case int64:
		return lua.LNumber(v)
	case float64:
		return lua.LNumber(v)
	}
	return lua.LNil
}
