package timeseries

import (
	"cmp"
	"slices"
	"strings"

	"joiner.sh/pkg/model/cluster"
)

// Options says which series are listed.
type Options struct {
	Detail Detail
	Build  map[string]string // labels of karpenter_build_info
	Limit  int               // of series; 0 for none
	// what other functions counted and measured; nil for nothing
	Others Totals
}

// lister gathers series.
type lister struct {
	s   cluster.Snapshot
	o   Options
	out []Series
}

// addSeries adds one series with labels as names and values in turn.
func (l *lister) addSeries(family string, value float64, labels ...string) {
	l.addLabels(family, value, makeLabels(labels...))
}

func (l *lister) addLabels(family string, value float64, labels []Label) {
	l.out = append(l.out, Series{Name: family, Labels: labels, Value: value, Family: family})
}

// List lists all series of the moment, sorted by name and labels, and says how many were left out: where they are more
// than the limit, the most detailed go first, metric by metric.
func (h History) List(s cluster.Snapshot, o Options) (all []Series, omitted int) {
	l := &lister{s: s, o: o}
	l.listCluster()
	l.listPools()
	l.listObjects()
	if o.Detail >= Nodes {
		l.listNodes()
	}
	if o.Detail >= All {
		l.listPods(h)
		l.listOfferings()
	}
	l.out = append(l.out, h.Totals.List(s.Now)...)
	l.out = append(l.out, o.Others.List(s.Now)...)
	all, omitted = limitSeries(l.out, o.Limit-2)
	if o.Limit == 0 {
		all, omitted = l.out, 0
	}
	n := float64(len(all) + 2)
	all = append(all, Series{Name: seriesSent, Family: seriesSent, Value: n},
		Series{Name: seriesOmitted, Family: seriesOmitted, Value: float64(omitted)})
	slices.SortStableFunc(all, compareSeries)
	return all, omitted
}

// limitSeries leaves out whole metrics, the most detailed and the largest of them first, until no more than n series
// are left.
func limitSeries(all []Series, n int) (kept []Series, omitted int) {
	if len(all) <= n {
		return all, 0
	}
	count := map[string]int{}
	for _, s := range all {
		count[s.Family]++
	}
	families := Families()
	slices.SortStableFunc(families, func(a, b Family) int {
		return cmp.Or(cmp.Compare(b.Detail, a.Detail), cmp.Compare(count[b.Name], count[a.Name]))
	})
	gone := map[string]bool{}
	for _, f := range families {
		if len(all)-omitted <= n {
			break
		}
		gone[f.Name] = true
		omitted += count[f.Name]
	}
	return slices.DeleteFunc(slices.Clone(all), func(s Series) bool { return gone[s.Family] }), omitted
}

func compareSeries(a, b Series) int {
	return cmp.Or(strings.Compare(a.Name, b.Name), slices.CompareFunc(a.Labels, b.Labels, func(x, y Label) int {
		return cmp.Or(strings.Compare(x.Name, y.Name), strings.Compare(x.Value, y.Value))
	}))
}
