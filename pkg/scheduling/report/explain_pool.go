package report

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	api "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/lists"
	"joiner.sh/pkg/model/requirements"
	"joiner.sh/pkg/model/resources"
	"joiner.sh/pkg/scheduling/capacity"
	"joiner.sh/pkg/scheduling/packing"
	"joiner.sh/pkg/scheduling/podclass"
)

// Explainer says why pods of a solution have no place.
type Explainer struct{ Solution *packing.Solution }

// poolRefusal returns all that keeps the pool from making a node for the view, empty when it could.
func (e Explainer) poolRefusal(pod *podclass.RelaxedPod, p *capacity.OfferingPool) string {
	e.Solution.W.Stages.Tell(cluster.StageExplain, pod.Class, p.Name)
	parts := lists.Of(cluster.Untolerated(p.Taints, pod.Admission.Tolerations),
		func(t cluster.Taint) string { return "taint " + t.String() + " is not tolerated" })
	if lacks := p.Lacks(pod.Admission.Requires); len(lacks) > 0 {
		parts = append(parts, "its nodes are without "+strings.Join(lacks, ", ")+e.kubeletOf(p))
	}
	if why := conflictingLabels(pod, p); why != "" {
		parts = append(parts, why)
	}
	switch {
	case p.Aside != "" && len(parts) == 0:
		return p.Aside
	case p.Aside == "" && !wantsOtherPools(pod, p):
		parts = append(parts, e.offeringRefusals(pod, p, len(parts) > 0)...)
	}
	return strings.Join(parts, " and ")
}

// kubeletOf says which version of Kubernetes new nodes of the pool run, empty where nothing tells it.
func (e Explainer) kubeletOf(p *capacity.OfferingPool) string {
	class, _ := e.Solution.W.S.ClassOf(p.ClassKey())
	if class.KubeletMinor == 0 {
		return ""
	}
	return fmt.Sprintf(": the images of EC2NodeClass %s are of Kubernetes 1.%d", p.Class, class.KubeletMinor)
}

// offeringRefusals returns the reasons of the pool's offerings against the view, of those that it may use. Where the
// pool is refused anyhow, all offerings are asked and only what holds for each is told.
func (e Explainer) offeringRefusals(pod *podclass.RelaxedPod, p *capacity.OfferingPool, refused bool) []string {
	var fitting, all, now []*capacity.Offering
	for _, o := range p.Offerings {
		if !refused && o.FirstAlternative(pod.Admission) < 0 {
			continue
		}
		all = append(all, o)
		if capacity.FitCount(pod.Class.Need, o.Room) > 0 {
			fitting = append(fitting, o)
			if o.Available {
				now = append(now, o)
			}
		}
	}
	beside := besideDaemons(e.Solution.W.Catalog, pod, p)
	switch {
	case len(p.Models) == 0:
		return []string{"no instance type meets its requirements"}
	case len(all) == 0 && beside != "":
		return []string{beside}
	case len(all) == 0:
		return []string{"no instance type meets " + wantedLabels(pod)}
	case len(fitting) == 0 && beside != "":
		return []string{e.tooBig(pod, p, all), beside}
	case len(fitting) == 0:
		return []string{e.tooBig(pod, p, all)}
	}
	var out []string
	switch {
	case len(now) == 0:
		out = append(out, "nothing that holds the pod is to be had now: "+notSold(fitting))
		now = fitting
	case onlyReserved(now):
		out = append(out, "the capacity reservations that the pod may use have no room left")
	}
	if over := e.overLimit(p, now); over != "" {
		out = append(out, over)
	}
	return out
}

// overLimit names the limits in the way when every offering breaks one.
func (e Explainer) overLimit(p *capacity.OfferingPool, offerings []*capacity.Offering) string {
	broken := map[string]bool{}
	for _, o := range offerings {
		over := p.ExceededLimits(e.Solution.Used.Pools[p.ID], o.InstanceType.Type.Capacity)
		if len(over) == 0 {
			return ""
		}
		for _, name := range over {
			broken[name] = true
		}
	}
	return e.Solution.Used.LimitTexts(p, broken)
}

// onlyReserved reports whether the offerings are all reserved, so that only other pods can be in the way.
func onlyReserved(offerings []*capacity.Offering) bool {
	return !slices.ContainsFunc(offerings, func(o *capacity.Offering) bool { return !o.Limited() })
}

