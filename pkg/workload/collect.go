package workload

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	resourcev1beta2 "k8s.io/api/resource/v1beta2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	v1beta1 "joiner.sh/pkg/api/autoscaling/v1beta1"
	awsv1 "joiner.sh/pkg/api/aws/v1"
	api "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/api/v1alpha1"
	"joiner.sh/pkg/model/admission"
	"joiner.sh/pkg/model/lists"
	"joiner.sh/pkg/workload/manifest"
)

// CollectManifests makes a workload of the manifests that people have: whatever makes pods, NodePools and what belongs
// to them. Pods of a Deployment and the like become a group of its name; a name that two share is made longer with kind
// and namespace. An object that another one makes is not counted, and of one that is given twice the last one counts.
// Notes say what was left out or taken otherwise than it stands there. An error names file, line, object and field.
func CollectManifests(docs []manifest.Document, name string) (f File, notes []string, err error) {
	c := manifestCollector{File: File{Schema: Schema, Name: name}, given: manifestReader{seen: map[string]bool{}},
		left: map[string]int{}, least: map[string]int{}, rollouts: map[string]int{}}
	c.Storage = &Storage{}
	var problems []error
	for _, d := range c.standAlone(docs) {
		if err := c.addObject(d); err != nil {
			problems = append(problems, err)
		}
	}
	if err := errors.Join(problems...); err != nil {
		return File{}, nil, err
	}
	c.applyLeast()
	c.nameGroups()
	c.noteUnknownVolumes()
	c.noteDevices()
	c.setDefaults()
	c.applyRules()
	if len(c.left) > 0 {
		c.notes = append(c.notes, "not read: "+countKinds(c.left))
	}
	return c.File, c.notes, c.File.validateFile()
}

// Unreadable returns why an object cannot be read by itself, such as a field of another type; nil if it can.
func Unreadable(d manifest.Document) error {
	c := manifestCollector{File: File{Storage: &Storage{}}, given: manifestReader{seen: map[string]bool{}},
		left: map[string]int{}, least: map[string]int{}, rollouts: map[string]int{}}
	return c.addObject(d)
}

// countKinds is such as "2 ConfigMap, 1 Service".
func countKinds(kinds map[string]int) string {
	out := lists.Of(slices.Sorted(maps.Keys(kinds)),
		func(kind string) string { return fmt.Sprintf("%d %s", kinds[kind], kind) })
	return strings.Join(out, ", ")
}

// manifestCollector is a workload while it is being collected.
type manifestCollector struct {
	File
	given manifestReader  // which objects there were
	kinds []string        // of Groups, in their order
	rules admission.Rules // that the objects make for pods
	least map[string]int  // replicas that autoscalers keep, by kind, namespace and name
	// replicas of Rollouts that refer to a workload, by its kind, namespace and name
	rollouts map[string]int
	left     map[string]int // objects that were left out, by kind
	notes    []string
}

