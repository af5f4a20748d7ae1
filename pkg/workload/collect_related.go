package workload

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"joiner.sh/pkg/model/lists"
	"joiner.sh/pkg/workload/manifest"
)

// objectKey is group, kind, namespace and name of an object, whatever its version.
func objectKey(apiVersion, kind, namespace, name string) string {
	group, _, found := strings.Cut(apiVersion, "/")
	if !found {
		group = ""
	}
	return strings.Join([]string{group, kind, namespaceOr(namespace), name}, " ")
}

// standAlone leaves out objects that another one of the list makes, those of hooks that no installation runs, and all
// but the last of those given twice. Objects that the API server is to name get names of their own.
func (c *manifestCollector) standAlone(docs []manifest.Document) []manifest.Document {
	meta := make([]metav1.ObjectMeta, len(docs))
	last := map[string]int{}
	for i, d := range docs {
		var head struct {
			Metadata metav1.ObjectMeta `json:"metadata"`
		}
		_ = json.Unmarshal(d.Body, &head) // reading the object says what is wrong
		if meta[i] = head.Metadata; meta[i].Name != "" {
			last[objectKey(d.APIVersion, d.Kind, d.Namespace, d.Name)] = i
		}
	}
	var out []manifest.Document
	for i, d := range docs {
		counts, named := last[objectKey(d.APIVersion, d.Kind, d.Namespace, d.Name)]
		switch owner := metav1.GetControllerOfNoCopy(&meta[i]); {
		case meta[i].Name != "" && named && counts != i:
			c.notes = append(c.notes, d.Errorf("metadata.name", "it is given again in %s:%d; that one is taken",
				docs[counts].File, docs[counts].Line("metadata.name")).Error())
		case owner != nil && ownerGiven(last, d.Namespace, *owner):
			c.left[d.Kind+" (made by an object that is counted)"]++
		case isLateHook(meta[i].Annotations["helm.sh/hook"]):
			c.left[d.Kind+" (a hook of Helm that no installation runs)"]++
		case meta[i].Name == "" && d.Name != "":
			out = append(out, nameApart(d, last, i))
		default:
			out = append(out, d)
		}
	}
	return out
}

// isLateHook reports whether all of Helm's hooks in the annotation run after or beside an installation: tests, and what
// is run when a release is deleted or rolled back.
func isLateHook(hooks string) bool {
	return hooks != "" && !slices.ContainsFunc(strings.Split(hooks, ","), func(hook string) bool {
		return !slices.Contains([]string{"test", "test-success", "test-failure", "pre-delete", "post-delete",
			"pre-rollback", "post-rollback"}, strings.TrimSpace(hook))
	})
}

// nameApart is the i-th object of the list, which has a generateName alone, with a name that none of those given has.
func nameApart(d manifest.Document, given map[string]int, i int) manifest.Document {
	key := func() string { return objectKey(d.APIVersion, d.Kind, d.Namespace, d.Name) }
	prefix := d.Name
	for n := 2; ; n++ {
		if _, taken := given[key()]; !taken {
			given[key()] = i
			return d
		}
		d.Name = fmt.Sprintf("%s-%d", prefix, n)
	}
}

// ownerGiven reports whether the owner, or the one that made it, is among the objects. ReplicaSets and Jobs are named
// after what makes them, with one part more.
func ownerGiven(given map[string]int, namespace string, owner metav1.OwnerReference) bool {
	keys := []string{objectKey(owner.APIVersion, owner.Kind, namespace, owner.Name)}
	if i := strings.LastIndexByte(owner.Name, '-'); i > 0 {
		switch owner.Kind {
		case "ReplicaSet":
			keys = append(keys, objectKey("apps/v1", "Deployment", namespace, owner.Name[:i]),
				objectKey("argoproj.io/v1alpha1", "Rollout", namespace, owner.Name[:i]))
		case "Job":
			keys = append(keys, objectKey("batch/v1", "CronJob", namespace, owner.Name[:i]))
		}
	}
	return slices.ContainsFunc(keys, func(k string) bool { _, ok := given[k]; return ok })
}

// addRollout takes an Argo Rollout as a Deployment.
func (c *manifestCollector) addRollout(d manifest.Document) error {
	var o struct {
		Spec struct {
			Replicas    *int32                  `json:"replicas"`
			Template    corev1.PodTemplateSpec  `json:"template"`
			WorkloadRef *corev1.ObjectReference `json:"workloadRef"`
		} `json:"spec"`
	}
	if _, err := d.Decode(&o); err != nil {
		return err
	}
	if ref := o.Spec.WorkloadRef; ref != nil { // which is scaled to 0, and the Rollout makes its pods
		replicas := int(ptr.Deref(o.Spec.Replicas, 1))
		c.rollouts[strings.ToLower(ref.Kind)+" "+namespaceOr(d.Namespace)+" "+ref.Name] = replicas
		c.notes = append(c.notes, d.Object()+": counted as the Deployment that it refers to has it")
		return nil
	}
	return c.addPods(d, o.Spec.Template, o.Spec.Replicas)
}

