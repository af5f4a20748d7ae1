package translate

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// What one pod may ask for. The API server bounds a pod by its bytes alone, so that a few pods of one tenant could use
// up the memory and the time of every pass. A pod past one of these is refused by name; what is kept of it is small.
const (
	// mostLabels is several times what any tool puts on a pod. The API server takes 60,000.
	mostLabels = 100
	// mostAlternatives bounds the terms of node affinity, required and preferred: each is tried on each offering.
	mostAlternatives = 100
	// mostTopology bounds spread constraints and terms of pod affinity: pods are counted for each by domain, and each
	// that is only preferred is a plan of its own.
	mostTopology = 32
	// mostExtended bounds the extended resources: each is a dimension of the room of every node.
	mostExtended = 32
	// mostPorts bounds host ports: each is compared with those of other pods on a node.
	mostPorts = 32
	// mostValues bounds all keys and values of selectors, affinity, tolerations, ports, volume claims and extended
	// resources together. There are about 800 instance types, so that a pod can name all of them.
	mostValues = 1_000
	// mostText bounds the bytes of labels and of those keys and values: 1,000 of usual length have 20 KiB.
	mostText = 32 << 10
	// mostWord is the longest value that means anything of an annotation or of the UID of an owner. The API server
	// bounds neither by itself.
	mostWord = 64
	// mostReasons bounds why a pod is refused: each reason quotes what the pod asks for.
	mostReasons = 10
)

// podSize measures what a pod asks for.
type podSize struct {
	labels, alternatives, topology, ports, values, text int

	extended map[corev1.ResourceName]bool
}

func sizeOf(p *corev1.Pod) *podSize {
	s := &podSize{labels: len(p.Labels)}
	for k, v := range p.Labels {
		s.text += len(k) + len(v)
	}
	s.addMap(p.Spec.NodeSelector)
	for _, t := range p.Spec.Tolerations {
		s.addValues(t.Key, t.Value)
	}
	s.topology = len(p.Spec.TopologySpreadConstraints)
	for _, c := range p.Spec.TopologySpreadConstraints {
		s.addValues(c.TopologyKey)
		s.addValues(c.MatchLabelKeys...)
		s.addSelector(c.LabelSelector)
	}
	if a := p.Spec.Affinity; a != nil {
		s.addNodeAffinity(a.NodeAffinity)
		if pa := a.PodAffinity; pa != nil {
			s.addPodAffinity(pa.RequiredDuringSchedulingIgnoredDuringExecution,
				pa.PreferredDuringSchedulingIgnoredDuringExecution)
		}
		if pa := a.PodAntiAffinity; pa != nil {
			s.addPodAffinity(pa.RequiredDuringSchedulingIgnoredDuringExecution,
				pa.PreferredDuringSchedulingIgnoredDuringExecution)
		}
	}
	for _, v := range p.Spec.Volumes {
		switch {
		case v.PersistentVolumeClaim != nil:
			s.addValues(v.PersistentVolumeClaim.ClaimName)
		case v.Ephemeral != nil:
			s.addValues(v.Name)
		}
	}
	for name := range p.Spec.Overhead {
		s.addExtended(name)
	}
	s.addContainers(p.Spec.InitContainers)
	s.addContainers(p.Spec.Containers)
	return s
}

func (s *podSize) addContainers(all []corev1.Container) {
	for i := range all {
		for _, port := range all[i].Ports {
			if port.HostPort != 0 {
				s.ports++
				s.addValues(port.HostIP)
			}
		}
		for name := range all[i].Resources.Requests {
			s.addExtended(name)
		}
	}
}

func (s *podSize) addValues(texts ...string) {
	s.values += len(texts)
	for _, t := range texts {
		s.text += len(t)
	}
}

func (s *podSize) addMap(m map[string]string) {
	for k, v := range m {
		s.addValues(k, v)
	}
}

func (s *podSize) addExtended(name corev1.ResourceName) {
	switch name {
	case corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage:
	default:
		s.addValues(string(name))
		if s.extended == nil {
			s.extended = map[corev1.ResourceName]bool{}
		}
		s.extended[name] = true
	}
}

func (s *podSize) addSelector(l *metav1.LabelSelector) {
	if l == nil {
		return
	}
	s.addMap(l.MatchLabels)
	for _, e := range l.MatchExpressions {
		s.addValues(e.Key)
		s.addValues(e.Values...)
	}
}

func (s *podSize) addNodeAffinity(n *corev1.NodeAffinity) {
	if n == nil {
		return
	}
	add := func(t corev1.NodeSelectorTerm) {
		s.alternatives++
		for _, e := range slices.Concat(t.MatchExpressions, t.MatchFields) {
			s.addValues(e.Key)
			s.addValues(e.Values...)
		}
	}
	if req := n.RequiredDuringSchedulingIgnoredDuringExecution; req != nil {
		for _, t := range req.NodeSelectorTerms {
			add(t)
		}
	}
	for _, w := range n.PreferredDuringSchedulingIgnoredDuringExecution {
		add(w.Preference)
	}
}

