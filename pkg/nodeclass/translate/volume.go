package translate

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/requirements"
)

const bindCompleted = "pv.kubernetes.io/bind-completed"

// selectedNode is the node for which a volume is being made. Until it is there, or its driver gives up, kube-scheduler
// puts the pod on no other node, whether that one exists or not.
const selectedNode = "volume.kubernetes.io/selected-node"

const kindPod = "Pod"

// Names of the driver of EBS volumes, as old volumes and storage classes call it and as it is.
const (
	inTreeEBS = "kubernetes.io/aws-ebs"
	driverEBS = "ebs.csi.aws.com"
)

// Storage holds what pods' volumes need to be understood, by name (claims by namespace/name).
type Storage struct {
	Claims  map[string]corev1.PersistentVolumeClaim
	Volumes map[string]corev1.PersistentVolume
	Classes map[string]storagev1.StorageClass
	// OptIn are the CSI drivers whose volumes keep a pod off nodes on which they have not registered.
	OptIn map[string]bool
	// users are the pods that have a claim that one pod at a time may use, by claim.
	users map[string]string
}

// allowedRequirements are the node requirements that the volumes of a pod allow, any one of which must hold; none for
// no limit. Of a pod that moves they are those of another in its stead. problems says in words why a volume cannot be
// used yet.
func (s Storage) allowedRequirements(namespace string, names []string, moves bool) (out [][]requirements.Requirement,
	problems []string) {
	for _, name := range names {
		one, err := s.ofClaim(namespace, name, moves)
		if err != nil {
			problems = append(problems, err.Error())
			continue
		}
		if out = requirements.CombineAlternatives(out, one); len(out) > mostAlternatives {
			return nil, append(problems, fmt.Sprintf("its volumes can be in more than %d combinations of places", mostAlternatives))
		}
	}
	return out, problems
}

// attachedVolumes are the volumes of a pod that count against a node's limits, sorted, one for each claim. What is not
// known to be attached by a CSI driver does not count.
func (s Storage) attachedVolumes(namespace string, names []string) []cluster.Volume {
	var out []cluster.Volume
	for _, name := range names {
		key := namespace + "/" + name
		if d := s.driverOf(key); d != "" {
			out = append(out, cluster.Volume{Driver: d, ID: key})
		}
	}
	slices.SortFunc(out, func(a, b cluster.Volume) int {
		return cmp.Or(strings.Compare(a.Driver, b.Driver), strings.Compare(a.ID, b.ID))
	})
	return out
}

// driverOf returns the CSI driver of the claim's volume or, while it has none, of its storage class.
func (s Storage) driverOf(claim string) string {
	c, ok := s.Claims[claim]
	if !ok {
		return ""
	}
	if v, ok := s.Volumes[c.Spec.VolumeName]; ok {
		switch {
		case v.Spec.CSI != nil:
			return v.Spec.CSI.Driver
		case v.Spec.AWSElasticBlockStore != nil:
			return driverEBS
		}
		return ""
	}
	switch name := s.Classes[classNameOf(&c)].Provisioner; name {
	case inTreeEBS:
		return driverEBS
	case noProvisioner: // it takes one of those that are free on the node
		return cluster.RequiredVolume(classNameOf(&c))
	default:
		return name
	}
}

// classNameOf is the storage class of the claim, empty for none. Old claims name it in an annotation, which Kubernetes
// still obeys, before the field.
func classNameOf(c *corev1.PersistentVolumeClaim) string {
	if name, old := c.Annotations[corev1.BetaStorageClassAnnotation]; old {
		return name
	}
	return ptr.Deref(c.Spec.StorageClassName, "")
}

// isMadeForPod reports whether the claim is that of an ephemeral volume: it goes with its pod, and another pod in its
// stead gets a claim of its own.
func isMadeForPod(c *corev1.PersistentVolumeClaim) bool {
	return slices.ContainsFunc(c.OwnerReferences, func(o metav1.OwnerReference) bool { return o.Kind == kindPod })
}

