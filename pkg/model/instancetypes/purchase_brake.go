package instancetypes

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"joiner.sh/pkg/model/lists"
	"slices"
	"time"
)

// UnusedNode is a node that was bought in vain: none of the pods that it was for came to run on it, it never had a
// resource that they ask for, or it never became usable.
type UnusedNode struct {
	Class    string // EC2NodeClass
	Type     string // empty where that is held against the class, whatever the type
	Of       string // its type, where Type is empty
	Resource string // that it never had; empty for a node that took no pods
	Cause    string // see Class.CauseOf
	Instance string // id
	Node     string // name of a node that took no pods
	Allowed  int    // so many of one cause are bought in vain at most
	Why      string // of pods: kube-scheduler's words
}

// How long a type of a class is left out once too many of its nodes were bought in vain, and how long a resource of it
// counts as zero. What was bought in vain is remembered for twice as long after the last one, so that one more is
// enough.
const (
	typeRests     = time.Hour
	resourceRests = 24 * time.Hour
	// mostUnused caps the nodes of one cause that are remembered, and bought in vain.
	mostUnused = 100
)

// UnavailableEntry is an unavailable offering with the facts from which later entries about the same follow.
type UnavailableEntry struct {
	UnavailableOffering
	Since     time.Time `json:"since"`               // of its last refusal
	Instances []string  `json:"instances,omitempty"` // bought in vain
}

// RemembersUnused reports whether the entry is about nodes that were bought in vain, and until when they count.
func (m UnavailableEntry) RemembersUnused() (until time.Time, of bool) {
	if m.Resource == "" && !m.LeavesOut() {
		return time.Time{}, false
	}
	return m.Since.Add(2 * restOf(m.Resource)), true
}

func restOf(resource string) time.Duration {
	if resource != "" {
		return resourceRests
	}
	return typeRests
}

// CauseOf is a hash of what nodes of the type follow from: the class as drift compares it, its images, and what was
// learned of the type. Of no type it is that of all nodes of the class. What was noted about another cause says nothing
// about this one.
func (c Class) CauseOf(instanceType string) string {
	seen := lists.Where(c.Observed, func(o Observation) bool { return o.Type == instanceType })
	images := make([]string, 0, len(c.Images))
	for _, i := range c.Images {
		images = append(images, i.ID)
	}
	text, err := json.Marshal([]any{c.Hash, images, confirmedAmounts(seen)})
	if err != nil { // never: they are strings and numbers
		return ""
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:4])
}

// NoteUnusedNodes adds nodes that were bought in vain to what is noted at the time now. From as many of one cause on as
// are allowed their type or class is left out for an hour, or the resource of the type for a day. Nodes of one type
// alone never make their class unavailable: another type may work, and is tried. A node of which pods came to run after
// all, by its instance id, is taken back, and the entry with the last one that it needs: smaller pods than those that
// it was bought for say nothing of these. Each node counts once. The list given is not changed.
func NoteUnusedNodes(old []UnavailableEntry, unused []UnusedNode, used []string,
	now time.Time) (next []UnavailableEntry, changed bool) {
	next = slices.Clone(old)
	for i := range next {
		m := &next[i]
		if _, of := m.RemembersUnused(); !of || m.Resource != "" {
			continue
		}
		left := slices.DeleteFunc(slices.Clone(m.Instances), func(id string) bool { return slices.Contains(used, id) })
		if len(left) == len(m.Instances) {
			continue
		}
		m.Instances, changed = left, true
		if len(left) < m.Times && now.Before(m.Until) {
			m.Until = now.UTC()
		}
	}
	for _, u := range unused {
		i := slices.IndexFunc(next, u.isNotedBy)
		if i < 0 {
			next = append(next, u.newEntry(now))
			i = len(next) - 1
		} else if next[i].Cause != u.Cause {
			next[i] = u.newEntry(now)
		}
		if m := &next[i]; !slices.Contains(m.Instances, u.Instance) {
			m.noteUnused(u, now)
			if u.Type != "" || !areOfType(next, u.Class, u.Of, m.Instances) {
				m.restIfMany(u, now)
			}
			changed = true
		}
	}
	return next, changed
}

// isNotedBy reports whether the entry is about the node's class, type and resource.
func (u UnusedNode) isNotedBy(m UnavailableEntry) bool {
	if u.Type == "" {
		return m.Class() == u.Class && m.LeavesOut()
	}
	class, of := m.ClassType()
	return class == u.Class && of == u.Type && m.Resource == u.Resource
}

// newEntry is an entry that counts for no time yet.
func (u UnusedNode) newEntry(now time.Time) UnavailableEntry {
	return UnavailableEntry{UnavailableOffering: UnavailableOffering{
		OfferingKey: OfferingKey{Type: u.Type}, Scope: ClassScope(u.Class),
		Resource: u.Resource, Cause: u.Cause, Until: now.UTC()}}
}

// areOfType reports whether all of the instances are noted for the type of the class.
func areOfType(all []UnavailableEntry, class, instanceType string, instances []string) bool {
	i := slices.IndexFunc(all, UnusedNode{Class: class, Type: instanceType}.isNotedBy)
	return i >= 0 && !slices.ContainsFunc(instances, func(id string) bool {
		return !slices.Contains(all[i].Instances, id)
	})
}

// noteUnused adds one more.
func (m *UnavailableEntry) noteUnused(u UnusedNode, now time.Time) {
	m.Instances = append(slices.Clone(m.Instances), u.Instance)
	m.Instances = m.Instances[max(0, len(m.Instances)-mostUnused):]
	m.Since, m.Why = now.UTC(), u.Why
}

// restIfMany makes the entry count if there are as many as are allowed. Nodes that were under way when it was made make
// it no longer.
func (m *UnavailableEntry) restIfMany(u UnusedNode, now time.Time) {
	if len(m.Instances) >= min(u.Allowed, mostUnused) && !now.Before(m.Until) {
		m.Until, m.Times = now.Add(restOf(u.Resource)).UTC(), len(m.Instances)
	}
}

// MissingResources are the resources that nodes of types of the class turned out never to have, by type.
func (c Class) MissingResources(unavailable []UnavailableOffering, now time.Time) (byType map[string][]string) {
	for _, u := range unavailable {
		if of, counts := c.lacks(u, now); counts {
			if byType == nil {
				byType = map[string][]string{}
			}
			byType[of] = append(byType[of], u.Resource)
		}
	}
	return byType
}

// TypesWithout are the types of the class whose nodes turned out never to have the resource, sorted, and until when it
// counts as zero of one of them at least.
func (c Class) TypesWithout(resource string, unavailable []UnavailableOffering, now time.Time) (types []string,
	until time.Time) {
	for _, u := range unavailable {
		of, counts := c.lacks(u, now)
		if !counts || u.Resource != resource {
			continue
		}
		if types = append(types, of); until.IsZero() || u.Until.Before(until) {
			until = u.Until
		}
	}
	slices.Sort(types)
	return slices.Compact(types), until
}

// lacks is the type of the class that the entry says never has a resource, as long as that counts.
func (c Class) lacks(u UnavailableOffering, now time.Time) (instanceType string, counts bool) {
	class, of := u.ClassType()
	return of, class == c.Name && u.Resource != "" && now.Before(u.Until) && u.Cause == c.CauseOf(of)
}