// addRule takes an object that changes pods: their number, where their volumes can be, or what admission makes of them.
func (c *manifestCollector) addRule(d manifest.Document) (known bool, err error) {
	group, _, _ := strings.Cut(d.APIVersion, "/")
	switch group + " " + d.Kind {
	case "scheduling.k8s.io PriorityClass":
		_, err = addNamed(c, d, &c.rules.PriorityClasses)
	case "node.k8s.io RuntimeClass":
		_, err = addNamed(c, d, &c.rules.RuntimeClasses)
	case "v1 LimitRange":
		_, err = addNamespaced(c, d, &c.rules.LimitRanges)
	case "autoscaling HorizontalPodAutoscaler", "keda.sh ScaledObject":
		err = c.addAutoscaler(d)
	case "v1 PersistentVolumeClaim":
		_, err = addNamespaced(c, d, &c.Storage.Claims)
	case "v1 PersistentVolume":
		_, err = addNamed(c, d, &c.Storage.Volumes)
	case "storage.k8s.io StorageClass":
		_, err = addNamed(c, d, &c.Storage.Classes)
	default:
		return c.addDevices(d)
	}
	return true, err
}

// addNamed reads an object into the list, and returns where it stands there.
func addNamed[T any](c *manifestCollector, d manifest.Document, list *[]T) (*T, error) {
	*list = append(*list, *new(T))
	last := &(*list)[len(*list)-1]
	return last, decodeNamed(c, d, last)
}

// addNamespaced is addNamed for kinds that have a namespace.
func addNamespaced[T any, P interface {
	*T
	metav1.Object
}](c *manifestCollector, d manifest.Document, list *[]T) (*T, error) {
	o, err := addNamed(c, d, list)
	P(o).SetNamespace(namespaceOr(P(o).GetNamespace()))
	return o, err
}

// addAutoscaler remembers how many replicas there are at least.
func (c *manifestCollector) addAutoscaler(d manifest.Document) error {
	var o struct {
		Spec struct {
			MinReplicas     *int `json:"minReplicas"`     // HorizontalPodAutoscaler; 1 where it is not given
			MinReplicaCount *int `json:"minReplicaCount"` // ScaledObject; 0
			ScaleTargetRef  struct {
				Kind string `json:"kind"`
				Name string `json:"name"`
			} `json:"scaleTargetRef"`
		} `json:"spec"`
	}
	if _, err := d.Decode(&o); err != nil {
		return err
	}
	target := o.Spec.ScaleTargetRef
	key := strings.ToLower(cmp.Or(target.Kind, "Deployment")) + " " + namespaceOr(d.Namespace) + " " + target.Name
	if n := cmp.Or(o.Spec.MinReplicas, o.Spec.MinReplicaCount); n != nil {
		c.least[key] = max(c.least[key], *n)
	}
	return nil
}

// applyLeast raises groups to what their autoscalers keep. One that stands at 0 is not scaled.
func (c *manifestCollector) applyLeast() {
	for i := range c.Groups {
		g := &c.Groups[i]
		g.Count = max(g.Count, c.rollouts[c.kinds[i]+" "+g.Namespace()+" "+g.Name])
		if n := c.least[c.kinds[i]+" "+g.Namespace()+" "+g.Name]; g.Count > 0 && n > g.Count {
			c.notes = append(c.notes, fmt.Sprintf("%s %s: counted with the %d replicas that its autoscaler keeps at least", c.kinds[i], g.Name, n))
			g.Count = n
		}
	}
}

// noteUnknownVolumes names claims whose volume exists and is not among the objects: it may be in one zone alone.
func (c *manifestCollector) noteUnknownVolumes() {
	given := lists.Set(c.Storage.Volumes, func(v corev1.PersistentVolume) string { return v.Name })
	given[""] = true
	var names []string
	for _, claim := range c.Storage.Claims {
		if !given[claim.Spec.VolumeName] {
			names = append(names, claim.Namespace+"/"+claim.Name)
		}
	}
	if n := len(names); n > 0 {
		c.notes = append(c.notes, fmt.Sprintf("%d PersistentVolumeClaims (%s) have volumes that are not among the files, and may be in one zone; their pods are planned for every zone that the class allows: give the output of kubectl get pv -o yaml, too", n, lists.Name(names, ", ")))
	}
}

// applyRules makes of pods what admission makes of them.
func (c *manifestCollector) applyRules() {
	missing := map[string]bool{}
	admit := func(namespace string, s *corev1.PodSpec) {
		for _, what := range c.rules.Admit(namespaceOr(namespace), s) {
			missing[what] = true
		}
	}
	for _, list := range [][]PodGroup{c.Groups, c.DaemonSets} {
		for i := range list {
			admit(list[i].Pod.Namespace, &list[i].Pod.Spec)
		}
	}
	for i := range c.Pods {
		admit(c.Pods[i].Namespace, &c.Pods[i].Spec)
	}
	for _, what := range slices.Sorted(maps.Keys(missing)) {
		c.notes = append(c.notes, what+": it is not among the files; pods that name it are planned as if they did not, and refused by a cluster that does not have it")
	}
}

// makesPods reports whether somewhere in an object of a kind that is not known stand the containers of a pod.
func makesPods(body []byte) bool {
	var tree any
	return json.Unmarshal(body, &tree) == nil && holdsContainers(tree)
}

func holdsContainers(tree any) bool {
	switch t := tree.(type) {
	case []any:
		return slices.ContainsFunc(t, holdsContainers)
	case map[string]any:
		if list, ok := t["containers"].([]any); ok && len(list) > 0 {
			if first, ok := list[0].(map[string]any); ok && (first["image"] != nil || first["name"] != nil) {
				return true
			}
		}
		for _, v := range t {
			if holdsContainers(v) {
				return true
			}
		}
	}
	return false
}
