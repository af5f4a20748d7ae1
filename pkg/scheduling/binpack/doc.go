// Package binpack decides where pods without a node go: onto nodes that exist or are on their way, and onto new ones.
//
// Start with Pods in pack.go. It knows the rules of kube-scheduler and prices. It never guesses: a pod with a
// constraint that it does not know is unschedulable with that reason. It refuses to know how anything is launched.
//
// The path of a pod: pod_classes.go (equal pods), relaxation.go (preferences), topology_domains.go (zones and others),
// place_on_existing.go, shadow_prices.go, price_guided.go with offer_candidates.go and open_nodes.go (new nodes),
// left_first.go (another order), linear_program.go (all new nodes together), local_search.go (a few packed again),
// planned_nodes.go (written down), explain_unplaced.go (reasons).
package binpack