func (s Storage) ofClaim(namespace, name string, moves bool) ([][]requirements.Requirement, error) {
	key := namespace + "/" + name
	c, ok := s.Claims[key]
	switch {
	case !ok:
		return nil, fmt.Errorf("persistentvolumeclaim %s does not exist", key)
	case moves && isMadeForPod(&c):
		return ofTopologies(s.Classes[classNameOf(&c)].AllowedTopologies)
	case c.DeletionTimestamp != nil:
		return nil, fmt.Errorf("persistentvolumeclaim %s is being deleted", key)
	case c.Status.Phase == corev1.ClaimLost:
		return nil, fmt.Errorf("persistentvolumeclaim %s has lost its volume", key)
	case c.Spec.VolumeName != "":
		if _, bound := c.Annotations[bindCompleted]; !bound {
			return nil, fmt.Errorf("persistentvolumeclaim %s is being bound to volume %s", key, c.Spec.VolumeName)
		}
		return s.ofVolume(c.Spec.VolumeName, moves)
	case classNameOf(&c) == "":
		return nil, fmt.Errorf("persistentvolumeclaim %s is unbound and names no storage class", key)
	}
	class, ok := s.Classes[classNameOf(&c)]
	switch {
	case !ok:
		return nil, fmt.Errorf("storage class %s of persistentvolumeclaim %s does not exist", classNameOf(&c), key)
	case class.VolumeBindingMode == nil || *class.VolumeBindingMode == storagev1.VolumeBindingImmediate:
		return nil, fmt.Errorf("persistentvolumeclaim %s is unbound though its storage class %s binds immediately", key,
			class.Name)
	}
	if class.Provisioner == noProvisioner {
		return s.ofFreeVolumes(class.Name)
	}
	out, err := ofTopologies(class.AllowedTopologies)
	if node := c.Annotations[selectedNode]; node != "" && err == nil && !moves {
		on := [][]requirements.Requirement{{requirements.Of(corev1.LabelHostname, node)}}
		out = requirements.CombineAlternatives(out, on)
	}
	return out, err
}

// ofVolume returns the domains in which the volume can be used. A local one is on its node, and a pod that moves from
// there gets another.
func (s Storage) ofVolume(name string, moves bool) ([][]requirements.Requirement, error) {
	v, ok := s.Volumes[name]
	switch {
	case !ok:
		return nil, fmt.Errorf("persistentvolume %s does not exist", name)
	case v.DeletionTimestamp != nil:
		return nil, fmt.Errorf("persistentvolume %s is being deleted", name)
	}
	labelled := ofZoneLabels(v.Labels)
	if v.Spec.NodeAffinity == nil || v.Spec.NodeAffinity.Required == nil {
		if len(labelled) == 0 {
			return nil, nil
		}
		return [][]requirements.Requirement{labelled}, nil
	}
	var out [][]requirements.Requirement
	for _, t := range v.Spec.NodeAffinity.Required.NodeSelectorTerms {
		rs, err := termFrom(t)
		if err != nil {
			return nil, fmt.Errorf("persistentvolume %s: %w", name, err)
		}
		if moves && (v.Spec.Local != nil || v.Spec.HostPath != nil) {
			rs = slices.DeleteFunc(rs, func(r requirements.Requirement) bool { return r.Key == corev1.LabelHostname })
		}
		out = append(out, append(rs, labelled...))
	}
	return out, nil
}

// zoneLabels are the labels of a volume that kube-scheduler compares with those of nodes. Volumes from before there was
// node affinity, and many that people wrote, have nothing else.
func zoneLabels() []string {
	return []string{corev1.LabelTopologyZone, corev1.LabelTopologyRegion, corev1.LabelFailureDomainBetaZone,
		corev1.LabelFailureDomainBetaRegion}
}

// ofZoneLabels returns what the zone labels ask of nodes. Several zones stand with two underscores between them.
func ofZoneLabels(labels map[string]string) (out []requirements.Requirement) {
	for _, key := range zoneLabels() {
		if v := labels[key]; v != "" {
			out = append(out, requirements.Of(stableKey(key), strings.Split(v, "__")...))
		}
	}
	return out
}

func ofTopologies(terms []corev1.TopologySelectorTerm) ([][]requirements.Requirement, error) {
	var out [][]requirements.Requirement
	for _, t := range terms {
		rs := []requirements.Requirement{}
		for _, e := range t.MatchLabelExpressions {
			r, err := requirements.NewRequirement(stableKey(e.Key), requirements.In, e.Values...)
			if err != nil {
				return nil, fmt.Errorf("allowed topologies: %w", err)
			}
			rs = append(rs, r)
		}
		out = append(out, rs)
	}
	return out, nil
}

