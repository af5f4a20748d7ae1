package provision

import (
	"context"
	"syscall"
	"testing"
	"time"

	"joiner.sh/pkg/controllers"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/nodeclass/translate"
	"joiner.sh/pkg/provisioning"
	"joiner.sh/pkg/scheduling/packing"
	"joiner.sh/pkg/testing/manypods"
)

// besideHostile is a cluster in which usual pods wait beside 1,000 of one tenant.
func besideHostile(t testing.TB, kind string) cluster.Snapshot {
	if kind == "" {
		return besideUsual(t)
	}
	return besideUsual(t, manypods.Hostile(kind, 1000)...)
}

// besideUsual is a cluster in which these wait beside usual pods, with the rules of a pass of a function of 512 MiB that
// has a minute.
func besideUsual(t testing.TB, more ...cluster.Pod) cluster.Snapshot {
	s := manypods.Services(t, 100)
	s.Pods = append(s.Pods, more...)
	for _, name := range manypods.Namespaces(2000) {
		s.Namespaces = append(s.Namespaces, cluster.Namespace{Name: name, Labels: map[string]string{"kubernetes.io/metadata.name": name}})
	}
	c := &Controller{Deps: controllers.Deps{Now: time.Now}, VCPUs: 512. / 1769, Process: &ProcessState{}}
	ctx, end := context.WithTimeout(t.Context(), time.Minute)
	defer end()
	s.Rules.PackingMilliseconds = c.packingMilliseconds(ctx, s.Pods)
	s.Rules.DemandMilliseconds = demandMilliseconds(ctx, c)
	s.Rules.NamespaceMilliseconds = s.Rules.DemandMilliseconds / namespacePart
	return s
}

func processorTime() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkHostileTenant is how much longer others wait in a pass for 1,000 pods of one tenant, each as much work as a
// pod of the kind may be, in seconds of a function of 512 MiB; counted-ms is what is planned with them.
func BenchmarkHostileTenant(b *testing.B) {
	decide := func(s cluster.Snapshot) time.Duration {
		before := processorTime()
		provisioning.Decide(s)
		return processorTime() - before
	}
	alone := besideHostile(b, "")
	decide(alone)
	for _, kind := range manypods.HostileKinds() {
		b.Run(kind, func(b *testing.B) {
			s, more, counted := besideHostile(b, kind), time.Duration(0), time.Duration(0)
			p := packing.NewSharedDemand(s)
			for i, work := range p.Classes.MeasureWork() {
				if p.Classes.List[i].Pod.Namespace == manypods.HostileNamespace {
					counted += work
				}
			}
			for b.Loop() {
				more += decide(s) - decide(alone)
			}
			b.ReportMetric(more.Seconds()/(512./1769)/float64(b.N), "s-of-512-MiB")
			b.ReportMetric(1000*counted.Seconds(), "counted-ms")
		})
	}
}

// BenchmarkBurst is by how many percent the plan for 2,000 usual pods of one namespace beside others is dearer than one
// that is searched for as long as if there were none of crowdedPart.
func BenchmarkBurst(b *testing.B) {
	for _, kind := range manypods.BurstKinds() {
		b.Run(kind, func(b *testing.B) {
			s := besideUsual(b, manypods.Burst(kind, 2000)...)
			var part, whole float64
			for b.Loop() {
				part = provisioning.Decide(s).Plan.TotalPrice()
			}
			s.Rules.PackingMilliseconds *= crowdedPart
			whole = provisioning.Decide(s).Plan.TotalPrice()
			b.ReportMetric(100*(part/whole-1), "%-dearer")
		})
	}
}

// BenchmarkHostileDaemonSets is how much longer a pass takes for 200 DaemonSets of one tenant, each as much work as one
// of the kind may be, in seconds of a function of 512 MiB.
func BenchmarkHostileDaemonSets(b *testing.B) {
	alone := besideUsual(b)
	processing := func(s cluster.Snapshot) time.Duration {
		before := processorTime()
		provisioning.Decide(s)
		return processorTime() - before
	}
	processing(alone)
	for _, kind := range manypods.HostileKinds() {
		b.Run(kind, func(b *testing.B) {
			s, more := besideUsual(b), time.Duration(0)
			for _, d := range manypods.Hostile(kind, 200) {
				d.Owner, d.Phase, d.Unscheduled = cluster.OwnerDaemonSet, "", false
				d.Need.CPU, d.Need.Memory = 1, 1<<20
				s.Daemons = append(s.Daemons, d)
			}
			s.Daemons = translate.BoundDaemons(s.Daemons)
			for b.Loop() {
				more += processing(s) - processing(alone)
			}
			b.ReportMetric(more.Seconds()/(512./1769)/float64(b.N), "s-of-512-MiB")
		})
	}
}
