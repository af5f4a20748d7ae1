package binpack

import (
	"testing"

	api "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/testing/scenario"
)

// A node for no pods asks for no more values than what is to be had leaves, or says which are too few.
func TestTemplateNodeLowersMinValues(t *testing.T) {
	w, err := scenario.FromText([]string{"type m cpu=4000 mem=8192 milliusd=96 spot=40 zones=(a)",
		"pool fixed\nrequire zone Exists min=2\nrequire capacity Exists min=2\nrequire team In red blue min=2"})
	if err != nil {
		t.Fatal(err)
	}
	p := w.Snapshot.Pools[0]
	if _, refused := TemplateNode(p, w.Types, false); refused !=
		"its requirements want 2 values of topology.kubernetes.io/zone, and what is to be had now has 1" {
		t.Errorf("refused: %q", refused)
	}
	l, refused := TemplateNode(p, w.Types, true)
	if refused != "" || l.Annotations[api.AnnotationMinValuesRelaxed] != "true" {
		t.Errorf("refused %q, annotations %v", refused, l.Annotations)
	}
	for key, want := range map[string]int{instancetypes.LabelZone: 1, instancetypes.LabelCapacityType: 2, "team": 0} {
		if r, ok := l.Requirements.Get(key); !ok || r.MinValues != want {
			t.Errorf("%s: minValues %d, want %d", key, r.MinValues, want)
		}
	}
}