// FillPod fills in what the volumes of the pod allow. A pod that has run before is not judged again: problems of its
// volumes are left out. Of pods that wait for a claim that one pod at a time may use, the first that is filled gets it.
func (s *Storage) FillPod(p *cluster.Pod) {
	zones, problems := s.allowedRequirements(p.Namespace, p.UnreadClaims, p.NodeName != "")
	p.VolumeZones = requirements.CombineAlternatives(p.VolumeZones, zones)
	p.Volumes = s.attachedVolumes(p.Namespace, p.UnreadClaims)
	for _, v := range p.Volumes {
		if s.OptIn[v.Driver] {
			addRequired(p, cluster.RequiredDriver(v.Driver))
		}
	}
	if p.Provisionable() {
		s.addLocalVolumes(p)
		problems = append(problems, s.takeClaims(p, len(problems)+len(p.Unmodelled) > 0)...)
		p.Unmodelled = slices.Concat(p.Unmodelled, problems)
	}
	p.UnreadClaims = nil
}

// addRequired has the pod require a part of its node, once.
func addRequired(p *cluster.Pod, part string) {
	if !slices.Contains(p.Requires, part) {
		p.Requires = slices.Sorted(slices.Values(append(slices.Clip(p.Requires), part)))
	}
}

// VolumeLimits reads how many volumes the CSI drivers of a node say they can attach to it, by driver.
func VolumeLimits(n *storagev1.CSINode) map[string]int64 {
	var out map[string]int64
	for _, d := range n.Spec.Drivers {
		if d.Allocatable == nil || d.Allocatable.Count == nil {
			continue
		}
		if out == nil {
			out = map[string]int64{}
		}
		name := d.Name
		if name == inTreeEBS {
			name = driverEBS
		}
		out[name] = int64(*d.Allocatable.Count)
	}
	return out
}

// AddDrivers adds to what the node provides those of the drivers on the CSINode that pods may require.
func (s Storage) AddDrivers(n *cluster.Node, registered []string) {
	for _, d := range registered {
		if d == inTreeEBS {
			d = driverEBS
		}
		if s.OptIn[d] {
			n.Provides = append(slices.Clip(n.Provides), cluster.RequiredDriver(d))
		}
	}
}

// mostAccessModes is the number of access modes that there are. One that a claim has alone is among them.
const mostAccessModes = 4

// firstBytes is the name, or of one that nothing can have the first bytes, which nothing has as its name either.
func firstBytes(name string) string { return strings.Clone(name[:min(len(name), mostName)]) }

// mostName is a byte more than any name has.
const mostName = 254

// claimAnnotations returns the annotations of a claim that Storage looks at.
func claimAnnotations() []string {
	return []string{bindCompleted, corev1.BetaStorageClassAnnotation, selectedNode}
}

// SlimClaim keeps of a claim what Storage looks at.
func SlimClaim(in *corev1.PersistentVolumeClaim) corev1.PersistentVolumeClaim {
	out := corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{
		Namespace: in.Namespace, Name: in.Name, DeletionTimestamp: in.DeletionTimestamp,
	}}
	if isMadeForPod(in) {
		out.OwnerReferences = []metav1.OwnerReference{{Kind: kindPod}}
	}
	for _, key := range claimAnnotations() {
		if v, ok := in.Annotations[key]; ok {
			if out.Annotations == nil {
				out.Annotations = map[string]string{}
			}
			out.Annotations[key] = firstBytes(v)
		}
	}
	out.Spec.VolumeName = firstBytes(in.Spec.VolumeName)
	if class := in.Spec.StorageClassName; class != nil {
		name := firstBytes(*class)
		out.Spec.StorageClassName = &name
	}
	out.Spec.AccessModes = slices.Clone(in.Spec.AccessModes[:min(len(in.Spec.AccessModes), mostAccessModes)])
	out.Status.Phase = in.Status.Phase
	return out
}

// SlimVolume keeps of a volume what Storage looks at.
func SlimVolume(in *corev1.PersistentVolume) corev1.PersistentVolume {
	out := corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: in.Name,
		DeletionTimestamp: in.DeletionTimestamp}}
	out.Spec.NodeAffinity, out.Spec.Local, out.Spec.HostPath = in.Spec.NodeAffinity, in.Spec.Local, in.Spec.HostPath
	out.Spec.AWSElasticBlockStore = in.Spec.AWSElasticBlockStore
	out.Spec.StorageClassName, out.Spec.ClaimRef, out.Status.Phase = in.Spec.StorageClassName, in.Spec.ClaimRef,
		in.Status.Phase
	for _, key := range zoneLabels() {
		if v, ok := in.Labels[key]; ok {
			if out.Labels == nil {
				out.Labels = map[string]string{}
			}
			out.Labels[key] = v
		}
	}
	if in.Spec.CSI != nil {
		out.Spec.CSI = &corev1.CSIPersistentVolumeSource{Driver: in.Spec.CSI.Driver}
	}
	return out
}