// addObject takes one object.
func (c *manifestCollector) addObject(d manifest.Document) error {
	switch d.APIVersion + " " + d.Kind {
	case "v1 Pod":
		return c.collectPod(d)
	case "apps/v1 Deployment":
		var o appsv1.Deployment
		return c.addGroup(d, &o, func() (corev1.PodTemplateSpec, *int32) { return o.Spec.Template, o.Spec.Replicas })
	case "apps/v1 ReplicaSet":
		var o appsv1.ReplicaSet
		return c.addGroup(d, &o, func() (corev1.PodTemplateSpec, *int32) { return o.Spec.Template, o.Spec.Replicas })
	case "v1 ReplicationController":
		var o corev1.ReplicationController
		return c.addGroup(d, &o, func() (corev1.PodTemplateSpec, *int32) {
			if o.Spec.Template == nil {
				return corev1.PodTemplateSpec{}, o.Spec.Replicas
			}
			return *o.Spec.Template, o.Spec.Replicas
		})
	case "apps/v1 StatefulSet":
		return c.collectStatefulSet(d)
	case "batch/v1 Job":
		var o batchv1.Job
		return c.addGroup(d, &o, func() (corev1.PodTemplateSpec, *int32) {
			return o.Spec.Template, c.atOnce(d, o.Spec, slices.ContainsFunc(o.Status.Conditions, hasEnded))
		})
	case "batch/v1 CronJob":
		var o batchv1.CronJob
		return c.addGroup(d, &o, func() (corev1.PodTemplateSpec, *int32) {
			job := o.Spec.JobTemplate.Spec
			if o.Spec.Suspend != nil && *o.Spec.Suspend {
				job.Suspend = o.Spec.Suspend
			}
			if n := c.atOnce(d, job, false); *n > 0 {
				c.notes = append(c.notes, fmt.Sprintf("%s: counted as one run, %d pods at once", d.Object(), *n))
				return job.Template, n
			}
			return job.Template, new(int32)
		})
	case "argoproj.io/v1alpha1 Rollout":
		return c.addRollout(d)
	case "apps/v1 DaemonSet":
		var o appsv1.DaemonSet
		if err := decodeNamed(c, d, &o); err != nil {
			return err
		}
		o.Spec.Template.Namespace = o.Namespace
		c.DaemonSets = append(c.DaemonSets, PodGroup{Name: d.Name, Pod: o.Spec.Template})
		return c.checkContainers(d, o.Spec.Template.Spec, "spec.template.spec.containers")
	}
	if known, err := c.addRule(d); known {
		return err
	}
	return c.addOurs(d)
}

// collectStatefulSet takes the pods of a StatefulSet with the claims that it makes for each of them.
func (c *manifestCollector) collectStatefulSet(d manifest.Document) error {
	var o appsv1.StatefulSet
	err := c.addGroup(d, &o, func() (corev1.PodTemplateSpec, *int32) { return o.Spec.Template, o.Spec.Replicas })
	if err != nil {
		return err
	}
	last := &c.Groups[len(c.Groups)-1]
	for _, t := range o.Spec.VolumeClaimTemplates {
		t.Name += "-" + d.Name
		last.Claims = append(last.Claims, t)
	}
	if o.Spec.Ordinals != nil {
		last.First = int(o.Spec.Ordinals.Start)
	}
	return nil
}

// addOurs takes an object that says which nodes there may be.
func (c *manifestCollector) addOurs(d manifest.Document) error {
	switch d.APIVersion + " " + d.Kind {
	case api.Group + "/v1 NodePool":
		return keepObject(c, d, &c.Pools, checkPool)
	case v1alpha1.GroupVersion().String() + " NodeOverlay":
		return keepObject(c, d, &c.Overlays, checkOverlay)
	case v1beta1.GroupVersion().String() + " CapacityBuffer":
		return keepObject(c, d, &c.Buffers, checkBuffer)
	case "v1 Namespace":
		return keepObject(c, d, &c.Namespaces, func(*corev1.Namespace) error { return nil })
	case "v1 PodTemplate":
		return keepObject(c, d, &c.Templates, checkTemplate)
	case awsv1.Group + "/v1 EC2NodeClass":
		return keepObject(c, d, &c.Classes, func(*awsv1.EC2NodeClass) error { return nil })
	case api.Group + "/v1 NodeClaim": // of a cluster that was exported; a plan begins without nodes
		c.left[d.Kind]++
		return nil
	}
	switch {
	case d.Kind == "":
		return d.Errorf("kind", "it is missing; a manifest has apiVersion and kind")
	case d.APIVersion == "":
		return d.Errorf("apiVersion", "it is missing; a manifest has apiVersion and kind")
	}
	group, _, _ := strings.Cut(d.APIVersion, "/")
	if v := v1beta1.GroupVersion(); group == v.Group && d.Kind == "CapacityBuffer" {
		return d.Errorf("apiVersion", "%q is not known for kind %s; %s is", d.APIVersion, d.Kind, v)
	}
	today := map[string]string{"Deployment": "apps/v1", "StatefulSet": "apps/v1", "DaemonSet": "apps/v1",
		"ReplicaSet": "apps/v1", "Job": "batch/v1", "CronJob": "batch/v1", "Pod": "v1"}[d.Kind]
	switch {
	case group == api.Group || group == awsv1.Group:
		return d.Errorf("apiVersion", "%q is not known for kind %s; %s/v1 and %s/v1 are", d.APIVersion, d.Kind,
			api.Group, awsv1.Group)
	case today != "" && slices.Contains([]string{"v1", "apps", "extensions", "batch"}, group):
		return d.Errorf("apiVersion", "%q is not known for kind %s; clusters of today take %s", d.APIVersion, d.Kind,
			today)
	case makesPods(d.Body):
		c.notes = append(c.notes, d.Errorf("", "it makes pods that are not counted; give them as a Deployment or the like, or as Pods").Error())
		return nil
	}
	c.left[d.Kind]++
	return nil
}

