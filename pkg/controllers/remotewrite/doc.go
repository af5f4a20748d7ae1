// Package remotewrite counts what happens to a cluster and has it sent to Prometheus, once a minute at most.
//
// Recorder is given every snapshot of lifecycle, which sees most and runs alone, and works beside its passes, so that
// none waits for the endpoint. What has been counted is stored before it is sent. An endpoint that takes nothing is
// told of once an hour. Limits: 100,000 series, 10,000 of which are remembered over the life of a process to be ended.
package remotewrite
