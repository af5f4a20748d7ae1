// Package notices handles what AWS says about an instance: spot and reservation interruptions, rebalance
// recommendations, scheduled changes, states. Read notices.go: HandleNotices and applyDecision.
//
// What a notice means is for nodeclaim/interruption to decide. Every call may be repeated, late or out of order.
package notices