// decodeNamed decodes an object that must have a name.
func decodeNamed(c *manifestCollector, d manifest.Document, into any) error {
	unknown, err := d.Decode(into)
	if err != nil {
		return err
	}
	if d.Name == "" {
		return d.Errorf("metadata.name", "it is missing")
	}
	for _, field := range unknown {
		c.notes = append(c.notes, d.Errorf(field, "no such field; it is not looked at").Error())
	}
	return nil
}

// keepObject reads one object into the list. The check refuses what makes no sense.
func keepObject[T any, P interface {
	*T
	metav1.Object
}](c *manifestCollector, d manifest.Document, list *[]T, check func(P) error) error {
	if err := decodeNamed(c, d, P(new(T))); err != nil {
		return err
	}
	if err := addObject(&c.given, d.Kind, list, d.Body, check); err != nil {
		return d.Errorf("", "%s", strings.TrimPrefix(err.Error(), d.Object()+": "))
	}
	return nil
}

func (c *manifestCollector) collectPod(d manifest.Document) error {
	var p corev1.Pod
	if err := decodeNamed(c, d, &p); err != nil {
		return err
	}
	p.Name = d.Name
	if p.Spec.NodeName != "" || p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed {
		c.left["Pod (with a node, or ended)"]++
		return nil
	}
	c.Pods = append(c.Pods, p)
	return c.checkContainers(d, p.Spec, "spec.containers")
}

// addGroup takes the pods of an object: template gives them and their number, 1 if there is none.
func (c *manifestCollector) addGroup(d manifest.Document, into any,
	template func() (corev1.PodTemplateSpec, *int32)) error {
	if err := decodeNamed(c, d, into); err != nil {
		return err
	}
	pod, count := template()
	return c.addPods(d, pod, count)
}

// addPods takes pods of a template.
func (c *manifestCollector) addPods(d manifest.Document, pod corev1.PodTemplateSpec, count *int32) error {
	pod.Namespace = d.Namespace
	g := PodGroup{Name: d.Name, Count: int(ptr.Deref(count, 1)), Pod: pod, Kind: d.Kind, Object: d.Name}
	if g.Count < 0 {
		return d.Errorf("spec.replicas", "it is %d; it cannot be negative", g.Count)
	}
	c.Groups, c.kinds = append(c.Groups, g), append(c.kinds, strings.ToLower(d.Kind))
	return c.checkContainers(d, pod.Spec, "spec.template.spec.containers")
}

// checkContainers refuses a pod without containers.
func (c *manifestCollector) checkContainers(d manifest.Document, s corev1.PodSpec, field string) error {
	if len(s.Containers) == 0 {
		return d.Errorf(field, "it is empty; a pod has at least one")
	}
	return nil
}

// atOnce returns the number of pods of a job that run at the same time: none of one that is suspended or has ended.
func (c *manifestCollector) atOnce(d manifest.Document, j batchv1.JobSpec, ended bool) *int32 {
	if j.Suspend != nil && *j.Suspend {
		c.notes = append(c.notes, d.Object()+": it is suspended and makes no pod")
		return new(int32)
	}
	if ended {
		c.left[d.Kind+" (ended)"]++
		return new(int32)
	}
	n := ptr.Deref(j.Parallelism, 1)
	return new(min(n, ptr.Deref(j.Completions, n)))
}

