package prometheus_test

import (
	"context"
	"log/slog"
	"maps"
	"math"
	"slices"
	"testing"
	"time"

	"joiner.sh/pkg/controllers"
	"joiner.sh/pkg/controllers/remotewrite"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/resources"
	"joiner.sh/pkg/model/timeseries"
	"joiner.sh/pkg/providers/prometheus"
	"joiner.sh/pkg/testing/controllertest"
	"joiner.sh/pkg/testing/fake"
)

// recording is an hour of a cluster that grows and shrinks, sent to Prometheus by the functions themselves.
type recording struct {
	t      *testing.T
	f      *controllertest.Functions
	series *remotewrite.Recorder
	totals timeseries.Totals // on the lease
	bound  map[string]time.Time
	state  remotewrite.State
	times  []time.Time // of sends
	all    []timeseries.Series
	to     *prometheus.Writer
}

func (r *recording) ChangeTotals(_ string, change func(timeseries.Totals)) { change(r.totals) }

// ReadState says that it is one process that goes on.
func (r *recording) ReadState(context.Context) (remotewrite.State, bool, error) {
	return r.state, len(r.times) > 0, nil
}

func (r *recording) WriteState(_ context.Context, st remotewrite.State) error {
	r.state = st
	return nil
}

func (r *recording) ReadSurroundings(ctx context.Context, s cluster.Snapshot) (cluster.Snapshot, timeseries.Totals, error) {
	p := r.f.World.Ports(fake.Fault{})
	var err error
	if s.Catalog, _, err = p.ReadCatalog(ctx); err != nil {
		return s, nil, err
	}
	s.Catalog.Time = s.Now.Add(-time.Minute)
	s.Unavailable, err = p.ListUnavailable(ctx)
	return s, r.totals, err
}

// WriteSeries sends to Prometheus.
func (r *recording) WriteSeries(ctx context.Context, series, ended []timeseries.Series, at time.Time) error {
	r.all, r.times = series, append(r.times, at)
	err := r.to.WriteSeries(ctx, series, ended, at)
	if err != nil {
		r.t.Error(err)
	}
	return err
}

// withDaemons has a pod of a DaemonSet on every node, and tells when pods were bound.
type withDaemons struct {
	controllers.Reader
	bound map[string]time.Time // by UID
}

func (d withDaemons) ReadSnapshot(ctx context.Context) (cluster.Snapshot, error) {
	s, err := d.Reader.ReadSnapshot(ctx)
	for i, p := range s.Pods {
		if p.NodeName != "" && d.bound[p.UID].IsZero() {
			d.bound[p.UID] = s.Now
		}
		s.Pods[i].Bound = d.bound[p.UID]
	}
	for _, n := range s.Nodes {
		s.Pods = append(s.Pods, cluster.Pod{Namespace: "kube-system", Name: "proxy-" + n.Name, UID: "proxy-" + n.Name, NodeName: n.Name, Phase: "Running",
			Ready: true, Created: n.Created, Owner: cluster.OwnerDaemonSet, Tolerations: []cluster.Toleration{{Operator: "Exists"}}, Need: resources.List{CPU: 50, Memory: 64 * resources.MiB, Pods: 1}})
	}
	return s, err
}

// minutes lets time go by, with an invocation of every function in each minute.
func (r *recording) minutes(n int) {
	r.t.Helper()
	for range n {
		p := r.f.Provision(r.f.World.Ports(fake.Fault{}))
		p.Totals = r
		d := r.f.Disrupt(r.f.World.Ports(fake.Fault{}))
		d.Totals = r
		ports := r.f.World.Ports(fake.Fault{})
		l := r.f.Lifecycle(ports)
		l.Read, l.Series = withDaemons{ports, r.bound}, r.series
		// lifecycle alone waits by the clock of the world
		for _, err := range []error{p.Run(r.t.Context(), r.f.Once()), l.Run(r.t.Context(), r.f.Once().Add(10*time.Second)), d.Run(r.t.Context(), r.f.Once())} {
			if err != nil {
				r.t.Fatal(err)
			}
		}
		r.f.World.Advance(time.Minute)
	}
}

