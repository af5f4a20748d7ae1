package convert

import (
	"encoding/json"
	"reflect"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	awsv1 "joiner.sh/pkg/api/aws/v1"
	api "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/workload/manifest"
)

// betaPool is a NodePool v1beta1 as far as it differs from today's.
type betaPool struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		Template struct {
			Metadata api.ObjectMeta `json:"metadata"`
			Spec     struct {
				Taints        []corev1.Taint               `json:"taints"`
				StartupTaints []corev1.Taint               `json:"startupTaints"`
				Requirements  []api.Requirement            `json:"requirements"`
				NodeClassRef  *betaRef                     `json:"nodeClassRef"`
				Kubelet       *betaKubelet                 `json:"kubelet"`
				Resources     *corev1.ResourceRequirements `json:"resources"` // of claims; pools had it without effect
				// of v1, in files that are half migrated
				ExpireAfter            *string       `json:"expireAfter"`
				TerminationGracePeriod *api.Duration `json:"terminationGracePeriod"`
			} `json:"spec"`
		} `json:"template"`
		Disruption struct {
			ConsolidateAfter    *string      `json:"consolidateAfter"`
			ConsolidationPolicy string       `json:"consolidationPolicy"`
			ExpireAfter         *string      `json:"expireAfter"`
			Budgets             []api.Budget `json:"budgets"`
		} `json:"disruption"`
		Limits poolLimits `json:"limits"`
		Weight *int32     `json:"weight"`
		// of v1, in files that are half migrated
		Replicas *int64 `json:"replicas"`
	} `json:"spec"`
	Status any `json:"status"`
}

type betaRef struct {
	APIVersion string `json:"apiVersion"`
	Group      string `json:"group"` // of v1, in files that are half migrated
	Kind       string `json:"kind"`
	Name       string `json:"name"`
}

// betaKubelet is a kubelet block of older versions.
type betaKubelet = awsv1.KubeletConfiguration

// poolLimits are written flat, or under resources as Provisioners had them.
type poolLimits corev1.ResourceList

// UnmarshalJSON reads either form.
func (l *poolLimits) UnmarshalJSON(b []byte) error {
	var nested struct {
		Resources corev1.ResourceList `json:"resources"`
	}
	if json.Unmarshal(b, &nested) == nil && nested.Resources != nil {
		*l = poolLimits(nested.Resources)
		return nil
	}
	var flat corev1.ResourceList
	if err := json.Unmarshal(b, &flat); err != nil {
		return err
	}
	*l = poolLimits(flat)
	return nil
}

// convertPool converts a NodePool v1beta1.
func (c *converter) convertPool(d manifest.Document) error {
	var old betaPool
	if err := c.decodeOld(d, &old); err != nil {
		return err
	}
	p := newPool(old.ObjectMeta)
	t := old.Spec.Template
	p.Spec.Template.ObjectMeta = t.Metadata
	p.Spec.Template.Spec.Taints, p.Spec.Template.Spec.StartupTaints = t.Spec.Taints, t.Spec.StartupTaints
	if t.Spec.NodeClassRef == nil || t.Spec.NodeClassRef.Name == "" {
		return d.Errorf("spec.template.spec.nodeClassRef", "it is missing; name the EC2NodeClass")
	}
	if kind := t.Spec.NodeClassRef.Kind; kind != "" && kind != classKind {
		return d.Errorf("spec.template.spec.nodeClassRef.kind", "%s is not known; EC2NodeClass is", kind)
	}
	p.Spec.Template.Spec.NodeClassRef = classRef(t.Spec.NodeClassRef.Name)
	if t.Spec.Resources != nil {
		c.addWarning(d, "spec.template.spec.resources",
			"left out: it is for NodeClaims and never had an effect in a NodePool")
	}
	c.convertLabels(d, "spec.template.metadata.labels", p.Spec.Template.Labels)
	p.Spec.Template.Spec.Requirements = c.convertRequirements(d, "spec.template.spec.requirements", t.Spec.Requirements)
	p.Spec.Limits, p.Spec.Weight = api.Limits(old.Spec.Limits), old.Spec.Weight
	p.Spec.Replicas, p.Spec.Template.Spec.TerminationGracePeriod = old.Spec.Replicas, t.Spec.TerminationGracePeriod
	if err := convertDisruption(d, old, p); err != nil {
		return err
	}
	c.keepKubelet(d, "spec.template.spec.kubelet", p, t.Spec.Kubelet)
	c.objects = append(c.objects, Object{Pool: p, from: d})
	if t.Spec.Kubelet == nil {
		return c.keepAnnotatedKubelet(d, p)
	}
	return nil
}

