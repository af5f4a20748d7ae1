package kube

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	resourcev1 "k8s.io/api/resource/v1"
	resourcev1beta2 "k8s.io/api/resource/v1beta2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/nodeclass/translate"
)

// devicesFor is the time for which it is taken for true what DRA drivers publish and what is allocated of it. Passes
// follow each other within a second, and a cluster with a thousand nodes publishes megabytes.
const devicesFor = 5 * time.Second

func deviceClasses() apiPath {
	return apiPath{"deviceclass", "/apis/resource.k8s.io/v1", "deviceclasses", false}
}

func resourceSlices() apiPath {
	return apiPath{"resourceslice", "/apis/resource.k8s.io/v1", "resourceslices", false}
}

func resourceClaims() apiPath {
	return apiPath{"resourceclaim", "/apis/resource.k8s.io/v1", "resourceclaims", false}
}

func resourceClaimTemplates() apiPath {
	return apiPath{"resourceclaimtemplate", "/apis/resource.k8s.io/v1", "resourceclaimtemplates", false}
}

// deviceTaintRules are served as v1, whose fields are those of v1beta2.
func deviceTaintRules() apiPath {
	return apiPath{"devicetaintrule", "/apis/resource.k8s.io/v1", "devicetaintrules", false}
}

// deviceCache holds what was read last of the devices of some classes, and of ResourceClaims.
type deviceCache struct {
	mu       sync.Mutex
	of       string // the classes, in their versions
	at       time.Time
	counts   translate.DeviceCounts
	claims   translate.ClaimedDevices
	claimsAt time.Time
	rules    []translate.DeviceTaintRule
	rulesAt  time.Time
}

// Devices reads what DRA drivers publish, and what is taken of it.
type Devices struct {
	*connection
	cache *deviceCache
}

// addDevices gives nodes the extended resources that DRA drivers serve, as kube-scheduler sees them: those of which
// status.allocatable has none. To what pods need it adds the devices that their ResourceClaimTemplates ask for. Nothing
// is read unless somebody asks for such a resource that a node lacks or has a ResourceClaimTemplate, and no more than
// the DeviceClasses unless one of these serves it. A cluster that does not know DeviceClasses has none; whoever may not
// read them does not know.
func (c Devices) addDevices(ctx context.Context, s *cluster.Snapshot) error {
	claims := slices.ContainsFunc(s.Pods, func(p cluster.Pod) bool {
		return len(p.DeviceTemplates)+len(p.DeviceClaims) > 0
	})
	wanted := translate.UnmetResources(*s)
	if !claims && len(wanted) == 0 {
		return nil
	}
	all, err := c.deviceClasses(ctx)
	if err == nil && (claims || slices.ContainsFunc(wanted, func(name string) bool {
		return len(readable(translate.ServingClasses(all, name))) > 0
	})) {
		err = c.refuseTainted(ctx, s, all)
	}
	if err == nil && claims {
		err = c.fillPods(ctx, s.Pods, all)
		translate.SettleClaims(s.Pods, all)
		wanted = translate.UnmetResources(*s)
	}
	if apierrors.IsForbidden(err) {
		return nil
	}
	if err != nil {
		return err
	}
	if len(wanted) == 0 {
		return nil
	}
	var serving []translate.DeviceClass
	out := cluster.Devices{Known: true}
	for _, name := range wanted {
		for _, class := range translate.ServingClasses(all, name) {
			serving, out.Classes = append(serving, class), append(out.Classes, class.DeviceClass)
		}
	}
	counts, err := c.countDevices(ctx, serving, all)
	if apierrors.IsForbidden(err) {
		return nil
	}
	if err != nil {
		return err
	}
	s.Devices = out
	counts.AddTo(s, serving)
	return nil
}

// refuseTainted says which of the classes have all their devices tainted, and refuses the pods that request those as
// extended resources.
func (c Devices) refuseTainted(ctx context.Context, s *cluster.Snapshot, all []translate.DeviceClass) error {
	rules, err := c.taintRules(ctx)
	translate.TaintClasses(all, rules)
	translate.RefuseTainted(s, all)
	return err
}

