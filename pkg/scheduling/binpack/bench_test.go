package binpack

import (
	"fmt"
	"slices"
	"testing"

	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/requirements"
	"joiner.sh/pkg/model/resources"
	"joiner.sh/pkg/nodeclass/translate"
	"joiner.sh/pkg/scheduling/podclass"
	"joiner.sh/pkg/testing/manypods"
)

// mixed is a cluster of n pods in thirty sizes, of which a fifth each keep apart from one another on nodes, stay near
// one another in a zone, spread over hostnames, spread over zones, and do not care.
func mixed(b *testing.B, n int) cluster.Snapshot {
	s := manypods.Services(b, 0)
	cpus, mems := []int64{100, 250, 500, 1000, 1500}, []int64{100, 256, 512, 1024, 2048, 4096}
	for i := range n {
		letter := string(rune('a' + i/5%7))
		p := cluster.Pod{
			Namespace: "default", Name: fmt.Sprintf("pod-%d", i), Phase: "Pending", Unscheduled: true, Labels: map[string]string{"my": letter},
			Need: resources.List{CPU: cpus[i*7/3%5], Memory: mems[i*11/5%6] * resources.MiB, Pods: 1},
		}
		mine := &cluster.Selector{Requirements: []requirements.Requirement{requirements.Of("my", letter)}}
		switch i % 5 {
		case 0:
			p.Labels = map[string]string{"app": "lonely"}
			p.AntiAffinity = []cluster.AffinityTerm{{Key: podclass.LabelHost, Selector: &cluster.Selector{Requirements: []requirements.Requirement{requirements.Of("app", "lonely")}}}}
		case 1:
			p.Labels = map[string]string{"near": letter}
			p.Affinity = []cluster.AffinityTerm{{Key: instancetypes.LabelZone, Selector: &cluster.Selector{Requirements: []requirements.Requirement{requirements.Of("near", letter)}}}}
		case 2:
			p.Spread = []cluster.Spread{{Key: podclass.LabelHost, MaxSkew: 1, Selector: mine}}
		case 3:
			p.Spread = []cluster.Spread{{Key: instancetypes.LabelZone, MaxSkew: 1, Selector: mine}}
		}
		s.Pods = append(s.Pods, p)
	}
	return s
}

func benchmark(b *testing.B, s cluster.Snapshot) {
	b.ReportAllocs()
	types := instancetypes.ResolveTypes(s.Catalog, s.Classes[0], nil, s.Now)
	var price, gap float64
	for b.Loop() {
		p := PodsFrom(s, func(string) []instancetypes.Type { return types })
		if len(p.Unplaced) > 0 {
			b.Fatal(p.Unplaced[0])
		}
		price, gap = p.TotalPrice(), p.BoundGap()
	}
	b.ReportMetric(price, "USD/h")
	b.ReportMetric(gap*100, "%gap")
}

func BenchmarkIdentical5000(b *testing.B) { benchmark(b, manypods.Identical(b, 5000)) }
func BenchmarkMixed2000(b *testing.B)     { benchmark(b, mixed(b, 2000)) }
func BenchmarkMixed5000(b *testing.B)     { benchmark(b, mixed(b, 5000)) }
func BenchmarkServices1000(b *testing.B)  { benchmark(b, manypods.Services(b, 1000)) }
func BenchmarkServices10000(b *testing.B) { benchmark(b, manypods.Services(b, 10000)) }
func BenchmarkServices50000(b *testing.B) { benchmark(b, manypods.Services(b, 50000)) }
func BenchmarkStanding150000(b *testing.B) {
	benchmark(b, manypods.Standing(b, manypods.Services(b, 10000), 5000))
}

// handful is n pods that wait, in deployments of three: what most passes are about.
func handful(b *testing.B, n int) cluster.Snapshot {
	s := manypods.Services(b, 50*(n+2)/3)
	i := 0
	s.Pods = slices.DeleteFunc(s.Pods, func(cluster.Pod) bool {
		i++
		return (i-1)%50 >= 3
	})
	s.Pods = s.Pods[:n]
	return s
}

