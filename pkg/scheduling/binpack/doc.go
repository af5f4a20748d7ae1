// Package binpack decides where pods without a node go: onto nodes that exist or are on their way, and onto new ones.
//
// Start with Pods in pack.go and read solve.go: it is the whole search from top to bottom. It starts from a problem
// (problem.go) of parts that are read once: class_*.go pod classes, offer_*.go what pools can launch, node_*.go nodes,
// topology_*.go domains. A packing fills a solution (solution.go): place_*.go uses room, open_*.go makes nodes,
// repair.go learns from broken rules. search_*.go improves it, launch_*.go writes it down, explain_*.go tells reasons,
// price_*.go and bound_*.go tell what pods are worth and plans cost at least, whatif.go answers many questions.
// It knows the rules of kube-scheduler and prices. It never guesses: a pod with a constraint that it does not know is
// unschedulable with that reason. It refuses to know how anything is launched.
package binpack