func hasEnded(c batchv1.JobCondition) bool {
	return c.Status == corev1.ConditionTrue && (c.Type == batchv1.JobComplete || c.Type == batchv1.JobFailed)
}

// nameGroups gives each group a name of its own: its object's, then with the kind, then with the namespace too.
func (c *manifestCollector) nameGroups() {
	for _, longer := range []func(i int) string{
		func(i int) string { return c.Groups[i].Name + "." + c.kinds[i] },
		func(i int) string { return c.Groups[i].Name + "." + c.Groups[i].Namespace() },
	} {
		count := map[string]int{}
		for _, g := range c.Groups {
			count[g.Name]++
		}
		pods := c.groupCounts()
		for i := range c.Pods { // a group numbers its pods, and one of that name may be there by itself
			if name, taken := inGroup(PodKey(&c.Pods[i]), pods); taken {
				count[name]++
			}
		}
		for i, g := range c.Groups {
			if count[g.Name] > 1 {
				c.Groups[i].Name = longer(i)
			}
		}
	}
	seen := map[string]int{}
	for i, g := range c.DaemonSets { // they are not spoken of in a placement
		if seen[g.Name]++; seen[g.Name] > 1 {
			c.DaemonSets[i].Name = fmt.Sprintf("%s.%s.%d", g.Name, g.Namespace(), seen[g.Name])
		}
	}
}

// MergeOver takes the pools, classes and so on of other in place of those of the same name, and adds the rest.
func (m *Manifests) MergeOver(other Manifests) {
	m.Pools = mergeByName(m.Pools, other.Pools, func(p api.NodePool) string { return p.Name })
	m.Classes = mergeByName(m.Classes, other.Classes, func(c awsv1.EC2NodeClass) string { return c.Name })
	refused := lists.CopyMap(m.Refused)
	for _, p := range other.Pools {
		delete(refused, "NodePool "+p.Name)
	}
	for _, c := range other.Classes {
		delete(refused, "EC2NodeClass "+c.Name)
	}
	maps.Copy(refused, other.Refused)
	m.Refused = refused
	m.Namespaces = mergeByName(m.Namespaces, other.Namespaces, func(n corev1.Namespace) string { return n.Name })
	m.Overlays = mergeByName(m.Overlays, other.Overlays, func(o v1alpha1.NodeOverlay) string { return o.Name })
	m.Buffers = mergeByName(m.Buffers, other.Buffers,
		func(b v1beta1.CapacityBuffer) string { return b.Namespace + "/" + b.Name })
	m.Templates = mergeByName(m.Templates, other.Templates,
		func(t corev1.PodTemplate) string { return t.Namespace + "/" + t.Name })
	m.Devices.MergeOver(other.Devices)
}

// MergeOver takes what other says about devices in place of what has the same name, and adds the rest.
func (d *Devices) MergeOver(other Devices) {
	d.Classes = mergeByName(d.Classes, other.Classes, func(c resourcev1.DeviceClass) string { return c.Name })
	d.Slices = mergeByName(d.Slices, other.Slices, func(s resourcev1.ResourceSlice) string { return s.Name })
	d.TaintRules = mergeByName(d.TaintRules, other.TaintRules,
		func(r resourcev1beta2.DeviceTaintRule) string { return r.Name })
	d.Claims = mergeByName(d.Claims, other.Claims,
		func(c resourcev1.ResourceClaim) string { return c.Namespace + "/" + c.Name })
	d.Templates = mergeByName(d.Templates, other.Templates,
		func(t resourcev1.ResourceClaimTemplate) string { return t.Namespace + "/" + t.Name })
}

func mergeByName[T any](have, other []T, name func(T) string) []T {
	out := slices.Clone(have)
	for _, o := range other {
		if i := slices.IndexFunc(out, func(t T) bool { return name(t) == name(o) }); i >= 0 {
			out[i] = o
		} else {
			out = append(out, o)
		}
	}
	return out
}
