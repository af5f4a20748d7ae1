package overlays_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"joiner.sh/pkg/api/v1alpha1"
	"joiner.sh/pkg/model/overlays"
)

func TestProblems(t *testing.T) {
	for spec, want := range map[string][]string{
		`{requirements: [{key: karpenter.sh/nodepool, operator: In, values: [p]}, {key: karpenter.k8s.aws/instance-cpu, operator: Gt, values: ["3"]}]}`: nil,
		`{requirements: [{key: team.example/x, operator: Exists}], capacity: {smarter-devices/fuse: 1, nvidia.com/gpu: 0}}`:                             nil,
		`{requirements: [{key: a b, operator: Exists}]}`:                                        {`requirement key "a b" is no label key`},
		`{requirements: [{key: a, operator: In, values: [x, "-"]}]}`:                            {`requirement a has a value that no label can have: "-"`},
		`{requirements: [{key: karpenter.sh/registered, operator: Exists}]}`:                    {`requirement karpenter.sh/registered is about a label that no instance type has`},
		`{requirements: [{key: x.karpenter.k8s.aws/y, operator: Exists}]}`:                      {`requirement x.karpenter.k8s.aws/y is about a label that no instance type has`},
		`{requirements: [{key: kubernetes.io/hostname, operator: In, values: [n]}]}`:            {`requirement kubernetes.io/hostname is about a label that no instance type has`},
		`{requirements: [{key: karpenter.sh/capacity-type, operator: In, values: [cheap]}]}`:    {`requirement karpenter.sh/capacity-type allows none of on-demand, reserved and spot: [cheap]`},
		`{requirements: [{key: karpenter.sh/capacity-type, operator: NotIn, values: [cheap]}]}`: nil,
		`{capacity: {vpc.amazonaws.com/efa: 1, aws.amazon.com/neuron: 2, example.com/x: -1}}`: {
			"capacity may not hold aws.amazon.com/neuron: the instance type gives it", "capacity example.com/x is below zero: -1",
			"capacity may not hold vpc.amazonaws.com/efa: the instance type gives it"},
	} {
		o := &v1alpha1.NodeOverlay{}
		if err := yaml.UnmarshalStrict([]byte(spec), &o.Spec); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want, overlays.ValidateOverlay(o)); d != "" {
			t.Errorf("%s (-want +got):\n%s", spec, d)
		}
	}
}

func TestUpdate(t *testing.T) {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		v    overlays.Verdict
		want []string
	}{
		{overlays.Verdict{}, []string{"ValidationSucceeded=True ValidationSucceeded ", "Ready=True Ready "}},
		{overlays.Verdict{Invalid: "no"}, []string{"ValidationSucceeded=False RuntimeValidation no", "Ready=False UnhealthyDependents ValidationSucceeded=False"}},
		{overlays.Verdict{Conflict: "b"}, []string{"ValidationSucceeded=False Conflict b", "Ready=False UnhealthyDependents ValidationSucceeded=False"}},
	} {
		o := &v1alpha1.NodeOverlay{ObjectMeta: metav1.ObjectMeta{Name: "x", Generation: 2}}
		if !overlays.UpdateStatus(o, c.v, now) || overlays.UpdateStatus(o, c.v, now.Add(time.Hour)) {
			t.Errorf("%+v: the first time is a change and the second is none", c.v)
		}
		var got []string
		for _, k := range o.Status.Conditions {
			got = append(got, k.Type+"="+string(k.Status)+" "+k.Reason+" "+k.Message)
		}
		if d := cmp.Diff(c.want, got); d != "" {
			t.Errorf("%+v (-want +got):\n%s", c.v, d)
		}
	}
}
