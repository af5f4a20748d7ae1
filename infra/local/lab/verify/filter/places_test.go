package filter_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"joiner.sh/infra/local/controlplane/client"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/requirements"
)

// labelRack is a label of some nodes and of one pool's.
const labelRack = "example.com/rack"

func oneOf[T any](d *draw, all ...T) T { return all[d.r.IntN(len(all))] }

// addPlaces adds namespaces, storage classes and volumes that pods may share or find.
func (d *draw) addPlaces() {
	d.q.Namespaces = []*corev1.Namespace{{ObjectMeta: metav1.ObjectMeta{Name: "default", Labels: map[string]string{"team": "a"}}},
		{ObjectMeta: metav1.ObjectMeta{Name: "other", Labels: map[string]string{"team": "b"}}}}
	wait, now := storagev1.VolumeBindingWaitForFirstConsumer, storagev1.VolumeBindingImmediate
	class := func(name, by string, when *storagev1.VolumeBindingMode, zones ...string) {
		c := &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Provisioner: by, VolumeBindingMode: when}
		if len(zones) > 0 {
			c.AllowedTopologies = []corev1.TopologySelectorTerm{{MatchLabelExpressions: []corev1.TopologySelectorLabelRequirement{{Key: corev1.LabelTopologyZone, Values: zones}}}}
		}
		d.q.StorageClasses = append(d.q.StorageClasses, c)
	}
	class("wait", "csi.c", &wait)
	class("wait-b", "csi.c", &wait, "b")
	class("now", "csi.c", &now)
	class("local", "kubernetes.io/no-provisioner", &wait)
	d.addVolume("disk-gone", "", "gone") // so that volumes of the class are known to be local
	for _, mode := range []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOncePod, corev1.ReadOnlyMany} {
		for _, namespace := range []string{"default", "other"} {
			d.bind(d.addClaim(namespace, string(mode), "", mode), oneOf(d, "", "a", "b"), "")
		}
	}
}

func (d *draw) addClaim(namespace, name, class string, mode corev1.PersistentVolumeAccessMode) *corev1.PersistentVolumeClaim {
	c := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: corev1.PersistentVolumeClaimSpec{StorageClassName: &class, AccessModes: []corev1.PersistentVolumeAccessMode{mode}}}
	d.q.Claims = append(d.q.Claims, c)
	return c
}

// bind gives the claim a volume: in the zone, on a disk of the node, or anywhere.
func (d *draw) bind(c *corev1.PersistentVolumeClaim, zone, node string) {
	v := d.addVolume("pv-"+c.Namespace+"-"+c.Name, zone, node)
	v.Spec.ClaimRef, v.Status.Phase = &corev1.ObjectReference{Namespace: c.Namespace, Name: c.Name}, corev1.VolumeBound
	v.Spec.AccessModes = c.Spec.AccessModes
	c.Annotations = map[string]string{"pv.kubernetes.io/bind-completed": "yes"}
	c.Spec.VolumeName, c.Status.Phase = v.Name, corev1.ClaimBound
}

func (d *draw) addVolume(name, zone, node string) *corev1.PersistentVolume {
	v := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: corev1.PersistentVolumeStatus{Phase: corev1.VolumeAvailable},
		Spec: corev1.PersistentVolumeSpec{AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}}}
	key, value := corev1.LabelTopologyZone, zone
	if node != "" {
		key, value, v.Spec.StorageClassName = corev1.LabelHostname, node, "local"
		v.Spec.Local = &corev1.LocalVolumeSource{Path: "/disk"}
	} else {
		v.Spec.CSI = &corev1.CSIPersistentVolumeSource{Driver: "csi.c", VolumeHandle: name}
	}
	// As volumes say it that are older than node affinity; none of them was made for a pod.
	if zone != "" && !strings.HasSuffix(name, "-more") && d.chance(3) {
		v.Labels = map[string]string{corev1.LabelTopologyZone: zone}
	} else if value != "" {
		v.Spec.NodeAffinity = &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
			MatchExpressions: []corev1.NodeSelectorRequirement{{Key: key, Operator: corev1.NodeSelectorOpIn, Values: []string{value}}}}}}}
	}
	d.q.Volumes = append(d.q.Volumes, v)
	return v
}

