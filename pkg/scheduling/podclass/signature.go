package podclass

import (
	"encoding/binary"
	"hash/fnv"
	"maps"
	"reflect"
	"slices"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/requirements"
	"joiner.sh/pkg/model/resources"
)

// Signature writes everything about a pod that a rule may look at, as text: pods with equal texts are alike.
// Every text ends in a byte that no name contains, numbers say how long they are, and lists begin with their length, so
// different pods never write the same.
type Signature struct {
	labels []string // of a pod's labels, those that some selector names
	shared map[cluster.Volume]bool
	moving map[string]bool // nodes whose pods get no new ones, by name
	buf    []byte
	keys   []string
	bare   cluster.Pod // of which a text is written that leaves some of it out
}

// podSignature returns the text, valid until the next call.
func (s *Signature) podSignature(p *cluster.Pod) []byte {
	s.podIdentity(p)
	s.writeNumber(int64(p.Priority))
	s.writeNeed(p.Need)
	s.writeNodesAsked(p)
	s.writeNumber(int64(len(p.Spread)))
	for _, c := range p.Spread {
		s.writeStrings(c.Key)
		s.writeNumber(int64(c.MaxSkew), int64(c.MinDomains))
		s.writeBools(c.Soft, c.IgnoreNodeAffinity, c.HonorTaints)
		s.writeSelector(c.Selector)
	}
	s.writeTerms(p.Affinity)
	s.writeTerms(p.AntiAffinity)
	s.writeWeighted(p.Prefers)
	s.writeWeighted(p.Avoids)
	s.writeNumber(int64(len(p.HostPorts)))
	for _, h := range p.HostPorts {
		s.writeStrings(h.Protocol, h.IP)
		s.writeNumber(int64(h.Port))
	}
	s.writeNumber(int64(len(p.VolumeZones)))
	for _, z := range p.VolumeZones {
		s.writeRequirements(z)
	}
	s.writeNumber(int64(len(p.Requires)))
	s.writeStrings(p.Requires...)
	disks := volumesOf(p, s.shared)
	s.writeNumber(int64(len(disks.Own)), int64(len(disks.Shared)))
	for i, v := range disks.Own {
		s.writeStrings(v.Driver)
		s.writeNumber(disks.Count[i])
	}
	for _, v := range disks.Shared {
		s.writeStrings(v.Driver, v.ID)
	}
	s.writeBools(s.moving[p.NodeName])
	return s.buf
}

// FilterText returns the text of what kube-scheduler's filters look at in another pod in the stead of p, but for ports
// and volumes, with all labels. It is valid until the next call.
func (s *Signature) FilterText(p *cluster.Pod) []byte {
	s.bare = *p
	s.bare.Priority, s.bare.Need = 0, p.NextNeed()
	s.bare.NodePrefers, s.bare.Prefers, s.bare.Avoids = nil, nil, nil
	s.bare.HostPorts, s.bare.Volumes = nil, nil
	s.podSignature(&s.bare)
	s.writeMap(p.Labels)
	return s.buf
}

// NodeText returns the text of what the pod requires of nodes beside room. It is valid until the next call.
func (s *Signature) NodeText(p *cluster.Pod) []byte {
	s.bare = cluster.Pod{NodeSelector: p.NodeSelector, NodeAffinity: p.NodeAffinity, Tolerations: p.Tolerations,
		VolumeZones: p.VolumeZones, Requires: p.Requires}
	return s.podSignature(&s.bare)
}

// sumNodesAsked is a checksum of what the pod asks of labels and taints of nodes.
func (s *Signature) sumNodesAsked(p *cluster.Pod) uint64 {
	s.buf = s.buf[:0]
	s.writeNodesAsked(p)
	h := fnv.New64a()
	_, _ = h.Write(s.buf)
	return h.Sum64()
}

func (s *Signature) writeNodesAsked(p *cluster.Pod) {
	s.writeMap(p.NodeSelector)
	s.writeNumber(int64(len(p.NodeAffinity)))
	for _, t := range p.NodeAffinity {
		s.writeRequirements(t)
	}
	s.writeNumber(int64(len(p.NodePrefers)))
	for _, t := range p.NodePrefers {
		s.writeNumber(int64(t.Weight))
		s.writeRequirements(t.Requirements)
	}
	s.writeNumber(int64(len(p.Tolerations)))
	for _, t := range p.Tolerations {
		s.writeStrings(t.Key, t.Operator, t.Value, t.Effect)
	}
}