// record plays the hour.
func record(t *testing.T, s *server) *recording {
	t.Helper()
	r := &recording{t: t, f: &controllertest.Functions{World: controllertest.NewWorld()}, totals: timeseries.Totals{}, bound: map[string]time.Time{},
		to: &prometheus.Writer{URL: s.URL, Labels: map[string]string{"cluster": "demo", "job": "karpenter"}}}
	r.series = &remotewrite.Recorder{Store: r, Writer: r, Around: r, Now: r.f.World.Now, Log: slog.New(slog.DiscardHandler),
		Options: timeseries.Options{Detail: timeseries.All, Build: map[string]string{"version": "test"}}}
	w := r.f.World
	w.ChangePool(func(p *cluster.Pool) {
		p.Disruption = cluster.Disruption{Policy: "WhenEmptyOrUnderutilized", Budgets: []cluster.NodeBudget{{Every: true, Nodes: "50%"}}}
		p.Limits, p.Limited = resources.List{CPU: 100_000, Memory: 400 * 1024 * resources.MiB}, []string{"cpu", "memory"}
	})
	r.minutes(2)
	w.Refuse = controllertest.CheapestOffering(w)
	w.RunApp("web", 8, controllertest.PodOf(1500, 3000))
	r.minutes(6)
	w.RunApp("batch", 4, controllertest.InZone("us-west-2b", controllertest.PodOf(1500, 3000)))
	r.minutes(6)
	controllertest.HandleNotices(t, r.f, controllertest.SpotNotice(w))
	r.minutes(8)
	w.ScaleApp("web", 3)
	r.minutes(10)
	w.StopApp("batch")
	r.minutes(12)
	w.DeleteClaims() // by hand
	r.minutes(8)
	w.RunApp("giant", 1, controllertest.PodOf(900_000, 3000)) // waits for ever
	r.minutes(3)
	if len(r.times) < 40 {
		t.Fatalf("%d sends", len(r.times))
	}
	return r
}

// TestWhatIsSentIsWhatPrometheusSays, value by value, after an hour.
func TestWhatIsSentIsWhatPrometheusSays(t *testing.T) {
	s := newServer(t, bothVersions()...)
	r := record(t, s)
	last := r.times[len(r.times)-1]
	got := map[string]float64{}
	for _, sample := range s.query(t, `{__name__=~"karpenter_.+|joiner_.+|operator_.+"}`, last) {
		labels := sample.Metric.Map()
		if labels["cluster"] != "demo" || labels["job"] != "karpenter" {
			t.Fatalf("labels %v", labels)
		}
		one := timeseries.Series{Name: labels["__name__"]}
		for _, name := range slices.Sorted(maps.Keys(labels)) {
			if name != "__name__" && name != "cluster" && name != "job" {
				one.Labels = append(one.Labels, timeseries.Label{Name: name, Value: labels[name]})
			}
		}
		got[one.Key()] = sample.F
	}
	for _, one := range r.all {
		value, there := got[one.Key()]
		if !there || value != one.Value && !(math.IsNaN(value) && math.IsNaN(one.Value)) {
			t.Errorf("%s %v is %g, there: %t; sent was %g", one.Name, one.Labels, value, there, one.Value)
		}
	}
	if len(got) != len(r.all) || len(got) < 500 {
		t.Errorf("Prometheus has %d series, sent were %d", len(got), len(r.all))
	}
	nodes := s.query(t, `karpenter_cluster_state_node_count`, last)
	if n := len(r.f.World.Claims()); n == 0 || nodes[0].F != float64(n) {
		t.Errorf("%v nodes, the cluster has %d", nodes[0].F, n)
	}
}