// placeNode gives the node a zone, taints and perhaps a rack and free disks.
func (d *draw) placeNode(n *corev1.Node) {
	n.Labels[corev1.LabelTopologyZone] = oneOf(d, "a", "b")
	if d.chance(2) {
		n.Labels[labelRack] = oneOf(d, "r1", "r2")
	}
	for _, effect := range []corev1.TaintEffect{corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoSchedule, corev1.TaintEffectNoExecute} {
		if d.chance(5) {
			n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: "t", Value: oneOf(d, "x", "y"), Effect: effect})
		}
	}
	for i := range d.r.IntN(3) {
		d.addVolume(fmt.Sprintf("disk-%s-%d", n.Name, i), "", n.Name)
	}
}

// place gives the pod what decides about its place beside room: a namespace, labels, tolerations, a selector, spreads,
// affinity, ports and volumes. What is on a node has bound volumes.
func (d *draw) place(p *corev1.Pod, on *corev1.Node) {
	p.Namespace = oneOf(d, "default", "default", "default", "other")
	if d.disks && on == nil {
		d.mount(p, nil)
		return
	}
	p.Labels = map[string]string{"app": oneOf(d, "x", "x", "y"), "v": oneOf(d, "1", "2")}
	if d.chance(3) {
		p.Spec.Tolerations = []corev1.Toleration{{Key: "t", Operator: corev1.TolerationOpExists}}
	}
	if d.chance(4) {
		p.Spec.NodeSelector = map[string]string{corev1.LabelTopologyZone: oneOf(d, "a", "b")}
	}
	p.Spec.Affinity = &corev1.Affinity{}
	if d.chance(6) {
		p.Spec.Affinity.NodeAffinity = &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
			NodeSelectorTerms: []corev1.NodeSelectorTerm{d.nodeTerm(), d.nodeTerm()}}}
	}
	for _, key := range []string{corev1.LabelTopologyZone, corev1.LabelHostname, labelRack} {
		if d.chance(4) {
			p.Spec.TopologySpreadConstraints = append(p.Spec.TopologySpreadConstraints, d.spread(p, key))
		}
	}
	if d.chance(6) {
		p.Spec.Affinity.PodAffinity = &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: d.terms(p)}
	}
	if d.chance(5) {
		p.Spec.Affinity.PodAntiAffinity = &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: d.terms(p)}
	}
	if d.chance(5) {
		p.Spec.Containers[0].Ports = []corev1.ContainerPort{{HostPort: oneOf[int32](d, 80, 80, 81), HostIP: oneOf(d, "", "0.0.0.0", "10.0.0.1", "10.0.0.2"), Protocol: oneOf(d, corev1.ProtocolTCP, corev1.ProtocolTCP, corev1.ProtocolUDP)}}
	}
	if d.chance(3) {
		d.mount(p, on)
	}
}

func (d *draw) nodeTerm() corev1.NodeSelectorTerm {
	return corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{oneOf(d,
		corev1.NodeSelectorRequirement{Key: corev1.LabelTopologyZone, Operator: corev1.NodeSelectorOpIn, Values: []string{oneOf(d, "a", "b")}},
		corev1.NodeSelectorRequirement{Key: labelRack, Operator: corev1.NodeSelectorOpExists},
		corev1.NodeSelectorRequirement{Key: labelRack, Operator: corev1.NodeSelectorOpDoesNotExist},
		corev1.NodeSelectorRequirement{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpNotIn, Values: []string{oneOf(d, "n0", "n1")}})}}
}

// selector selects by one label, or all pods, or none.
func (d *draw) selector() *metav1.LabelSelector {
	return oneOf(d, nil, &metav1.LabelSelector{},
		&metav1.LabelSelector{MatchLabels: map[string]string{"app": "x"}}, &metav1.LabelSelector{MatchLabels: map[string]string{"app": "y"}},
		&metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "app", Operator: metav1.LabelSelectorOpNotIn, Values: []string{"y"}}}},
		&metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "v", Operator: metav1.LabelSelectorOpExists}}})
}