func (s *podSize) addPodAffinity(required []corev1.PodAffinityTerm, preferred []corev1.WeightedPodAffinityTerm) {
	add := func(t corev1.PodAffinityTerm) {
		s.topology++
		s.addValues(t.TopologyKey)
		s.addValues(t.Namespaces...)
		s.addValues(t.MatchLabelKeys...)
		s.addValues(t.MismatchLabelKeys...)
		s.addSelector(t.LabelSelector)
		s.addSelector(t.NamespaceSelector)
	}
	for _, t := range required {
		add(t)
	}
	for _, w := range preferred {
		add(w.PodAffinityTerm)
	}
}

// refusals says what there is too much of.
func (s *podSize) refusals() (out []string) {
	if s.labels > mostLabels {
		out = append(out, fmt.Sprintf("it has %d labels, more than %d", s.labels, mostLabels))
	}
	for _, x := range []struct {
		text       string
		have, most int
	}{
		{"its node affinity has %d terms, more than %d", s.alternatives, mostAlternatives},
		{"it has %d spread constraints and terms of pod affinity, more than %d", s.topology, mostTopology},
		{"it asks for %d extended resources, more than %d", len(s.extended), mostExtended},
		{"it has %d host ports, more than %d", s.ports, mostPorts},
	} {
		if x.have > x.most {
			out = append(out, fmt.Sprintf(x.text, x.have, x.most))
		}
	}
	if s.values > mostValues {
		out = append(out, fmt.Sprintf("its selectors, affinity, tolerations, ports, volumes and resources have %d keys and values, more than %d",
			s.values, mostValues))
	}
	if s.text > mostText {
		out = append(out, fmt.Sprintf("its labels and all that it asks of nodes have %d bytes, more than %d", s.text,
			mostText))
	}
	return out
}

// boundPod is the pod, or what is kept of one that asks for too much, with the reasons why it is refused.
func boundPod(p *corev1.Pod) (kept *corev1.Pod, why []string) {
	if why = sizeOf(p).refusals(); len(why) == 0 {
		return p, nil
	}
	out := *p
	out.Labels = firstLabels(p.Labels)
	out.Spec.NodeSelector, out.Spec.TopologySpreadConstraints, out.Spec.Volumes = nil, nil, nil
	out.Spec.Affinity, out.Spec.Tolerations = nil, firstTolerations(p.Spec.Tolerations)
	out.Spec.InitContainers = withoutExtras(p.Spec.InitContainers)
	out.Spec.Containers = withoutExtras(p.Spec.Containers)
	out.Spec.Overhead = plainRequests(p.Spec.Overhead)
	if repels(p) {
		out.Spec.Affinity = repelAll()
	}
	return &out, why
}

// repels reports whether the pod keeps others off its node in ways that are not kept.
func repels(p *corev1.Pod) bool {
	a := p.Spec.Affinity
	return len(hostPortsOf(p.Spec)) > 0 || a != nil && a.PodAntiAffinity != nil &&
		len(a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution) > 0
}

// repelAll keeps every other pod off the node.
func repelAll() *corev1.Affinity {
	all := &metav1.LabelSelector{}
	return &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{
			{TopologyKey: corev1.LabelHostname, LabelSelector: all, NamespaceSelector: all}}}}
}

// firstLabels keeps labels, by key, as far as a pod may have them.
func firstLabels(all map[string]string) map[string]string {
	out, text := map[string]string{}, 0
	for _, k := range slices.Sorted(maps.Keys(all)) {
		if text += len(k) + len(all[k]); len(out) == mostLabels || text > mostText {
			break
		}
		out[k] = all[k]
	}
	return out
}

// boundLabels are the labels, or of too many the first ones.
func boundLabels(all map[string]string) map[string]string {
	text := 0
	for k, v := range all {
		text += len(k) + len(v)
	}
	if len(all) <= mostLabels && text <= mostText {
		return all
	}
	return firstLabels(all)
}

func firstTolerations(all []corev1.Toleration) []corev1.Toleration {
	return all[:min(len(all), mostAlternatives)]
}

// withoutExtras keeps of containers what they request of CPU, memory and storage.
func withoutExtras(all []corev1.Container) []corev1.Container {
	out := slices.Clone(all)
	for i := range out {
		out[i].Ports = nil
		out[i].Resources = corev1.ResourceRequirements{Requests: plainRequests(out[i].Resources.Requests)}
	}
	return out
}

// plainRequests returns the requests of CPU, memory and storage.
func plainRequests(all corev1.ResourceList) corev1.ResourceList {
	out := corev1.ResourceList{}
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory,
		corev1.ResourceEphemeralStorage} {
		if q, ok := all[name]; ok {
			out[name] = q
		}
	}
	return out
}

// shortAnnotation is the value of an annotation that decides something; a longer one means nothing.
func shortAnnotation(all map[string]string, key string) string {
	if v := all[key]; len(v) <= mostWord {
		return v
	}
	return ""
}

// boundReasons keeps the first reasons.
func boundReasons(all []string) []string {
	if len(all) <= mostReasons {
		return all
	}
	more := fmt.Sprintf("and %d more reasons", len(all)-mostReasons)
	return append(slices.Clone(all[:mostReasons]), more)
}