func BenchmarkHandful(b *testing.B) {
	for _, n := range []int{1, 5, 20} {
		b.Run(fmt.Sprintf("pods=%d", n), func(b *testing.B) { benchmark(b, handful(b, n)) })
		b.Run(fmt.Sprintf("pods=%d/nodes=100", n), func(b *testing.B) {
			s := manypods.PartlyFree(b, 1000, 100)
			s.Pods = slices.DeleteFunc(s.Pods, func(p cluster.Pod) bool { return p.NodeName == "" })
			for i := range s.Pods { // room is left on few nodes
				s.Pods[i].Need.CPU, s.Pods[i].Need.Memory = 3200, 12*1024*resources.MiB
			}
			s.Pods = append(s.Pods, handful(b, n).Pods...)
			benchmark(b, s)
		})
	}
}

func BenchmarkPartlyFree(b *testing.B) { benchmark(b, manypods.PartlyFree(b, 5000, 100)) }

// BenchmarkWhatIf asks one stock where the pods of three of fifty nodes would go: of each three in turn, and of as many
// that nobody else has room for.
func BenchmarkWhatIf(b *testing.B) {
	s := manypods.PartlyFree(b, 1000, 50)
	s.Rules.PackingIterations, s.Rules.PerNodeOverheadUSD = cluster.NoIterations, 0.02
	s.Pods = slices.DeleteFunc(s.Pods, func(p cluster.Pod) bool { return p.NodeName == "" })
	for i := range s.Pods {
		s.Pods[i].Owner = "ReplicaSet"
	}
	sizes := manypods.Services(b, 1000).Pods
	for i := range s.Pods { // they are of many sizes
		s.Pods[i].Need = sizes[i*7%len(sizes)].Need
		s.Pods[i].Need.CPU, s.Pods[i].Need.Memory = s.Pods[i].Need.CPU/3, s.Pods[i].Need.Memory/3
	}
	types := instancetypes.ResolveTypes(s.Catalog, s.Classes[0], nil, s.Now)
	sells := func(string) []instancetypes.Type { return types }
	var asked []cluster.Snapshot
	for from := 0; from < len(s.Nodes); from += 5 {
		out := map[string]bool{}
		for i := range 3 {
			out[s.Nodes[from+i].Name] = true
		}
		q := s
		q.Nodes = slices.DeleteFunc(slices.Clone(s.Nodes), func(n cluster.Node) bool { return out[n.Name] })
		q.Pods = slices.Clone(s.Pods)
		for i := range q.Pods {
			if p := &q.Pods[i]; out[p.NodeName] {
				p.NodeName, p.Unscheduled = "", true
			}
		}
		full := q
		full.Nodes = slices.Clone(q.Nodes)
		for i := range full.Nodes {
			full.Nodes[i].Allocatable = resources.List{CPU: 1}
		}
		asked = append(asked, q, full)
	}
	b.ReportAllocs()
	w, launched := newWhatIf(s, sells), 0
	for b.Loop() {
		for _, q := range asked {
			launched += len(w.PlanPods(q).Launches)
		}
	}
	b.ReportMetric(float64(launched)/float64(b.N*len(asked)), "launches/question")
}

