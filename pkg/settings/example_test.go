package settings_test

import (
	"fmt"

	"joiner.sh/pkg/settings"
)

// A name that is no setting is answered with the setting that it resembles, or with what there is in its place.
func ExampleNearest() {
	if name, found := settings.Nearest("spotToSpotConsolidaton"); found {
		fmt.Println("did you mean", name+"?")
	}
	instead, removed := settings.Removed("podInterruptionCostUSD")
	fmt.Println(removed, instead)
	// Output:
	// did you mean spotToSpotConsolidation?
	// true EC2 chooses spot pools by price-capacity-optimized, as for Karpenter; learned rates saved nearly nothing
}
