package timeseries

import (
	"slices"
	"strconv"
	"time"

	v1 "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/lists"
	"joiner.sh/pkg/model/metrics"
)

// listPods lists the series of each pod.
func (l *lister) listPods(h History) {
	labels := map[string]map[string]string{}
	for _, n := range l.s.Nodes {
		labels[n.Name] = n.Labels
	}
	planned := plannedSince(l.s.Claims)
	for i := range l.s.Pods {
		p := &l.s.Pods[i]
		if p.Virtual {
			continue
		}
		at := labels[p.NodeName]
		l.addSeries(podsState, 1, "name", p.Name, "namespace", p.Namespace, "node", p.NodeName, "scheduled",
			strconv.FormatBool(p.NodeName != ""), "phase", p.Phase, "ready", strconv.FormatBool(p.Ready), "zone",
			at[instancetypes.LabelZone], "arch", at["kubernetes.io/arch"], "capacity_type",
			at[instancetypes.LabelCapacityType], "instance_type", at[instancetypes.LabelType], "nodepool",
			at[v1.LabelNodePool], "managed", strconv.FormatBool(at[v1.LabelNodePool] != ""))
		if _, starting := h.Starting[p.UID]; !starting && p.NodeName != "" || p.Terminal() {
			continue
		}
		l.listStarting(p, planned[p.Key()])
	}
}

// listStarting lists for how long a pod has not been bound, and not been ready.
func (l *lister) listStarting(p *cluster.Pod, planned time.Time) {
	age, sincePlanned := l.s.Now.Sub(p.Created).Seconds(), l.s.Now.Sub(planned).Seconds()
	l.addSeries(podsUnstarted, age, "name", p.Name, "namespace", p.Namespace)
	if !planned.IsZero() {
		l.addSeries(podsProvisioningUnstarted, sincePlanned, "name", p.Name, "namespace", p.Namespace)
	}
	if p.NodeName != "" {
		return
	}
	l.addSeries(podsUnbound, age, "name", p.Name, "namespace", p.Namespace, "dynamic_resources", "false")
	if planned.IsZero() {
		l.addSeries(podsUndecided, age, "name", p.Name, "namespace", p.Namespace)
		return
	}
	l.addSeries(metrics.Unbound, sincePlanned, "name", p.Name, "namespace", p.Namespace, "dynamic_resources",
		"false")
}

// listOfferings lists what EC2 sells, at what price, and whether it is to be had.
func (l *lister) listOfferings() {
	refused := lists.Set(l.s.Unavailable, func(u instancetypes.UnavailableOffering) instancetypes.OfferingKey {
		return u.OfferingKey
	})
	for _, f := range l.s.Catalog.Types {
		l.addSeries(typeCPU, float64(f.VCPU), "instance_type", f.Name)
		l.addSeries(typeMemory, float64(f.MemoryMiB<<20), "instance_type", f.Name)
		for _, zone := range f.Zones {
			for _, capacity := range []string{instancetypes.OnDemand, instancetypes.Spot} {
				offering := instancetypes.OfferingKey{CapacityType: capacity, Type: f.Name, Zone: zone}
				usd, known := l.s.Catalog.Charge(offering)
				available := 1.0
				if !known || refused[offering] || capacity == instancetypes.Spot && !slices.Contains(f.UsageClasses,
					capacity) {
					available = 0
				}
				at := []string{"instance_type", f.Name, "capacity_type", capacity, "zone", zone}
				l.addSeries(offeringAvailable, available, at...)
				if known {
					l.addSeries(offeringPrice, usd, at...)
				}
			}
		}
	}
}
