// Package timeseries knows which time series Prometheus is given about a cluster, under Karpenter's names, labels and
// meanings where it has the metric.
//
// Observe counts what has happened between two snapshots, List says how things stand. What one observation tells the
// next is a History, which outlives the process. Series are sorted and deterministic. It refuses to know how they are
// sent and where the History is kept.
package timeseries