// convertDisruption converts the block of that name; expireAfter moved into the template.
func convertDisruption(d manifest.Document, old betaPool, p *api.NodePool) error {
	o := old.Spec.Disruption
	p.Spec.Disruption.Budgets = o.Budgets
	expire, at := o.ExpireAfter, "spec.disruption.expireAfter"
	if today := old.Spec.Template.Spec.ExpireAfter; today != nil {
		expire, at = today, "spec.template.spec.expireAfter"
	}
	if expire != nil {
		after, err := convertDuration(*expire)
		if err != nil {
			return d.Errorf(at, "%q is no duration; write it like 720h, or Never", *expire)
		}
		p.Spec.Template.Spec.ExpireAfter = after
	}
	switch o.ConsolidationPolicy {
	case "", "WhenUnderutilized", "WhenEmptyOrUnderutilized":
		p.Spec.Disruption.ConsolidationPolicy = api.ConsolidationWhenEmptyOrUnderutilized
		p.Spec.Disruption.ConsolidateAfter = api.NillableDuration{Duration: new(time.Duration), Raw: "0s"}
	case string(api.ConsolidationBalanced):
		p.Spec.Disruption.ConsolidationPolicy = api.ConsolidationBalanced
	case "WhenEmpty":
		p.Spec.Disruption.ConsolidationPolicy = api.ConsolidationWhenEmpty
		if o.ConsolidateAfter == nil {
			return d.Errorf("spec.disruption.consolidateAfter", "it is missing; the policy WhenEmpty needs it")
		}
	default:
		return d.Errorf("spec.disruption.consolidationPolicy", "%q is not known; WhenEmpty and WhenUnderutilized are",
			o.ConsolidationPolicy)
	}
	if o.ConsolidateAfter != nil {
		after, err := convertDuration(*o.ConsolidateAfter)
		if err != nil {
			return d.Errorf("spec.disruption.consolidateAfter", "%q is no duration; write it like 30s, or Never",
				*o.ConsolidateAfter)
		}
		p.Spec.Disruption.ConsolidateAfter = after
	}
	return nil
}

func convertDuration(text string) (out api.NillableDuration, err error) {
	b, err := json.Marshal(text)
	if err == nil {
		err = out.UnmarshalJSON(b)
	}
	return out, err
}

func newPool(old metav1.ObjectMeta) *api.NodePool {
	return &api.NodePool{TypeMeta: metav1.TypeMeta{APIVersion: api.Group + "/v1", Kind: "NodePool"},
		ObjectMeta: keepMetadata(old)}
}

func classRef(name string) *api.NodeClassReference {
	return &api.NodeClassReference{Group: awsv1.Group, Kind: classKind, Name: name}
}

// keepKubelet remembers a kubelet block for the pool's class.
func (c *converter) keepKubelet(d manifest.Document, at string, p *api.NodePool, k *betaKubelet) {
	if k == nil {
		return
	}
	if _, there := k.Extra["containerRuntime"]; there {
		c.addWarning(d, at+".containerRuntime", "left out: containerd is the only runtime")
		if delete(k.Extra, "containerRuntime"); len(k.Extra) == 0 {
			k.Extra = nil
		}
	}
	if !reflect.DeepEqual(*k, awsv1.KubeletConfiguration{}) {
		c.kubelet = append(c.kubelet, poolKubelet{d, at, p, k})
	}
}

