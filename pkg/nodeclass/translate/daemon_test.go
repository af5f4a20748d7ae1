package translate

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/requirements"
	"joiner.sh/pkg/model/resources"
)

const agentText = `
metadata: {name: agent, namespace: kube-system, uid: u1, annotations: {deprecated.daemonset.template.generation: "2"}}
spec:
  template:
    metadata: {labels: {app: agent}}
    spec:
      containers: [{name: a, resources: {requests: {cpu: 50m}}}]
      affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: x, operator: Exists}]}]}}}
`

// agent is a pod of the DaemonSet that asks for so much cpu, made on that minute from that generation of the template.
func agent(t *testing.T, name, cpu string, minute int, generation string) *corev1.Pod {
	t.Helper()
	p := read[corev1.Pod](t, `
metadata: {namespace: kube-system, ownerReferences: [{apiVersion: apps/v1, kind: DaemonSet, name: agent, uid: u1, controller: true}]}
spec:
  nodeName: n1
  containers: [{name: a, resources: {requests: {cpu: `+cpu+`}}}]
  affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchFields: [{key: metadata.name, operator: In, values: [n1]}]}]}}}
status: {phase: Running}
`)
	p.Name, p.Labels = name, map[string]string{"app": "agent", "injected": "yes"}
	if generation != "" {
		p.Labels["pod-template-generation"] = generation
	}
	p.CreationTimestamp = metav1.NewTime(at("10:00:00").Add(time.Duration(minute) * time.Minute))
	return p
}

func TestSampleOfADaemonSet(t *testing.T) {
	ended := agent(t, "d", "900m", 9, "2")
	ended.Status.Phase = "Failed"
	for _, c := range []struct {
		name string
		pods []*corev1.Pod
		cpu  int64
	}{
		{"none", nil, 50},
		{"the newest", []*corev1.Pod{agent(t, "a", "70m", 1, "2"), agent(t, "b", "80m", 3, "2"), agent(t, "c", "90m", 2, "2"), ended}, 80},
		{"of the same age", []*corev1.Pod{agent(t, "b", "80m", 1, "2"), agent(t, "a", "70m", 1, "2")}, 80},
		{"of the template before", []*corev1.Pod{agent(t, "a", "70m", 1, "1")}, 50},
		{"of a template that nobody names", []*corev1.Pod{agent(t, "a", "70m", 1, "")}, 70},
	} {
		l := PodList{newest: map[string]liveDaemon{}}
		for _, p := range c.pods {
			live := Pod(p)
			l.noteDaemonPod(&live)
		}
		d := read[appsv1.DaemonSet](t, agentText)
		got := l.SampleDaemons([]DaemonTemplate{{DaemonPod(d), d.Annotations[annotationGeneration]}})
		if len(got) != 1 || got[0].Need.CPU != c.cpu {
			t.Errorf("%s: %+v, want one with %d of cpu", c.name, got, c.cpu)
		}
	}
	l := PodList{newest: map[string]liveDaemon{}}
	live := Pod(agent(t, "a", "70m", 1, "2"))
	l.noteDaemonPod(&live)
	d := DaemonPod(read[appsv1.DaemonSet](t, agentText))
	got := l.SampleDaemons([]DaemonTemplate{{d, "2"}})[0]
	want := cluster.Pod{
		Namespace: "kube-system", Name: "agent", UID: "u1", Owner: cluster.OwnerDaemonSet, GraceSec: 30, Need: resources.List{CPU: 70, Pods: 1},
		Labels:       map[string]string{"app": "agent", "injected": "yes", "pod-template-generation": "2"},
		NodeAffinity: [][]requirements.Requirement{{requirements.Any("x")}},
	}
	want.Created = d.Created
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("sample (-want +got):\n%s", diff)
	}
}

// Limits stand in for requests that a DaemonSet's template does not give, those of the whole pod too, unless a container
// asks for the resource.
func TestLimitsOfADaemonSetsTemplate(t *testing.T) {
	for spec, want := range map[string]resources.List{
		"{containers: [{name: a, resources: {limits: {cpu: 200m}}}]}":                                                          {CPU: 200, Pods: 1},
		"{resources: {limits: {cpu: '1', memory: 1Gi}}, containers: [{name: a}]}":                                              {CPU: 1000, Memory: 1 << 30, Pods: 1},
		"{resources: {limits: {cpu: '7'}}, containers: [{name: a, resources: {requests: {cpu: 100m}}}]}":                       {CPU: 100, Pods: 1},
		"{resources: {requests: {cpu: '3'}, limits: {cpu: '7'}}, containers: [{name: a, resources: {requests: {cpu: 100m}}}]}": {CPU: 3000, Pods: 1},
	} {
		d := read[appsv1.DaemonSet](t, "{metadata: {name: agent}, spec: {template: {spec: "+spec+"}}}")
		if got := DaemonPod(d).Need; got.String() != want.String() {
			t.Errorf("%s: %s, want %s", spec, got, want)
		}
		if got := Template("default", d.Spec.Template).Need; got.String() != want.String() {
			t.Errorf("template %s: %s, want %s", spec, got, want)
		}
	}
}