// podIdentity begins a text with what selectors see of the pod.
func (s *Signature) podIdentity(p *cluster.Pod) []byte {
	s.buf = s.buf[:0]
	s.writeStrings(p.Namespace)
	for i, key := range s.labels {
		if v, ok := p.Labels[key]; ok {
			s.writeNumber(int64(i))
			s.writeStrings(v)
		}
	}
	s.buf = append(s.buf, 1)
	return s.buf
}

// IdentityCache remember the identities of pods by their labels, for signers that look at the same of them; nil
// remembers none.
type IdentityCache struct {
	labels []string
	byMap  map[uintptr]cachedIdentity
	texts  map[string]string
}

// cachedIdentity holds on to the labels, so that no others come to be where they are.
type cachedIdentity struct {
	labels          map[string]string
	namespace, text string
}

// IdentityOf is the signer's identity of the pod.
func (t *IdentityCache) IdentityOf(s *Signature, p *cluster.Pod) string {
	if t == nil {
		return string(s.podIdentity(p))
	}
	if t.byMap == nil || !slices.Equal(t.labels, s.labels) {
		t.labels, t.byMap, t.texts = s.labels, map[uintptr]cachedIdentity{}, map[string]string{}
	}
	at := reflect.ValueOf(p.Labels).Pointer()
	if x, ok := t.byMap[at]; ok && x.namespace == p.Namespace {
		return x.text
	}
	id := s.podIdentity(p)
	text, ok := t.texts[string(id)]
	if !ok {
		text = string(id)
		t.texts[text] = text
	}
	t.byMap[at] = cachedIdentity{p.Labels, p.Namespace, text}
	return text
}

func (s *Signature) writeStrings(list ...string) {
	for _, x := range list {
		s.buf = append(append(s.buf, x...), 0)
	}
}

func (s *Signature) writeNumber(list ...int64) {
	for _, n := range list {
		s.buf = binary.AppendVarint(s.buf, n)
	}
}

func (s *Signature) writeBools(list ...bool) {
	for _, b := range list {
		if b {
			s.buf = append(s.buf, 't')
		} else {
			s.buf = append(s.buf, 'f')
		}
	}
}

func (s *Signature) writeNeed(l resources.List) {
	s.writeNumber(l.CPU, l.Memory, l.Ephemeral, l.Pods, int64(len(l.Extended)))
	for _, e := range l.Extended {
		s.writeStrings(e.Name)
		s.writeNumber(e.Count)
	}
}

func (s *Signature) writeMap(m map[string]string) {
	s.writeNumber(int64(len(m)))
	s.keys = slices.AppendSeq(s.keys[:0], maps.Keys(m))
	slices.Sort(s.keys)
	for _, k := range s.keys {
		s.writeStrings(k, m[k])
	}
}

func (s *Signature) writeRequirements(list []requirements.Requirement) {
	s.writeNumber(int64(len(list)))
	for _, r := range list {
		s.writeStrings(r.Key)
		s.writeBools(r.Not, r.Present, r.Min != nil, r.Max != nil)
		s.writeNumber(int64(r.MinValues), int64(len(r.Values)))
		for _, n := range []*int64{r.Min, r.Max} {
			if n != nil {
				s.writeNumber(*n)
			}
		}
		s.writeStrings(r.Values...)
	}
}

func (s *Signature) writeSelector(sel *cluster.Selector) {
	if s.writeBools(sel != nil); sel != nil {
		s.writeRequirements(sel.Requirements)
	}
}

func (s *Signature) writeTerms(list []cluster.AffinityTerm) {
	s.writeNumber(int64(len(list)))
	for _, t := range list {
		s.writeStrings(t.Key)
		s.writeSelector(t.Selector)
		s.writeNumber(int64(len(t.Namespaces)))
		s.writeStrings(t.Namespaces...)
		s.writeSelector(t.NamespaceSelector)
	}
}

func (s *Signature) writeWeighted(list []cluster.WeightedAffinityTerm) {
	s.writeNumber(int64(len(list)))
	for _, t := range list {
		s.writeNumber(int64(t.Weight))
		s.writeTerms([]cluster.AffinityTerm{t.Term})
	}
}
