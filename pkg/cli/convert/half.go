package convert

import (
	"joiner.sh/pkg/workload/manifest"
)

// halfMigrated is said of objects that name today's version and are written in the one before.
const halfMigrated = "it says v1 and is written as v1beta1, which the API server refuses; converted as one of v1beta1"

// isHalfMigratedPool reports whether the NodePool v1 has what only v1beta1 had.
func isHalfMigratedPool(d manifest.Document) bool {
	var p struct {
		Spec struct {
			Template struct {
				Spec struct {
					NodeClassRef betaRef `json:"nodeClassRef"`
					Kubelet      any     `json:"kubelet"`
				} `json:"spec"`
			} `json:"template"`
			Disruption struct {
				ConsolidationPolicy string `json:"consolidationPolicy"`
				ExpireAfter         any    `json:"expireAfter"`
			} `json:"disruption"`
			Limits map[string]any `json:"limits"`
		} `json:"spec"`
	}
	if _, err := d.Decode(&p); err != nil {
		return false // whoever takes it as today's says what is wrong
	}
	ref := p.Spec.Template.Spec.NodeClassRef
	_, nested := p.Spec.Limits["resources"].(map[string]any)
	return ref.Name != "" && (ref.Group == "" || ref.Kind == "") || p.Spec.Template.Spec.Kubelet != nil ||
		p.Spec.Disruption.ExpireAfter != nil || p.Spec.Disruption.ConsolidationPolicy == "WhenUnderutilized" || nested
}

// isHalfMigratedClass reports whether the EC2NodeClass v1 selects no image, which only v1beta1 allowed.
func isHalfMigratedClass(d manifest.Document) bool {
	var c struct {
		Spec struct {
			AMISelectorTerms []any `json:"amiSelectorTerms"`
		} `json:"spec"`
	}
	_, err := d.Decode(&c)
	return err == nil && len(c.Spec.AMISelectorTerms) == 0
}