// besideDaemons names the DaemonSets that keep the view off nodes of the pool that it could be on otherwise.
func besideDaemons(cat *capacity.Catalog, pod *podclass.RelaxedPod, p *capacity.OfferingPool) string {
	if len(pod.Admission.Exclusions) == 0 {
		return ""
	}
	alone := cat.Admissions.AdmissionFor(pod.Wish.NodeAlternatives(true), pod.Wish.EffectiveTolerations())
	var names []string
	for _, x := range pod.Admission.Exclusions {
		if slices.ContainsFunc(p.Offerings, func(o *capacity.Offering) bool {
			return o.Runs(x) &&
				o.FirstAlternative(alone) >= 0
		}) {
			names = append(names, cat.Admissions.Daemons[x.Daemon].Pod.Key())
		}
	}
	if len(names) == 0 {
		return ""
	}
	slices.Sort(names)
	return "required pod anti-affinity keeps the pod off nodes that run DaemonSet " +
		strings.Join(slices.Compact(names), ", ")
}

// wantsOtherPools reports whether the view wants nodes of other pools by their names; then it does not matter what this
// one has.
func wantsOtherPools(pod *podclass.RelaxedPod, p *capacity.OfferingPool) bool {
	return !slices.ContainsFunc(pod.Admission.Alternatives,
		func(alt requirements.Set) bool { return alt.Has(api.LabelNodePool, p.Name) })
}

// conflictingLabels names what the view wants of labels that the pool itself rules out.
func conflictingLabels(pod *podclass.RelaxedPod, p *capacity.OfferingPool) string {
	var first []string
	for _, alt := range pod.Admission.Alternatives {
		var parts []string
		for _, r := range p.Required.Refusals(alt, podclass.IsWellKnownLabel) {
			if mine, ok := p.Required.Get(r.Key); ok {
				parts = append(parts, fmt.Sprintf("requires %s, pod wants %s", mine, r))
			} else {
				parts = append(parts, fmt.Sprintf("gives its nodes no label %s, pod wants %s", r.Key, r))
			}
		}
		if len(parts) == 0 {
			return ""
		}
		if first == nil {
			first = parts
		}
	}
	return strings.Join(first, " and ")
}

func wantedLabels(pod *podclass.RelaxedPod) string {
	var parts []string
	for _, alt := range pod.Admission.Alternatives {
		if alt.Len() > 0 {
			parts = append(parts, alt.String())
		}
	}
	return "what the pod wants: " + lists.Name(parts, ", or ")
}

// tooBig names the resources that no type has enough of, and the most there is of them.
func (e Explainer) tooBig(pod *podclass.RelaxedPod, p *capacity.OfferingPool, all []*capacity.Offering) string {
	if why := tooManyVolumes(pod.Class.Volumes, all); why != "" {
		return why
	}
	need := pod.Class.Pod.Need
	var most resources.List
	var daemons []int
	crowded := true // by daemons, as many as a node may have pods
	for _, o := range all {
		most = most.Max(o.InstanceType.Type.Allocatable)
		daemons = append(daemons, o.Daemons...)
		crowded = crowded && o.InstanceType.Type.Allocatable.Pods <= int64(len(o.Daemons))
	}
	what := amountsText(need.With(resources.Pods, 0))
	less := ""
	if len(daemons) > 0 {
		slices.Sort(daemons)
		list := e.Solution.W.Admissions.LargestDaemons(slices.Compact(daemons), most)
		if crowded {
			return fmt.Sprintf("no node may have more than %d pods, and its daemons are as many: %s", most.Pods, list)
		}
		less = ", less what its daemons take: " + list
	}
	short := need.Short(most)
	if len(short) == 0 {
		return fmt.Sprintf("no instance type is big enough for %s at once%s", what, less)
	}
	var parts []string
	for _, name := range short {
		parts = append(parts, mostText(name, most.Get(name)))
		less += e.neverHad(p, name)
		if most.Get(name) == 0 {
			less += e.uncountedDevices(name)
		}
	}
	if need.CPU >= resources.MillionCores {
		less += "; it asks for a million cores or more: is M (million) written where m (thousandth) is meant?"
	}
	return fmt.Sprintf("no instance type is big enough for %s; the largest has %s%s", what, strings.Join(parts, " "),
		less)
}

// amountsText are amounts in words that people know. Less than WholeUnits of one is no device, and keeps a pod apart.
func amountsText(l resources.List) string {
	var parts []string
	for _, name := range l.Names() {
		switch n := l.Get(name); {
		case !strings.HasPrefix(name, cluster.Whole):
			parts = append(parts, cluster.ResourceText(name)+"="+resources.Format(name, n))
		case n >= cluster.WholeUnits:
			parts = append(parts, cluster.ResourceText(name))
		}
	}
	return strings.Join(parts, " ")
}

