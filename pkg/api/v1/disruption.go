package v1

// ConsolidationPolicy says which nodes consolidation may look at.
type ConsolidationPolicy string

// Values of ConsolidationPolicy.
const (
	ConsolidationWhenEmpty                ConsolidationPolicy = "WhenEmpty"
	ConsolidationWhenEmptyOrUnderutilized ConsolidationPolicy = "WhenEmptyOrUnderutilized"
	ConsolidationBalanced                 ConsolidationPolicy = "Balanced"
)

// DisruptionReason is a reason for voluntary disruption of a node.
//
// +kubebuilder:validation:Enum=Underutilized;Empty;Drifted;Unhealthy
type DisruptionReason string

// Values of DisruptionReason.
const (
	DisruptionUnderutilized DisruptionReason = "Underutilized"
	DisruptionEmpty         DisruptionReason = "Empty"
	DisruptionDrifted       DisruptionReason = "Drifted"
	// of budgets that bound node repair
	DisruptionUnhealthy DisruptionReason = "Unhealthy"
)

// Disruption says when and how many nodes of a pool may be removed or replaced by choice.
type Disruption struct {
	// ConsolidateAfter sets the quiet time of a node before consolidation may touch it, or is Never.
	// +kubebuilder:default:="0s"
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^(([0-9]+(s|m|h))+|Never)$`
	// +optional
	ConsolidateAfter NillableDuration `json:"consolidateAfter,omitzero"`
	// ConsolidationPolicy says which nodes consolidation may look at.
	// +kubebuilder:default:="WhenEmptyOrUnderutilized"
	// +kubebuilder:validation:Enum=WhenEmpty;WhenEmptyOrUnderutilized;Balanced
	// +optional
	ConsolidationPolicy ConsolidationPolicy `json:"consolidationPolicy,omitempty"`
	// Budgets bound how many nodes are disrupted at a time; the smallest active one counts. An empty list is no bound.
	// +kubebuilder:default:={{nodes: "10%"}}
	// +kubebuilder:validation:MaxItems=50
	// +kubebuilder:validation:XValidation:message="'schedule' must be set with 'duration'",rule="self.all(x, has(x.schedule) == has(x.duration))"
	// +listType=atomic
	// +optional
	Budgets []Budget `json:"budgets,omitzero"`
}

// Budget bounds how many nodes of a pool are disrupted at a time, always or during hours that repeat.
type Budget struct {
	// Reasons the budget is for; not given is all of them, an empty list none.
	// +kubebuilder:validation:MaxItems=50
	// +listType=set
	// +optional
	Reasons []DisruptionReason `json:"reasons,omitzero"`
	// Nodes is a number or a percentage (rounded up) of the pool's nodes.
	// +kubebuilder:default:="10%"
	// +kubebuilder:validation:Pattern=`^((100|[0-9]{1,2})%|[0-9]+)$`
	// +required
	Nodes string `json:"nodes"`
	// Schedule sets the starts of the budget's windows: five cron fields in UTC, or a name such as @daily. Needs
	// duration.
	// +kubebuilder:validation:Pattern=`^@(annually|yearly|monthly|weekly|daily|midnight|hourly)|.+\s.+\s.+\s.+\s.+$`
	// +optional
	Schedule *string `json:"schedule,omitempty"`
	// Duration is the length of each window, in hours and minutes. Needs schedule.
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^((([0-9]+(h|m))|([0-9]+h[0-9]+m))(0s)?)$`
	// +optional
	Duration *Duration `json:"duration,omitempty"`
}
