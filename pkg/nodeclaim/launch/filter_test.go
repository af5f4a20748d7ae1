package launch

import (
	"testing"

	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/resources"
)

// Bare metal of every size and whatever has an accelerator is dear, and left out where something else would do.
func TestWhatIsExotic(t *testing.T) {
	for name, want := range map[string]bool{"m5.large": false, "m5.metal": true, "m7i.metal-24xl": true, "metal.large": false} {
		if got := isExotic(&instancetypes.Type{Name: name}); got != want {
			t.Errorf("%s: %t", name, got)
		}
	}
	for _, r := range []string{instancetypes.ResourceNVIDIA, instancetypes.ResourceAMD, instancetypes.ResourceNeuron, instancetypes.ResourceNeuronCore, instancetypes.ResourceGaudi} {
		if !isExotic(&instancetypes.Type{Name: "x.large", Capacity: resources.List{}.With(r, 1)}) {
			t.Errorf("a type with %s is plain", r)
		}
	}
}
