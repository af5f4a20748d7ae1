package manypods

import (
	"fmt"
	"maps"
	"slices"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/requirements"
	"joiner.sh/pkg/model/resources"
)

// HostileNamespace is the namespace of the hostile pods.
const HostileNamespace = "evil"

// Hostile are n pods of one tenant that wait, no two alike, each as much work as a pod of the kind may be.
func Hostile(kind string, n int) []cluster.Pod {
	shape := hostileShapes()[kind]
	out := make([]cluster.Pod, n)
	for i := range out {
		h := hostilePod{i, &out[i]}
		*h.Pod = cluster.Pod{Namespace: HostileNamespace, Name: fmt.Sprintf("%s-%d", kind, i), UID: fmt.Sprint(i),
			Phase: "Pending", Unscheduled: true, Labels: map[string]string{"app": fmt.Sprint(i)},
			Need: resources.List{CPU: 100 + int64(i), Memory: 128 * resources.MiB, Pods: 1}}
		shape(h)
	}
	return out
}

// HostileKinds are the ways in which a pod may be much work, sorted.
func HostileKinds() []string { return slices.Sorted(maps.Keys(hostileShapes())) }

// hostilePod is one of the hostile pods, with its number.
type hostilePod struct {
	i int
	*cluster.Pod
}

// most of what one pod may ask for, see translate.
const (
	mostAlternatives = 100
	mostTopology     = 32
	mostExtended     = 20
	mostPorts        = 32
)

func (h hostilePod) text(j int) string { return fmt.Sprintf("v%d-%d", h.i, j) }

// own selects nothing that another selects.
func (h hostilePod) own(j int) *cluster.Selector {
	return selects(requirements.Of(fmt.Sprintf("k%d", j), h.text(j)))
}

// itself selects the pod alone.
func (h hostilePod) itself() *cluster.Selector {
	return selects(requirements.Of("app", fmt.Sprint(h.i)))
}

func selects(rs ...requirements.Requirement) *cluster.Selector {
	return &cluster.Selector{Requirements: rs}
}

func (h hostilePod) avoid(key string, of, namespaces *cluster.Selector) {
	h.AntiAffinity = append(h.AntiAffinity, cluster.AffinityTerm{Key: key, Selector: of, NamespaceSelector: namespaces})
}

// notIn excludes values that no node has.
func (h hostilePod) notIn(key string, from, count int) requirements.Requirement {
	var values []string
	for j := range count {
		values = append(values, h.text(from+j))
	}
	r, _ := requirements.NewRequirement(key, requirements.NotIn, values...)
	return r
}

func (h hostilePod) prefer(rs ...requirements.Requirement) {
	h.NodePrefers = append(h.NodePrefers, cluster.WeightedRequirements{Weight: int32(len(h.NodePrefers)),
		Requirements: rs})
}

func (h hostilePod) allow(rs ...requirements.Requirement) {
	h.NodeAffinity = append(h.NodeAffinity, rs)
}

func (h hostilePod) spread(key string, soft bool, of *cluster.Selector) {
	h.Spread = append(h.Spread, cluster.Spread{Key: key, MaxSkew: 1, Selector: of, Soft: soft})
}

func weighted(j int, key string, of *cluster.Selector) cluster.WeightedAffinityTerm {
	return cluster.WeightedAffinityTerm{Weight: int32(j), Term: cluster.AffinityTerm{Key: key, Selector: of}}
}

const labelFamily = "karpenter.k8s.aws/instance-family"

// hostileShapes returns what makes pods of a kind much work.
func hostileShapes() map[string]func(hostilePod) {
	out := plainShapes()
	maps.Copy(out, nodeShapes())
	maps.Copy(out, neighbourShapes())
	maps.Copy(out, nearShapes())
	return out
}

