package translate

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/lists"
	"joiner.sh/pkg/model/requirements"
)

// noProvisioner is in the place of the driver in storage classes whose volumes somebody makes beforehand.
const noProvisioner = "kubernetes.io/no-provisioner"

// freeVolumes are the volumes of the class that nobody has claimed, sorted by name.
func (s Storage) freeVolumes(class string) (out []corev1.PersistentVolume) {
	for _, name := range slices.Sorted(maps.Keys(s.Volumes)) {
		v := s.Volumes[name]
		if v.Spec.StorageClassName == class && v.Spec.ClaimRef == nil && v.DeletionTimestamp == nil &&
			(v.Status.Phase == corev1.VolumeAvailable || v.Status.Phase == "") {
			out = append(out, v)
		}
	}
	return out
}

// hasLocalVolumes reports whether volumes of the class, whoever has claimed them, are on disks of nodes, so that new
// nodes bring more.
func (s Storage) hasLocalVolumes(class string) bool {
	for _, v := range s.Volumes { // one is enough, whichever
		if v.Spec.StorageClassName == class && v.Spec.Local != nil {
			return true
		}
	}
	return false
}

// ofFreeVolumes returns where the free volumes of a class are that nobody makes when they are needed; no limit where
// they are local, see FillPod.
func (s Storage) ofFreeVolumes(class string) (out [][]requirements.Requirement, err error) {
	if s.hasLocalVolumes(class) {
		return nil, nil
	}
	for _, v := range s.freeVolumes(class) {
		one, err := s.ofVolume(v.Name, false)
		if err != nil || len(one) == 0 {
			return nil, err
		}
		out = append(out, one...)
	}
	return out, nil
}

// addLocalVolumes has a pod that waits require a free volume of each class of its unbound claims that has local ones.
func (s Storage) addLocalVolumes(p *cluster.Pod) {
	for _, name := range p.UnreadClaims {
		c, known := s.Claims[p.Namespace+"/"+name]
		class := classNameOf(&c)
		if !known || c.Spec.VolumeName != "" || s.Classes[class].Provisioner != noProvisioner ||
			!s.hasLocalVolumes(class) {
			continue
		}
		addRequired(p, cluster.RequiredVolume(class))
	}
}

// AddVolumes adds to what nodes provide, and to what can be attached there, the free volumes on them, by class. How
// many a new node brings nobody knows.
func (s Storage) AddVolumes(nodes []cluster.Node) {
	for _, class := range slices.Sorted(maps.Keys(s.Classes)) {
		if s.Classes[class].Provisioner != noProvisioner {
			continue
		}
		part, places := cluster.RequiredVolume(class), nodesOf(s.freeVolumes(class))
		for i := range nodes {
			free := 0
			for _, of := range places {
				if slices.ContainsFunc(of, func(on requirements.Set) bool { return on.Matches(nodes[i].Labels) }) {
					free++
				}
			}
			if free > 0 {
				nodes[i].Provides = append(slices.Clip(nodes[i].Provides), part)
				nodes[i].VolumeLimits = lists.CopyMap(nodes[i].VolumeLimits)
				nodes[i].VolumeLimits[part] = int64(free)
			}
		}
	}
}

// nodesOf says of each volume on which nodes it can be used, read once for all nodes: any alternative is enough.
func nodesOf(volumes []corev1.PersistentVolume) [][]requirements.Set {
	return lists.Of(volumes, func(v corev1.PersistentVolume) (out []requirements.Set) {
		if v.Spec.NodeAffinity == nil || v.Spec.NodeAffinity.Required == nil {
			return []requirements.Set{requirements.NewSet()}
		}
		for _, t := range v.Spec.NodeAffinity.Required.NodeSelectorTerms {
			if rs, err := termFrom(t); err == nil {
				out = append(out, requirements.NewSet(rs...))
			}
		}
		return out
	})
}
