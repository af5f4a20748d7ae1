package cli_test

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const manifests = "../../../../pkg/cli/testdata"

// Every manifest of the collection, converted, is what the API server takes; it neither drops nor refuses a field.
func TestConvertedManifestsApply(t *testing.T) {
	e := newEnv(t)
	files, err := filepath.Glob(manifests + "/manifests/*.yaml")
	if err != nil || len(files) < 12 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, f := range append(files, manifests+"/old/everything.yaml") {
		code, out, progress := run("convert", "-f", f, "--cluster", "demo")
		if code != 0 {
			t.Errorf("%s: exit %d, %s", f, code, progress)
			continue
		}
		for _, o := range parse(t, out) {
			if o.GroupVersionKind().Group != "karpenter.sh" && o.GroupVersionKind().Group != "karpenter.k8s.aws" {
				continue
			}
			stored, err := e.dynamic.Resource(resourceOf(o)).Create(t.Context(), o, metav1.CreateOptions{FieldValidation: "Strict"})
			if err != nil {
				t.Errorf("%s: %s %s: %v", f, o.GetKind(), o.GetName(), err)
				continue
			}
			if err := e.dynamic.Resource(resourceOf(o)).Delete(context.Background(), stored.GetName(), metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// A converted Provisioner is a pool that the pods of its time get nodes of.
func TestConvertedPoolsAreUsed(t *testing.T) {
	e := newEnv(t)
	_, out, _ := run("convert", "-f", manifests+"/manifests/provisioner-v1alpha5-taint.yaml")
	e.applyAll(t, out)
	e.status(t, classes(), "provisioner2", ready)
	deployment := parse(t, readFile(t, manifests+"/manifests/inflate-tainted.yaml"))[0]
	deployment.SetNamespace("default")
	e.apply(t, deployment)
	e.cleanUp(t, deployment)
	e.eventually(t, "a plan for five pods", func(context.Context) (string, bool) {
		code, out, progress := e.joiner("plan")
		return out + progress, code == 0 && strings.Contains(out, "│         2 │ c5.xlarge │ on-demand     │ us-west-2a │ provisioner2 │ 0.3444 │    5 │ default/inflate2 5 │")
	})
}
