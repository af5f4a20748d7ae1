package refresh_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/api/v1alpha1"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/testing/controllertest"
)

// addOverlay adds an overlay that sets the price of everything, or that makes no sense.
func addOverlay(s *controllertest.RefreshWorld, name string, invalid string) {
	o := &v1alpha1.NodeOverlay{ObjectMeta: metav1.ObjectMeta{Name: name, Generation: 1}}
	s.Touch(&o.ObjectMeta)
	price := 1.0
	s.Overlays = append(s.Overlays, o)
	s.OfferingInputs.Overlays = append(s.OfferingInputs.Overlays, cluster.Overlay{Name: name, Price: &price, Message: invalid})
}

func TestOverlaysAreTold(t *testing.T) {
	s := controllertest.NewRefreshWorld()
	c, _, err := s.ReadCatalog(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	s.OfferingInputs.Classes = []instancetypes.Class{instancetypes.DefaultClass(c)}
	s.OfferingInputs.Pools = []cluster.Pool{{Name: "p", Class: "default"}, {Name: "q", Class: "gone"}}
	addOverlay(s, "a", "")
	addOverlay(s, "b", "")
	addOverlay(s, "c", "no label key")
	addOverlay(s, "d", "it is being deleted")
	now := metav1.Now()
	s.Overlays[3].DeletionTimestamp = &now
	s.Meddled = "b" // somebody changes it at the same time
	did, err := s.Run(t)
	if d := cmp.Diff([]string{"market", "status of overlay a", "status of overlay c"}, did); d != "" || err != nil {
		t.Errorf("error %v, done (-want +got):\n%s", err, d)
	}
	s.Meddled = ""
	if did, err = s.Run(t); err != nil || !slices.Equal(did, []string{"market", "status of overlay b"}) {
		t.Errorf("again: %v, error %v", did, err)
	}
	got := map[string]string{}
	for _, o := range s.Overlays {
		k, _ := o.StatusConditions().Get(v1.ConditionValidationSucceeded)
		got[o.Name] = string(k.Status) + " " + k.Reason
	}
	want := map[string]string{"a": "False Conflict", "b": "True ValidationSucceeded", "c": "False RuntimeValidation", "d": " "}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("conditions (-want +got):\n%s", d)
	}
}
