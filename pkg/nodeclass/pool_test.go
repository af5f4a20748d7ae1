package nodeclass_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	awsv1 "joiner.sh/pkg/api/aws/v1"
	v1 "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/model/resources"
	"joiner.sh/pkg/nodeclass"
)

func pool() *v1.NodePool {
	p := &v1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "general", Generation: 2}}
	p.Spec.Template.Spec.NodeClassRef = &v1.NodeClassReference{Group: "karpenter.k8s.aws", Kind: "EC2NodeClass", Name: "default"}
	return p
}

// classes is one class that is ready.
func classes() []awsv1.EC2NodeClass {
	c := class()
	nodeclass.UpdateStatus(c, found(), noon())
	return []awsv1.EC2NodeClass{*c}
}

func TestAPoolOfAReadyClassIsReady(t *testing.T) {
	p := pool()
	if !nodeclass.UpdatePool(p, classes(), noon()) {
		t.Error("nothing changed")
	}
	want := []string{"NodeRegistrationHealthy=Unknown AwaitingReconciliation: object is awaiting reconciliation"}
	if diff := cmp.Diff(want, conditions(p.Status.Conditions)); diff != "" || !p.StatusConditions().IsTrue("Ready") {
		t.Errorf("conditions that are not True (-want +got):\n%s", diff)
	}
	if p.Status.NodeClassObservedGeneration != 3 {
		t.Errorf("generation of the class is %d, want 3", p.Status.NodeClassObservedGeneration)
	}
	if nodeclass.UpdatePool(p, classes(), noon().Add(time.Hour)) {
		t.Error("the second update changed something")
	}
}

func TestTheClassDecidesWhetherThePoolIsReady(t *testing.T) {
	deleted := metav1.NewTime(noon())
	for _, test := range []struct {
		name   string
		change func(c *awsv1.EC2NodeClass)
		want   string
	}{
		{"another name", func(c *awsv1.EC2NodeClass) { c.Name = "other" }, "NodeClassReady=False NodeClassNotFound: there is no EC2NodeClass default"},
		{"deleted", func(c *awsv1.EC2NodeClass) { c.DeletionTimestamp = &deleted }, "NodeClassReady=False NodeClassTerminating: EC2NodeClass default is being deleted"},
		{"never looked at", func(c *awsv1.EC2NodeClass) { c.Status = awsv1.EC2NodeClassStatus{} },
			"NodeClassReady=Unknown NodeClassReadinessUnknown: EC2NodeClass default has not been looked at since it changed"},
		{"changed since", func(c *awsv1.EC2NodeClass) { c.Generation++ },
			"NodeClassReady=Unknown NodeClassReadinessUnknown: EC2NodeClass default has not been looked at since it changed"},
		{"not ready", func(c *awsv1.EC2NodeClass) {
			c.StatusConditions().SetFalse(awsv1.ConditionSubnetsReady, awsv1.ReasonSubnetsNotFound, "no subnet", noon())
		}, "NodeClassReady=False UnhealthyDependents: EC2NodeClass default: SubnetsNotFound: no subnet"},
	} {
		t.Run(test.name, func(t *testing.T) {
			p, c := pool(), classes()
			test.change(&c[0])
			nodeclass.UpdatePool(p, c, noon())
			if got := conditions(p.Status.Conditions); got[0] != test.want || p.StatusConditions().IsTrue("Ready") {
				t.Errorf("got  %v\nwant %s", got, test.want)
			}
		})
	}
}

func TestProblemsOfAPool(t *testing.T) {
	three := 3
	for _, test := range []struct {
		name   string
		change func(p *v1.NodeClaimTemplate)
		want   string
	}{
		{"taint twice", func(s *v1.NodeClaimTemplate) {
			s.Spec.Taints = []corev1.Taint{{Key: "a", Effect: "NoSchedule", Value: "1"}, {Key: "a", Effect: "NoExecute"}}
			s.Spec.StartupTaints = []corev1.Taint{{Key: "a", Effect: "NoSchedule", Value: "2"}}
		}, "taint a:NoSchedule stands more than once in taints and startupTaints: leave one"},
		{"taint three times", func(s *v1.NodeClaimTemplate) {
			a := corev1.Taint{Key: "a", Effect: "NoSchedule"}
			s.Spec.Taints, s.Spec.StartupTaints = []corev1.Taint{a, a}, []corev1.Taint{a}
		}, "taint a:NoSchedule stands more than once in taints and startupTaints: leave one"},
		{"pool as requirement", func(s *v1.NodeClaimTemplate) {
			s.Spec.Requirements = []v1.Requirement{{Key: "karpenter.sh/nodepool", Operator: "Exists"}}
		}, "requirements may not hold karpenter.sh/nodepool: it is set for every node of the pool"},
		{"pool as label", func(s *v1.NodeClaimTemplate) { s.Labels = map[string]string{"karpenter.sh/nodepool": "x"} },
			"labels may not hold karpenter.sh/nodepool: it is set for every node of the pool"},
		{"capacity type", func(s *v1.NodeClaimTemplate) {
			s.Spec.Requirements = []v1.Requirement{{Key: "karpenter.sh/capacity-type", Operator: "In", Values: []string{"ondemand"}}}
		}, "requirement karpenter.sh/capacity-type allows none of on-demand, reserved and spot: [ondemand]"},
		{"capacity types", func(s *v1.NodeClaimTemplate) {
			s.Spec.Requirements = []v1.Requirement{{Key: "karpenter.sh/capacity-type", Operator: "In", Values: []string{"on-demand", "spot"}, MinValues: &three}}
		}, "requirement karpenter.sh/capacity-type has minValues 3, but allows 2 of on-demand, reserved and spot"},
		{"taints that keep a kubelet from starting", func(s *v1.NodeClaimTemplate) {
			s.Spec.Taints = []corev1.Taint{{Key: strings.Repeat("k", 64), Effect: "NoSchedule"}}
			s.Spec.StartupTaints = []corev1.Taint{{Key: "a", Effect: "NoSchedule", Value: strings.Repeat("v", 64)}}
		}, fmt.Sprintf("taint key %q is no label key; taint a has a value that no taint can have: %q", strings.Repeat("k", 64), strings.Repeat("v", 64))},
		{"syntax", func(s *v1.NodeClaimTemplate) {
			s.Labels = map[string]string{"b": "not a value", "Bad.Domain/x": "v"}
			s.Spec.Requirements = []v1.Requirement{{Key: "-x", Operator: "In", Values: []string{"ok", "ends-with-"}}}
		}, `label key "Bad.Domain/x" is no label key; label b has a value that no label can have: "not a value"; ` +
			`requirement key "-x" is no label key; requirement -x has a value that no label can have: "ends-with-"`},
	} {
		t.Run(test.name, func(t *testing.T) {
			p := pool()
			test.change(&p.Spec.Template)
			nodeclass.UpdatePool(p, classes(), noon())
			k, _ := p.StatusConditions().Get(v1.ConditionValidationSucceeded)
			if k.Status != "False" || k.Reason != "NodePoolValidationFailed" || k.Message != test.want || p.StatusConditions().IsTrue("Ready") {
				t.Errorf("got  %s %s: %s\nwant %s", k.Status, k.Reason, k.Message, test.want)
			}
		})
	}
}

