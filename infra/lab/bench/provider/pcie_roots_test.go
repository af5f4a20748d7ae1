//go:build !karpenter_1_14

package provider

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/aws/karpenter-provider-aws/pkg/providers/drametadata"
	"github.com/google/go-cmp/cmp"

	"joiner.sh/pkg/model/instancetypes"
)

// Each type with GPUs has its devices on the PCIe roots that Karpenter's templates say. Parts of a GPU are left out.
func TestPCIeRootsAreThoseOfKarpentersTemplates(t *testing.T) {
	const root = "resource.kubernetes.io/pcieRoot"
	for name, gpus := range drametadata.GPUMetadataByInstanceType {
		byRoot := map[string][2]int{}
		for i, of := range []*drametadata.DeviceMetadata{gpus, drametadata.EFAMetadataByInstanceType[name]} {
			if of == nil {
				continue
			}
			if of.Count != len(of.Devices) {
				t.Errorf("%s: %d devices, and %d are described", name, of.Count, len(of.Devices))
			}
			for _, d := range of.Devices {
				n := byRoot[*d.Attributes[root].StringValue]
				n[i]++
				byRoot[*d.Attributes[root].StringValue] = n
			}
		}
		var want, got []string
		for _, n := range byRoot {
			want = append(want, fmt.Sprint(n[0], "+", n[1]))
		}
		for _, r := range instancetypes.PCIeRoots(name) {
			got = append(got, fmt.Sprint(r[instancetypes.ResourceNVIDIA], "+", r[instancetypes.ResourceEFA]))
		}
		slices.Sort(want)
		slices.Sort(got)
		if strings.HasPrefix(name, "g6f.") || strings.HasPrefix(name, "gr6f.") {
			want = nil
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s: GPUs and EFA interfaces by PCIe root (-Karpenter +Joiner):\n%s", name, d)
		}
	}
}
