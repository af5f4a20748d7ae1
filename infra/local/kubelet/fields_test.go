package kubelet

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	kubeletv1 "k8s.io/kubelet/config/v1beta1"

	"joiner.sh/pkg/nodeclass"
)

// What an EC2NodeClass may set is what the kubelet of this release reads.
func TestFieldsOfTheKubeletAreThoseOfTheRelease(t *testing.T) {
	var want []string
	for kind, i := reflect.TypeFor[kubeletv1.KubeletConfiguration](), 0; i < kind.NumField(); i++ {
		if name, _, _ := strings.Cut(kind.Field(i).Tag.Get("json"), ","); name != "" {
			want = append(want, name)
		}
	}
	slices.Sort(want)
	if d := cmp.Diff(want, nodeclass.KubeletFields()); d != "" {
		t.Errorf("fields (-kubelet +joiner):\n%s", d)
	}
}
