package translate

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"joiner.sh/pkg/model/cluster"
)

// A bundle is the devices of a claim that are all to be on one PCIe root, such as a GPU with four EFA interfaces. It
// counts as one unit of a resource of its own where no other pod of its nodes wants such devices: pods with the same
// bundle take them in these numbers alone. So a PCIe root holds as many as its scarcest devices allow, whichever of
// them are allocated.

// The attribute that devices on one PCIe root share.
const (
	pcieRootDomain = "resource.kubernetes.io"
	pcieRoot       = "pcieRoot"
)

// constraintProblem returns why constraints between devices cannot be counted, empty where they can or there are none.
func constraintProblem(in resourcev1.DeviceClaim) string {
	if len(in.Constraints) == 0 {
		return ""
	}
	one := in.Constraints[0]
	switch {
	case len(in.Constraints) > 1:
		return "it has several constraints between devices"
	case one.MatchAttribute == nil:
		return "it has a constraint between devices that is not matchAttribute"
	case *one.MatchAttribute != pcieRootDomain+"/"+pcieRoot:
		return fmt.Sprintf("its devices are to have the same %.80s; those of the same %s/%s alone can be counted",
			*one.MatchAttribute, pcieRootDomain, pcieRoot)
	}
	for _, r := range in.Requests {
		switch {
		case len(one.Requests) > 0 && !slices.Contains(one.Requests, r.Name):
			return fmt.Sprintf("its constraint between devices leaves request %s out", r.Name)
		case r.Exactly != nil && r.Exactly.AllocationMode == resourcev1.DeviceAllocationModeAll:
			return fmt.Sprintf("request %s asks for all devices of a class, and for those of one PCIe root", r.Name)
		}
	}
	return ""
}

// bundleResource is the resource that stands for so many devices of these classes on one PCIe root.
func bundleResource(byClass map[string]int64) string {
	var parts []string
	for _, class := range slices.Sorted(maps.Keys(byClass)) {
		parts = append(parts, strconv.FormatInt(byClass[class], 10)+"_"+class)
	}
	return cluster.Bundle + strings.Join(parts, "_")
}

// addBundle adds the devices that are to be on one PCIe root, of classes that stand for their groups. It returns why it
// cannot.
func addBundle(byGroup map[string]int64, classes []DeviceClass, into map[string]int64) (why string) {
	name := bundleResource(byGroup)
	a, b, shared := findShared(classes)
	switch {
	case shared:
		return fmt.Sprintf("DeviceClasses %s and %s, of which devices are to be on one PCIe root, may select the same",
			a, b)
	case len(validation.IsQualifiedName(name)) > 0:
		return fmt.Sprintf("its devices on one PCIe root have too long a name for a resource: %.120s", name)
	}
	into[name]++
	return ""
}

// bundleParts are the classes of a bundle, each with how many of its devices are asked for; nil for any other resource.
func bundleParts(all []DeviceClass, resource string) (out []DeviceClass) {
	name, is := strings.CutPrefix(resource, cluster.Bundle)
	words := strings.Split(name, "_") // no DeviceClass has one in its name
	for i := 0; is && i+1 < len(words); i += 2 {
		n, err := strconv.ParseInt(words[i], 10, 64)
		at := slices.IndexFunc(all, func(c DeviceClass) bool { return c.Name == words[i+1] })
		if err != nil || n < 1 || at < 0 {
			return nil
		}
		c := all[at]
		c.Resource, c.PerRoot = resource, n
		out = append(out, c)
	}
	return out
}

// overlap reports whether a device may be of both classes.
func (c DeviceClass) overlap(o DeviceClass) bool {
	return c.inGroup() == o.inGroup() || !c.selector.apartFrom(o.selector)
}

// findShared returns two of the classes that may select the same device.
func findShared(classes []DeviceClass) (a, b string, found bool) {
	for i, c := range classes {
		for _, before := range classes[:i] {
			if c.overlap(before) {
				return before.Name, c.Name, true
			}
		}
	}
	return "", "", false
}

// mostSelectors is of how many node selectors it is kept who asks for a resource. Beyond, somebody may ask on any node.
const mostSelectors = 100

// wanted says since when pods ask for a resource, and by which node selectors, each once.
type wanted struct {
	since time.Time
	by    []map[string]string
}

func (w *wanted) add(p *cluster.Pod) {
	if len(w.by) == 0 || p.Created.Before(w.since) {
		w.since = p.Created
	}
	known := slices.ContainsFunc(w.by, func(o map[string]string) bool { return maps.Equal(o, p.NodeSelector) })
	switch {
	case known || len(w.by) > mostSelectors:
	case len(w.by) == mostSelectors:
		w.by = append(w.by, nil)
	default:
		w.by = append(w.by, p.NodeSelector)
	}
}

// meets reports whether a pod with that node selector may be on a node with one of these.
func (w *wanted) meets(selector map[string]string) bool {
	return slices.ContainsFunc(w.by, func(o map[string]string) bool {
		for key, value := range o {
			if other, both := selector[key]; both && other != value {
				return false
			}
		}
		return true
	})
}

// mostBundles caps the different bundles that count: a cluster has a few, and each is compared with all before it. Of
// 5,000 pods with 256 bundles and as many selectors half and double of it take 0.1 s, four times 0.2 s, all 1.5 s.
const mostBundles = 20

// bundle is one that counts, with the pods that ask for it.
type bundle struct {
	parts []DeviceClass
	by    *wanted
}

// rival is a resource that may be of the same devices as a bundle, with the pods that ask for it.
type rival struct {
	resource string
	by       *wanted
}

