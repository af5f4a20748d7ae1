package convert

import (
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/workload/manifest"
)

// annotatedKubelet is said of NodePools v1 that have it.
const annotatedKubelet = "its annotation " + api.AnnotationKubeletConversion + " is what its nodes run by, and is read by Karpenter 1.0 alone; it moves into the EC2NodeClass"

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

// kubeletText is the kubelet block in the annotations of the pool, empty for none.
func kubeletText(d manifest.Document) string {
	var p struct {
		Metadata metav1.ObjectMeta `json:"metadata"`
	}
	if d.APIVersion != poolToday || d.Kind != "NodePool" {
		return ""
	}
	if _, err := d.Decode(&p); err != nil {
		return "" // whoever takes the object says what is wrong
	}
	return p.Metadata.Annotations[api.AnnotationKubeletConversion]
}

// keepAnnotatedKubelet remembers the kubelet block in the pool's annotations for its class.
func (c *converter) keepAnnotatedKubelet(d manifest.Document, p *api.NodePool) error {
	text := kubeletText(d)
	if text == "" {
		return nil
	}
	at := fmt.Sprintf("metadata.annotations[%s]", api.AnnotationKubeletConversion)
	var k betaKubelet
	if err := json.Unmarshal([]byte(text), &k); err != nil {
		return d.Errorf(at, "it is no kubelet configuration: %v", err)
	}
	c.keepKubelet(d, at, p, &k)
	return nil
}

// takeClass takes an EC2NodeClass v1 as one that a kubelet block may move into.
func (c *converter) takeClass(d manifest.Document) error {
	class, err := c.decodeClass(d)
	if err != nil {
		return err
	}
	c.objects = append(c.objects, Object{Class: class, from: d})
	return nil
}