func TestWhatPoolsUsuallyAskForIsNoProblem(t *testing.T) {
	p := pool()
	p.Spec.Template.Labels = map[string]string{"team": "a_b.c-d", "example.com/empty": "", strings.Repeat("long", 20) + ".example.com/x": "y"}
	p.Spec.Template.Spec.Requirements = []v1.Requirement{
		{Key: "karpenter.sh/capacity-type", Operator: "In", Values: []string{"spot", "other"}},
		{Key: "karpenter.sh/capacity-type", Operator: "NotIn", Values: []string{"other"}},
		{Key: "karpenter.k8s.aws/instance-cpu", Operator: "Gt", Values: []string{"4"}},
		{Key: "node.kubernetes.io/instance-type", Operator: "In", Values: []string{"m5.large"}},
	}
	p.Spec.Template.Spec.Taints = []corev1.Taint{{Key: "a", Effect: "NoSchedule"}, {Key: "a", Effect: "NoExecute"},
		{Key: "example.com/a", Effect: "NoSchedule", Value: "v"}}
	nodeclass.UpdatePool(p, classes(), noon())
	if k, _ := p.StatusConditions().Get(v1.ConditionValidationSucceeded); k.Status != "True" {
		t.Error(k.Message)
	}
}

func TestThePoolSaysWhatItsNodesHave(t *testing.T) {
	p := pool()
	has := resources.List{CPU: 3000, Memory: 4 << 30, Pods: 20}.With("nvidia.com/gpu", 4).With("nodes", 2)
	if !nodeclass.UpdatePoolCounts(p, has) || nodeclass.UpdatePoolCounts(p, has) {
		t.Error("the first count is news and the second is not")
	}
	got := map[string]string{}
	for name, q := range p.Status.Resources {
		got[string(name)] = q.String()
	}
	want := map[string]string{"cpu": "3", "memory": "4Gi", "pods": "20", "ephemeral-storage": "0", "nvidia.com/gpu": "4", "nodes": "2"}
	if diff := cmp.Diff(want, got); diff != "" || *p.Status.Nodes != 2 {
		t.Errorf("%d nodes, resources (-want +got):\n%s", *p.Status.Nodes, diff)
	}
	nodeclass.UpdatePoolCounts(p, resources.List{})
	if cpu := p.Status.Resources["cpu"]; len(p.Status.Resources) != 5 || !cpu.IsZero() || *p.Status.Nodes != 0 {
		t.Errorf("an empty pool has %v", p.Status.Resources)
	}
}

func TestHealthIsForgottenWhenPoolOrClassChanges(t *testing.T) {
	for _, test := range []struct {
		name   string
		change func(p *v1.NodePool, c *awsv1.EC2NodeClass)
		want   metav1.ConditionStatus
	}{
		{"nothing", func(*v1.NodePool, *awsv1.EC2NodeClass) {}, "False"},
		{"pool", func(p *v1.NodePool, _ *awsv1.EC2NodeClass) { p.Generation++ }, "Unknown"},
		{"class", func(_ *v1.NodePool, c *awsv1.EC2NodeClass) { c.Generation++ }, "Unknown"},
	} {
		p, c := pool(), classes()
		nodeclass.UpdatePool(p, c, noon())
		p.StatusConditions().SetFalse(v1.ConditionNodeRegistrationHealthy, v1.ReasonRegistrationFailed, "x", noon())
		test.change(p, &c[0])
		nodeclass.UpdatePool(p, c, noon())
		if k, _ := p.StatusConditions().Get(v1.ConditionNodeRegistrationHealthy); k.Status != test.want {
			t.Errorf("%s changed: %s, want %s", test.name, k.Status, test.want)
		}
	}
}