func (d *draw) spread(p *corev1.Pod, key string) corev1.TopologySpreadConstraint {
	c := corev1.TopologySpreadConstraint{TopologyKey: key, MaxSkew: oneOf[int32](d, 1, 1, 2), WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: d.selector()}
	if d.chance(5) {
		c.MinDomains = oneOf(d, new(int32(2)), new(int32(3)))
	}
	if d.chance(3) {
		c.NodeAffinityPolicy = new(corev1.NodeInclusionPolicyIgnore)
	}
	if d.chance(3) {
		c.NodeTaintsPolicy = new(corev1.NodeInclusionPolicyHonor)
	}
	if d.chance(4) && c.LabelSelector != nil { // the API server refuses it without a selector
		c.MatchLabelKeys = []string{"v"}
		c.LabelSelector = withKey(c.LabelSelector, p, "v", metav1.LabelSelectorOpIn)
	}
	return c
}

// withKey is the selector as the API server completes it for matchLabelKeys and mismatchLabelKeys.
func withKey(s *metav1.LabelSelector, p *corev1.Pod, key string, op metav1.LabelSelectorOperator) *metav1.LabelSelector {
	s = s.DeepCopy()
	s.MatchExpressions = append(s.MatchExpressions, metav1.LabelSelectorRequirement{Key: key, Operator: op, Values: []string{p.Labels[key]}})
	return s
}

func (d *draw) terms(p *corev1.Pod) (out []corev1.PodAffinityTerm) {
	for range 1 + d.r.IntN(4)/3 {
		t := corev1.PodAffinityTerm{TopologyKey: oneOf(d, corev1.LabelTopologyZone, corev1.LabelHostname, labelRack), LabelSelector: d.selector()}
		switch d.r.IntN(5) {
		case 0:
			t.NamespaceSelector = &metav1.LabelSelector{}
		case 1:
			t.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"team": oneOf(d, "a", "b", "c")}}
		case 2:
			t.Namespaces = []string{"other"}
		}
		switch n := d.r.IntN(16); {
		case t.LabelSelector == nil:
		case n < 4:
			t.MatchLabelKeys, t.LabelSelector = []string{"v"}, withKey(t.LabelSelector, p, "v", metav1.LabelSelectorOpIn)
		case n < 7:
			t.MismatchLabelKeys, t.LabelSelector = []string{"v"}, withKey(t.LabelSelector, p, "v", metav1.LabelSelectorOpNotIn)
		}
		out = append(out, t)
	}
	return out
}

// mount gives the pod a claim of some kind, or one that others have.
func (d *draw) mount(p *corev1.Pod, on *corev1.Node) {
	claim := func(name string) corev1.VolumeSource {
		return corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: name}}
	}
	source := claim(p.Name)
	zone, node := oneOf(d, "a", "b"), oneOf(d, "n0", "gone")
	if on != nil {
		zone, node = on.Labels[corev1.LabelTopologyZone], on.Name
	}
	switch kind := d.r.IntN(8); {
	case d.disks && on == nil:
		d.addClaim(p.Namespace, p.Name, "local", corev1.ReadWriteOnce)
	case kind == 0:
		source = claim(string(corev1.ReadWriteOncePod))
	case kind == 1:
		source = claim(string(corev1.ReadOnlyMany))
	case kind == 2: // of its own, and made for it
		source = corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{VolumeClaimTemplate: &corev1.PersistentVolumeClaimTemplate{}}}
		c := d.addClaim(p.Namespace, p.Name+"-more", "wait", corev1.ReadWriteOnce)
		c.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: p.Name, UID: p.UID, Controller: new(true)}}
		if on != nil || d.chance(2) {
			d.bind(c, zone, "")
		}
	case kind == 3:
		d.bind(d.addClaim(p.Namespace, p.Name, "local", corev1.ReadWriteOnce), "", node)
	case kind == 4 || on != nil:
		d.bind(d.addClaim(p.Namespace, p.Name, "wait", corev1.ReadWriteOnce), zone, "")
	default:
		d.addClaim(p.Namespace, p.Name, oneOf(d, "wait", "wait-b", "now", "local", "local"), corev1.ReadWriteOnce)
	}
	p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: "more", VolumeSource: source})
}