// deviceClasses lists the DeviceClasses, sorted by name. Their resource is the one that they name themselves.
func (c Devices) deviceClasses(ctx context.Context) ([]translate.DeviceClass, error) {
	out, _, err := listAll(ctx, c.connection, listQuery{place: deviceClasses()},
		func(l *resourcev1.DeviceClassList) []translate.DeviceClass {
			return translatePage(l.Items, translate.NewDeviceClass)
		})
	if isNotFound(err) {
		return nil, nil
	}
	slices.SortFunc(out, func(a, b translate.DeviceClass) int { return strings.Compare(a.Name, b.Name) })
	translate.GroupClasses(out)
	return out, err
}

// countDevices counts the devices of those classes that can be read, of all that there are.
func (c Devices) countDevices(ctx context.Context, classes, all []translate.DeviceClass) (translate.DeviceCounts,
	error) {
	var of strings.Builder
	var drivers []string
	classes = readable(classes)
	for _, class := range classes {
		of.WriteString(class.Name + "@" + class.Version + " ")
		drivers = append(drivers, class.Driver)
	}
	if len(classes) == 0 {
		return translate.DeviceCounts{}, nil
	}
	rules, err := c.taintRules(ctx)
	if err != nil {
		return nil, err
	}
	c.cache.mu.Lock()
	defer c.cache.mu.Unlock()
	if age := c.now().Sub(c.cache.at); c.cache.of == of.String() && age >= 0 && age < devicesFor {
		return c.cache.counts, nil
	}
	slices.Sort(drivers)
	var published []translate.DeviceSlice
	for _, driver := range slices.Compact(drivers) {
		some, err := c.resourceSlices(ctx, resourcev1.ResourceSliceSelectorDriver+"="+driver, classes, rules)
		if err != nil {
			return nil, err
		}
		published = append(published, some...)
	}
	var claimed translate.ClaimedDevices
	if len(published) > 0 {
		var err error
		if claimed, err = c.claimedDevices(ctx); err != nil {
			return nil, err
		}
	}
	counts := translate.CountDevices(published, claimed.Taken, all)
	c.cache.of, c.cache.at, c.cache.counts = of.String(), c.now(), counts
	return counts, nil
}

// resourceSlices lists ResourceSlices with the devices of the classes.
func (c Devices) resourceSlices(ctx context.Context, fields string, classes []translate.DeviceClass,
	rules []translate.DeviceTaintRule) ([]translate.DeviceSlice, error) {
	out, _, err := listAll(ctx, c.connection, listQuery{place: resourceSlices(), fields: fields},
		func(l *resourcev1.ResourceSliceList) []translate.DeviceSlice {
			return translatePage(l.Items, func(in *resourcev1.ResourceSlice) translate.DeviceSlice {
				return translate.NewDeviceSlice(in, classes, rules)
			})
		})
	return out, err
}

// readable returns those of the classes of which devices can be counted.
func readable(classes []translate.DeviceClass) []translate.DeviceClass {
	return slices.DeleteFunc(slices.Clone(classes), func(class translate.DeviceClass) bool {
		return class.Unread != ""
	})
}

// taintRules lists the DeviceTaintRules. Before Kubernetes 1.37 there are none, and whoever may not read them has none.
func (c Devices) taintRules(ctx context.Context) ([]translate.DeviceTaintRule, error) {
	c.cache.mu.Lock()
	defer c.cache.mu.Unlock()
	if age := c.now().Sub(c.cache.rulesAt); age >= 0 && age < devicesFor {
		return c.cache.rules, nil
	}
	out, _, err := listAll(ctx, c.connection, listQuery{place: deviceTaintRules()},
		func(l *resourcev1beta2.DeviceTaintRuleList) []translate.DeviceTaintRule {
			return translate.NewDeviceTaintRules(l.Items)
		})
	if isNotFound(err) || apierrors.IsForbidden(err) {
		out, err = nil, nil
	}
	if err == nil {
		c.cache.rules, c.cache.rulesAt = out, c.now()
	}
	return out, err
}