func TestATemplateIsNoUntriedPod(t *testing.T) {
	if Template("shop", corev1.PodTemplateSpec{Spec: corev1.PodSpec{SchedulerName: corev1.DefaultSchedulerName}}).Untried {
		t.Error("it is untried")
	}
}

func TestDaemon(t *testing.T) {
	d := read[appsv1.DaemonSet](t, `
metadata: {name: agent, namespace: kube-system, uid: u1}
spec:
  template:
    metadata: {labels: {app: agent}}
    spec:
      containers: [{name: a, resources: {limits: {cpu: 200m, memory: 100Mi}, requests: {cpu: 50m}}}]
      tolerations: [{operator: Exists}]
`)
	got := DaemonPod(d)
	if diff := cmp.Diff(resources.List{CPU: 50, Memory: 100 << 20, Pods: 1}, got.Need); diff != "" {
		t.Errorf("need (-want +got):\n%s", diff)
	}
	if got.Owner != cluster.OwnerDaemonSet || got.Key() != "kube-system/agent" || got.Labels["app"] != "agent" || len(got.Tolerations) != 7 {
		t.Errorf("daemon: %+v", got)
	}
	if len(d.Spec.Template.Spec.Containers[0].Resources.Requests) != 1 {
		t.Error("the DaemonSet was changed")
	}
}

// A DaemonSet that asks for more than one may, or whose newest pod was given more labels than a pod may have, keeps
// nobody off new nodes: of either is only known that it keeps others away.
func TestADaemonSetOfTooManyTermsKeepsNobodyAway(t *testing.T) {
	heavy := heavyPod(func(p *corev1.Pod) {
		anti := p.Spec.Affinity.PodAntiAffinity
		for range 33 {
			anti.RequiredDuringSchedulingIgnoredDuringExecution = append(anti.RequiredDuringSchedulingIgnoredDuringExecution,
				corev1.PodAffinityTerm{TopologyKey: corev1.LabelHostname, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}})
		}
	})
	set := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "evil", Name: "d", UID: "u"}}
	set.Spec.Template.Spec = heavy.Spec
	if got := DaemonPod(set); len(got.AntiAffinity) > 0 || !got.Need.IsZero() || len(got.Unmodelled) == 0 {
		t.Errorf("anti-affinity %v, need %s, reasons %v", got.AntiAffinity, got.Need, got.Unmodelled)
	}
	terms := heavy.Spec.Affinity.PodAntiAffinity
	terms.RequiredDuringSchedulingIgnoredDuringExecution = terms.RequiredDuringSchedulingIgnoredDuringExecution[:1]
	for i := range 101 {
		heavy.Labels[fmt.Sprint("l", i)] = ""
	}
	d := NewDaemonTemplate(set)
	if got := d.withNewestPod(Pod(heavy)); len(got.AntiAffinity) != 1 || len(got.AntiAffinity[0].Selector.Requirements) != 1 {
		t.Errorf("the newest pod's anti-affinity counts: %v", got.AntiAffinity)
	}
}

// New nodes keep room for 200 DaemonSets, whatever a namespace has: of the others each says so.
func TestTooManyDaemonSets(t *testing.T) {
	var all []DaemonTemplate
	add := func(ns, name string) {
		all = append(all, NewDaemonTemplate(&appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name, UID: types.UID(ns + name)}}))
	}
	for i := range 1000 {
		add("evil", fmt.Sprintf("d%03d", i))
	}
	add("kube-system", "agent")
	list := PodList{}
	count := map[string]int{}
	for _, d := range list.SampleDaemons(all) {
		if !d.Need.IsZero() {
			count[d.Namespace]++
		} else if want := "namespace evil has 1000 DaemonSets, of which the first 199 count: all together may be 200, shared out by namespace, and one with many requirements or resources counts as several"; d.Unmodelled[0] != want || d.UID != "evil"+d.Name {
			t.Fatalf("%s: %q, want %q", d.Name, d.Unmodelled, want)
		}
	}
	if d := cmp.Diff(map[string]int{"evil": 199, "kube-system": 1}, count); d != "" {
		t.Errorf("DaemonSets that count (-want +got):\n%s", d)
	}
}

// DaemonSets with many requirements count as several, each as much work for a pass, and leave those of others in.
func TestDaemonSetsOfMuchWork(t *testing.T) {
	var list []cluster.Pod
	for i := range 201 {
		d := cluster.Pod{Namespace: "evil", Name: fmt.Sprintf("d-%03d", i)}
		for range 100 {
			d.NodeAffinity = append(d.NodeAffinity, []requirements.Requirement{requirements.Of("zone", "a"), requirements.Of("zone", "b")})
		}
		if i == 200 {
			d = cluster.Pod{Namespace: "shop", Name: "agent"}
		}
		list = append(list, d)
	}
	list = BoundDaemons(list)
	count := 0
	for _, d := range list {
		if len(d.Unmodelled) == 0 {
			count++
		}
	}
	if why := list[199].Unmodelled; count != 10 || len(list[200].Unmodelled) > 0 || len(why) != 1 || !strings.Contains(why[0], "has 200 DaemonSets, of which the first 9 count") {
		t.Errorf("%d count, the last is told %q", count, why)
	}
}
