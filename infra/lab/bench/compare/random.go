package main

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"joiner.sh/infra/lab/bench/manifests"
	"joiner.sh/pkg/model/instancetypes"
)

// Bounds of what is drawn, so that a seed takes milliseconds.
const (
	mostPending  = 30
	mostFeatures = 6
)

// draw is a cluster in the making.
type draw struct {
	r      *rand.Rand
	all    instancetypes.Catalog
	c      *manifests.Cluster
	pools  []*poolDraw
	groups []*groupDraw
	nodes  []*nodeDraw
	used   map[string]bool // features
}

// groupDraw are pods that share a template. Lists hold entries of flow YAML.
type groupDraw struct {
	name, namespace, app   string
	count, cpu, memory     int
	labels                 []string
	requests               []string // beside cpu and memory
	selector               map[string]string
	terms                  []string // of required node affinity, ORed
	prefers                []string // of node affinity
	near, apart            []string // required pod affinity and anti-affinity
	wantsNear, wantsApart  []string // preferred ones
	spread                 []string
	tolerations            []string
	ports                  []string
	volumes                []string
	more                   []string // other fields of the spec
	podLevel               bool     // resources of the pod instead of its container
	ownVolumes             string   // storage class or zone of a volume of each pod
	nominated              string
	terminating, unnoticed bool
	owner                  string
}

func (d *draw) oneIn(n int) bool { return d.r.IntN(n) == 0 }

func pickOne[T any](d *draw, words ...T) T { return words[d.r.IntN(len(words))] }

// pickSome returns n different words in their order, or all of them.
func pickSome[T any](d *draw, n int, words []T) []T {
	at := d.r.Perm(len(words))[:min(n, len(words))]
	slices.Sort(at)
	out := make([]T, 0, len(at))
	for _, i := range at {
		out = append(out, words[i])
	}
	return out
}

// randomCluster is the cluster of the seed, with what else is added to the draw.
func randomCluster(seed uint64, all instancetypes.Catalog, more ...func(*draw)) (*manifests.Cluster, error) {
	d := &draw{r: rand.New(rand.NewPCG(seed, 18)), all: all, c: &manifests.Cluster{}, used: map[string]bool{}}
	d.c.Settings.Reserved, d.c.Settings.Partitions = map[string]int64{}, map[string]int64{}
	d.addTypes()
	d.addClass("default")
	for i := range pickOne(d, 1, 1, 1, 2, 2, 3) {
		d.addPool(fmt.Sprintf("pool-%d", i))
	}
	for i := range 1 + d.r.IntN(5) {
		name := fmt.Sprintf("app-%d", i)
		d.groups = append(d.groups, &groupDraw{name: name, namespace: "default", app: name, count: 1 +
			d.r.IntN(pickOne(d, 2, 4, 10)),
			cpu:    pickOne(d, 50, 100, 250, 500, 700, 900, 1100, 1900, 3000),
			memory: pickOne(d, 64, 128, 512, 1000, 1500, 3000, 6000)})
	}
	for range 1 + d.r.IntN(mostFeatures) {
		f := pickOne(d, allFeatures()...)
		if !d.used[f.name] || f.often {
			d.used[f.name] = true
			f.add(d)
		}
	}
	for _, add := range more {
		add(d)
	}
	return d.c, d.writeObjects()
}

// writeObjects makes objects of what was drawn.
func (d *draw) writeObjects() error {
	for _, name := range []string{"default", "prod", "dev"} {
		n := corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name,
			Labels: map[string]string{corev1.LabelMetadataName: name, "stage": name}}}
		d.c.Namespaces = append(d.c.Namespaces, n)
	}
	for _, p := range d.pools {
		if err := p.writePool(d.c); err != nil {
			return err
		}
	}
	if err := d.writeNodes(); err != nil {
		return err
	}
	left := mostPending
	for _, g := range d.groups {
		g.count = min(g.count, left)
		left -= g.count
		for i := range g.count {
			if err := d.writePod(g, fmt.Sprintf("%s-%d", g.name, i)); err != nil {
				return err
			}
		}
	}
	return nil
}

// parseYAML reads YAML into the object.
func parseYAML(text string, into any) error {
	if err := yaml.UnmarshalStrict([]byte(text), into); err != nil {
		return fmt.Errorf("%w in\n%s", err, text)
	}
	return nil
}

func yamlList(entries []string) string { return "[" + strings.Join(entries, ", ") + "]" }

