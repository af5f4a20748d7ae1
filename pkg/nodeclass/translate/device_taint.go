package translate

import (
	"fmt"
	"slices"
	"strings"

	resourcev1 "k8s.io/api/resource/v1"
	resourcev1beta2 "k8s.io/api/resource/v1beta2"

	"joiner.sh/pkg/model/cluster"
)

// repelsPods reports whether a taint keeps its device from being allocated: what is asked for as an extended resource
// tolerates none.
func repelsPods(t resourcev1.DeviceTaint) bool { return t.Effect != resourcev1.DeviceTaintEffectNone }

// DeviceTaintRule says of which devices somebody wants none to be allocated; what it does not name may be any.
type DeviceTaintRule struct {
	name                 string
	driver, pool, device *string
	taint                cluster.Taint
}

// NewDeviceTaintRules translates rules. Those that select no device, or only inform, taint nothing and are left out.
func NewDeviceTaintRules(all []resourcev1beta2.DeviceTaintRule) (out []DeviceTaintRule) {
	for i := range all {
		s, t := all[i].Spec.DeviceSelector, all[i].Spec.Taint
		if s != nil && repelsPods(resourcev1.DeviceTaint{Effect: resourcev1.DeviceTaintEffect(t.Effect)}) {
			out = append(out, DeviceTaintRule{all[i].Name, s.Driver, s.Pool, s.Device,
				cluster.Taint{Key: t.Key, Value: t.Value, Effect: string(t.Effect)}})
		}
	}
	return out
}

// anyDevice reports whether the rule taints all devices of a driver or of all, on whichever node. Such a rule refuses
// pods: see TaintClasses.
func (r DeviceTaintRule) anyDevice() bool { return r.pool == nil && r.device == nil }

// taints reports whether the rule takes one device away.
func (r DeviceTaintRule) taints(pool devicePool, device string) bool {
	return !r.anyDevice() && (r.driver == nil || *r.driver == pool.driver) && (r.pool == nil || *r.pool == pool.name) &&
		(r.device == nil || *r.device == device)
}

// TaintClasses says of which classes rules taint devices of new nodes: all, or one of a name that any of them may have.
// Of the others nobody knows how many a new node has, so that claims that do not tolerate the rule get no node.
func TaintClasses(classes []DeviceClass, rules []DeviceTaintRule) {
	for i := range classes {
		c := &classes[i]
		for _, r := range rules {
			if r.pool == nil && c.Unread == "" && (r.driver == nil || *r.driver == c.Driver) {
				c.taints = append(c.taints, r)
			}
		}
	}
}

// untolerated says which rule keeps devices of the class from somebody with these tolerations; empty for none.
func (c DeviceClass) untolerated(tolerations []cluster.Toleration) string {
	for _, r := range c.taints {
		if len(cluster.Untolerated([]cluster.Taint{r.taint}, tolerations)) > 0 {
			what := "all devices"
			if r.device != nil {
				what = "device " + *r.device
			}
			return fmt.Sprintf("DeviceTaintRule %s taints %s of driver %s with %s, those of new nodes too", r.name, what,
				c.Driver, r.taint)
		}
	}
	return ""
}

func deviceToleration(t resourcev1.DeviceToleration) cluster.Toleration {
	return cluster.Toleration{Key: t.Key, Operator: string(t.Operator), Value: t.Value, Effect: string(t.Effect)}
}

// taintProblem says which rule keeps devices from the claim, wherever they are; empty for none.
func (d DeviceClaims) taintProblem(ask deviceAsk) string {
	for _, r := range ask.of {
		if why := d.classes[r.class].untolerated(r.tolerations); why != "" {
			return fmt.Sprintf("%s, and request %s does not tolerate it", why, r.request)
		}
	}
	return ""
}

// RefuseTainted refuses the pods that request extended resources of which rules taint all devices, since such a pod
// tolerates none. It is called before FillPod. A resource that a kubelet reports comes from a device plugin too.
func RefuseTainted(s *cluster.Snapshot, classes []DeviceClass) {
	if !slices.ContainsFunc(classes, func(c DeviceClass) bool { return len(c.taints) > 0 }) {
		return
	}
	for _, name := range UnmetResources(*s) {
		c, _ := ServingClass(classes, name)
		why := c.untolerated(nil)
		if why == "" || strings.HasPrefix(name, cluster.Whole) ||
			slices.ContainsFunc(s.Nodes, func(n cluster.Node) bool { return n.Allocatable.Get(name) > 0 }) {
			continue
		}
		for i := range s.Pods {
			if p := &s.Pods[i]; p.Need.Get(name) > 0 {
				p.Unmodelled = append(slices.Clip(p.Unmodelled), fmt.Sprintf(
					"%s, and what requests %s tolerates none", why, name))
			}
		}
	}
}
