// Package binpack decides where pods without a node go: onto nodes that exist or are on their way, and onto new ones.
//
// It knows the rules of the Kubernetes scheduler that matter for it and prices. It refuses to know how anything is
// launched, and it never guesses: a pod with a constraint it does not know is unplaced with that reason. Pods that are
// alike form one kind, so the work grows with kinds, offers and nodes and hardly with pods.
//
// The path of a pod: demand.go makes kinds of pods, relax.go their views from strict to relaxed, domain.go divides them
// over zones and other domains, host.go uses the room there is, price.go tells what pods are worth and what any plan
// costs at least, guide.go, candidate.go and open.go choose new nodes, fleet.go all of them together where few are to
// be had, search.go packs a few of them anew where that is cheaper, launch.go writes them down, reason.go explains who
// stays without a home.
package binpack
