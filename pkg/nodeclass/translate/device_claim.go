package translate

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/ptr"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/lists"
	"joiner.sh/pkg/model/resources"
)

// mostDeviceClaims caps the claims of devices that a pod may have. A node has 32 devices of a kind at most, and a claim
// gets one or more.
const mostDeviceClaims = 100

// mostDeviceTemplates caps the ResourceClaimTemplates of a namespace that count: a team has some dozens, and whoever
// makes more waits alone.
const mostDeviceTemplates = 1000

// addDeviceTemplates names the ResourceClaimTemplates and ResourceClaims of the pod, without those of which its status
// says that no claim was made since it needs none.
func addDeviceTemplates(out *cluster.Pod, p *corev1.Pod) {
	if n := len(p.Spec.ResourceClaims); n > mostDeviceClaims {
		out.Unmodelled = append(out.Unmodelled, fmt.Sprintf("it has %d resourceClaims; at most %d are supported", n,
			mostDeviceClaims))
		return
	}
	for _, c := range p.Spec.ResourceClaims {
		switch {
		case slices.ContainsFunc(p.Status.ResourceClaimStatuses, func(s corev1.PodResourceClaimStatus) bool {
			return s.Name == c.Name && s.ResourceClaimName == nil
		}):
		case c.ResourceClaimTemplateName != nil:
			out.DeviceTemplates = append(out.DeviceTemplates, *c.ResourceClaimTemplateName)
		case c.ResourceClaimName != nil:
			out.DeviceClaims = append(out.DeviceClaims, *c.ResourceClaimName)
		default:
			out.Unmodelled = append(out.Unmodelled, fmt.Sprintf("its claim %s names neither a ResourceClaim nor a ResourceClaimTemplate",
				c.Name))
		}
	}
	slices.Sort(out.DeviceTemplates)
	slices.Sort(out.DeviceClaims)
	out.DeviceClaims = slices.Compact(out.DeviceClaims)
}

// deviceAsk holds what one ResourceClaim asks for.
type deviceAsk struct {
	byClass  map[string]int64 // how many devices of each DeviceClass
	together bool             // all of them on one PCIe root
	whole    []string         // DeviceClasses of which it asks for all devices of a node
	refused  string           // why they cannot be counted; empty where they are
	of       []requestedClass
}

// requestedClass holds what a request says of the devices that it may get.
type requestedClass struct {
	request, class string
	tolerations    []cluster.Toleration
}

// newDeviceAsk counts the devices that a claim asks for. It can where each request names one class and a number, and
// any devices of the class will do, or all of a node, or any on one PCIe root.
func newDeviceAsk(in resourcev1.ResourceClaimSpec) deviceAsk {
	if why := constraintProblem(in.Devices); why != "" {
		return deviceAsk{refused: why}
	}
	out := deviceAsk{byClass: map[string]int64{}, together: len(in.Devices.Constraints) > 0}
	var total int64
	for _, r := range in.Devices.Requests {
		if why := uncountable(r); why != "" {
			return deviceAsk{refused: fmt.Sprintf("request %s %s", r.Name, why)}
		}
		out.of = append(out.of, requestedClass{r.Name, r.Exactly.DeviceClassName,
			lists.Of(r.Exactly.Tolerations, deviceToleration)})
		if r.Exactly.AllocationMode == resourcev1.DeviceAllocationModeAll {
			out.whole = append(out.whole, r.Exactly.DeviceClassName)
			continue
		}
		n := max(1, r.Exactly.Count)
		if total += n; n > cluster.MostDevicesOfClaim || total > cluster.MostDevicesOfClaim {
			return deviceAsk{refused: fmt.Sprintf("request %s makes it more than %d devices, which no claim may have",
				r.Name, cluster.MostDevicesOfClaim)}
		}
		out.byClass[r.Exactly.DeviceClassName] += n
	}
	return out
}