// moveKubelets moves the kubelet blocks of pools into their classes. Pools that disagree about one class get a copy
// each.
func (c *converter) moveKubelets() error {
	for _, k := range c.kubelet {
		ref := k.pool.Spec.Template.Spec.NodeClassRef
		class := c.findClass(ref.Name)
		if class == nil {
			c.addWarning(k.from, k.at, "left out: the kubelet is configured in the EC2NodeClass now, and %s is not among what was converted; write it there as spec.kubelet", ref.Name)
			continue
		}
		if class.Spec.Kubelet != nil && reflect.DeepEqual(class.Spec.Kubelet, k.with) {
			continue
		}
		if class.Spec.Kubelet == nil && c.sharesKubelet(k, class.Name) {
			class.Spec.Kubelet = k.with
			continue
		}
		own := class.DeepCopy()
		own.Name, own.Spec.Kubelet = class.Name+"-"+k.pool.Name, k.with
		c.insertBefore(k.pool, own)
		k.pool.Spec.Template.Spec.NodeClassRef = classRef(own.Name)
		c.addWarning(k.from, k.at, "EC2NodeClass %s was made for it: the kubelet is configured in the class now, and other pools share %s without it", own.Name, class.Name)
	}
	return nil
}

// sharesKubelet reports whether every pool of the class has this kubelet block. One that was not converted has none.
func (c *converter) sharesKubelet(k poolKubelet, class string) bool {
	for _, o := range c.objects {
		if o.Pool == nil && classOfPool(o.Other) == class {
			return false
		}
		if o.Pool == nil || o.Pool == k.pool || o.Pool.Spec.Template.Spec.NodeClassRef.Name != class {
			continue
		}
		same := false
		for _, other := range c.kubelet {
			same = same || other.pool == o.Pool && reflect.DeepEqual(other.with, k.with)
		}
		if !same {
			return false
		}
	}
	return true
}

// classOfPool is the class that a NodePool v1 names, empty for other objects.
func classOfPool(d manifest.Document) string {
	var p api.NodePool
	if d.APIVersion != poolToday || d.Kind != "NodePool" {
		return ""
	}
	if _, err := d.Decode(&p); err != nil || p.Spec.Template.Spec.NodeClassRef == nil {
		return ""
	}
	return p.Spec.Template.Spec.NodeClassRef.Name
}

func (c *converter) insertBefore(p *api.NodePool, class *awsv1.EC2NodeClass) {
	var out []Object
	for _, o := range c.objects {
		if o.Pool == p {
			out = append(out, Object{Class: class, from: o.from})
		}
		out = append(out, o)
	}
	c.objects = out
}

// convertLabels takes out those that are restricted now.
func (c *converter) convertLabels(d manifest.Document, at string, labels map[string]string) {
	for _, k := range sortedKeys(labels) {
		if why := restrictedReason(k); why != "" {
			c.addWarning(d, at+"."+k, "left out: %s", why)
			delete(labels, k)
		}
	}
}

// restrictedReason says why a key may not stand in a pool.
func restrictedReason(key string) string {
	domain, _, _ := strings.Cut(key, "/")
	switch {
	case key == api.LabelNodePool, key == "karpenter.sh/provisioner-name":
		return "nodes get the label karpenter.sh/nodepool with the pool's name"
	case key == corev1.LabelHostname:
		return "every node has a name of its own"
	case key == api.LabelCapacityType:
		return ""
	case strings.HasSuffix(domain, "karpenter.sh") && strings.Contains(key, "/"):
		return "labels of the domain karpenter.sh are the system's own"
	}
	return ""
}

// convertRequirements renames keys that have a new name and leaves out what may not stand there.
func (c *converter) convertRequirements(d manifest.Document, at string, in []api.Requirement) []api.Requirement {
	renamed := map[string]string{
		"beta.kubernetes.io/arch": corev1.LabelArchStable, "beta.kubernetes.io/os": corev1.LabelOSStable,
		corev1.LabelFailureDomainBetaZone:   corev1.LabelTopologyZone,
		corev1.LabelFailureDomainBetaRegion: corev1.LabelTopologyRegion,
		corev1.LabelInstanceType:            corev1.LabelInstanceTypeStable,
	}
	out := []api.Requirement{}
	for i, r := range in {
		field := at + indexOf(i)
		if why := restrictedReason(r.Key); why != "" {
			c.addWarning(d, field+".key", "left out: %s", why)
			continue
		}
		if to, ok := renamed[r.Key]; ok {
			c.addWarning(d, field+".key", "%s is called %s now", r.Key, to)
			r.Key = to
		}
		if strings.HasPrefix(r.Key, awsv1.Group+"/") && !wellKnown(r.Key) {
			c.addWarning(d, field+".key", "left out: there is no label %s any more", r.Key)
			continue
		}
		out = append(out, r)
	}
	return out
}