// plainShapes ask for room, and little of labels or neighbours.
func plainShapes() map[string]func(hostilePod) {
	return map[string]func(hostilePod){
		"sizes": func(hostilePod) {},
		"sizes of cpu and memory": func(h hostilePod) {
			h.Need.CPU, h.Need.Memory = 50+int64(h.i*37%1009), (64+int64(h.i*61%4093))*resources.MiB
		},
		"large sizes": func(h hostilePod) {
			h.Need.CPU, h.Need.Memory = 4000+int64(h.i*370%60013), (8192+int64(h.i*61%200003))*resources.MiB
		},
		"priorities": func(h hostilePod) { h.Priority = int32(h.i) },
		"host selectors": func(h hostilePod) {
			h.NodeSelector = map[string]string{"kubernetes.io/hostname": h.text(0)}
		},
		"resources": func(h hostilePod) {
			for j := range mostExtended {
				h.Need.Extended = append(h.Need.Extended,
					resources.Extended{Name: fmt.Sprintf("evil.example/%d-%03d", h.i, j), Count: 1})
			}
		},
		"ports": func(h hostilePod) {
			for j := range mostPorts {
				port := cluster.HostPort{Protocol: "TCP", IP: "0.0.0.0", Port: int32(1 + h.i*7 + j)}
				h.HostPorts = append(h.HostPorts, port)
			}
		},
		"one port": func(h hostilePod) {
			h.HostPorts = []cluster.HostPort{{Protocol: "TCP", IP: "0.0.0.0", Port: int32(1 + h.i)}}
		},
		"tolerations": func(h hostilePod) {
			for j := range 500 {
				h.Tolerations = append(h.Tolerations, cluster.Toleration{Key: fmt.Sprintf("k%d", j), Operator: "Equal",
					Value: h.text(j)})
			}
		},
		"zones of volumes": func(h hostilePod) {
			for j := range mostAlternatives {
				zone := h.notIn(instancetypes.LabelZone, j, 1)
				h.VolumeZones = append(h.VolumeZones, []requirements.Requirement{zone})
			}
		},
	}
}

// nodeShapes ask for labels of nodes.
func nodeShapes() map[string]func(hostilePod) {
	return map[string]func(hostilePod){
		"selectors": func(h hostilePod) {
			h.NodeSelector = map[string]string{"kubernetes.io/os": "linux", instancetypes.LabelArch: "amd64"}
			h.allow(h.notIn(instancetypes.LabelType, 0, 1))
		},
		"terms": func(h hostilePod) {
			for j := range mostAlternatives {
				h.allow(h.notIn(instancetypes.LabelType, 9*j, 9))
			}
		},
		"one term": func(h hostilePod) { h.allow(h.notIn(instancetypes.LabelType, 0, 1)) },
		"two small terms": func(h hostilePod) {
			h.allow(h.notIn(instancetypes.LabelType, 0, 2), h.notIn(labelFamily, 2, 2))
			h.allow(h.notIn(instancetypes.LabelZone, 4, 2), h.notIn(instancetypes.LabelArch, 6, 2))
		},
		"small terms": func(h hostilePod) {
			for j := range 5 {
				h.allow(h.notIn(instancetypes.LabelType, 25*j, 5), h.notIn(instancetypes.LabelZone, 25*j+5, 5),
					h.notIn(instancetypes.LabelArch, 25*j+10, 5), h.notIn(labelFamily, 25*j+15, 5),
					h.notIn(instancetypes.LabelCapacityType, 25*j+20, 5))
			}
		},
		"terms of five": func(h hostilePod) {
			for j := range mostAlternatives {
				h.allow(h.notIn(instancetypes.LabelType, 5*j, 1), h.notIn(instancetypes.LabelZone, 5*j+1, 1),
					h.notIn(instancetypes.LabelArch, 5*j+2, 1), h.notIn(labelFamily, 5*j+3, 1),
					h.notIn(instancetypes.LabelCapacityType, 5*j+4, 1))
			}
		},
		"terms of many small terms": func(h hostilePod) {
			for j := range mostAlternatives {
				h.allow(h.notIn(instancetypes.LabelType, j, 1))
			}
		},
		"preferences": func(h hostilePod) {
			for j := range mostAlternatives {
				h.prefer(h.notIn(instancetypes.LabelType, 9*j, 9))
			}
		},
		"one preference": func(h hostilePod) { h.prefer(h.notIn(instancetypes.LabelType, 0, 1)) },
		"small preferences": func(h hostilePod) {
			for j := range 5 {
				h.prefer(h.notIn(instancetypes.LabelType, j, 1))
			}
		},
		"preferences that nothing meets": func(h hostilePod) {
			for j := range mostAlternatives {
				h.prefer(requirements.Of(instancetypes.LabelType, h.text(j)))
			}
		},
		"preferences of all keys": func(h hostilePod) {
			keys := []string{instancetypes.LabelType, instancetypes.LabelZone, instancetypes.LabelArch, labelFamily}
			for j := range mostAlternatives {
				h.prefer(h.notIn(keys[j%4], j, 1), h.notIn(keys[(j+1)%4], j, 1))
			}
		},
	}
}

