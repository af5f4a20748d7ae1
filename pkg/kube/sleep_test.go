package kube_test

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	karpv1 "joiner/pkg/api/v1"
	"joiner/pkg/kube"
)

// Sleep is two annotations beside the time zone of budgets; a pool whose sleep nobody understands is not disrupted.
func TestSleepOfAPool(t *testing.T) {
	pool := func(at, span string) *karpv1.NodePool {
		p := &karpv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "a", Annotations: map[string]string{"joiner.sh/sleep": at, "joiner.sh/sleep-for": span}}}
		p.Spec.Template.Spec.NodeClassRef = &karpv1.NodeClassReference{Group: "karpenter.k8s.aws", Kind: "EC2NodeClass", Name: "c"}
		return p
	}
	d := kube.Pool(pool("0 20 * * 1-5", "12h"), nil).Disruption
	if d.SleepAt != "0 20 * * 1-5" || d.SleepFor != 12*time.Hour || d.Message != "" || d.ReportOnly {
		t.Errorf("%+v", d)
	}
	for _, c := range [][3]string{{"0 20 * * *", "", "sleep: schedule and duration go together"}, {"0 20 * * *", "long", `"long" is no duration`}, {"often", "1h", `schedule "often"`}} {
		if d := kube.Pool(pool(c[0], c[1]), nil).Disruption; !strings.Contains(d.Message, c[2]) || !d.ReportOnly {
			t.Errorf("%v: %q", c, d.Message)
		}
	}
}
