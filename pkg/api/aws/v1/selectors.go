package v1

import (
	"fmt"
	"slices"
)

// SubnetSelectorTerm matches subnets; the fields of one term must all match.
type SubnetSelectorTerm struct {
	// Tags the subnet has; the value `*` stands for any.
	// +kubebuilder:validation:XValidation:message="empty tag keys or values aren't supported",rule="self.all(k, k != '' && self[k] != '')"
	// +kubebuilder:validation:MaxProperties:=20
	// +optional
	Tags map[string]string `json:"tags,omitempty"`
	// ID of the subnet.
	// +kubebuilder:validation:Pattern="subnet-[0-9a-z]+"
	// +optional
	ID string `json:"id,omitempty"`
}

// SecurityGroupSelectorTerm matches security groups; the fields of one term must all match.
type SecurityGroupSelectorTerm struct {
	// Tags the group has; the value `*` stands for any.
	// +kubebuilder:validation:XValidation:message="empty tag keys or values aren't supported",rule="self.all(k, k != '' && self[k] != '')"
	// +kubebuilder:validation:MaxProperties:=20
	// +optional
	Tags map[string]string `json:"tags,omitempty"`
	// ID of the group.
	// +kubebuilder:validation:Pattern:="sg-[0-9a-z]+"
	// +optional
	ID string `json:"id,omitempty"`
	// Name of the group, which is not its Name tag.
	// +optional
	Name string `json:"name,omitempty"`
}

// CapacityReservationSelectorTerm matches capacity reservations; the fields of one term must all match.
type CapacityReservationSelectorTerm struct {
	// Tags the reservation has; the value `*` stands for any.
	// +kubebuilder:validation:XValidation:message="empty tag keys or values aren't supported",rule="self.all(k, k != '' && self[k] != '')"
	// +kubebuilder:validation:MaxProperties:=20
	// +optional
	Tags map[string]string `json:"tags,omitempty"`
	// ID of the reservation.
	// +kubebuilder:validation:Pattern:="^cr-[0-9a-z]+$"
	// +optional
	ID string `json:"id,omitempty"`
	// OwnerID is the account that owns the reservation.
	// +kubebuilder:validation:Pattern:="^[0-9]{12}$"
	// +optional
	OwnerID string `json:"ownerID,omitempty"`
	// InstanceMatchCriteria selects reservations by their users: any matching instance, or only targeted launches.
	// +kubebuilder:validation:Enum:={open,targeted}
	// +optional
	InstanceMatchCriteria string `json:"instanceMatchCriteria,omitempty"`
}

// AMISelectorTerm matches machine images; the fields of one term must all match.
type AMISelectorTerm struct {
	// Alias is family@version, for example al2023@latest: the images EKS publishes.
	// +kubebuilder:validation:XValidation:message="'alias' is improperly formatted, must match the format 'family@version'",rule="self.matches('^[a-zA-Z0-9]+@.+$')"
	// +kubebuilder:validation:XValidation:message="family is not supported, must be one of the following: 'al2', 'al2023', 'bottlerocket', 'windows2019', 'windows2022', 'windows2025'",rule="self.split('@')[0] in ['al2', 'al2023', 'bottlerocket', 'windows2019', 'windows2022', 'windows2025']"
	// +kubebuilder:validation:XValidation:message="windows families may only specify version 'latest'",rule="!(self.split('@')[0] in ['windows2019', 'windows2022', 'windows2025']) || self.split('@')[1] == 'latest'"
	// +kubebuilder:validation:MaxLength=30
	// +optional
	Alias string `json:"alias,omitempty"`
	// Tags the image has; the value `*` stands for any.
	// +kubebuilder:validation:XValidation:message="empty tag keys or values aren't supported",rule="self.all(k, k != '' && self[k] != '')"
	// +kubebuilder:validation:MaxProperties:=20
	// +optional
	Tags map[string]string `json:"tags,omitempty"`
	// ID of the image.
	// +kubebuilder:validation:Pattern:="ami-[0-9a-z]+"
	// +optional
	ID string `json:"id,omitempty"`
	// Name of the image, which is not its Name tag.
	// +optional
	Name string `json:"name,omitempty"`
	// Owner is an account, `self`, `amazon` or `aws-marketplace`.
	// +optional
	Owner string `json:"owner,omitempty"`
	// SSMParameter is the name or ARN of a parameter whose value is an image ID.
	// +optional
	SSMParameter string `json:"ssmParameter,omitempty"`
}

// PlacementGroupSelector names one placement group.
//
// +kubebuilder:validation:XValidation:message="expected at least one, got none, ['name', 'id']",rule="has(self.name) || has(self.id)"
// +kubebuilder:validation:XValidation:message="'name' and 'id' are mutually exclusive",rule="!(has(self.name) && has(self.id))"
type PlacementGroupSelector struct {
	// Name of the group.
	// +kubebuilder:validation:MinLength=1
	// +optional
	Name string `json:"name,omitempty"`
	// ID of the group.
	// +kubebuilder:validation:Pattern:="^pg-[0-9a-z]+$"
	// +optional
	ID string `json:"id,omitempty"`
}

// IsEmpty reports whether the term selects by nothing. Such a term selects no subnet.
func (t SubnetSelectorTerm) IsEmpty() bool { return t.ID == "" && len(t.Tags) == 0 }

// IsEmpty reports whether the term selects by nothing. Such a term selects no group.
func (t SecurityGroupSelectorTerm) IsEmpty() bool {
	return t.ID == "" && t.Name == "" && len(t.Tags) == 0
}

// IsEmpty reports whether the term selects by nothing, or by the owner alone. Such a term selects no reservation.
func (t CapacityReservationSelectorTerm) IsEmpty() bool {
	return t.ID == "" && t.InstanceMatchCriteria == "" && len(t.Tags) == 0
}

// IsEmpty reports whether the term selects by nothing, or by the owner alone. Such a term selects no image.
func (t AMISelectorTerm) IsEmpty() bool {
	return t.Alias == "" && t.ID == "" && t.Name == "" && t.SSMParameter == "" && len(t.Tags) == 0
}

// EmptyTerms names the selector terms of the class that select nothing, such as subnetSelectorTerms[0].
func (c *EC2NodeClass) EmptyTerms() []string {
	s := c.Spec
	return slices.Concat(emptyTerms("subnetSelectorTerms", s.SubnetSelectorTerms),
		emptyTerms("securityGroupSelectorTerms", s.SecurityGroupSelectorTerms),
		emptyTerms("amiSelectorTerms", s.AMISelectorTerms),
		emptyTerms("capacityReservationSelectorTerms", s.CapacityReservationSelectorTerms))
}

func emptyTerms[T interface{ IsEmpty() bool }](list string, terms []T) (out []string) {
	for i, t := range terms {
		if t.IsEmpty() {
			out = append(out, fmt.Sprintf("%s[%d]", list, i))
		}
	}
	return out
}
