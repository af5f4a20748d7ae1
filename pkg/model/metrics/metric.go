package metrics

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"time"
)

// Namespace holds all metrics in CloudWatch.
const Namespace = "Joiner"

// The names of the metrics. Gauges say how things stand, totals what was added since the last line, durations are
// seconds.
const (
	// pods that no pool can hold, those that wait for one that sleeps left out
	Unschedulable = "karpenter_scheduler_unschedulable_pods_count"
	Unbound       = "karpenter_pods_provisioning_unbound_time_seconds" // age of the oldest of them
	// pods that only wait until a NodePool wakes
	Asleep = "joiner_pods_asleep_count"
	// from a pod's creation to the launch for it
	DecisionTime  = "karpenter_pods_scheduling_decision_duration_seconds"
	ClaimsCreated = "karpenter_nodeclaims_created_total"    //
	ClaimsEnded   = "karpenter_nodeclaims_terminated_total" //
	// by reason; what the status of instances gave rise to is instance_status, system_status and event_status
	ClaimsDisrupt = "karpenter_nodeclaims_disrupted_total"
	// disruptions begun, by decision and reason
	Decisions     = "karpenter_voluntary_disruption_decisions_total"
	QueueFailures = "karpenter_voluntary_disruption_queue_failures_total" // disruptions taken back
	// by reason: nodes that are a case for it and may go
	Eligible = "karpenter_voluntary_disruption_eligible_nodes"
	// proposals that did not hold when they were confirmed or begun
	Invalidated     = "karpenter_voluntary_disruption_failed_validations_total"
	Evaluation      = "karpenter_voluntary_disruption_decision_evaluation_duration_seconds"
	IneligibleNodes = "joiner_disruption_ineligible_nodes" // by reason
	NodeCount       = "karpenter_cluster_state_node_count" // NodeClaims of the cluster that have an instance
	PoolCost        = "karpenter_nodepools_cost_total"     // USD per hour, by nodepool and capacity_type
	PoolNodes       = "joiner_nodepool_nodes"              // by nodepool and capacity_type
	PricePerHour    = "joiner_price_usd_per_hour"          // of all nodes
	CatalogAge      = "joiner_catalog_age_seconds"         // since the catalog was stored
	Notices         = "joiner_notices_total"               // of EC2 about an instance of ours, by reason
	NoticeHandled   = "joiner_notice_handled_seconds"      // from a notice to the end of its handling
	RefusedByLease  = "joiner_changes_refused_total"       // looks that found another controller leading the cluster
	Faults          = "joiner_faults_total"                // of the program: what it failed about and went on without
	APIRequests     = "joiner_api_requests_total"          // of an invocation to the API server
	APIBytes        = "joiner_api_read_bytes_total"        // of the answers, after decompression
	PassesCutShort  = "joiner_passes_cut_short_total"      // ended before time or memory ran out
	// types of classes that are left out because their nodes were bought in vain
	TypesLeftOut = "joiner_instance_types_left_out_count"
	// launches that maxNodes, maxNodesPerMinute, maxUSDPerHour or the API server's refusals held back in a pass
	CeilingHeld = "joiner_launches_held_count"
	// pods and deletions that waited for the schedule although push is on
	PushMissed = "joiner_push_missed_total"
)

// Limits of the format.
const (
	maxNumbers = 100
	maxText    = 1024
)

// Tag is one dimension besides the cluster.
type Tag struct{ Key, Value string }

// Value is one metric with what was measured. Unit is a unit of CloudWatch; empty for none.
type Value struct {
	Name    string
	Unit    string
	Numbers []float64
}

// Record holds what was measured for one combination of dimensions.
type Record struct {
	By     []Tag
	Values []Value
}

// Gauge is a value of one number.
func Gauge(name string, n float64) Value { return Value{Name: name, Numbers: []float64{n}} }

// Total counts things.
func Total(name string, n int) Value {
	return Value{Name: name, Unit: "Count", Numbers: []float64{float64(n)}}
}

// Durations are measured times.
func Durations(name string, d ...time.Duration) Value {
	v := Value{Name: name, Unit: "Seconds"}
	for _, one := range d {
		v.Numbers = append(v.Numbers, one.Seconds())
	}
	return v
}

// definition tells CloudWatch how to read the metrics of one line.
type definition struct {
	Timestamp         int64 // milliseconds
	CloudWatchMetrics []directive
}

type directive struct {
	Namespace  string
	Dimensions [][]string
	Metrics    []named
}

type named struct {
	Name string
	Unit string `json:",omitempty"`
}

// EMFLines writes the record, one line of JSON for every hundred numbers of its longest value. Values without a number
// are left out; without any there is no line. A name that is there twice is an error, as is one that is also a
// dimension.
func EMFLines(now time.Time, cluster string, r Record) ([][]byte, error) {
	var out [][]byte
	for from := 0; ; from += maxNumbers {
		part := Record{By: r.By}
		for _, v := range r.Values {
			if from < len(v.Numbers) {
				v.Numbers = v.Numbers[from:min(from+maxNumbers, len(v.Numbers))]
				part.Values = append(part.Values, v)
			}
		}
		if len(part.Values) == 0 {
			return out, nil
		}
		line, err := part.emfLine(now, cluster)
		if err != nil {
			return nil, err
		}
		out = append(out, line)
	}
}

func (r Record) emfLine(now time.Time, cluster string) ([]byte, error) {
	root := map[string]any{}
	put := func(key string, value any) error {
		if _, twice := root[key]; twice || key == "" || key == "_aws" {
			return fmt.Errorf("write metric: %q is there twice or is no name", key)
		}
		root[key] = value
		return nil
	}
	d := directive{Namespace: Namespace, Dimensions: [][]string{{}}}
	for _, t := range append([]Tag{{"cluster", cluster}},
		slices.SortedFunc(slices.Values(r.By), func(a, b Tag) int { return cmp.Compare(a.Key, b.Key) })...) {
		if err := put(t.Key, t.Value[:min(len(t.Value), maxText)]); err != nil {
			return nil, err
		}
		d.Dimensions[0] = append(d.Dimensions[0], t.Key)
	}
	for _, v := range r.Values {
		var number any = v.Numbers
		if len(v.Numbers) == 1 {
			number = v.Numbers[0]
		}
		if err := put(v.Name, number); err != nil {
			return nil, err
		}
		d.Metrics = append(d.Metrics, named{v.Name, v.Unit})
	}
	root["_aws"] = definition{now.UnixMilli(), []directive{d}}
	line, err := json.Marshal(root)
	if err != nil {
		return nil, fmt.Errorf("write metric: %w", err)
	}
	return line, nil
}
