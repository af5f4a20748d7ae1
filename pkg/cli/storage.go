package cli

import (
	"cmp"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/nodeclass/translate"
	"joiner.sh/pkg/workload"
)

// defaultStorage stands for the class of claims that name none: the default class of the files, or volumes of EBS, which
// wait for their pod.
const defaultStorage = "joiner.sh/default"

// fileStorage returns what files say about volumes. A claim that is bound to a volume of the files can be where that
// is, and any other one where its class allows.
func fileStorage(v workload.Storage) translate.Storage {
	s := translate.Storage{Claims: map[string]corev1.PersistentVolumeClaim{},
		Volumes: map[string]corev1.PersistentVolume{}, Classes: map[string]storagev1.StorageClass{}}
	wait := storagev1.VolumeBindingWaitForFirstConsumer
	s.Classes[defaultStorage] = storagev1.StorageClass{Provisioner: "ebs.csi.aws.com", VolumeBindingMode: &wait}
	for _, c := range v.Classes {
		c.VolumeBindingMode = &wait // one that binds at once has done so by the time that its pod waits
		s.Classes[c.Name] = c
		if usual := s.Classes[defaultStorage]; isDefaultClass(c) && (!isDefaultClass(usual) || isNewer(c, usual)) {
			s.Classes[defaultStorage] = c
		}
	}
	bound := map[string]string{}
	for _, p := range v.Volumes {
		p.DeletionTimestamp = nil
		s.Volumes[p.Name] = p
		if r := p.Spec.ClaimRef; r != nil {
			bound[r.Namespace+"/"+r.Name] = p.Name
		}
	}
	for _, c := range v.Claims {
		key := c.Namespace + "/" + c.Name
		if name, ok := bound[key]; ok {
			c.Spec.VolumeName = name
		}
		addClaim(s, c)
	}
	return s
}

// isDefaultClass reports whether claims that name no class get this one, by its annotation of today or of before.
func isDefaultClass(c storagev1.StorageClass) bool {
	return c.Annotations["storageclass.kubernetes.io/is-default-class"] == "true" ||
		c.Annotations["storageclass.beta.kubernetes.io/is-default-class"] == "true"
}

// isNewer reports whether the API server takes the first of two default classes: the newer one, then that of the lesser
// name.
func isNewer(a, b storagev1.StorageClass) bool {
	return cmp.Or(b.CreationTimestamp.Compare(a.CreationTimestamp.Time), strings.Compare(a.Name, b.Name)) < 0
}

// addClaim adds the claim as a cluster would have it by the time that its pod waits.
func addClaim(s translate.Storage, c corev1.PersistentVolumeClaim) {
	c.Status, c.DeletionTimestamp = corev1.PersistentVolumeClaimStatus{}, nil
	if name, old := c.Annotations[corev1.BetaStorageClassAnnotation]; old {
		c.Spec.StorageClassName = &name
	}
	c.Annotations = nil
	if _, given := s.Volumes[c.Spec.VolumeName]; given {
		c.Annotations = map[string]string{"pv.kubernetes.io/bind-completed": "yes"}
	} else {
		c.Spec.VolumeName = ""
	}
	if c.Spec.StorageClassName == nil || *c.Spec.StorageClassName == "" {
		c.Spec.StorageClassName = new(defaultStorage)
	}
	if name := *c.Spec.StorageClassName; s.Classes[name].VolumeBindingMode == nil {
		wait := storagev1.VolumeBindingWaitForFirstConsumer
		s.Classes[name] = storagev1.StorageClass{Provisioner: "ebs.csi.aws.com", VolumeBindingMode: &wait}
	}
	s.Claims[c.Namespace+"/"+c.Name] = c
}

// withVolumes fills in what the volumes of the pod allow: those of its spec, and the own ones that its StatefulSet
// makes for the pod with the number. A workload file says nothing about volumes, so its pods that have some are refused.
func withVolumes(p cluster.Pod, spec corev1.PodSpec, own []corev1.PersistentVolumeClaim, number int,
	s *translate.Storage) cluster.Pod {
	for _, v := range spec.Volumes {
		switch {
		case v.PersistentVolumeClaim == nil && v.Ephemeral == nil:
		case s == nil:
			p.Unmodelled = append(p.Unmodelled, fmt.Sprintf(
				"volume %s: a workload file does not say where persistent volumes can be", v.Name))
		case v.PersistentVolumeClaim != nil:
			c := corev1.PersistentVolumeClaim{}
			c.Namespace, c.Name = p.Namespace, v.PersistentVolumeClaim.ClaimName
			p.UnreadClaims = append(p.UnreadClaims, needClaim(*s, c))
		case v.Ephemeral.VolumeClaimTemplate != nil:
			c := corev1.PersistentVolumeClaim{Spec: v.Ephemeral.VolumeClaimTemplate.Spec}
			c.Namespace, c.Name = p.Namespace, p.Name+"-"+v.Name
			p.UnreadClaims = append(p.UnreadClaims, needClaim(*s, c))
		}
	}
	for _, c := range own {
		c.Namespace, c.Name = p.Namespace, fmt.Sprintf("%s-%d", c.Name, number)
		p.UnreadClaims = append(p.UnreadClaims, needClaim(*s, c))
	}
	if s != nil && len(p.UnreadClaims) > 0 {
		s.FillPod(&p)
	}
	return p
}

// needClaim sees to it that the claim is there, and returns its name.
func needClaim(s translate.Storage, c corev1.PersistentVolumeClaim) string {
	if _, given := s.Claims[c.Namespace+"/"+c.Name]; !given {
		addClaim(s, c)
	}
	return c.Name
}