// uncountable returns why the devices of a request cannot be counted; empty where they can. Tainted devices that the
// request tolerates are not counted.
func uncountable(r resourcev1.DeviceRequest) string {
	e := r.Exactly
	switch {
	case len(r.FirstAvailable) > 0:
		return "is firstAvailable"
	case e == nil:
		return "asks for nothing: it has neither exactly nor firstAvailable"
	case e.AllocationMode != "" && e.AllocationMode != resourcev1.DeviceAllocationModeExactCount &&
		e.AllocationMode != resourcev1.DeviceAllocationModeAll:
		return fmt.Sprintf("has the allocation mode %.80s, neither ExactCount nor All", e.AllocationMode)
	case len(e.Selectors) > 0:
		return "has selectors of its own; make them those of a DeviceClass, with equations of device.driver and device.attributes"
	case ptr.Deref(e.AdminAccess, false):
		return "asks for admin access"
	case e.Capacity != nil:
		return "asks for a part of a device"
	case len(validation.IsQualifiedName(deviceResource(e.DeviceClassName))) > 0:
		return fmt.Sprintf("names DeviceClass %.80s, whose name is too long for a resource", e.DeviceClassName)
	}
	return ""
}

// deviceResource is the extended resource that Kubernetes names after a DeviceClass.
func deviceResource(class string) string { return resourcev1.ResourceDeviceClassPrefix + class }

// ClaimedDevices holds what ResourceClaims say: which devices are taken, and what those ask for that were made of
// templates.
type ClaimedDevices struct {
	// Taken are the devices that are allocated, each with the DeviceClass through which a pod got it by an extended
	// resource or by a ResourceClaimTemplate whose devices can be counted; empty for any other.
	Taken map[DeviceID]string
	made  map[types.UID][]deviceAsk // by the pod
	named map[string]namedClaim     // those that are not made for one pod, by namespace and name
}

// NewClaimedDevices knows no claim.
func NewClaimedDevices() ClaimedDevices {
	return ClaimedDevices{map[DeviceID]string{}, map[types.UID][]deviceAsk{}, map[string]namedClaim{}}
}

// AddClaim adds what a ResourceClaim says.
func (d ClaimedDevices) AddClaim(in *resourcev1.ResourceClaim) {
	ask := newDeviceAsk(in.Spec)
	made := in.Annotations[resourcev1.PodResourceClaimAnnotation] != ""
	through := map[string]string{} // by request
	extended := in.Annotations[resourcev1.ExtendedResourceClaimAnnotation] == "true"
	if !made && !extended {
		d.named[in.Namespace+"/"+in.Name] = newNamedClaim(in, ask)
	}
	if extended || made && ask.refused == "" && !ask.together {
		for _, r := range in.Spec.Devices.Requests {
			if r.Exactly != nil {
				through[r.Name] = r.Exactly.DeviceClassName
			}
		}
	}
	if in.Status.Allocation != nil {
		for _, r := range in.Status.Allocation.Devices.Results {
			if !ptr.Deref(r.AdminAccess, false) { // who administers a device does not take it
				d.Taken[DeviceID{devicePool{r.Driver, r.Pool}, r.Device}] = through[r.Request]
			}
		}
	}
	if owner := metav1.GetControllerOf(in); made && owner != nil && owner.Kind == "Pod" {
		d.made[owner.UID] = append(d.made[owner.UID], ask)
	}
}

// DeviceClaims are the devices that pods may ask for by ResourceClaimTemplates.
type DeviceClaims struct {
	classes   map[string]DeviceClass
	templates map[string]deviceAsk // by namespace and name
	claimed   ClaimedDevices
	sharing   map[string]sharers // by namespace and name of a ResourceClaim
}

// NewDeviceClaims knows these, and no template.
func NewDeviceClaims(classes []DeviceClass, claimed ClaimedDevices) DeviceClaims {
	return DeviceClaims{lists.Index(classes, func(c DeviceClass) string { return c.Name }), map[string]deviceAsk{},
		claimed, map[string]sharers{}}
}

