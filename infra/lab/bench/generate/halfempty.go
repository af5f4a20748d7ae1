package main

import (
	"fmt"
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/workload"
)

// deployments is how many Deployments the pods of a half-empty cluster belong to.
const deployments = 60

// halfEmpty is a cluster whose nodes are 30 to 70 % full, one in ten of them new and empty, and in which pods of
// Deployments with heavy-tailed sizes wait: some bound to on-demand or to an architecture, some spread over zones, some
// apart on nodes.
func (g *generator) halfEmpty(f *workload.File, pods, nodes int) {
	weights, sum := make([]float64, deployments), 0.0
	for i := range weights {
		weights[i] = g.drawPareto(1, 1.1, 60)
		sum += weights[i]
	}
	passed, given := 0.0, 0
	for i, w := range weights {
		passed += w
		n := int(float64(pods)*passed/sum+0.5) - given // so that rounding adds up to what was asked for
		given += n
		f.Groups = append(f.Groups, g.deploymentGroup(fmt.Sprintf("app-%02d", i), n))
	}
	for i := range 8 {
		b := f.Groups[i]
		b.Name, b.Count = "old-"+b.Name, 0
		b.Pod.Spec = podSpec(fmt.Sprintf("%dm", 100<<(i%4)), fmt.Sprintf("%dMi", 256<<(i%5)))
		b.Pod.Labels = map[string]string{"app": b.Name}
		f.BoundGroups = append(f.BoundGroups, b)
	}
	sold := slices.DeleteFunc(slices.Clone(g.types),
		func(t instancetypes.Type) bool { return !slices.Contains(smallFleet(), t.Name) })
	for i := range nodes {
		n, t := g.drawNode(i, sold)
		if !g.percentChance(10) {
			g.fillNode(&n, t, f.BoundGroups, math.MaxInt, int64(30+g.rand.IntN(41)))
		}
		f.Nodes = append(f.Nodes, n)
	}
}

// drawPareto draws from a Pareto distribution that is cut off.
func (g *generator) drawPareto(least, shape, most float64) float64 {
	return min(most, least/math.Pow(1-g.rand.Float64(), 1/shape))
}

func (g *generator) deploymentGroup(name string, count int) workload.PodGroup {
	cpu := int(g.drawPareto(100, 0.9, 6000)) / 10 * 10
	memory := int(float64(cpu)*(1+7*g.rand.Float64()*g.rand.Float64())) / 16 * 16
	s := podSpec(fmt.Sprintf("%dm", cpu), fmt.Sprintf("%dMi", max(64, memory)))
	app := &metav1.LabelSelector{MatchLabels: map[string]string{"app": name}}
	s.NodeSelector = map[string]string{labelArch: "amd64"}
	switch {
	case g.percentChance(30):
		s.NodeSelector[labelArch] = "arm64"
	case g.percentChance(40):
		delete(s.NodeSelector, labelArch)
	}
	if g.percentChance(25) {
		s.NodeSelector[labelSale] = "on-demand"
	}
	switch {
	case g.percentChance(30):
		s.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{MaxSkew: 1, TopologyKey: labelZone,
			WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: app}}
	case count <= 60 && g.percentChance(30):
		s.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{LabelSelector: app,
				TopologyKey: labelHost}}}}
	}
	if g.percentChance(5) {
		s.Containers[0].Resources.Requests[corev1.ResourceEphemeralStorage] = resource.MustParse("2Gi")
	}
	return workload.PodGroup{Name: name, Count: count, Pod: corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Namespace: "apps", Labels: map[string]string{"app": name}}, Spec: s,
	}}
}

// smallFleet are the types of the nodes of half-empty clusters.
func smallFleet() []string {
	return []string{"m6a.large", "m6a.xlarge", "m6i.2xlarge", "c6i.xlarge", "c7g.large", "c7g.xlarge", "r6g.xlarge",
		"m7g.large", "m7g.2xlarge", "m5.2xlarge"}
}