// claimedDevices returns what ResourceClaims say; the cache is locked.
func (c Devices) claimedDevices(ctx context.Context) (translate.ClaimedDevices, error) {
	if age := c.now().Sub(c.cache.claimsAt); c.cache.claims.Taken != nil && age >= 0 && age < devicesFor {
		return c.cache.claims, nil
	}
	out := translate.NewClaimedDevices()
	_, _, err := listAll(ctx, c.connection, listQuery{place: resourceClaims()},
		func(l *resourcev1.ResourceClaimList) []struct{} {
			for i := range l.Items {
				out.AddClaim(&l.Items[i])
			}
			return nil
		})
	if err == nil {
		c.cache.claims, c.cache.claimsAt = out, c.now()
	}
	return out, err
}

// namespacesAtOnce is of how many namespaces ResourceClaimTemplates are read at once.
const namespacesAtOnce = 8

// fillPods adds the devices that pods claim by ResourceClaimTemplates to what they need. Pods of a namespace whose
// templates cannot be read stay as they are.
func (c Devices) fillPods(ctx context.Context, pods []cluster.Pod, classes []translate.DeviceClass) error {
	c.cache.mu.Lock()
	claimed, err := c.claimedDevices(ctx)
	c.cache.mu.Unlock()
	if err != nil {
		return err
	}
	byNamespace := map[string][]*cluster.Pod{}
	for i := range pods {
		if p := &pods[i]; len(p.DeviceTemplates)+len(p.DeviceClaims) > 0 {
			byNamespace[p.Namespace] = append(byNamespace[p.Namespace], p)
		}
	}
	var g errgroup.Group
	g.SetLimit(namespacesAtOnce)
	for namespace, waiting := range byNamespace {
		g.Go(func() error {
			known := translate.NewDeviceClaims(classes, claimed)
			if slices.ContainsFunc(waiting, func(p *cluster.Pod) bool { return len(p.DeviceTemplates) > 0 }) {
				if err := c.readTemplates(ctx, namespace, known); err != nil {
					return err
				}
			}
			known.NoteSharing(waiting)
			for _, p := range waiting {
				known.FillPod(p)
			}
			return nil
		})
	}
	if err := g.Wait(); apierrors.IsForbidden(err) || ctx.Err() != nil {
		return err
	}
	return nil
}

// readTemplates adds the ResourceClaimTemplates of a namespace.
func (c Devices) readTemplates(ctx context.Context, namespace string, known translate.DeviceClaims) error {
	_, _, err := listAll(ctx, c.connection, listQuery{place: resourceClaimTemplates(), namespace: namespace,
		enough: known.HasMostTemplates},
		func(l *resourcev1.ResourceClaimTemplateList) []struct{} {
			for i := range l.Items {
				known.AddTemplate(&l.Items[i])
			}
			return nil
		})
	return err
}

// DeviceDrivers lists the DRA drivers that publish devices, and the DeviceClasses with the extended resource that they
// name or that is named after them, both sorted by name. A cluster that does not know them has none.
func (c Devices) DeviceDrivers(ctx context.Context) ([]cluster.DeviceDriver, []cluster.DeviceClass, error) {
	all, err := c.deviceClasses(ctx)
	if err != nil {
		return nil, nil, err
	}
	published, err := c.resourceSlices(ctx, "", nil, nil)
	if isNotFound(err) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	classes := translatePage(all, func(class *translate.DeviceClass) cluster.DeviceClass {
		class.Resource = cmp.Or(class.Resource, resourcev1.ResourceDeviceClassPrefix+class.Name)
		return class.DeviceClass
	})
	return translate.CountDrivers(published), classes, nil
}
