package main

import (
	"fmt"
	"math"
	"math/rand/v2"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/workload"
)

const (
	labelHost = "kubernetes.io/hostname"
	labelZone = "topology.kubernetes.io/zone"
	labelArch = "kubernetes.io/arch"
	labelSale = "karpenter.sh/capacity-type"
	labelAWS  = "karpenter.k8s.aws/instance-"
)

type generator struct {
	rand  *rand.Rand
	types []instancetypes.Type
}

// serviceGroups are groups of about 50 pods each, pods together.
func (g *generator) serviceGroups(pods int) []workload.PodGroup {
	var out []workload.PodGroup
	for i := 0; pods > 0; i++ {
		n := min(pods, max(1, int(math.Exp(g.rand.NormFloat64()*1.0+math.Log(30)))))
		pods -= n
		out = append(out, g.serviceGroup(fmt.Sprintf("svc-%04d", i), n))
	}
	return out
}

// percentChance returns true in p of 100 cases.
func (g *generator) percentChance(p int) bool { return g.rand.IntN(100) < p }

func (g *generator) pickOne(of ...string) string { return of[g.rand.IntN(len(of))] }

func (g *generator) serviceGroup(name string, count int) workload.PodGroup {
	cpu := min(8000, max(50, int(math.Exp(g.rand.NormFloat64()*0.9+math.Log(400)))/10*10))
	memory := min(32<<10, max(64, int(math.Exp(g.rand.NormFloat64()*0.9+math.Log(800)))/16*16))
	s := podSpec(fmt.Sprintf("%dm", cpu), fmt.Sprintf("%dMi", memory))
	app := &metav1.LabelSelector{MatchLabels: map[string]string{"app": name}}
	s.NodeSelector = map[string]string{}
	switch {
	case g.percentChance(2):
		s.Containers[0].Resources.Requests["nvidia.com/gpu"] = resource.MustParse("1")
		s.Tolerations = []corev1.Toleration{{Key: "nvidia.com/gpu", Operator: corev1.TolerationOpExists}}
	case g.percentChance(3):
		s.NodeSelector["workload-tier"] = "system"
		s.Tolerations = []corev1.Toleration{{Key: "dedicated", Operator: corev1.TolerationOpEqual, Value: "system"}}
	default:
		g.constrainNodes(&s)
	}
	g.constrainSpread(&s, app)
	return workload.PodGroup{Name: name, Count: count, Pod: corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Namespace: g.pickOne("team-a", "team-b", "team-c", "team-d"),
			Labels: map[string]string{"app": name}}, Spec: s,
	}}
}

// constrainNodes says on which nodes the pods may be.
func (g *generator) constrainNodes(s *corev1.PodSpec) {
	switch {
	case g.percentChance(30):
		s.NodeSelector[labelArch] = "amd64"
	case g.percentChance(25):
		s.NodeSelector[labelArch] = "arm64"
	}
	switch {
	case g.percentChance(20):
		s.NodeSelector[labelSale] = "on-demand"
	case g.percentChance(8):
		s.NodeSelector[labelZone] = g.pickOne("us-west-2a", "us-west-2b", "us-west-2c")
	}
	switch {
	case g.percentChance(4):
		s.Affinity = nodeAffinity(labelAWS+"category", corev1.NodeSelectorOpIn, "r", "m")
	case g.percentChance(5):
		s.Affinity = nodeAffinity(labelAWS+"generation", corev1.NodeSelectorOpGt, "5")
	case g.percentChance(3):
		s.Affinity = nodeAffinity(labelAWS+"local-nvme", corev1.NodeSelectorOpGt, "100")
	}
}

// constrainSpread says how the pods of a service stand to each other.
func (g *generator) constrainSpread(s *corev1.PodSpec, app *metav1.LabelSelector) {
	over := func(key string, how corev1.UnsatisfiableConstraintAction) {
		s.TopologySpreadConstraints = append(s.TopologySpreadConstraints, corev1.TopologySpreadConstraint{
			MaxSkew: 1, TopologyKey: key, WhenUnsatisfiable: how, LabelSelector: app,
		})
	}
	switch {
	case s.NodeSelector[labelZone] != "":
	case g.percentChance(22):
		over(labelZone, corev1.DoNotSchedule)
	case g.percentChance(5):
		over(labelZone, corev1.ScheduleAnyway)
	case g.percentChance(4):
		if s.Affinity == nil {
			s.Affinity = &corev1.Affinity{}
		}
		s.Affinity.PodAffinity = &corev1.PodAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{LabelSelector: app,
				TopologyKey: labelZone}}}
	}
	switch {
	case g.percentChance(4):
		over(labelHost, corev1.DoNotSchedule)
	case g.percentChance(5):
		if s.Affinity == nil {
			s.Affinity = &corev1.Affinity{}
		}
		s.Affinity.PodAntiAffinity = &corev1.PodAntiAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{LabelSelector: app,
				TopologyKey: labelHost}}}
	}
}

func podSpec(cpu, memory string) corev1.PodSpec {
	return corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "app",
		Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu),
				corev1.ResourceMemory: resource.MustParse(memory)},
		}}}}
}

func nodeAffinity(key string, op corev1.NodeSelectorOperator, values ...string) *corev1.Affinity {
	return &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
			NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: key,
				Operator: op, Values: values}}}},
		}}}
}

func daemonGroups() []workload.PodGroup {
	var out []workload.PodGroup
	for _, d := range []struct{ name, cpu, memory string }{{"aws-node", "50m", "128Mi"}, {"kube-proxy", "100m", "64Mi"},
		{"log-agent", "100m", "200Mi"}} {
		s := podSpec(d.cpu, d.memory)
		s.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
		out = append(out, workload.PodGroup{Name: d.name, Pod: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Labels: map[string]string{"app": d.name}}, Spec: s,
		}})
	}
	return out
}
