package v1

import (
	"bytes"
	"encoding/json"

	karpv1 "joiner.sh/pkg/api/v1"
)

// Versions of the drift hash of a class. They are Karpenter's own strings because the numbers are its own.
const (
	// HashVersion is the version of new hashes. It is Karpenter 1.15's: kubelet settings count as they are written.
	HashVersion = "v6"
	// HashVersionTyped is the version of Karpenter 1.14: only kubelet settings that it knows count.
	HashVersionTyped = "v5"
)

// DriftHashVersion is the version of the class's hash: the one that stands on it, if it is known, so that an edit is
// seen whoever hashed the class, and HashVersion otherwise.
func (c *EC2NodeClass) DriftHashVersion() string {
	if c.Annotations[AnnotationHashVersion] == HashVersionTyped {
		return HashVersionTyped
	}
	return HashVersion
}

// Hash is the static drift hash of the class in the version of DriftHashVersion: its spec without what selectors find,
// the resolved AMI family, and the cluster's CA bundle as nodes are told it (base64).
func (c *EC2NodeClass) Hash(caBundle string) string {
	if c.DriftHashVersion() == HashVersionTyped {
		return c.typedHash(caBundle)
	}
	spec := c.Spec
	spec.Kubelet = nil // its text is hashed instead
	return karpv1.StaticHash([]any{spec, c.ResolvedAMIFamily(), caBundle, c.Spec.Kubelet.text()})
}

func (c *EC2NodeClass) typedHash(caBundle string) string {
	return karpv1.StaticHash([]any{c.Spec, c.ResolvedAMIFamily(), caBundle})
}

// DriftHash is the hash that NodeClaims of the class are given: the one that stands on it, as long as that is of a
// known version and nobody has edited the spec since, and a new one otherwise. Karpenter and Joiner may know the same
// CA in other bytes, and a CA may be exchanged: neither makes nodes drift.
func (c *EC2NodeClass) DriftHash(caBundle string) string {
	if stored := c.Annotations[AnnotationHash]; stored != "" &&
		c.Annotations[AnnotationHashVersion] == c.DriftHashVersion() && !c.isEdited() {
		return stored
	}
	return c.Hash(caBundle)
}

// SpecHash is the hash of what people write into the class. It does not depend on the version of the drift hash.
func (c *EC2NodeClass) SpecHash() string { return c.typedHash("") }

// isEdited reports whether the spec is another than the stored hash was made of. Karpenter does not write down which
// one that was; there the generation that it has looked at tells.
func (c *EC2NodeClass) isEdited() bool {
	if of := c.Annotations[karpv1.AnnotationHashedSpec]; of != "" {
		return of != c.SpecHash()
	}
	ready, found := c.StatusConditions().Get(ConditionReady)
	return !found || ready.ObservedGeneration != c.Generation
}

// text is the settings as the user wrote them, as JSON with sorted keys; null for none.
func (k *KubeletConfiguration) text() string {
	if k == nil {
		return "null"
	}
	fields := map[string]json.RawMessage{}
	written := []byte(k.Written)
	if len(written) == 0 {
		written, _ = json.Marshal(k) // of these types that cannot fail
	}
	if err := json.Unmarshal(written, &fields); err != nil || len(fields) == 0 {
		return "null"
	}
	sorted, err := json.Marshal(fields)
	if err != nil {
		return string(bytes.TrimSpace(written))
	}
	return string(sorted)
}
