package convert

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	awsv1 "joiner.sh/pkg/api/aws/v1"
	api "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/workload/manifest"
)

// provisioner is a Provisioner v1alpha5.
type provisioner struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		Annotations            map[string]string `json:"annotations"`
		Labels                 map[string]string `json:"labels"`
		Taints                 []corev1.Taint    `json:"taints"`
		StartupTaints          []corev1.Taint    `json:"startupTaints"`
		Requirements           []api.Requirement `json:"requirements"`
		KubeletConfiguration   *betaKubelet      `json:"kubeletConfiguration"`
		Provider               *nodeTemplate     `json:"provider"`
		ProviderRef            *betaRef          `json:"providerRef"`
		TTLSecondsAfterEmpty   *int64            `json:"ttlSecondsAfterEmpty"`
		TTLSecondsUntilExpired *int64            `json:"ttlSecondsUntilExpired"`
		Limits                 poolLimits        `json:"limits"`
		Weight                 *int32            `json:"weight"`
		Consolidation          *struct {
			Enabled *bool `json:"enabled"`
		} `json:"consolidation"`
	} `json:"spec"`
	Status any `json:"status"`
}

// convertProvisioner converts a Provisioner, and its inline provider into a class of the same name.
func (c *converter) convertProvisioner(d manifest.Document) error {
	var old provisioner
	if err := c.decodeOld(d, &old); err != nil {
		return err
	}
	p := newPool(old.ObjectMeta)
	switch {
	case old.Spec.Provider != nil && old.Spec.ProviderRef != nil:
		return d.Errorf("spec.providerRef", "provider is given as well; leave one")
	case old.Spec.Provider != nil:
		class, err := c.makeClass(d, "spec.provider", *old.Spec.Provider, metav1.ObjectMeta{Name: old.Name})
		if err != nil {
			return err
		}
		c.objects = append(c.objects, Object{Class: class, from: d})
		p.Spec.Template.Spec.NodeClassRef = classRef(old.Name)
	case old.Spec.ProviderRef != nil && old.Spec.ProviderRef.Name != "":
		p.Spec.Template.Spec.NodeClassRef = classRef(old.Spec.ProviderRef.Name)
	default:
		return d.Errorf("spec.providerRef", "neither provider nor providerRef is given; a NodePool needs an EC2NodeClass")
	}
	p.Spec.Template.Labels, p.Spec.Template.Annotations = maps.Clone(old.Spec.Labels), old.Spec.Annotations
	p.Spec.Template.Spec.Taints, p.Spec.Template.Spec.StartupTaints = old.Spec.Taints, old.Spec.StartupTaints
	c.convertLabels(d, "spec.labels", p.Spec.Template.Labels)
	p.Spec.Template.Spec.Requirements = c.writeDefaults(d, old,
		c.convertRequirements(d, "spec.requirements", old.Spec.Requirements))
	p.Spec.Limits, p.Spec.Weight = api.Limits(old.Spec.Limits), old.Spec.Weight
	if err := convertConsolidation(d, old, p); err != nil {
		return err
	}
	c.keepKubelet(d, "spec.kubeletConfiguration", p, old.Spec.KubeletConfiguration)
	c.objects = append(c.objects, Object{Pool: p, from: d})
	return nil
}

// writeDefaults writes out what Karpenter's webhook put into Provisioners that did not say.
func (c *converter) writeDefaults(d manifest.Document, old provisioner, rs []api.Requirement) []api.Requirement {
	has := func(keys ...string) bool {
		return slices.ContainsFunc(keys, func(k string) bool {
			_, labelled := old.Spec.Labels[k]
			return labelled || slices.ContainsFunc(rs, func(r api.Requirement) bool { return r.Key == k })
		})
	}
	add := func(key string, op corev1.NodeSelectorOperator, values ...string) {
		rs = append(rs, api.Requirement{Key: key, Operator: op, Values: values})
		c.addWarning(d, "spec.requirements", "%s %s %v is written out: Provisioners had it where they did not say; drop it if you want more choice", key, op, values)
	}
	types := has(corev1.LabelInstanceTypeStable, instancetypes.LabelFamily, instancetypes.LabelCategory,
		instancetypes.LabelGeneration)
	if !has(corev1.LabelOSStable) {
		add(corev1.LabelOSStable, corev1.NodeSelectorOpIn, "linux")
	}
	if !has(corev1.LabelArchStable) {
		add(corev1.LabelArchStable, corev1.NodeSelectorOpIn, "amd64")
	}
	if !has(api.LabelCapacityType) {
		add(api.LabelCapacityType, corev1.NodeSelectorOpIn, instancetypes.OnDemand)
	}
	if !types {
		add(instancetypes.LabelCategory, corev1.NodeSelectorOpIn, "c", "m", "r")
		add(instancetypes.LabelGeneration, corev1.NodeSelectorOpGt, "2")
	}
	return rs
}

// convertConsolidation converts the times to live: a Provisioner that neither consolidates nor has a time after empty
// keeps its nodes.
func convertConsolidation(d manifest.Document, old provisioner, p *api.NodePool) error {
	p.Spec.Template.Spec.ExpireAfter = api.NeverAfter()
	if ttl := old.Spec.TTLSecondsUntilExpired; ttl != nil {
		if *ttl < 0 {
			return d.Errorf("spec.ttlSecondsUntilExpired", "it is %d; it cannot be negative", *ttl)
		}
		p.Spec.Template.Spec.ExpireAfter = secondsText(*ttl)
	}
	on := old.Spec.Consolidation != nil && old.Spec.Consolidation.Enabled != nil && *old.Spec.Consolidation.Enabled
	empty := old.Spec.TTLSecondsAfterEmpty
	switch {
	case on && empty != nil:
		return d.Errorf("spec.ttlSecondsAfterEmpty", "consolidation is enabled as well; leave one")
	case on:
		p.Spec.Disruption.ConsolidationPolicy, p.Spec.Disruption.ConsolidateAfter = api.ConsolidationWhenEmptyOrUnderutilized, secondsText(0)
	case empty != nil && *empty < 0:
		return d.Errorf("spec.ttlSecondsAfterEmpty", "it is %d; it cannot be negative", *empty)
	case empty != nil:
		p.Spec.Disruption.ConsolidationPolicy, p.Spec.Disruption.ConsolidateAfter = api.ConsolidationWhenEmpty,
			secondsText(*empty)
	default:
		p.Spec.Disruption.ConsolidationPolicy, p.Spec.Disruption.ConsolidateAfter = api.ConsolidationWhenEmpty,
			api.NeverAfter()
	}
	return nil
}

// secondsText is a duration as people write it: 720h and not 720h0m0s.
func secondsText(n int64) api.NillableDuration {
	d := time.Duration(n) * time.Second
	raw := strconv.FormatInt(n, 10) + "s"
	switch {
	case n > 0 && n%3600 == 0:
		raw = fmt.Sprintf("%dh", n/3600)
	case n > 0 && n%60 == 0:
		raw = fmt.Sprintf("%dm", n/60)
	}
	return api.NillableDuration{Duration: &d, Raw: raw}
}

func indexOf(i int) string { return "[" + strconv.Itoa(i) + "]" }

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

func wellKnown(key string) bool { return slices.Contains(awsv1.WellKnownLabels(), key) }
