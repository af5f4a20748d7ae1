package main

import (
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	api "joiner.sh/pkg/api/v1"
)

// scenario is a cluster at two times, the second one long enough after the first for proposals to be confirmed.
type scenario struct {
	Now        metav1.Time                    `json:"now"`
	BestEffort bool                           `json:"bestEffort,omitempty"` // minValuesPolicy
	Pools      []api.NodePool                 `json:"nodePools,omitempty"`
	Claims     []api.NodeClaim                `json:"nodeClaims,omitempty"`
	Nodes      []corev1.Node                  `json:"nodes,omitempty"`
	Pods       []corev1.Pod                   `json:"pods,omitempty"`
	Budgets    []policyv1.PodDisruptionBudget `json:"podDisruptionBudgets,omitempty"`
	DaemonSets []appsv1.DaemonSet             `json:"daemonSets,omitempty"`
}

// annotationLate on an object, or as prefix of an annotation's name, says that it comes between the two times.
const annotationLate = "late.bench/"

// confirmAfter is how far apart the two times are.
const confirmAfter = 20 * time.Second

// firstScenario is the scenario at the first time.
func (s *scenario) firstScenario() *scenario {
	out := *s
	out.Pods, out.Budgets = nil, nil
	for i := range s.Pods {
		if !isLate(&s.Pods[i].ObjectMeta) {
			out.Pods = append(out.Pods, s.Pods[i])
		}
	}
	for i := range s.Budgets {
		if !isLate(&s.Budgets[i].ObjectMeta) {
			out.Budgets = append(out.Budgets, s.Budgets[i])
		}
	}
	out.Nodes, out.Claims = slices.Clone(s.Nodes), slices.Clone(s.Claims)
	for i := range s.Nodes {
		if _, ok := s.Nodes[i].Annotations[annotationLate+"initialized"]; ok {
			out.uninitializeNode(&s.Nodes[i], i)
		}
	}
	return &out
}

// uninitializeNode makes the node, the i-th, one that is not initialized yet.
func (s *scenario) uninitializeNode(node *corev1.Node, i int) {
	node = node.DeepCopy()
	delete(node.Labels, api.LabelInitialized)
	s.Nodes[i] = *node
	for k := range s.Claims {
		if s.Claims[k].Status.ProviderID == node.Spec.ProviderID {
			n := s.Claims[k].DeepCopy()
			n.Status.Conditions = slices.DeleteFunc(n.Status.Conditions,
				func(c metav1.Condition) bool { return c.Type == api.ConditionInitialized })
			s.Claims[k] = *n
		}
	}
}

// secondScenario is the scenario at the second time.
func (s *scenario) secondScenario() *scenario {
	out := *s
	out.Now = metav1.NewTime(s.Now.Add(confirmAfter))
	out.Nodes = make([]corev1.Node, len(s.Nodes))
	for i := range s.Nodes {
		s.Nodes[i].DeepCopyInto(&out.Nodes[i])
		if value, ok := s.Nodes[i].Annotations[annotationLate+api.AnnotationDoNotDisrupt]; ok {
			out.Nodes[i].Annotations[api.AnnotationDoNotDisrupt] = value
		}
	}
	return &out
}

func isLate(m *metav1.ObjectMeta) bool {
	_, ok := m.Annotations[annotationLate+"object"]
	return ok
}

// clone is a copy that may be changed.
func (s *scenario) clone() *scenario {
	out, err := parseScenario([]byte(s.String()))
	if err != nil {
		panic(err) // it was written a moment ago
	}
	return out
}

// String is the scenario as YAML.
func (s *scenario) String() string {
	b, err := yaml.Marshal(s)
	if err != nil {
		return fmt.Sprintf("cannot be written: %v", err)
	}
	return string(b)
}

// parseScenario reads what String writes.
func parseScenario(text []byte) (*scenario, error) {
	s := &scenario{}
	if err := yaml.UnmarshalStrict(text, s); err != nil {
		return nil, fmt.Errorf("read scenario: %w", err)
	}
	return s, nil
}
