package controllers_test

import (
	"context"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "joiner/pkg/api/v1"
	"joiner/pkg/api/v1alpha1"
	"joiner/pkg/model/cluster"
	"joiner/pkg/model/instancetypes"
	"joiner/pkg/model/instancetypes/builtin"
)

// addOverlay adds an overlay that sets the price of everything, or that makes no sense.
func (s *shop) addOverlay(name string, invalid string) {
	o := &v1alpha1.NodeOverlay{ObjectMeta: metav1.ObjectMeta{Name: name, Generation: 1}}
	s.touch(&o.ObjectMeta)
	price := 1.0
	s.overlays = append(s.overlays, o)
	s.shelves.Overlays = append(s.shelves.Overlays, cluster.Overlay{Name: name, Price: &price, Message: invalid})
}

func (s *shop) ReadOfferingInputs(context.Context) (cluster.Snapshot, []v1alpha1.NodeOverlay, error) {
	var out []v1alpha1.NodeOverlay
	for _, o := range s.overlays {
		out = append(out, *o.DeepCopy())
	}
	return s.shelves, out, nil
}

func (s *shop) WriteOverlayStatus(_ context.Context, o *v1alpha1.NodeOverlay) error {
	i := slices.IndexFunc(s.overlays, func(have *v1alpha1.NodeOverlay) bool { return have.Name == o.Name })
	if i < 0 || s.overlays[i].ResourceVersion != o.ResourceVersion || s.meddled == o.Name {
		return conflictError{}
	}
	s.overlays[i].Status = *o.Status.DeepCopy()
	s.did = append(s.did, "status of overlay "+o.Name)
	return nil
}

func (s *shop) ReadCatalog(context.Context) (instancetypes.Catalog, string, error) {
	c, err := instancetypes.DecodeCatalog(builtin.Data())
	return c, "", err
}

func TestOverlaysAreTold(t *testing.T) {
	s := newShop()
	c, _, err := s.ReadCatalog(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	s.shelves.Classes = []instancetypes.Class{instancetypes.DefaultClass(c)}
	s.shelves.Pools = []cluster.Pool{{Name: "p", Class: "default"}, {Name: "q", Class: "gone"}}
	s.addOverlay("a", "")
	s.addOverlay("b", "")
	s.addOverlay("c", "no label key")
	s.addOverlay("d", "it is being deleted")
	now := metav1.Now()
	s.overlays[3].DeletionTimestamp = &now
	s.meddled = "b" // somebody changes it at the same time
	did, err := s.run(t)
	if d := cmp.Diff([]string{"market", "status of overlay a", "status of overlay c"}, did); d != "" || err != nil {
		t.Errorf("error %v, done (-want +got):\n%s", err, d)
	}
	s.meddled = ""
	if did, err = s.run(t); err != nil || !slices.Equal(did, []string{"market", "status of overlay b"}) {
		t.Errorf("again: %v, error %v", did, err)
	}
	got := map[string]string{}
	for _, o := range s.overlays {
		k, _ := o.StatusConditions().Get(v1.ConditionValidationSucceeded)
		got[o.Name] = string(k.Status) + " " + k.Reason
	}
	want := map[string]string{"a": "False Conflict", "b": "True ValidationSucceeded", "c": "False RuntimeValidation", "d": " "}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("conditions (-want +got):\n%s", d)
	}
}
