package discovery

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"joiner.sh/pkg/model/instancetypes"
)

// An entry of the price list is a volume's price by its unit; of tiers the first holds, and other products are none.
func TestPricesOfVolumes(t *testing.T) {
	entry := func(volume, unit, begin, usd string) string {
		return `{"product":{"attributes":{"volumeApiName":"` + volume + `"}},"terms":{"OnDemand":{"t":{"priceDimensions":{"` + begin +
			`":{"unit":"` + unit + `","beginRange":"` + begin + `","pricePerUnit":{"USD":"` + usd + `"}}}}}}}`
	}
	got := map[string]instancetypes.DiskPrice{}
	for _, text := range []string{
		entry("gp3", "GB-Mo", "0", "0.096"), entry("gp3", "IOPS-Mo", "0", "0.006"), entry("gp3", "GiBps-mo", "0", "49.152"),
		entry("io2", "IOPS-Mo", "0", "0.065"), entry("io2", "IOPS-Mo", "32000", "0.046"),
		entry("", "GB-Mo", "0", "0.05"), entry("st1", "Hrs", "0", "1"), entry("sc1", "GB-Mo", "0", "0"),
	} {
		p, err := readProduct(text)
		if err != nil {
			t.Fatal(err)
		}
		addDiskPrice(got, p, "USD")
	}
	want := map[string]instancetypes.DiskPrice{"gp3": {GiB: 0.096, IOPS: 0.006, MiBps: 0.048}, "io2": {IOPS: 0.065}}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if _, err := readProduct("{"); err == nil {
		t.Error("text that is no JSON has no error")
	}
}