// AddTemplate adds a ResourceClaimTemplate.
func (d DeviceClaims) AddTemplate(in *resourcev1.ResourceClaimTemplate) {
	d.templates[in.Namespace+"/"+in.Name] = newDeviceAsk(in.Spec.Spec)
}

// HasMostTemplates reports whether no further template is worth reading.
func (d DeviceClaims) HasMostTemplates() bool { return len(d.templates) >= mostDeviceTemplates }

// FillPod adds the devices that the pod's claims ask for to what it needs, each as one unit of the extended resource
// that is named after its DeviceClass. A pod whose devices cannot be counted, or may be allocated to nobody, gets the
// reasons. What was made of a template counts even if the template is gone, and what a pod on a node has even if it
// could not get it again.
func (d DeviceClaims) FillPod(p *cluster.Pod) {
	names, claims := p.DeviceTemplates, p.DeviceClaims
	p.DeviceTemplates, p.DeviceClaims = nil, nil
	now, anew, problems := map[string]int64{}, map[string]int64{}, []string(nil)
	add := func(claim string, ask deviceAsk, into map[string]int64) {
		asked := map[string]int64{}
		why := d.count(ask, asked)
		for name, n := range asked {
			if why == "" {
				into[name] += n
			}
		}
		if why = cmp.Or(why, d.taintProblem(ask)); why != "" {
			problems = append(problems, claim+": "+why)
		}
	}
	for i, ask := range d.asksOf(p, names) {
		add("ResourceClaimTemplate "+names[i], ask, now)
	}
	for _, name := range claims {
		ask, into := d.askOfNamed(p, name, now, anew)
		add("ResourceClaim "+name, ask, into)
	}
	p.Unmodelled = slices.Concat(p.Unmodelled, slices.Compact(problems))
	if len(problems) > 0 && p.NodeName == "" {
		return
	}
	if len(anew) > 0 {
		p.NeedAnew = withDevices(p.NextNeed(), anew)
	}
	p.Need, p.NeedAnew = withDevices(p.Need, now), withDevices(p.NeedAnew, now)
}

// count adds the devices that are asked for, by resource. It returns why it cannot.
func (d DeviceClaims) count(ask deviceAsk, into map[string]int64) (why string) {
	why = ask.refused
	byGroup, used := map[string]int64{}, []DeviceClass(nil)
	for _, class := range slices.Concat(slices.Sorted(maps.Keys(ask.byClass)), ask.whole) {
		c, ok := d.classes[class]
		if !ok {
			why = fmt.Sprintf("DeviceClass %s does not exist", class)
		} else if c.Unread != "" {
			why = fmt.Sprintf("the devices of DeviceClass %s cannot be counted: %s", class, c.Unread)
		}
		if n := ask.byClass[class]; n > 0 {
			if byGroup[c.inGroup()] == 0 {
				used = append(used, c)
			}
			byGroup[c.inGroup()] += n
		}
	}
	if ask.together {
		return cmp.Or(why, addBundle(byGroup, used, into))
	}
	for _, c := range used {
		into[deviceResource(c.inGroup())] += byGroup[c.inGroup()]
	}
	for _, class := range ask.whole {
		into[cluster.Whole+d.classes[class].inGroup()] += cluster.WholeUnits
	}
	return why
}

// asksOf returns what the claims of the pod ask for that were made of templates with these names or, unless all were
// made, the templates themselves.
func (d DeviceClaims) asksOf(p *cluster.Pod, names []string) []deviceAsk {
	if made := d.claimed.made[types.UID(p.UID)]; len(made) == len(names) {
		return made
	}
	var asks []deviceAsk
	for _, name := range names {
		ask, ok := d.templates[p.Namespace+"/"+name]
		switch {
		case !ok && d.HasMostTemplates():
			ask.refused = fmt.Sprintf("its namespace has more than %d, and it is not among the first", mostDeviceTemplates)
		case !ok:
			ask.refused = "it does not exist"
		}
		asks = append(asks, ask)
	}
	return asks
}

