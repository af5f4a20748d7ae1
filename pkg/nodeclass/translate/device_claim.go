package translate

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/resources"
)

// mostDeviceClaims is how many claims of devices a pod may have. A node has 32 devices of a kind at most, and a claim
// gets one or more.
const mostDeviceClaims = 100

// mostDeviceTemplates is how many ResourceClaimTemplates of a namespace count: a team has some dozens, and whoever
// makes more waits alone.
const mostDeviceTemplates = 1000

// addDeviceTemplates names the ResourceClaimTemplates of the pod. Other claims of devices are refused.
func addDeviceTemplates(out *cluster.Pod, s corev1.PodSpec) {
	if n := len(s.ResourceClaims); n > mostDeviceClaims {
		out.Unmodelled = append(out.Unmodelled, fmt.Sprintf("it has %d resourceClaims; at most %d are supported", n,
			mostDeviceClaims))
		return
	}
	for _, c := range s.ResourceClaims {
		switch {
		case c.ResourceClaimTemplateName != nil:
			out.DeviceTemplates = append(out.DeviceTemplates, *c.ResourceClaimTemplateName)
		case c.ResourceClaimName != nil:
			out.Unmodelled = append(out.Unmodelled, fmt.Sprintf("its claim %s names ResourceClaim %s, which other pods "+
				"may share; of devices only those that a ResourceClaimTemplate asks for are supported", c.Name,
				*c.ResourceClaimName))
		default:
			out.Unmodelled = append(out.Unmodelled, fmt.Sprintf("its claim %s names no ResourceClaimTemplate", c.Name))
		}
	}
	slices.Sort(out.DeviceTemplates)
}

// deviceAsk is how many devices of each DeviceClass one ResourceClaim asks for.
type deviceAsk struct {
	byClass map[string]int64
	refused string // why they cannot be counted; empty where they are
}

// newDeviceAsk counts the devices that a claim asks for. It can where each request names one class and a number, and
// any devices of the class will do.
func newDeviceAsk(in resourcev1.ResourceClaimSpec) deviceAsk {
	out := deviceAsk{byClass: map[string]int64{}}
	if len(in.Devices.Constraints) > 0 {
		return deviceAsk{refused: "it has constraints between devices"}
	}
	for _, r := range in.Devices.Requests {
		if why := uncountable(r); why != "" {
			return deviceAsk{refused: fmt.Sprintf("request %s %s", r.Name, why)}
		}
		out.byClass[r.Exactly.DeviceClassName] += max(1, r.Exactly.Count)
	}
	return out
}

// uncountable is why the devices of a request cannot be counted; empty where they can. Tainted devices that the request
// tolerates are not counted.
func uncountable(r resourcev1.DeviceRequest) string {
	e := r.Exactly
	switch {
	case e == nil:
		return "is firstAvailable"
	case e.AllocationMode != "" && e.AllocationMode != resourcev1.DeviceAllocationModeExactCount:
		return fmt.Sprintf("has the allocation mode %s, not ExactCount", e.AllocationMode)
	case len(e.Selectors) > 0:
		return "has selectors of its own"
	case e.AdminAccess != nil && *e.AdminAccess:
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

// ClaimedDevices is what ResourceClaims say: which devices are taken, and what those ask for that were made of
// templates.
type ClaimedDevices struct {
	// Taken are the devices that are allocated, each with the DeviceClass through which a pod got it by an extended
	// resource or by a ResourceClaimTemplate whose devices can be counted; empty for any other.
	Taken map[DeviceID]string
	made  map[types.UID][]deviceAsk // by the pod
}

// NewClaimedDevices knows no claim.
func NewClaimedDevices() ClaimedDevices {
	return ClaimedDevices{map[DeviceID]string{}, map[types.UID][]deviceAsk{}}
}

// AddClaim adds what a ResourceClaim says.
func (d ClaimedDevices) AddClaim(in *resourcev1.ResourceClaim) {
	ask := newDeviceAsk(in.Spec)
	made := in.Annotations[resourcev1.PodResourceClaimAnnotation] != ""
	through := map[string]string{} // by request
	if in.Annotations[resourcev1.ExtendedResourceClaimAnnotation] == "true" || made && ask.refused == "" {
		for _, r := range in.Spec.Devices.Requests {
			if r.Exactly != nil {
				through[r.Name] = r.Exactly.DeviceClassName
			}
		}
	}
	if in.Status.Allocation != nil {
		for _, r := range in.Status.Allocation.Devices.Results {
			if r.AdminAccess == nil || !*r.AdminAccess { // who administers a device does not take it
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
}

// NewDeviceClaims knows these, and no template.
func NewDeviceClaims(classes []DeviceClass, claimed ClaimedDevices) DeviceClaims {
	out := DeviceClaims{map[string]DeviceClass{}, map[string]deviceAsk{}, claimed}
	for _, c := range classes {
		out.classes[c.Name] = c
	}
	return out
}

// AddTemplate adds a ResourceClaimTemplate.
func (d DeviceClaims) AddTemplate(in *resourcev1.ResourceClaimTemplate) {
	d.templates[in.Namespace+"/"+in.Name] = newDeviceAsk(in.Spec.Spec)
}

// HasMostTemplates reports whether no further template is worth reading.
func (d DeviceClaims) HasMostTemplates() bool { return len(d.templates) >= mostDeviceTemplates }

// FillPod adds the devices that the pod's ResourceClaimTemplates ask for to what it needs, each as one unit of the
// extended resource that is named after its DeviceClass. A pod whose devices cannot be counted gets the reasons. What
// was made of a template counts even if the template is gone.
func (d DeviceClaims) FillPod(p *cluster.Pod) {
	names := p.DeviceTemplates
	p.DeviceTemplates = nil
	asks := d.asksOf(p, names)
	devices, problems := map[string]int64{}, []string(nil)
	for i, ask := range asks {
		why := ask.refused
		for _, class := range slices.Sorted(maps.Keys(ask.byClass)) {
			devices[class] += ask.byClass[class]
			if c, ok := d.classes[class]; !ok {
				why = fmt.Sprintf("DeviceClass %s does not exist", class)
			} else if c.Unread != "" {
				why = fmt.Sprintf("the devices of DeviceClass %s cannot be counted: %s", class, c.Unread)
			}
		}
		if why != "" {
			problems = append(problems, fmt.Sprintf("ResourceClaimTemplate %s: %s", names[i], why))
		}
	}
	if len(problems) > 0 {
		p.Unmodelled = slices.Concat(p.Unmodelled, slices.Compact(problems))
		return
	}
	p.Need, p.NeedAnew = withDevices(p.Need, devices), withDevices(p.NeedAnew, devices)
}

// asksOf is what the claims of the pod ask for that were made of templates with these names or, unless all were made,
// the templates themselves.
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

// withDevices adds devices by class to what is needed; nothing stays nothing.
func withDevices(need resources.List, devices map[string]int64) resources.List {
	if need.IsZero() {
		return need
	}
	for class, n := range devices {
		need = need.With(deviceResource(class), need.Get(deviceResource(class))+n)
	}
	return need
}
