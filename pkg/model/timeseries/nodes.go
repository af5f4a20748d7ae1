package timeseries

import (
	"strconv"
	"strings"

	awsv1 "joiner.sh/pkg/api/aws/v1"
	v1 "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/resources"
)

// nodeLabelKeys are the labels of a node that its series carry, with the last part of the key as their name.
func nodeLabelKeys() []string {
	return append([]string{v1.LabelNodePool, instancetypes.LabelZone, "topology.kubernetes.io/region",
		instancetypes.LabelType, "kubernetes.io/arch", "kubernetes.io/os", instancetypes.LabelCapacityType,
		"node.kubernetes.io/windows-build", "topology.k8s.aws/zone-id"}, awsv1.WellKnownLabels()...)
}

// labelName is the name in Prometheus of a label of Kubernetes.
func labelName(key string) string {
	_, last, found := strings.Cut(key, "/")
	if !found {
		last = key
	}
	return snake(last)
}

func nodeLabels(n cluster.StateNode) []Label {
	pairs := []string{"node_name", n.Node.Name, "managed", strconv.FormatBool(n.Claim != nil)}
	for _, key := range nodeLabelKeys() {
		if key != awsv1.LabelEC2NodeClass {
			pairs = append(pairs, labelName(key), n.Node.Labels[key])
		}
	}
	return makeLabels(pairs...)
}

// usage holds the requests of the pods of a node.
type usage struct{ all, daemons resources.List }

func usageByNode(s cluster.Snapshot) map[string]usage {
	out := map[string]usage{}
	for i := range s.Pods {
		p := &s.Pods[i]
		if p.NodeName == "" || p.Virtual || p.Terminal() {
			continue
		}
		u := out[p.NodeName]
		u.all = u.all.Add(p.Need)
		if p.Owner == cluster.OwnerDaemonSet {
			u.daemons = u.daemons.Add(p.Need)
		}
		out[p.NodeName] = u
	}
	return out
}

func (l *lister) listNodes() {
	use := usageByNode(l.s)
	for _, n := range l.s.StateNodes() {
		if n.Node == nil {
			continue
		}
		labels, u := nodeLabels(n), use[n.Node.Name]
		l.addAmounts(nodesAllocatable, n.Node.Allocatable, labels)
		l.addAmounts(nodesPodRequests, u.all, labels)
		l.addAmounts(nodesDaemonRequests, u.daemons, labels)
		l.addAmounts(nodesOverhead, n.Node.Capacity.Sub(n.Node.Allocatable), labels)
		l.addLabels(nodesAge, l.s.Now.Sub(n.Node.Created).Seconds(), labels)
	}
}

// addAmounts adds a series for each resource, cpu in cores.
func (l *lister) addAmounts(family string, amounts resources.List, labels []Label) {
	for _, name := range amounts.Names() {
		l.addLabels(family, inUnits(name, amounts.Get(name)), withLabel(labels, "resource_type", snake(name)))
	}
}

func inUnits(resource string, amount int64) float64 {
	if resource == resources.CPU {
		return float64(amount) / 1000
	}
	return float64(amount)
}

// listUtilization adds what all pods request of all nodes, in percent by resource.
func (l *lister) listUtilization() {
	use := usageByNode(l.s)
	var have, used resources.List
	for _, n := range l.s.Nodes {
		have, used = have.Add(n.Allocatable), used.Add(use[n.Name].all)
	}
	for _, name := range have.Names() {
		l.addSeries(utilization, 100*float64(used.Get(name))/float64(have.Get(name)), "resource_type", snake(name))
	}
}
