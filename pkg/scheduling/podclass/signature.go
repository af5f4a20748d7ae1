package podclass

import (
	"hash/fnv"
	"maps"
	"reflect"
	"slices"
	"strconv"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/requirements"
	"joiner.sh/pkg/model/resources"
)

// signatureWriter writes everything about a pod that a rule may look at, as text: pods with equal texts are alike.
// Every part ends in a byte that no name contains, and lists begin with their length, so different pods never write the
// same.
type signatureWriter struct {
	labels []string // of a pod's labels, those that some selector names
	shared map[cluster.Volume]bool
	moving map[string]bool // nodes whose pods get no new ones, by name
	buf    []byte
	keys   []string
}

// podSignature returns the text, valid until the next call.
func (s *signatureWriter) podSignature(p *cluster.Pod) []byte {
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

// sumNodesAsked is a checksum of what the pod asks of labels and taints of nodes.
func (s *signatureWriter) sumNodesAsked(p *cluster.Pod) uint64 {
	s.buf = s.buf[:0]
	s.writeNodesAsked(p)
	h := fnv.New64a()
	_, _ = h.Write(s.buf)
	return h.Sum64()
}

func (s *signatureWriter) writeNodesAsked(p *cluster.Pod) {
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
func (s *signatureWriter) podIdentity(p *cluster.Pod) []byte {
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
func (t *IdentityCache) IdentityOf(s *signatureWriter, p *cluster.Pod) string {
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

func (s *signatureWriter) writeStrings(list ...string) {
	for _, x := range list {
		s.buf = append(append(s.buf, x...), 0)
	}
}

func (s *signatureWriter) writeNumber(list ...int64) {
	for _, n := range list {
		s.buf = append(strconv.AppendInt(s.buf, n, 36), ',')
	}
}

func (s *signatureWriter) writeBools(list ...bool) {
	for _, b := range list {
		if b {
			s.buf = append(s.buf, 't')
		} else {
			s.buf = append(s.buf, 'f')
		}
	}
}

func (s *signatureWriter) writeNeed(l resources.List) {
	s.writeNumber(l.CPU, l.Memory, l.Ephemeral, l.Pods, int64(len(l.Extended)))
	for _, e := range l.Extended {
		s.writeStrings(e.Name)
		s.writeNumber(e.Count)
	}
}

func (s *signatureWriter) writeMap(m map[string]string) {
	s.writeNumber(int64(len(m)))
	s.keys = slices.AppendSeq(s.keys[:0], maps.Keys(m))
	slices.Sort(s.keys)
	for _, k := range s.keys {
		s.writeStrings(k, m[k])
	}
}

func (s *signatureWriter) writeRequirements(list []requirements.Requirement) {
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

func (s *signatureWriter) writeSelector(sel *cluster.Selector) {
	if s.writeBools(sel != nil); sel != nil {
		s.writeRequirements(sel.Requirements)
	}
}

func (s *signatureWriter) writeTerms(list []cluster.AffinityTerm) {
	s.writeNumber(int64(len(list)))
	for _, t := range list {
		s.writeStrings(t.Key)
		s.writeSelector(t.Selector)
		s.writeNumber(int64(len(t.Namespaces)))
		s.writeStrings(t.Namespaces...)
		s.writeSelector(t.NamespaceSelector)
	}
}

func (s *signatureWriter) writeWeighted(list []cluster.WeightedAffinityTerm) {
	s.writeNumber(int64(len(list)))
	for _, t := range list {
		s.writeNumber(int64(t.Weight))
		s.writeTerms([]cluster.AffinityTerm{t.Term})
	}
}
