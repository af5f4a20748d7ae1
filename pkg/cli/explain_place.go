package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"joiner.sh/pkg/install/crdcheck"
	"joiner.sh/pkg/whatif"
	"joiner.sh/pkg/workload"
)

// editedObjects are the objects that edits are about, as they are stored.
type editedObjects struct {
	get   func(path string) (*unstructured.Unstructured, bool)
	judge *crdcheck.Judge
	known map[string]editedObject // by what an edit calls it
}

// editedObject is an object that an edit is written into.
type editedObject struct {
	object   *unstructured.Unstructured // nil where it cannot be read
	template []string                   // path of its pod template, for pods
	fixed    bool                       // the API server takes no change of the template
}

func newEditedObjects(ctx context.Context, l clusterLink) (*editedObjects, error) {
	judge, err := crdcheck.NewJudge()
	if err != nil {
		return nil, err
	}
	return &editedObjects{judge: judge, known: map[string]editedObject{},
		get: func(path string) (*unstructured.Unstructured, bool) {
			o, found, err := l.kube.Objects.Get(ctx, path)
			return o, found && err == nil
		}}, nil
}

// find is the object of the edit; of a pod, what makes it.
func (s *editedObjects) find(e whatif.Edit) editedObject {
	o, known := s.known[e.Object()]
	if known {
		return o
	}
	in := "/namespaces/" + e.Namespace + "/"
	path := map[string]string{
		"NodePool": atPools + "/", "Node": atNodes + "/", "Pod": "/api/v1" + in + "pods/",
		"PodDisruptionBudget": "/apis/policy/v1" + in + "poddisruptionbudgets/",
	}[e.Kind]
	if path != "" {
		o.object, _ = s.get(path + e.Name)
	}
	if o.object != nil && e.Kind == "Pod" {
		o.fixed = true
		o = s.makerOf(o)
	}
	s.known[e.Object()] = o
	return o
}

// podMaker is a kind of objects that make pods.
type podMaker struct {
	list     string   // path of one of them, by namespace and name
	template []string // path of its pod template
	fixed    bool     // the API server takes no change of the template
}

// podMakers are the kinds that make pods.
func podMakers() map[string]podMaker {
	template := []string{"spec", "template"}
	return map[string]podMaker{
		"ReplicaSet":  {"/apis/apps/v1/namespaces/%s/replicasets/%s", template, false},
		"Deployment":  {"/apis/apps/v1/namespaces/%s/deployments/%s", template, false},
		"StatefulSet": {"/apis/apps/v1/namespaces/%s/statefulsets/%s", template, false},
		"Job":         {"/apis/batch/v1/namespaces/%s/jobs/%s", template, true},
		"CronJob":     {"/apis/batch/v1/namespaces/%s/cronjobs/%s", []string{"spec", "jobTemplate", "spec", "template"}, false},
	}
}

// makerOf is what makes the object in the end, as far as it can be read.
func (s *editedObjects) makerOf(o editedObject) editedObject {
	for {
		ref := metav1.GetControllerOfNoCopy(o.object)
		if ref == nil {
			return o
		}
		kind, known := podMakers()[ref.Kind]
		if !known {
			return editedObject{fixed: true, object: o.object, template: o.template}
		}
		maker, found := s.get(fmt.Sprintf(kind.list, o.object.GetNamespace(), ref.Name))
		if !found {
			return o
		}
		o = editedObject{object: maker, template: kind.template, fixed: kind.fixed}
	}
}

// patch is the edit written into its object, and how.
func (s *editedObjects) patch(e whatif.Edit) (editedObject, []whatif.Step, error) {
	o := s.find(e)
	if o.object == nil {
		return o, nil, fmt.Errorf("%s cannot be read", e.Object())
	}
	o.object = o.object.DeepCopy()
	steps, err := e.Patch(o.object.Object, o.template...)
	return o, steps, err
}

// accept reports whether the API server would take the edit, as far as anybody can tell who does not ask it.
func (s *editedObjects) accept(e whatif.Edit) bool {
	o, _, err := s.patch(e)
	if err != nil {
		return true
	}
	if e.Kind != "Pod" {
		body, err := json.Marshal(o.object.Object)
		if err != nil {
			return false
		}
		v, _, err := s.judge.Judge(o.object.GetAPIVersion(), o.object.GetKind(), body)
		return err == nil && len(v.Refused) == 0
	}
	spec, _, _ := unstructured.NestedMap(o.object.Object, append(slices.Clone(o.template), "spec")...)
	var pod corev1.PodSpec
	err = runtime.DefaultUnstructuredConverter.FromUnstructured(spec, &pod)
	return err == nil && len(workload.SpecRefusals(pod)) == 0
}

// addPlaces says of each edit how it is made.
func (s *editedObjects) addPlaces(all []whatif.Change) {
	for i := range all {
		for j := range all[i].Edits {
			all[i].Edits[j].Place = s.placeOf(all[i].Edits[j])
		}
	}
}

func (s *editedObjects) placeOf(e whatif.Edit) string {
	switch e.Kind {
	case whatif.KindSetting:
		return fmt.Sprintf("cdk.json: context.%s = %s", e.Name, e.To)
	case whatif.KindEC2:
		return "AWS account: " + e.Name
	}
	o, steps, err := s.patch(e)
	switch {
	case o.object == nil:
		return fmt.Sprintf("%s, %s", e.Object(), e.Field)
	case err != nil || o.fixed && !mayChangePod(e):
		return fmt.Sprintf("manifest of %s %s/%s: %s", o.object.GetKind(), o.object.GetNamespace(), o.object.GetName(),
			strings.Join(append(slices.Clone(o.template), e.Field), "."))
	}
	body, err := json.Marshal(steps)
	if err != nil {
		return e.Field
	}
	place := "kubectl patch " + strings.ToLower(o.object.GetKind()) + " " + o.object.GetName()
	if ns := o.object.GetNamespace(); ns != "" {
		place += " -n " + ns
	}
	return place + " --type=json -p '" + strings.ReplaceAll(string(body), "'", `'\''`) + "'"
}

// mayChangePod reports whether the API server takes the edit of a pod that is there.
func mayChangePod(e whatif.Edit) bool {
	return e.Field == "spec.tolerations" || strings.HasPrefix(e.Field, "metadata.annotations")
}
