package translate

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"joiner.sh/pkg/model/cluster"
)

// NoteUsers remembers which of the pods on nodes have a claim that one pod at a time may use, before their claims are
// read. One that is ending makes way.
func (s *Storage) NoteUsers(pods []cluster.Pod) {
	s.users = map[string]string{}
	for i := range pods {
		if p := &pods[i]; p.NodeName != "" && p.Active() {
			for _, key := range s.exclusiveClaims(p) {
				s.users[key] = p.Key()
			}
		}
	}
}

// exclusiveClaims are the claims of the pod that one pod at a time may use.
func (s *Storage) exclusiveClaims(p *cluster.Pod) (keys []string) {
	for _, name := range p.UnreadClaims {
		key := p.Namespace + "/" + name
		if c, ok := s.Claims[key]; ok && slices.Contains(c.Spec.AccessModes, corev1.ReadWriteOncePod) {
			keys = append(keys, key)
		}
	}
	return keys
}

// takeClaims gives a pod that waits the claims that one pod at a time may use, and says which another pod has. One that
// is refused anyway gets none.
func (s *Storage) takeClaims(p *cluster.Pod, refused bool) (problems []string) {
	keys := s.exclusiveClaims(p)
	for _, key := range keys {
		if by := s.users[key]; by != "" && by != p.Key() {
			problems = append(problems, fmt.Sprintf(
				"persistentvolumeclaim %s is for one pod at a time (ReadWriteOncePod), and %s has it", key, by))
		}
	}
	if refused || len(problems) > 0 {
		return problems
	}
	for _, key := range keys {
		if s.users == nil {
			s.users = map[string]string{}
		}
		s.users[key] = p.Key()
	}
	return nil
}
