package pack

import (
	"maps"
	"reflect"
	"slices"
	"strconv"

	"joiner/pkg/cluster"
	"joiner/pkg/require"
	"joiner/pkg/resource"
)

// signer writes everything about a pod that a rule may look at, as text: pods with equal texts are alike. Every part ends in
// a byte that no name contains, and lists begin with their length, so different pods never write the same.
type signer struct {
	labels []string // of a pod's labels, those that some selector names
	shared map[cluster.Volume]bool
	moving map[string]bool // nodes whose pods get no new ones, by name
	buf    []byte
	keys   []string
}

// pod returns the text, valid until the next call.
func (s *signer) pod(p *cluster.Pod) []byte {
	s.identity(p)
	s.number(int64(p.Priority))
	s.need(p.Need)
	s.dict(p.NodeSelector)
	s.number(int64(len(p.NodeAffinity)))
	for _, t := range p.NodeAffinity {
		s.requirements(t)
	}
	s.number(int64(len(p.NodePrefers)))
	for _, t := range p.NodePrefers {
		s.number(int64(t.Weight))
		s.requirements(t.Requirements)
	}
	s.number(int64(len(p.Tolerations)))
	for _, t := range p.Tolerations {
		s.strings(t.Key, t.Operator, t.Value, t.Effect)
	}
	s.number(int64(len(p.Spread)))
	for _, c := range p.Spread {
		s.strings(c.Key)
		s.number(int64(c.MaxSkew), int64(c.MinDomains))
		s.bools(c.Soft, c.IgnoreNodeAffinity, c.HonorTaints)
		s.selector(c.Selector)
	}
	s.terms(p.Affinity)
	s.terms(p.AntiAffinity)
	s.weighted(p.Prefers)
	s.weighted(p.Avoids)
	s.number(int64(len(p.HostPorts)))
	for _, h := range p.HostPorts {
		s.strings(h.Protocol, h.IP)
		s.number(int64(h.Port))
	}
	s.number(int64(len(p.VolumeZones)))
	for _, z := range p.VolumeZones {
		s.requirements(z)
	}
	disks := volumesOf(p, s.shared)
	s.number(int64(len(disks.own)), int64(len(disks.shared)))
	for i, v := range disks.own {
		s.strings(v.Driver)
		s.number(disks.count[i])
	}
	for _, v := range disks.shared {
		s.strings(v.Driver, v.ID)
	}
	s.bools(s.moving[p.NodeName])
	return s.buf
}

// identity begins a text with what selectors see of the pod.
func (s *signer) identity(p *cluster.Pod) []byte {
	s.buf = s.buf[:0]
	s.strings(p.Namespace)
	for i, key := range s.labels {
		if v, ok := p.Labels[key]; ok {
			s.number(int64(i))
			s.strings(v)
		}
	}
	s.buf = append(s.buf, 1)
	return s.buf
}

// sightings remember the identities of pods by their labels, for signers that look at the same of them; nil remembers none.
type sightings struct {
	labels []string
	byMap  map[uintptr]sighting
	texts  map[string]string
}

// sighting holds on to the labels, so that no others come to be where they are.
type sighting struct {
	labels          map[string]string
	namespace, text string
}

// identity is the signer's identity of the pod.
func (t *sightings) identity(s *signer, p *cluster.Pod) string {
	if t == nil {
		return string(s.identity(p))
	}
	if t.byMap == nil || !slices.Equal(t.labels, s.labels) {
		t.labels, t.byMap, t.texts = s.labels, map[uintptr]sighting{}, map[string]string{}
	}
	at := reflect.ValueOf(p.Labels).Pointer()
	if x, ok := t.byMap[at]; ok && x.namespace == p.Namespace {
		return x.text
	}
	id := s.identity(p)
	text, ok := t.texts[string(id)]
	if !ok {
		text = string(id)
		t.texts[text] = text
	}
	t.byMap[at] = sighting{p.Labels, p.Namespace, text}
	return text
}

func (s *signer) strings(list ...string) {
	for _, x := range list {
		s.buf = append(append(s.buf, x...), 0)
	}
}

func (s *signer) number(list ...int64) {
	for _, n := range list {
		s.buf = append(strconv.AppendInt(s.buf, n, 36), ',')
	}
}

func (s *signer) bools(list ...bool) {
	for _, b := range list {
		if b {
			s.buf = append(s.buf, 't')
		} else {
			s.buf = append(s.buf, 'f')
		}
	}
}

func (s *signer) need(l resource.List) {
	s.number(l.CPU, l.Memory, l.Ephemeral, l.Pods, int64(len(l.Extended)))
	for _, e := range l.Extended {
		s.strings(e.Name)
		s.number(e.Count)
	}
}

func (s *signer) dict(m map[string]string) {
	s.number(int64(len(m)))
	s.keys = slices.AppendSeq(s.keys[:0], maps.Keys(m))
	slices.Sort(s.keys)
	for _, k := range s.keys {
		s.strings(k, m[k])
	}
}

func (s *signer) requirements(list []require.Requirement) {
	s.number(int64(len(list)))
	for _, r := range list {
		s.strings(r.Key)
		s.bools(r.Not, r.Present, r.Min != nil, r.Max != nil)
		s.number(int64(r.MinValues), int64(len(r.Values)))
		for _, n := range []*int64{r.Min, r.Max} {
			if n != nil {
				s.number(*n)
			}
		}
		s.strings(r.Values...)
	}
}

func (s *signer) selector(sel *cluster.Selector) {
	if s.bools(sel != nil); sel != nil {
		s.requirements(sel.Requirements)
	}
}

func (s *signer) terms(list []cluster.AffinityTerm) {
	s.number(int64(len(list)))
	for _, t := range list {
		s.strings(t.Key)
		s.selector(t.Selector)
		s.number(int64(len(t.Namespaces)))
		s.strings(t.Namespaces...)
		s.selector(t.NamespaceSelector)
	}
}

func (s *signer) weighted(list []cluster.WeightedAffinityTerm) {
	s.number(int64(len(list)))
	for _, t := range list {
		s.number(int64(t.Weight))
		s.terms([]cluster.AffinityTerm{t.Term})
	}
}