// withDevices adds devices by resource to what is needed; nothing stays nothing.
func withDevices(need resources.List, devices map[string]int64) resources.List {
	if need.IsZero() {
		return need
	}
	for name, n := range devices {
		need = need.With(name, need.Get(name)+n)
	}
	return need
}

// SettleClaims looks at pods together, once FillPod is done with each. Claims of a class are refused if it selects some
// of the devices of another one that was claimed before: which of them a pod gets is the scheduler's choice. Where one
// pod claims all devices of a class, others that claim some are kept off its node.
func SettleClaims(pods []cluster.Pod, classes []DeviceClass) {
	since := claimedSince(pods)
	first := func(c DeviceClass) (at time.Time, is bool) {
		some, is := since[deviceResource(c.Name)]
		if all, too := since[cluster.Whole+c.Name]; too && (!is || all.Before(some)) {
			return all, true
		}
		return some, is
	}
	claimed := slices.DeleteFunc(slices.Clone(classes), func(c DeviceClass) bool {
		_, is := first(c)
		return !is
	})
	slices.SortFunc(claimed, func(a, b DeviceClass) int {
		atA, _ := first(a)
		atB, _ := first(b)
		return cmp.Or(atA.Compare(atB), strings.Compare(a.Name, b.Name))
	})
	overlaps := findOverlaps(claimed)
	for i := range pods {
		for _, c := range claimed {
			_, whole := since[cluster.Whole+c.Name]
			settleClass(&pods[i], c.Name, overlaps[c.Name], whole)
		}
	}
	refuseBundles(pods, classes)
}

// settleClass is SettleClaims for one pod and one class: before is the class that was claimed before and shares
// devices, whole reports whether a pod claims all devices of the class.
func settleClass(p *cluster.Pod, class, before string, whole bool) {
	units := p.Need.Get(cluster.Whole + class)
	some, all := p.Need.Get(deviceResource(class)) > 0, units > 0
	if before != "" && (some || all) {
		p.Unmodelled = append(slices.Clip(p.Unmodelled), fmt.Sprintf("DeviceClass %s selects some of the devices "+
			"of DeviceClass %s, which pods claimed before: such devices cannot be counted", class, before))
	}
	if all && (some || units > cluster.WholeUnits) {
		p.Unmodelled = append(slices.Clip(p.Unmodelled), fmt.Sprintf(
			"it claims all devices of DeviceClass %s of a node, and more of them", class))
	}
	if some && whole {
		one := map[string]int64{cluster.Whole + class: 1}
		p.Need, p.NeedAnew = withDevices(p.Need, one), withDevices(p.NeedAnew, one)
	}
}

// claimedSince returns the time when the oldest pod was created that claims devices, by resource.
func claimedSince(pods []cluster.Pod) map[string]time.Time {
	since := map[string]time.Time{}
	for i := range pods {
		for _, e := range pods[i].Need.Extended {
			if at, known := since[e.Name]; cluster.IsClaimed(e.Name) && (!known || pods[i].Created.Before(at)) {
				since[e.Name] = pods[i].Created
			}
		}
	}
	return since
}

// findOverlaps returns the classes that select some of the devices of an earlier one, with its name.
func findOverlaps(classes []DeviceClass) map[string]string {
	overlaps := map[string]string{}
	for i, c := range classes {
		for _, before := range classes[:i] {
			if overlaps[c.Name] == "" && overlaps[before.Name] == "" && c.inGroup() != before.inGroup() &&
				!c.selector.apartFrom(before.selector) {
				overlaps[c.Name] = before.Name
			}
		}
	}
	return overlaps
}
