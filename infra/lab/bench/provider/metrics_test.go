//go:build !karpenter_1_14

package provider_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	crmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/karpenter/pkg/controllers/metrics/node"

	_ "github.com/aws/karpenter-provider-aws/pkg/batcher"
	_ "github.com/aws/karpenter-provider-aws/pkg/controllers/interruption"
	_ "github.com/aws/karpenter-provider-aws/pkg/controllers/metrics"
	_ "github.com/aws/karpenter-provider-aws/pkg/providers/instance"
	_ "github.com/aws/karpenter-provider-aws/pkg/providers/instancetype"
	_ "github.com/aws/karpenter-provider-aws/pkg/providers/launchtemplate"
	_ "sigs.k8s.io/karpenter/pkg/cloudprovider/metrics"
	_ "sigs.k8s.io/karpenter/pkg/controllers/disruption"
	_ "sigs.k8s.io/karpenter/pkg/controllers/metrics/nodepool"
	_ "sigs.k8s.io/karpenter/pkg/controllers/metrics/pod"
	_ "sigs.k8s.io/karpenter/pkg/controllers/node/termination"
	_ "sigs.k8s.io/karpenter/pkg/controllers/node/termination/terminator"
	_ "sigs.k8s.io/karpenter/pkg/controllers/nodeclaim/lifecycle"
	_ "sigs.k8s.io/karpenter/pkg/controllers/provisioning/scheduling"
	_ "sigs.k8s.io/karpenter/pkg/controllers/state"
	_ "sigs.k8s.io/karpenter/pkg/metrics"
	_ "sigs.k8s.io/karpenter/pkg/operator"
	_ "sigs.k8s.io/karpenter/pkg/state/cost"
)

// TestTheListOfMetrics compares the list that the product's tests read with what Karpenter registers.
func TestTheListOfMetrics(t *testing.T) {
	node.NewController(nil) // registers only then
	registry, ok := crmetrics.Registry.(*prometheus.Registry)
	if !ok {
		t.Fatalf("the registry is a %T", crmetrics.Registry)
	}
	all := make(chan *prometheus.Desc, 10_000)
	registry.Describe(all)
	close(all)
	parts := regexp.MustCompile(`fqName: "((?:karpenter|operator)_[^"]*)", .*variableLabels: \{([^}]*)\}`)
	var got []string
	for d := range all {
		if m := parts.FindStringSubmatch(d.String()); m != nil {
			labels := strings.Split(m[2], ",")
			slices.Sort(labels)
			got = append(got, strings.TrimSpace(m[1]+" "+strings.Join(labels, ",")))
		}
	}
	slices.Sort(got)
	want, err := os.ReadFile("../../../../pkg/model/timeseries/testdata/karpenter.txt")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Split(strings.TrimSpace(string(want)), "\n"), got); diff != "" {
		t.Errorf("metrics (-listed +registered):\n%s", diff)
	}
}