// neighbourShapes keep away from others.
func neighbourShapes() map[string]func(hostilePod) {
	return map[string]func(hostilePod){
		"apart": func(h hostilePod) {
			for j := range mostTopology {
				h.avoid(instancetypes.LabelZone, h.own(j), nil)
			}
		},
		"apart on hosts": func(h hostilePod) {
			h.AntiAffinity = []cluster.AffinityTerm{{Key: "kubernetes.io/hostname", Selector: h.itself()}}
		},
		"spread": func(h hostilePod) {
			for j := range mostTopology {
				h.spread(instancetypes.LabelZone, false, h.own(j))
			}
		},
		"one spread": func(h hostilePod) { h.spread(instancetypes.LabelZone, false, h.itself()) },
		"soft spread": func(h hostilePod) {
			for j := range mostTopology {
				h.spread(instancetypes.LabelZone, true, h.own(j))
			}
		},
		"one soft spread": func(h hostilePod) { h.spread(instancetypes.LabelZone, true, h.itself()) },
		"soft spread on hosts": func(h hostilePod) {
			for j := range mostTopology {
				h.spread("kubernetes.io/hostname", true, h.own(j))
			}
		},
		"keys": func(h hostilePod) {
			for j := range mostTopology {
				h.spread(fmt.Sprintf("key-%d-%d", h.i, j), true, h.own(j))
			}
		},
	}
}

// nearShapes ask to be near others, or prefer it.
func nearShapes() map[string]func(hostilePod) {
	return map[string]func(hostilePod){
		"near": func(h hostilePod) {
			for j := range mostTopology {
				h.Prefers = append(h.Prefers, weighted(j, instancetypes.LabelZone, h.own(j)))
			}
		},
		"near in one zone": func(h hostilePod) {
			h.Affinity = []cluster.AffinityTerm{{Key: instancetypes.LabelZone, Selector: h.itself()}}
		},
		"softly apart on hosts": func(h hostilePod) {
			for j := range mostTopology {
				h.Avoids = append(h.Avoids, weighted(j, "kubernetes.io/hostname", h.own(j)))
			}
		},
		"softly apart from all": func(h hostilePod) {
			for j := range mostTopology {
				w := weighted(j, instancetypes.LabelZone, &cluster.Selector{})
				w.Term.Namespaces = []string{fmt.Sprint(j), HostileNamespace}
				h.Avoids = append(h.Avoids, w)
			}
		},
		"near all namespaces": func(h hostilePod) {
			for j := range mostTopology {
				w := weighted(j, instancetypes.LabelZone, h.own(j))
				w.Term.NamespaceSelector = &cluster.Selector{}
				h.Prefers = append(h.Prefers, w)
			}
		},
		"affinity to all namespaces": func(h hostilePod) {
			for range 4 {
				h.Affinity = append(h.Affinity, cluster.AffinityTerm{Key: instancetypes.LabelZone, Selector: h.itself(),
					NamespaceSelector: &cluster.Selector{}})
			}
		},
		"apart from other namespaces": func(h hostilePod) {
			for j := range mostTopology {
				h.avoid(instancetypes.LabelZone, h.own(j), selects(h.notIn("kubernetes.io/metadata.name", j, 1)))
			}
		},
	}
}

// Namespaces are n names.
func Namespaces(n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = fmt.Sprintf("ns-%05d", i)
	}
	return out
}
