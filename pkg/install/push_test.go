package install

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// pushed is the webhook in its Kubernetes type, which refuses unknown fields.
func pushed(t *testing.T, to Address) admissionv1.ValidatingWebhookConfiguration {
	t.Helper()
	o, err := Push(to)
	if err != nil {
		t.Fatal(err)
	}
	var out admissionv1.ValidatingWebhookConfiguration
	if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(o.Object, &out, true); err != nil {
		t.Fatal(err)
	}
	return out
}

// TestPushIsInNobodysWay: an API server that cannot reach the function goes on at once or after a second, and dry runs
// wake nobody.
func TestPushIsInNobodysWay(t *testing.T) {
	for _, w := range pushed(t, Address{URL: "https://x/s"}).Webhooks {
		if *w.FailurePolicy != admissionv1.Ignore || *w.TimeoutSeconds != 1 || *w.SideEffects != admissionv1.SideEffectClassNoneOnDryRun {
			t.Errorf("%s: failurePolicy %s, timeoutSeconds %d, sideEffects %s", w.Name, *w.FailurePolicy, *w.TimeoutSeconds, *w.SideEffects)
		}
		var names []string
		for _, c := range w.MatchConditions {
			names = append(names, c.Name)
		}
		want := map[string][]string{"pods.push.joiner.sh": {"real", "failed-scheduling", "not-ours"}, "nodes.push.joiner.sh": {"real", "not-ours"}}[w.Name]
		if diff := cmp.Diff(want, names); diff != "" {
			t.Errorf("%s: conditions (-want +got):\n%s", w.Name, diff)
		}
	}
}

func TestPushAddresses(t *testing.T) {
	for name, c := range map[string]struct {
		to     Address
		bundle string
	}{
		"a public authority": {Address{URL: "https://x.lambda-url.us-west-2.on.aws/secret"}, ""},
		"one of our own":     {Address{URL: "https://127.0.0.1:1/secret", CA: []byte("PEM")}, "PEM"},
	} {
		t.Run(name, func(t *testing.T) {
			var urls []string
			for _, w := range pushed(t, c.to).Webhooks {
				urls = append(urls, *w.ClientConfig.URL)
				if string(w.ClientConfig.CABundle) != c.bundle || w.ClientConfig.Service != nil {
					t.Errorf("%s: CA %q, service %v", w.Name, w.ClientConfig.CABundle, w.ClientConfig.Service)
				}
			}
			if diff := cmp.Diff([]string{c.to.URL + "/pods", c.to.URL + "/nodes"}, urls); diff != "" {
				t.Errorf("URLs (-want +got):\n%s", diff)
			}
		})
	}
}