// mostText is the most that nodes have of a resource that is short.
func mostText(name string, n int64) string {
	if class, is := strings.CutPrefix(name, cluster.Whole); is {
		return fmt.Sprintf("no device of DeviceClass %s, or more than the %d that a claim may have", class,
			cluster.MostDevicesOfClaim)
	}
	return cluster.ResourceText(name) + "=" + resources.Format(name, n)
}

// neverHad says which of the pool's types are left out because their nodes turned out never to have the resource.
func (e Explainer) neverHad(p *capacity.OfferingPool, resource string) string {
	class, _ := e.Solution.W.S.ClassOf(p.ClassKey())
	types, until := class.TypesWithout(resource, e.Solution.W.S.Unavailable, e.Solution.W.S.Now)
	if len(types) == 0 {
		return ""
	}
	return fmt.Sprintf("; nodes of %s never had %s, which counts as zero there until %s", lists.Name(types, ", "),
		cluster.ResourceText(resource),
		until.UTC().Format(time.RFC3339))
}

// uncountedDevices says of a resource of devices that nobody knows how many an instance type has.
func (e Explainer) uncountedDevices(resource string) string {
	c, served := e.Solution.W.S.Devices.Server(resource)
	if !served || c.CountedBy != "" || c.Unread != "" {
		return ""
	}
	number := ""
	if strings.HasPrefix(resource, cluster.Whole) {
		number, resource = "claim a number of them, and ", cluster.Claimed+c.Name
	}
	return fmt.Sprintf("; how many devices of DeviceClass %s (driver %s) an instance type has is not known: %sa NodeOverlay "+
		"says it with capacity %s", c.Name, c.Driver, number, resource)
}

// notSold sums up why offerings are not available.
func notSold(offerings []*capacity.Offering) string {
	seen := map[string]int{}
	for _, o := range offerings {
		why := o.Why
		if why == "" {
			why = "not sold"
		}
		seen[why]++
	}
	parts := lists.Of(slices.Sorted(maps.Keys(seen)),
		func(why string) string { return fmt.Sprintf("%d offerings %s", seen[why], why) })
	return strings.Join(parts, ", ")
}

// poolRefusals collects the reasons for which pools refuse a pod. A reason that several pools give is told once.
type poolRefusals struct {
	why   []string // in the order in which they first came
	pools map[string][]string
	asked int
	more  int // pools that were not asked
}

// wantsMore reports whether one more pool is to be asked.
func (r *poolRefusals) wantsMore() bool {
	if r.asked < capacity.ManyPools {
		r.asked++
		return true
	}
	r.more++
	return false
}

func (r *poolRefusals) addRefusal(pool, why string) {
	if r.pools == nil {
		r.pools = map[string][]string{}
	}
	if r.pools[why] == nil {
		r.why = append(r.why, why)
	}
	r.pools[why] = append(r.pools[why], pool)
}

func (r *poolRefusals) refusalLines() []string {
	var out []string
	left := r.more
	for i, why := range r.why {
		noun, names := "pools", r.pools[why]
		switch {
		case i >= lists.MostLines:
			left += len(names)
			continue
		case len(names) == 1:
			noun = "pool"
		}
		out = append(out, fmt.Sprintf("%s %s: %s", noun, lists.Name(names, ", "), why))
	}
	if left > 0 {
		out = append(out, fmt.Sprintf("%d more pools have nothing for the pod either", left))
	}
	return out
}

// inOrder are the pools, where there are many first those that have something for the pod.
func inOrder(cat *capacity.Catalog, admit *podclass.Admission) []*capacity.OfferingPool {
	if !cat.HasMany() {
		return cat.Pools
	}
	var fit, aside, unfit []*capacity.OfferingPool
	for _, p := range cat.Pools {
		switch {
		case !p.MayAdmit(admit):
			unfit = append(unfit, p)
		case p.Aside != "":
			aside = append(aside, p)
		default:
			fit = append(fit, p)
		}
	}
	return slices.Concat(fit, aside, unfit)
}

// tooManyVolumes says that no node of the offerings is expected to attach all volumes of a pod, empty where one is.
func tooManyVolumes(disks podclass.Volumes, offerings []*capacity.Offering) string {
	for i, v := range disks.Own {
		var most int64
		for _, o := range offerings {
			limit, limited := o.InstanceType.Volumes[v.Driver]
			if !limited {
				limit = podclass.UnlimitedVolumes
			}
			most = max(most, limit)
		}
		if disks.Count[i] > most {
			return fmt.Sprintf("it has %d volumes of %s, no instance type can have more than %d attached",
				disks.Count[i], v.Driver, most)
		}
	}
	return ""
}
