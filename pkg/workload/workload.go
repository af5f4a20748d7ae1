package workload

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	v1beta1 "joiner.sh/pkg/api/autoscaling/v1beta1"
	"joiner.sh/pkg/model/lists"
)

// Schema is the version of the workload format that this code reads.
const Schema = 1

// MostPods bounds the pods of one workload, pending and running together.
const MostPods = 2_000_000

// DefaultNamespace is the namespace of pods that name none.
const DefaultNamespace = "default"

// File is a workload: pods that wait for nodes, and the cluster they wait in.
type File struct {
	Schema      int    `json:"schema"`
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
	// path of a stream of NodePools and the like, relative to the workload file
	NodePools   string       `json:"nodePools,omitempty"`
	Groups      []PodGroup   `json:"groups,omitempty"`
	Pods        []corev1.Pod `json:"pods,omitempty"`
	DaemonSets  []PodGroup   `json:"daemonSets,omitempty"` // Count is not used
	BoundGroups []PodGroup   `json:"boundGroups,omitempty"`
	Nodes       []Node       `json:"nodes,omitempty"`

	Manifests `json:"-"` // what NodePools names, read
	Storage   *Storage   `json:"-"` // of manifests; a workload file says nothing about volumes
}

// PodGroup is Count pods of one template.
type PodGroup struct {
	Name  string                 `json:"name"`
	Count int                    `json:"count"`
	Pod   corev1.PodTemplateSpec `json:"pod"` // of its metadata namespace, labels and annotations count
	// that a StatefulSet makes for each of its pods; a dash and the number of the pod follow the name
	Claims []corev1.PersistentVolumeClaim `json:"-"`
	First  int                            `json:"-"` // number of the first pod in the names of its claims
	// kind and name of the object of manifests that makes the pods; the name of the group may be longer
	Kind, Object string `json:"-"`
}

// Node is a node that exists: initialized and ready.
type Node struct {
	Name         string            `json:"name"`
	NodePool     string            `json:"nodePool,omitempty"`
	InstanceType string            `json:"instanceType"`
	Zone         string            `json:"zone"`
	CapacityType string            `json:"capacityType"`
	Labels       map[string]string `json:"labels,omitempty"` // beside those of its type and pool
	Taints       []corev1.Taint    `json:"taints,omitempty"` // beside those of its pool
	Pods         map[string]int    `json:"pods,omitempty"`   // bound group to number
}

// Opener reads a whole file.
type Opener func(path string) ([]byte, error)

// LoadWorkload reads a workload and the NodePools it names. A path in pools, when not empty, replaces the latter.
func LoadWorkload(open Opener, path, pools string) (File, error) {
	data, err := open(path)
	if err != nil {
		return File{}, fmt.Errorf("read workload: %w", err)
	}
	f, err := ParseWorkload(data)
	if err != nil {
		return File{}, fmt.Errorf("%s: %w", path, err)
	}
	if pools == "" {
		if f.NodePools == "" {
			return File{}, fmt.Errorf("%s: nodePools is empty: name a file of NodePools there or with --nodepools",
				path)
		}
		pools = f.NodePools
		if !filepath.IsAbs(pools) {
			pools = filepath.Join(filepath.Dir(path), pools)
		}
	}
	data, err = open(pools)
	if err != nil {
		return File{}, fmt.Errorf("read nodePools of %s: %w", path, err)
	}
	if f.Manifests, err = parseManifests(pools, data); err != nil {
		return File{}, err
	}
	if err := f.checkPools(); err != nil {
		return File{}, fmt.Errorf("%s: %w", path, err)
	}
	if err := f.checkSlices(); err != nil {
		return File{}, fmt.Errorf("%s: %w", pools, err)
	}
	return f, nil
}

// CreationTime returns the time when every pod of a workload was created.
func CreationTime() time.Time { return time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC) }

// PodUID is the id of a pod: made from its name, so that it is the same in every run.
func PodUID(namespace, name string) string {
	h := sha256.Sum256([]byte("pod/" + namespace + "/" + name))
	return fmt.Sprintf("%x-%x-%x-%x-%x", h[0:4], h[4:6], h[6:8], h[8:10], h[10:16])
}

// Namespace returns the namespace of the pods of the group.
func (g PodGroup) Namespace() string { return namespaceOr(g.Pod.Namespace) }

// PodName is the name of pod i of the group.
func (g PodGroup) PodName(i int) string { return g.Name + "-" + strconv.Itoa(i) }

// BoundName is the name of the i-th pod of the bound group on a node.
func (g PodGroup) BoundName(node string, i int) string {
	return g.Name + "-on-" + node + "-" + strconv.Itoa(i)
}

// PodKey names a full pod as a placement does: namespace/name.
func PodKey(p *corev1.Pod) string { return namespaceOr(p.Namespace) + "/" + p.Name }

// PodSpecOf is the spec of the pending pod with the key namespace/name, nil where there is none.
func (f File) PodSpecOf(key string) *corev1.PodSpec {
	for i := range f.Pods {
		if PodKey(&f.Pods[i]) == key {
			return &f.Pods[i].Spec
		}
	}
	of := key[:max(0, strings.LastIndexByte(key, '-'))]
	for i := range f.Groups {
		if g := &f.Groups[i]; g.Namespace()+"/"+g.Name == of {
			return &g.Pod.Spec
		}
	}
	return nil
}

func namespaceOr(ns string) string { return cmp.Or(ns, DefaultNamespace) }

// Pending returns the number of pods that wait for a node.
func (f File) Pending() int {
	n := len(f.Pods)
	for _, g := range f.Groups {
		n += g.Count
	}
	return n
}

// GroupNames tells which group of a placement a pod belongs to.
type GroupNames struct{ groups, full, buffers map[string]bool }

// IndexNames indexes the pending pods of the workload.
func (f File) IndexNames() GroupNames {
	n := GroupNames{full: make(map[string]bool, len(f.Pods)),
		groups:  lists.Set(f.Groups, func(g PodGroup) string { return g.Namespace() + "/" + g.Name }),
		buffers: lists.Set(f.Buffers, func(b v1beta1.CapacityBuffer) string { return BufferGroup(&b) })}
	for i := range f.Pods {
		n.full[PodKey(&f.Pods[i])] = true
	}
	return n
}

// BufferGroup is the name under which a placement counts the pods that a buffer stands for.
func BufferGroup(b *v1beta1.CapacityBuffer) string {
	return namespaceOr(b.Namespace) + "/capacity-buffer-" + b.Name
}

// GroupOf is the group of the pod with the key namespace/name; of a full pod the key itself.
func (n GroupNames) GroupOf(key string) string {
	if n.full[key] {
		return key
	}
	if i := strings.LastIndexByte(key, '-'); i > 0 && n.groups[key[:i]] {
		return key[strings.IndexByte(key, '/')+1 : i]
	} else if i > 0 && n.buffers[key[:i]] {
		return key[:i]
	}
	return key
}
