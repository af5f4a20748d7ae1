package buffers

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"joiner.sh/pkg/model/fairshare"
)

// mostPods bounds the pods that all buffers of the cluster stand for, and so those of one. A virtual pod takes about
// 1 KiB in each function and is packed like any other; 10,000 are what a pass has time for beside the pods that wait.
const mostPods = 10_000

// mostRead bounds the buffers of the cluster of which a pass reads what they name: each is a call, of which eight at a
// time take some 5 ms.
const mostRead = 500

// ShareReads reports of each buffer whether what it names is to be read. Where buffers are too many namespaces get the
// same, and within one the first by name; the others say so.
func ShareReads(all []Buffer) []bool {
	names := make([]fairshare.Named, len(all))
	for i, b := range all {
		names[i] = fairshare.Named{Namespace: b.Object.Namespace, Name: b.Object.Name}
	}
	keep, by := fairshare.KeepFirst(mostRead, names)
	for i, yes := range keep {
		if ns := names[i].Namespace; !yes {
			all[i].unread = fmt.Sprintf("namespace %s has %d buffers, of which the first %d count: all together may be %d, shared out by namespace",
				ns, by[ns].Of, by[ns].Most, mostRead)
		}
	}
	return keep
}

// ShareOut shares out the pods that buffers may stand for where they want too many: namespaces get the same, as far as
// they want it, and so do the buffers within one.
func ShareOut(all []Buffer) {
	byNamespace := map[string][]int{}
	wants := make([]int64, len(all))
	for i, b := range all {
		n, _ := b.replicaCount()
		wants[i] = int64(n)
		byNamespace[b.Object.Namespace] = append(byNamespace[b.Object.Namespace], i)
	}
	namespaces := slices.Sorted(maps.Keys(byNamespace))
	sums := make([]int64, len(namespaces))
	for i, ns := range namespaces {
		for _, j := range byNamespace[ns] {
			sums[i] += wants[j]
		}
	}
	for i, most := range fairshare.MaxMin(mostPods, sums) {
		list := byNamespace[namespaces[i]]
		slices.SortFunc(list, func(x, y int) int { return cmp.Compare(all[x].Object.Name, all[y].Object.Name) })
		own := make([]int64, len(list))
		for k, j := range list {
			own[k] = wants[j]
		}
		for k, share := range fairshare.MaxMin(most, own) {
			if share < own[k] {
				all[list[k]].share = &share
			}
		}
	}
}

// mostPods returns the largest number of pods for which the buffer may stand.
func (b Buffer) mostPods() int64 {
	if b.share != nil {
		return *b.share
	}
	return mostPods
}
