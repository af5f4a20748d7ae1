package workload

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1beta1 "joiner.sh/pkg/api/autoscaling/v1beta1"
	awsv1 "joiner.sh/pkg/api/aws/v1"
	api "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/api/v1alpha1"
	"joiner.sh/pkg/workload/manifest"
)

// Manifests holds what a stream beside a workload file may hold.
type Manifests struct {
	Pools     []api.NodePool
	Overlays  []v1alpha1.NodeOverlay
	Buffers   []v1beta1.CapacityBuffer // with their namespace
	Templates []corev1.PodTemplate     // that buffers name, with their namespace
	// whose labels count for namespace selectors; those that are only named have no label but their name
	Namespaces []corev1.Namespace
	Classes    []awsv1.EC2NodeClass // only of files that hold plain manifests; elsewhere every class is a plain one
	Devices    Devices
	// why the API server would refuse NodePools and EC2NodeClasses, by kind and name such as "NodePool general"
	Refused map[string]string
}

// Storage holds what manifests say about volumes.
type Storage struct {
	Claims  []corev1.PersistentVolumeClaim // with their namespace
	Volumes []corev1.PersistentVolume
	Classes []storagev1.StorageClass
}

// ParseManifests reads a stream of NodePools, NodeOverlays, CapacityBuffers, the PodTemplates that these name,
// Namespaces, and what addDevices takes, in every form that manifest.ParseManifests knows. An error names line, object
// and field.
func ParseManifests(data []byte) (Manifests, error) { return parseManifests("", data) }

func parseManifests(file string, data []byte) (Manifests, error) {
	docs, err := manifest.ParseManifests(file, data)
	if err != nil {
		return Manifests{}, err
	}
	r := manifestReader{seen: map[string]bool{}}
	var c manifestCollector
	for _, d := range docs {
		if known, err := c.addDevices(d); err != nil {
			return Manifests{}, err
		} else if known {
			continue
		}
		if err := r.readObject(d.APIVersion, d.Kind, d.Body); err != nil {
			return Manifests{}, d.Errorf("", "%s", strings.TrimPrefix(err.Error(), d.Object()+": "))
		}
	}
	r.Devices = c.Devices
	return r.Manifests, nil
}

type manifestReader struct {
	Manifests
	seen map[string]bool // kind, namespace and name
}

func (r *manifestReader) readObject(apiVersion, kind string, body []byte) error {
	switch apiVersion + " " + kind {
	case api.Group + "/v1 NodePool":
		return addObject(r, kind, &r.Pools, body, checkPool)
	case v1alpha1.GroupVersion().String() + " NodeOverlay":
		return addObject(r, kind, &r.Overlays, body, checkOverlay)
	case v1beta1.GroupVersion().String() + " CapacityBuffer":
		return addObject(r, kind, &r.Buffers, body, checkBuffer)
	case "v1 PodTemplate":
		return addObject(r, kind, &r.Templates, body, checkTemplate)
	case "v1 Namespace":
		return addObject(r, kind, &r.Namespaces, body, func(*corev1.Namespace) error { return nil })
	}
	return fmt.Errorf("apiVersion, kind: %q, %q is no NodePool of %s/v1, no NodeOverlay, CapacityBuffer, PodTemplate or Namespace, and nothing of devices; leave only those in the file",
		apiVersion, kind, api.Group)
}

// addObject reads one object into the list. check refuses what makes no sense.
func addObject[T any, P interface {
	*T
	metav1.Object
}](r *manifestReader, kind string, list *[]T, body []byte, check func(P) error) error {
	var one T
	if err := json.Unmarshal(body, &one); err != nil {
		return locateAny(body, err)
	}
	o := P(&one)
	if o.GetName() == "" {
		return errors.New("metadata.name is missing")
	}
	if kind == "CapacityBuffer" || kind == "PodTemplate" { // the others have no namespace
		o.SetNamespace(namespaceOr(o.GetNamespace()))
	}
	if err := check(o); err != nil {
		return err
	}
	id := strings.Join([]string{kind, o.GetNamespace(), o.GetName()}, " ")
	if r.seen[id] {
		return fmt.Errorf("metadata.name: a %s %s was given before; give each its own name", kind, o.GetName())
	}
	r.seen[id] = true
	*list = append(*list, one)
	return nil
}

// locateAny words the error of a decoder, with the quantity that is none if that is the reason.
func locateAny(body []byte, err error) error {
	var tree any
	if json.Unmarshal(body, &tree) == nil {
		if field, value := manifest.FindBadQuantity(tree, ""); field != "" {
			return fmt.Errorf("%s: %v is no quantity; write it like 500m or 2Gi", field, value)
		}
	}
	return plainError(err)
}

