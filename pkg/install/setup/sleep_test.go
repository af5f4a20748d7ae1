package setup_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// When the whole cluster sleeps stands on our namespace, and goes with the setting.
func TestInstallSaysWhenTheClusterSleeps(t *testing.T) {
	w := &world{objects: map[string]*unstructured.Unstructured{}}
	s := newSetup(w)
	for _, want := range []map[string]string{{"joiner.sh/hibernation-schedule": "0 20 * * *", "joiner.sh/hibernation-duration": "12h0m0s"}, nil} {
		s.Sleep = want
		if _, err := s.InstallObjects(t.Context()); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, w.objects["/api/v1/namespaces/joiner-system"].GetAnnotations()); diff != "" {
			t.Errorf("annotations (-want +got):\n%s", diff)
		}
	}
}