// refuseBundles refuses the pods with bundles of whose devices pods want some that may be on the same node: which of
// them a pod gets is the scheduler's choice. Of bundles that share devices the one that was claimed first counts.
func refuseBundles(pods []cluster.Pod, all []DeviceClass) {
	wants, asking := findWants(pods)
	names := slices.Collect(maps.Keys(asking))
	slices.SortFunc(names, func(a, b string) int {
		return cmp.Or(wants[a].since.Compare(wants[b].since), strings.Compare(a, b))
	})
	var counted []bundle
	for _, name := range names {
		one, others := bundle{bundleParts(all, name), &wanted{}}, map[string]string{}
		isOneTooMany := len(counted) == mostBundles
		var rivals []rival
		if !isOneTooMany {
			rivals = one.findRivals(all, counted, wants)
		}
		for _, p := range asking[name] {
			selector := fmt.Sprint(p.NodeSelector)
			if _, known := others[selector]; !known {
				others[selector] = firstMet(rivals, p.NodeSelector)
			}
			why := ""
			switch other := others[selector]; {
			case isOneTooMany:
				why = fmt.Sprintf("pods ask for more than %d different numbers of such devices, and these were asked for last",
					mostBundles)
			case other != "":
				why = fmt.Sprintf("pods ask for %s too, which may be of the same devices", other)
			default:
				one.by.add(p)
				continue
			}
			p.Unmodelled = append(slices.Clip(p.Unmodelled), "its devices on one PCIe root cannot be counted: "+why)
		}
		if len(one.by.by) > 0 {
			counted = append(counted, one)
		}
	}
}

// findRivals returns what pods ask for that may be of devices of the bundle; counted are those that were claimed
// before.
func (b bundle) findRivals(all []DeviceClass, counted []bundle, wants map[string]*wanted) (out []rival) {
	for _, part := range b.parts {
		for _, c := range all {
			if c.Unread != "" || !c.overlap(part) {
				continue
			}
			for _, name := range []string{deviceResource(c.Name), cluster.Whole + c.Name, c.Resource, c.CountedBy} {
				if wants[name] != nil {
					out = append(out, rival{name, wants[name]})
				}
			}
		}
		for _, before := range counted {
			known := slices.ContainsFunc(out, func(r rival) bool { return r.by == before.by })
			if !known && slices.ContainsFunc(before.parts, part.overlap) {
				out = append(out, rival{before.parts[0].Resource, before.by})
			}
		}
	}
	return out
}

// firstMet is the first of the resources that pods ask for that may be on the same node as one with the selector; empty
// if there is none.
func firstMet(rivals []rival, selector map[string]string) string {
	if at := slices.IndexFunc(rivals, func(r rival) bool { return r.by.meets(selector) }); at >= 0 {
		return cluster.ResourceText(rivals[at].resource)
	}
	return ""
}

// findWants returns who asks for each extended resource, or whose successor will, and the pods that ask for bundles.
// Pods that are refused get none.
func findWants(pods []cluster.Pod) (wants map[string]*wanted, bundles map[string][]*cluster.Pod) {
	wants, bundles = map[string]*wanted{}, map[string][]*cluster.Pod{}
	for i := range pods {
		p := &pods[i]
		if len(p.Unmodelled) > 0 {
			continue
		}
		for _, e := range slices.Concat(p.Need.Extended, p.NeedAnew.Extended) {
			if wants[e.Name] == nil {
				wants[e.Name] = &wanted{}
			}
			wants[e.Name].add(p)
			of := bundles[e.Name]
			if strings.HasPrefix(e.Name, cluster.Bundle) && (len(of) == 0 || of[len(of)-1] != p) {
				bundles[e.Name] = append(of, p)
			}
		}
	}
	return wants, bundles
}

// rootCount is the number of devices of a DeviceClass on a PCIe root of a node, and how many of them nobody has.
type rootCount struct{ all, free int64 }

// addBundles gives the nodes the bundles that their devices make. Those that pods of a node have are there for them;
// what of the other devices is left for more says what is free, whoever has the rest.
func (counts DeviceCounts) addBundles(s *cluster.Snapshot) {
	bundles := s.Devices.Bundles()
	if len(bundles) == 0 {
		return
	}
	had := map[[2]string]int64{} // by node and resource
	for i := range s.Pods {
		p := &s.Pods[i]
		for _, parts := range bundles {
			if n := p.Need.Get(parts[0].Resource); n > 0 && p.NodeName != "" && !p.Terminal() {
				had[[2]string{p.NodeName, parts[0].Resource}] += n
			}
		}
	}
	for i := range s.Nodes {
		n := &s.Nodes[i]
		for _, parts := range bundles {
			name := parts[0].Resource
			all, free := counts.bundlesOn(n.Name, parts)
			if all > 0 {
				n.Capacity = n.Capacity.With(name, all)
				n.Allocatable = n.Allocatable.With(name, min(all, free+had[[2]string{n.Name, name}]))
			}
		}
	}
}

// bundlesOn returns the number of bundles of these parts on a node, and how many of them nobody has.
func (counts DeviceCounts) bundlesOn(node string, parts []cluster.DeviceClass) (all, free int64) {
	on := func(c cluster.DeviceClass) map[string]rootCount { return counts[node][c.Name].roots }
	for _, root := range slices.Sorted(maps.Keys(on(parts[0]))) {
		all += cluster.BundlesOnRoot(parts, func(c cluster.DeviceClass) int64 { return on(c)[root].all })
		free += cluster.BundlesOnRoot(parts, func(c cluster.DeviceClass) int64 { return on(c)[root].free })
	}
	return all, free
}