// Whatever Joiner would not see of a pod's rules, some draw shows it: three of them in thousands only.
func TestEachRuleIsJudged(t *testing.T) {
	rare := map[string]bool{"the labels of a spread's matchLabelKeys": true, "nodeTaintsPolicy": true, "nodeAffinityPolicy": true}
	a := newAsker(t, client.Minor(), gates)
	spreads := func(change func(*cluster.Spread)) func(*cluster.Node, *cluster.Pod) {
		return func(_ *cluster.Node, p *cluster.Pod) {
			p.Spread = slices.Clone(p.Spread)
			for i := range p.Spread {
				change(&p.Spread[i])
			}
		}
	}
	without := func(key string) func(*cluster.Spread) {
		return func(c *cluster.Spread) {
			if c.Selector != nil {
				c.Selector = &cluster.Selector{Requirements: slices.DeleteFunc(slices.Clone(c.Selector.Requirements), func(r requirements.Requirement) bool { return r.Key == key && !r.Not })}
			}
		}
	}
	claims := func(says string) func(*cluster.Node, *cluster.Pod) {
		return func(_ *cluster.Node, p *cluster.Pod) {
			p.Unmodelled = slices.DeleteFunc(slices.Clone(p.Unmodelled), func(why string) bool { return strings.Contains(why, says) })
		}
	}
	volumes := func(key string) func(*cluster.Node, *cluster.Pod) {
		return func(_ *cluster.Node, p *cluster.Pod) {
			if slices.ContainsFunc(p.VolumeZones, func(z []requirements.Requirement) bool {
				return slices.ContainsFunc(z, func(r requirements.Requirement) bool { return r.Key == key })
			}) {
				p.VolumeZones = nil
			}
		}
	}
	for name, blind := range map[string]func(*cluster.Node, *cluster.Pod){
		"a taint that only makes other nodes preferred": func(n *cluster.Node, _ *cluster.Pod) {
			n.Taints = slices.Clone(n.Taints)
			for i := range n.Taints {
				n.Taints[i].Effect = "PreferNoSchedule"
			}
		},
		"the second spread":                       func(_ *cluster.Node, p *cluster.Pod) { p.Spread = p.Spread[:min(1, len(p.Spread))] },
		"the labels of a spread's matchLabelKeys": spreads(without("v")),
		"minDomains":                              spreads(func(c *cluster.Spread) { c.MinDomains = 0 }),
		"nodeTaintsPolicy":                        spreads(func(c *cluster.Spread) { c.HonorTaints = !c.HonorTaints }),
		"nodeAffinityPolicy":                      spreads(func(c *cluster.Spread) { c.IgnoreNodeAffinity = !c.IgnoreNodeAffinity }),
		"that a spread counts nobody": spreads(func(c *cluster.Spread) {
			if c.Selector == nil {
				c.Selector = &cluster.Selector{}
			}
		}),
		"namespaces of affinity": func(_ *cluster.Node, p *cluster.Pod) {
			p.AntiAffinity = slices.Clone(p.AntiAffinity)
			for i := range p.AntiAffinity {
				p.AntiAffinity[i].NamespaceSelector, p.AntiAffinity[i].Namespaces = nil, nil
			}
		},
		"ports of hosts": func(_ *cluster.Node, p *cluster.Pod) { p.HostPorts = nil },
		"addresses of ports": func(_ *cluster.Node, p *cluster.Pod) {
			p.HostPorts = slices.Clone(p.HostPorts)
			for i := range p.HostPorts {
				p.HostPorts[i].IP = p.Name
			}
		},
		"claims for one pod":             claims("ReadWriteOncePod"),
		"claims that bind at once":       claims("binds immediately"),
		"zones of volumes":               volumes(corev1.LabelTopologyZone),
		"nodes of volumes, also gone":    volumes(corev1.LabelHostname),
		"that a node has no free volume": func(_ *cluster.Node, p *cluster.Pod) { p.Requires = nil },
		"how many are free":              func(n *cluster.Node, _ *cluster.Pod) { n.VolumeLimits = nil },
	} {
		found := rare[name] && *draws < 3000
		for seed := *first; seed < *first+uint64(*draws) && !found; seed++ {
			d := newDraw(t, seed)
			d.blind = blind
			if d.placing {
				if all := a.disagreements(d, d.plan()); len(all) > 0 {
					t.Logf("without %s: seed %d: %s", name, seed, all[0])
					found = true
				}
			}
		}
		if !found {
			t.Errorf("without %s nothing differs in %d draws", name, *draws)
		}
	}
}