func checkPool(p *api.NodePool) error {
	if p.Spec.Template.Spec.NodeClassRef == nil {
		return fmt.Errorf("NodePool %s: spec.template.spec.nodeClassRef is missing", p.Name)
	}
	return nil
}

// checkOverlay returns the refusal of an overlay by the schema of NodeOverlays.
func checkOverlay(o *v1alpha1.NodeOverlay) error {
	bad := func(field, why string, args ...any) error {
		return fmt.Errorf("NodeOverlay %s: spec.%s %s", o.Name, field, fmt.Sprintf(why, args...))
	}
	s := o.Spec
	switch {
	case s.Price != nil && s.PriceAdjustment != nil:
		return bad("price", "and priceAdjustment are both given; leave one")
	case s.Price != nil && !regexp.MustCompile(`^\d+(\.\d+)?$`).MatchString(*s.Price):
		return bad("price", "is %q; write USD per hour like 0.05", *s.Price)
	case s.PriceAdjustment != nil && !regexp.MustCompile(
		`^([+-]\d*\.?\d+|\+\d*\.?\d+%|-(\d{1,2}(\.\d+)?|100)%)$`).MatchString(*s.PriceAdjustment):
		return bad("priceAdjustment", "is %q; write it like -0.01, +0.5 or -10%%", *s.PriceAdjustment)
	case s.Weight != nil && (*s.Weight < 1 || *s.Weight > 10_000):
		return bad("weight", "is %d; allowed: 1 to 10000", *s.Weight)
	case len(s.Requirements) > 100:
		return bad("requirements", "has %d entries; at most 100 are allowed", len(s.Requirements))
	}
	return nil
}

func checkBuffer(b *v1beta1.CapacityBuffer) error {
	bad := func(field, why string) error { return fmt.Errorf("CapacityBuffer %s: spec.%s %s", b.Name, field, why) }
	s := b.Spec
	switch {
	case s.PodTemplateRef == nil && s.ScalableRef == nil:
		return bad("podTemplateRef", "and scalableRef are both missing; name one")
	case s.PodTemplateRef != nil && s.ScalableRef != nil:
		return bad("podTemplateRef", "and scalableRef are both given; leave one")
	case s.Replicas != nil && *s.Replicas < 0:
		return bad("replicas", "is below zero")
	case s.Percentage != nil && *s.Percentage < 0:
		return bad("percentage", "is below zero")
	case s.PodTemplateRef != nil && s.Replicas == nil && len(s.Limits) == 0:
		return bad("replicas", "and limits are both missing; a podTemplateRef needs one of them")
	}
	return nil
}

func checkTemplate(t *corev1.PodTemplate) error {
	if len(t.Template.Spec.Containers) == 0 {
		return fmt.Errorf("PodTemplate %s: template.spec.containers is empty; a pod has at least one", t.Name)
	}
	if why := SpecRefusals(t.Template.Spec); len(why) > 0 { // volumes do not count: see translate.Template
		return fmt.Errorf("PodTemplate %s: %s", t.Name, why[0])
	}
	return nil
}

// isObject reports whether the reference is to the object that makes the pods of the group, or to a group of a workload
// file by its name.
func (g *PodGroup) isObject(ref *v1beta1.ScalableRef) bool {
	if g.Object == "" {
		return g.Name == ref.Name
	}
	return g.Object == ref.Name && g.Kind == ref.Kind
}

// BufferTemplate returns what a buffer of the workload stands for, and the number of pods of the group. That is the
// PodTemplate that it names, or the group of pods with the name of its scalableRef. It is nil if there is none.
func (f File) BufferTemplate(b *v1beta1.CapacityBuffer) (template *corev1.PodTemplateSpec, scale int) {
	if ref := b.Spec.PodTemplateRef; ref != nil {
		i := slices.IndexFunc(f.Templates, func(t corev1.PodTemplate) bool {
			return t.Name == ref.Name &&
				t.Namespace == b.Namespace
		})
		if i < 0 {
			return nil, 0
		}
		return &f.Templates[i].Template, 0
	}
	name := b.Spec.ScalableRef.Name
	for i := range f.Groups {
		if g := &f.Groups[i]; g.isObject(b.Spec.ScalableRef) && g.Namespace() == b.Namespace {
			template, scale = &g.Pod, scale+g.Count
		}
	}
	for i := range f.BoundGroups {
		if g := &f.BoundGroups[i]; g.Name == name && g.Namespace() == b.Namespace {
			for _, n := range f.Nodes {
				scale += n.Pods[name]
			}
			template = &g.Pod
		}
	}
	return template, scale
}
