package v1

import (
	"strings"

	karpv1 "joiner/pkg/api/v1"
)

// Values of spec.amiFamily.
const (
	AMIFamilyAL2          = "AL2"
	AMIFamilyAL2023       = "AL2023"
	AMIFamilyBottlerocket = "Bottlerocket"
	AMIFamilyCustom       = "Custom"
	AMIFamilyWindows2019  = "Windows2019"
	AMIFamilyWindows2022  = "Windows2022"
	AMIFamilyWindows2025  = "Windows2025"
)

// AliasVersionLatest is the version of an alias that follows what EKS publishes.
const AliasVersionLatest = "latest"

// HashVersion names the way EC2NodeClass.Hash is made. It is Karpenter 1.14's own string because the numbers are its
// own.
const HashVersion = "v5"

// Alias is an AMI alias such as al2023@v20250601.
type Alias struct {
	// Family is the AMI family the alias stands for, one of the AMIFamily constants.
	Family string
	// Version is what stands behind the @, as the user wrote it.
	Version string
}

// ParseAlias reads family@version. It reports false for a family that does not exist or a text without both parts.
func ParseAlias(text string) (Alias, bool) {
	name, version, found := strings.Cut(text, "@")
	family, known := familyOfAlias(name)
	if !found || !known || version == "" {
		return Alias{}, false
	}
	return Alias{Family: family, Version: version}, true
}

// Alias is the alias of the class, if it selects its images by one. It is then the only term.
func (c *EC2NodeClass) Alias() (Alias, bool) {
	for _, term := range c.Spec.AMISelectorTerms {
		if term.Alias != "" {
			return ParseAlias(term.Alias)
		}
	}
	return Alias{}, false
}

// ResolvedAMIFamily is spec.amiFamily, else the family of the alias. It is Custom for a class with neither, which the
// API server does not accept.
func (c *EC2NodeClass) ResolvedAMIFamily() string {
	if c.Spec.AMIFamily != nil {
		return *c.Spec.AMIFamily
	}
	if alias, ok := c.Alias(); ok {
		return alias.Family
	}
	return AMIFamilyCustom
}

// Hash is the static drift hash of the class: its spec without what selectors find, the resolved AMI family, and the
// cluster's CA bundle as nodes are told it (base64).
func (c *EC2NodeClass) Hash(caBundle string) string {
	return karpv1.StaticHash([]any{c.Spec, c.ResolvedAMIFamily(), caBundle})
}

// DriftHash is the hash that NodeClaims of the class are given: the one that stands on it, as long as that is of this
// version and nobody has edited the spec since, and a new one otherwise. Karpenter and Joiner may know the same CA in
// other bytes, and a CA may be exchanged: neither makes nodes drift.
func (c *EC2NodeClass) DriftHash(caBundle string) string {
	if stored := c.Annotations[AnnotationHash]; stored != "" && c.Annotations[AnnotationHashVersion] == HashVersion &&
		!c.isEdited() {
		return stored
	}
	return c.Hash(caBundle)
}

// SpecHash is the hash of what people write into the class.
func (c *EC2NodeClass) SpecHash() string { return c.Hash("") }

// isEdited reports whether the spec is another than the stored hash was made of. Karpenter does not write down which
// one that was; there the generation that it has looked at tells.
func (c *EC2NodeClass) isEdited() bool {
	if of := c.Annotations[karpv1.AnnotationHashedSpec]; of != "" {
		return of != c.SpecHash()
	}
	ready, found := c.StatusConditions().Get(ConditionReady)
	return !found || ready.ObservedGeneration != c.Generation
}

func familyOfAlias(name string) (family string, known bool) {
	switch name {
	case "al2":
		return AMIFamilyAL2, true
	case "al2023":
		return AMIFamilyAL2023, true
	case "bottlerocket":
		return AMIFamilyBottlerocket, true
	case "windows2019":
		return AMIFamilyWindows2019, true
	case "windows2022":
		return AMIFamilyWindows2022, true
	case "windows2025":
		return AMIFamilyWindows2025, true
	}
	return "", false
}
