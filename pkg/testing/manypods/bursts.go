package manypods

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/requirements"
	"joiner.sh/pkg/model/resources"
)

// BurstNamespace is the namespace of the pods of bursts.
const BurstNamespace = "shop"

// Burst are n pods that somebody means, of one namespace that scales out at once.
func Burst(kind string, n int) []cluster.Pod {
	shape, chance := burstShapes()[kind], rand.New(rand.NewPCG(1, 1))
	out := make([]cluster.Pod, n)
	for i := range out {
		out[i] = cluster.Pod{Namespace: BurstNamespace, Name: fmt.Sprintf("%s-%04d", kind, i), UID: fmt.Sprint(i),
			Phase: "Pending", Unscheduled: true}
		shape(burstPod{i, n, chance, &out[i]})
	}
	return out
}

// BurstKinds are the ways in which a namespace may scale out, sorted.
func BurstKinds() []string { return slices.Sorted(maps.Keys(burstShapes())) }

// burstPod is one of so many pods, with its number.
type burstPod struct {
	i, n   int
	chance *rand.Rand
	*cluster.Pod
}

// of makes it one of the pods of so many applications, and says which and what selects those.
func (p burstPod) of(apps int) (app int, mine *cluster.Selector) {
	app = p.i * apps / p.n
	name := fmt.Sprintf("app-%04d", app)
	p.Labels, p.Controller = map[string]string{"app": name}, name
	return app, selects(requirements.Of("app", name))
}

// sized gives it a size that is about these millicores and MiB, by chance.
func (p burstPod) sized(cpu, memory float64) {
	draw := func(middle float64) int64 { return max(10, int64(middle*math.Exp(0.8*p.chance.NormFloat64()))/10*10) }
	p.asks(min(60_000, draw(cpu)), min(200_000, draw(memory)))
}

func (p burstPod) asks(cpu, memory int64) {
	p.Need = resources.List{CPU: cpu, Memory: memory * resources.MiB, Pods: 1}
}

// sizes gives the pod the sizes of applications.
func (p burstPod) sizes(app int) { p.asks(int64(100+app*37%40*100), int64(128+app*53%64*128)) }

func burstShapes() map[string]func(burstPod) {
	zone, host := instancetypes.LabelZone, "kubernetes.io/hostname"
	return map[string]func(burstPod){
		"one deployment": func(p burstPod) { p.of(1); p.asks(500, 1024) },
		"large services": func(p burstPod) { app, _ := p.of(5); p.asks(int64(1500+700*app), int64(3000+1700*app)) },
		"many services":  func(p burstPod) { app, _ := p.of(p.n / 5); p.sizes(app) },
		"spread services": func(p burstPod) {
			app, mine := p.of(40)
			p.sizes(app)
			p.Spread = []cluster.Spread{{Key: zone, MaxSkew: 1, Selector: mine},
				{Key: host, MaxSkew: 1, Selector: mine, Soft: true}}
		},
		"mixed services": func(p burstPod) {
			app, mine := p.of(40)
			p.sizes(app)
			switch app % 7 {
			case 1, 2:
				p.Spread = []cluster.Spread{{Key: zone, MaxSkew: 1, Selector: mine}}
			case 3:
				p.NodeSelector = map[string]string{instancetypes.LabelCapacityType: instancetypes.OnDemand}
			case 4:
				p.NodeSelector = map[string]string{instancetypes.LabelArch: "arm64"}
			case 5:
				p.AntiAffinity = []cluster.AffinityTerm{{Key: host, Selector: mine}}
			}
		},
		"replicas apart": func(p burstPod) {
			app, mine := p.of(20)
			p.sizes(app)
			p.AntiAffinity = []cluster.AffinityTerm{{Key: host, Selector: mine}}
		},
		"jobs alike": func(p burstPod) {
			app, _ := p.of(4)
			p.asks(int64(1000+1000*app), int64(2048<<(app%3)))
			p.NodeSelector = map[string]string{instancetypes.LabelCapacityType: instancetypes.Spot}
		},
		"jobs of all sizes":       func(p burstPod) { p.of(1); p.sized(1000, 2000) },
		"large jobs of all sizes": func(p burstPod) { p.of(1); p.sized(6000, 20000) },
		"drivers and executors": func(p burstPod) {
			app, mine := p.of(20)
			if p.asks(2000+int64(app%3)*1000, 7000+int64(app%4)*2000); p.i%100 == 0 {
				p.NodeSelector = map[string]string{instancetypes.LabelCapacityType: instancetypes.OnDemand}
			}
			p.Prefers = []cluster.WeightedAffinityTerm{weighted(50, zone, mine)}
		},
		"replicas with volumes": func(p burstPod) {
			app, mine := p.of(200)
			p.sizes(app)
			in := requirements.Of(zone, "us-west-2"+string(rune('a'+p.i%3)))
			p.VolumeZones = [][]requirements.Requirement{{in}}
			p.Avoids = []cluster.WeightedAffinityTerm{weighted(100, host, mine)}
		},
		"arm64 preferred": func(p burstPod) {
			app, _ := p.of(30)
			p.sizes(app)
			hostilePod{p.i, p.Pod}.prefer(requirements.Of(instancetypes.LabelArch, "arm64"))
		},
	}
}