// selectNodes makes the pods select nodes by a label.
func (g *groupDraw) selectNodes(key, value string) {
	if g.selector == nil {
		g.selector = map[string]string{}
	}
	g.selector[key] = value
}

// specYAML is the pod's spec as flow YAML.
func (g *groupDraw) specYAML() string {
	requests := fmt.Sprintf("{requests: {%s}}", strings.Join(append([]string{fmt.Sprintf("cpu: %dm, memory: %dMi",
		g.cpu, g.memory)}, g.requests...), ", "))
	container := "{name: a, image: app"
	fields := slices.Clone(g.more)
	if g.podLevel {
		fields = append(fields, "resources: "+requests)
		container += fmt.Sprintf(", resources: {requests: {cpu: %dm, memory: %dMi}}", g.cpu*3/4, g.memory*3/4)
	} else {
		container += ", resources: " + requests
	}
	if len(g.ports) > 0 {
		container += ", ports: " + yamlList(g.ports)
	}
	fields = append(fields, "containers: ["+container+"}]")
	add := func(name string, entries []string) {
		if len(entries) > 0 {
			fields = append(fields, name+": "+yamlList(entries))
		}
	}
	if len(g.selector) > 0 {
		var entries []string
		for _, key := range slices.Sorted(maps.Keys(g.selector)) {
			entries = append(entries, key+": '"+g.selector[key]+"'")
		}
		fields = append(fields, "nodeSelector: {"+strings.Join(entries, ", ")+"}")
	}
	add("tolerations", g.tolerations)
	add("topologySpreadConstraints", g.spread)
	add("volumes", g.volumes)
	if a := g.affinityYAML(); a != "" {
		fields = append(fields, "affinity: {"+a+"}")
	}
	return "{" + strings.Join(fields, ", ") + "}"
}

func (g *groupDraw) affinityYAML() string {
	var kinds []string
	add := func(kind, required string, preferred []string) {
		var parts []string
		if required != "" {
			parts = append(parts, "requiredDuringSchedulingIgnoredDuringExecution: "+required)
		}
		if len(preferred) > 0 {
			parts = append(parts, "preferredDuringSchedulingIgnoredDuringExecution: "+yamlList(preferred))
		}
		if len(parts) > 0 {
			kinds = append(kinds, kind+": {"+strings.Join(parts, ", ")+"}")
		}
	}
	terms := ""
	if len(g.terms) > 0 {
		terms = "{nodeSelectorTerms: " + yamlList(g.terms) + "}"
	}
	required := func(entries []string) string {
		if len(entries) == 0 {
			return ""
		}
		return yamlList(entries)
	}
	add("nodeAffinity", terms, g.prefers)
	add("podAffinity", required(g.near), g.wantsNear)
	add("podAntiAffinity", required(g.apart), g.wantsApart)
	return strings.Join(kinds, ", ")
}

// newPod is a pod of the group, without a node.
func (g *groupDraw) newPod(name string) (corev1.Pod, error) {
	var p corev1.Pod
	labels := append([]string{"app: " + g.app}, g.labels...)
	text := fmt.Sprintf("{metadata: {name: %s, namespace: %s, labels: {%s}}, spec: %s}", name, g.namespace,
		strings.Join(labels, ", "), g.specYAML())
	if err := parseYAML(text, &p); err != nil {
		return p, err
	}
	p.UID = types.UID("uid-" + g.namespace + "-" + name)
	p.CreationTimestamp = metav1.NewTime(manifests.ClusterTime().Add(-minutes(5)))
	p.Status.Phase = corev1.PodPending
	switch g.owner {
	case "":
	case "DaemonSet", "StatefulSet", "ReplicaSet":
		yes := true
		p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: g.owner, Name: g.name,
			UID: types.UID("owner-" + g.name), Controller: &yes}}
	}
	return p, nil
}

// writePod adds a pod that waits.
func (d *draw) writePod(g *groupDraw, name string) error {
	p, err := g.newPod(name)
	if err != nil {
		return err
	}
	if !g.unnoticed {
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse,
			Reason: corev1.PodReasonUnschedulable}}
	}
	p.Status.NominatedNodeName = g.nominated
	if g.terminating {
		at := metav1.NewTime(manifests.ClusterTime().Add(minutes(1)))
		p.DeletionTimestamp = &at
	}
	if g.ownVolumes != "" {
		if err := d.addOwnVolume(g, &p); err != nil {
			return err
		}
	}
	d.c.Pods = append(d.c.Pods, p)
	return nil
}
