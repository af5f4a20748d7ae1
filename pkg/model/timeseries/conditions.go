package timeseries

import (
	"slices"
	"time"

	v1 "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/lists"
)

// conditionKind is a kind of object whose status conditions are told.
type conditionKind struct {
	name   string
	detail Detail
	extra  []string // labels of its own
}

func conditionKinds() []conditionKind {
	return []conditionKind{
		{"nodeclaim", Nodes, []string{"nodepool"}},
		{"node", Nodes, []string{"nodepool"}},
		{"nodepool", Cluster, nil},
		{"ec2nodeclass", Cluster, nil},
	}
}

func (k conditionKind) labels(names ...string) []string {
	out := slices.Concat(names, k.extra)
	slices.Sort(out)
	return out
}

// conditioned is an object with status conditions.
type conditioned struct {
	kind, name, pool string
	conditions       []cluster.Condition
	deleting         time.Time
}

func conditionedObjects(s cluster.Snapshot) []conditioned {
	out := lists.Of(s.Claims,
		func(c cluster.Claim) conditioned {
			return conditioned{"nodeclaim", c.Name, c.Pool, c.Conditions, c.Deleting}
		})
	for _, n := range s.Nodes {
		out = append(out, conditioned{"node", n.Name, n.Labels[v1.LabelNodePool], n.Conditions, n.Deleting})
	}
	for _, p := range s.Pools {
		out = append(out, conditioned{kind: "nodepool", name: p.Name, conditions: readiness(p.Ready)})
	}
	for _, c := range s.Classes {
		out = append(out, conditioned{kind: "ec2nodeclass", name: c.Name, conditions: readiness(c.Ready)})
	}
	return out
}

// readiness returns the one condition that is known of pools and classes. Since when it holds is not.
func readiness(ready bool) []cluster.Condition {
	if ready {
		return []cluster.Condition{{Type: v1.ConditionReady, Status: "True", Reason: v1.ConditionReady}}
	}
	return []cluster.Condition{{Type: v1.ConditionReady, Status: "False", Reason: "NotReady"}}
}

// listObjects lists the status conditions of objects and for how long they have been deleted.
func (l *lister) listObjects() {
	for _, o := range conditionedObjects(l.s) {
		f, _ := FindFamily("operator_" + o.kind + "_status_condition_count")
		if f.Detail > l.o.Detail {
			continue
		}
		for _, c := range o.conditions {
			labels := makeLabels("name", o.name, "nodepool", o.pool, "type", c.Type, "status", c.Status, "reason",
				c.Reason)
			l.addLabels(f.Name, 1, labels)
			if !c.Since.IsZero() {
				l.addLabels("operator_"+o.kind+"_status_condition_current_status_seconds",
					l.s.Now.Sub(c.Since).Seconds(), labels)
			}
		}
		if !o.deleting.IsZero() {
			l.addSeries("operator_"+o.kind+"_termination_current_time_seconds", l.s.Now.Sub(o.deleting).Seconds(), "name",
				o.name, "nodepool", o.pool)
		}
	}
}

// observeConditions counts conditions that changed since the last observation.
func (o *observer) observeConditions() {
	if o.first() {
		return
	}
	for _, object := range conditionedObjects(o.s) {
		for _, c := range object.conditions {
			if c.Since.After(o.before.At) {
				o.Totals.Count("operator_"+object.kind+"_status_condition_transitions_total", 1, "type", c.Type,
					"status", c.Status, "reason", c.Reason, "nodepool", object.pool)
			}
		}
	}
}
