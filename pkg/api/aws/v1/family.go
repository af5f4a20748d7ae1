package v1

import "strings"

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

// Alias is an AMI alias such as al2023@v20250601.
type Alias struct {
	// Family is the AMI family the alias stands for, one of the AMIFamily constants.
	Family string
	// Version is the text behind the @, as the user wrote it.
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
