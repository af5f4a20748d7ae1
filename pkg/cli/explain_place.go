package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	karpv1 "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/cli/explain"
	"joiner.sh/pkg/install/crdcheck"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/nodeclass/translate"
	"joiner.sh/pkg/whatif"
)

// editPlaces tells where edits are made.
type editPlaces struct {
	get   func(path string) (*unstructured.Unstructured, bool)
	judge *crdcheck.Judge
}

func newEditPlaces(ctx context.Context, l clusterLink) (editPlaces, error) {
	judge, err := crdcheck.NewJudge()
	return editPlaces{judge: judge, get: func(path string) (*unstructured.Unstructured, bool) {
		o, found, err := l.kube.Objects.Get(ctx, path)
		return o, found && err == nil
	}}, err
}

// podState reads the pod namespace/name; the zero value where nobody can tell.
func (s editPlaces) podState(key string) (out explain.PodState) {
	namespace, name, _ := strings.Cut(key, "/")
	o, found := s.get("/api/v1/namespaces/" + url.PathEscape(namespace) + "/pods/" + url.PathEscape(name))
	if !found {
		return out
	}
	text := func(at ...string) string {
		value, _, _ := unstructured.NestedString(o.Object, at...)
		return value
	}
	return explain.PodState{Scheduler: text("spec", "schedulerName"), Phase: text("status", "phase"),
		Cause: text("status", "reason"), NodeName: text("spec", "nodeName")}
}

// podMaker is a kind of objects that make pods.
type podMaker struct {
	list     string   // path of one of them, by namespace and name
	template []string // path of its pod template
}

// podMakers are the kinds that make pods.
func podMakers() map[string]podMaker {
	template := []string{"spec", "template"}
	return map[string]podMaker{
		"ReplicaSet":  {"/apis/apps/v1/namespaces/%s/replicasets/%s", template},
		"Deployment":  {"/apis/apps/v1/namespaces/%s/deployments/%s", template},
		"StatefulSet": {"/apis/apps/v1/namespaces/%s/statefulsets/%s", template},
		"Job":         {"/apis/batch/v1/namespaces/%s/jobs/%s", template},
		"CronJob":     {"/apis/batch/v1/namespaces/%s/cronjobs/%s", []string{"spec", "jobTemplate", "spec", "template"}},
	}
}

// makerOf is the kind and the name of what makes the pod in the end, as far as it can be read, and the path of its pod
// template.
func (s editPlaces) makerOf(namespace, pod string) (kind, name string, template []string) {
	kind, name = "Pod", pod
	o, found := s.get("/api/v1/namespaces/" + namespace + "/pods/" + pod)
	for found {
		ref := metav1.GetControllerOfNoCopy(o)
		if ref == nil {
			break
		}
		maker, known := podMakers()[ref.Kind]
		if kind, name = ref.Kind, ref.Name; !known {
			break // nobody knows where it has its template
		}
		template = maker.template
		o, found = s.get(fmt.Sprintf(maker.list, namespace, name))
	}
	return kind, name, template
}

// accept reports whether the API server takes the NodePool, by its CRD.
func (s editPlaces) accept(p cluster.Pool) bool {
	var o karpv1.NodePool
	o.APIVersion, o.Kind, o.Name = karpv1.GroupVersion().String(), "NodePool", p.Name
	o.Spec.Template.Labels = p.Labels
	o.Spec.Template.Spec.Requirements = translate.ClaimRequirements(p.Requirements)
	o.Spec.Template.Spec.NodeClassRef = &karpv1.NodeClassReference{Group: "karpenter.k8s.aws", Kind: "EC2NodeClass",
		Name: p.Class}
	body, err := json.Marshal(o)
	if err != nil {
		return false
	}
	v, _, err := s.judge.Judge(o.APIVersion, o.Kind, body)
	return err == nil && len(v.Refused) == 0
}

// addPlaces says of each edit how it is made.
func (s editPlaces) addPlaces(all []whatif.Change) {
	for i := range all {
		for j := range all[i].Edits {
			all[i].Edits[j].Place = s.placeOf(all[i].Edits[j])
		}
	}
}

// placeOf is the command that makes the edit, or the object and the path where one line of a command cannot, or the API
// server takes no change.
func (s editPlaces) placeOf(e whatif.Edit) string {
	kind, name, template := e.Kind, e.Name, []string(nil)
	switch e.Kind {
	case whatif.KindSetting:
		return fmt.Sprintf("cdk.json: context.%s = %s", e.Name, e.To)
	case whatif.KindEC2:
		return "AWS account: " + e.Name
	case "Pod":
		kind, name, template = s.makerOf(e.Namespace, e.Name)
	}
	fixed := kind == "Job" || kind == "Pod" && !strings.HasPrefix(e.Field, "metadata.annotations")
	patch, ok := e.MergePatch(template...)
	if _, known := podMakers()[kind]; !ok || fixed || e.Kind == "Pod" && kind != "Pod" && !known {
		where := strings.Join(append(slices.Clone(template), e.Field), ".")
		return "manifest of " + whatif.Edit{Kind: kind, Namespace: e.Namespace, Name: name}.Object() + ": " + where
	}
	place := "kubectl patch " + strings.ToLower(kind) + " " + name
	if e.Namespace != "" {
		place += " -n " + e.Namespace
	}
	return place + " --type=merge -p '" + strings.ReplaceAll(patch, "'", `'\''`) + "'"
}