// claiming is a cluster of n pods that claim devices: a GPU with four interfaces on one PCIe root, some GPUs, Neuron
// devices, all GPUs of a node, and a GPU by its extended resource. A nodeSelector keeps the first apart from the others.
// If two share each claim, no devices are asked for as an extended resource.
func claiming(b *testing.B, n int, shared bool) cluster.Snapshot {
	s := manypods.Services(b, 0)
	s.Pools[0].Requirements = requirements.NewSet(requirements.Of("karpenter.k8s.aws/instance-family", "p5", "g6", "g6e", "inf2"))
	ask := func(class string, count int64, mode resourcev1.DeviceAllocationMode) resourcev1.DeviceRequest {
		return resourcev1.DeviceRequest{Name: "r-" + class, Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: class, Count: count, AllocationMode: mode}}
	}
	const gpus, efas, neurons = "gpu.nvidia.com", "efa.networking.k8s.aws", "neuron.aws.com"
	root := resourcev1.FullyQualifiedName("resource.kubernetes.io/pcieRoot")
	specs := []resourcev1.DeviceClaim{{Requests: []resourcev1.DeviceRequest{ask(gpus, 1, ""), ask(efas, 4, "")}, Constraints: []resourcev1.DeviceConstraint{{MatchAttribute: &root}}},
		{Requests: []resourcev1.DeviceRequest{ask(gpus, 1, "")}}, {Requests: []resourcev1.DeviceRequest{ask(gpus, 2, "")}}, {Requests: []resourcev1.DeviceRequest{ask(neurons, 1, "")}},
		{Requests: []resourcev1.DeviceRequest{ask(gpus, 0, resourcev1.DeviceAllocationModeAll)}}}
	classes := translate.UsualDeviceClasses()
	classes[1].Resource = instancetypes.ResourceNVIDIA
	translate.GroupClasses(classes)
	named, kinds, sharing := translate.NewClaimedDevices(), []int{0, 0, 0, 0, 1, 1, 2, 3, 4, 5}, 1
	if shared {
		kinds, sharing = kinds[:9], 2
	}
	kindOf := func(i int) int { return kinds[i/sharing%len(kinds)] }
	for i := 0; i < n && shared; i += sharing {
		named.AddClaim(&resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprint("c", i/sharing)}, Spec: resourcev1.ResourceClaimSpec{Devices: specs[kindOf(i)]}})
	}
	claims := translate.NewDeviceClaims(classes, named)
	for i, devices := range specs {
		claims.AddTemplate(&resourcev1.ResourceClaimTemplate{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprint("t", i)},
			Spec: resourcev1.ResourceClaimTemplateSpec{Spec: resourcev1.ResourceClaimSpec{Devices: devices}}})
	}
	for i := range n {
		kind := kindOf(i)
		p := cluster.Pod{Namespace: "default", Name: fmt.Sprintf("pod-%d", i), Phase: "Pending", Unscheduled: true,
			Need: resources.List{CPU: int64(500 * (1 + i/10%4)), Memory: int64(1+i/10%3) * 2048 * resources.MiB, Pods: 1}}
		p.NodeSelector = map[string]string{"karpenter.k8s.aws/instance-family": []string{"p5", "g6", "g6e", "inf2", "g6", "g6"}[kind]}
		switch {
		case shared:
			p.DeviceClaims = []string{fmt.Sprint("c", i/sharing)}
		case kind < len(specs):
			p.DeviceTemplates = []string{fmt.Sprint("t", kind)}
		default:
			p.Need = p.Need.With(instancetypes.ResourceNVIDIA, 1)
		}
		s.Pods = append(s.Pods, p)
	}
	var asking []*cluster.Pod
	for i := range s.Pods {
		asking = append(asking, &s.Pods[i])
	}
	claims.NoteSharing(asking)
	for _, p := range asking {
		claims.FillPod(p)
	}
	translate.SettleClaims(s.Pods, classes)
	s.Devices.Known = true
	for _, name := range translate.UnmetResources(s) {
		for _, c := range translate.ServingClasses(classes, name) {
			s.Devices.Classes = append(s.Devices.Classes, c.DeviceClass)
		}
	}
	return s
}

func BenchmarkClaims5000(b *testing.B) { benchmark(b, claiming(b, 5000, false)) }

// BenchmarkSharedClaims5000 is that of 2,500 claims of two pods.
func BenchmarkSharedClaims5000(b *testing.B) { benchmark(b, claiming(b, 5000, true)) }
