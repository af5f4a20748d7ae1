package plancheck

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	api "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/workload"
)

// admitsNode reports whether node selector and required node affinity allow the node. Faulty terms match nothing.
func (k *podGroup) admitsNode(n *corev1.Node) bool {
	ok, err := k.match.Match(n)
	return ok && err == nil
}

// untoleratedTaint returns the first taint that keeps the pod away, if there is one.
func (k *podGroup) untoleratedTaint(taints []corev1.Taint) (corev1.Taint, bool) {
	for _, t := range taints {
		if t.Effect == corev1.TaintEffectPreferNoSchedule {
			continue
		}
		if !slices.ContainsFunc(k.pod.Spec.Tolerations,
			func(tol corev1.Toleration) bool { return firstUntolerated(tol, t) }) {
			return t, false
		}
	}
	return corev1.Taint{}, true
}

func firstUntolerated(tol corev1.Toleration, t corev1.Taint) bool {
	if tol.Effect != "" && tol.Effect != t.Effect || tol.Key != "" && tol.Key != t.Key {
		return false
	}
	switch tol.Operator {
	case corev1.TolerationOpExists:
		return true
	case "", corev1.TolerationOpEqual:
		return tol.Key != "" && tol.Value == t.Value
	}
	return false
}

// checkNode checks what concerns one node and its pods (rules 3 and 4, and host ports).
func (j *workloadCheck) checkNode(n *plannedNode) {
	if len(n.came) == 0 {
		return
	}
	for _, s := range n.came {
		if !s.kind.admitsNode(n.object) {
			j.addViolation("%s: node selector or affinity of %s keeps it away", n.name, s.kind.name)
		}
		if t, ok := s.kind.untoleratedTaint(n.taints); !ok {
			j.addViolation("%s: %s does not tolerate %s", n.name, s.kind.name, t.ToString())
		}
	}
	need, room := j.podsNeed(n), n.typ.allocatable
	if short, ok := need.firstShort(room); !ok {
		j.addViolation("%s: its pods want %d of %s, there is %d", n.name, need[short], short, room[short])
	}
	j.checkPorts(n)
}

// podsNeed returns what the node's pods ask for, with the DaemonSets that it admits.
func (j *workloadCheck) podsNeed(n *plannedNode) resourceAmounts {
	sum := resourceAmounts{}
	for _, d := range j.daemons {
		if _, ok := d.untoleratedTaint(n.taints); ok && d.admitsNode(n.object) {
			sum.addAmounts(d.need, 1)
		}
	}
	for _, s := range n.allPods() {
		sum.addAmounts(s.kind.need, int64(s.n))
	}
	return sum
}

type hostPort struct {
	protocol corev1.Protocol
	number   int32
}

// checkPorts wants no host port twice, unless on different addresses.
func (j *workloadCheck) checkPorts(n *plannedNode) {
	taken := map[hostPort][]string{}
	for _, s := range n.allPods() {
		for _, c := range s.kind.pod.Spec.Containers {
			for _, p := range c.Ports {
				if p.HostPort == 0 {
					continue
				}
				key, ip := hostPort{p.Protocol, p.HostPort}, p.HostIP
				if key.protocol == "" {
					key.protocol = corev1.ProtocolTCP
				}
				for range s.n {
					if slices.ContainsFunc(taken[key],
						func(o string) bool { return o == ip || anyAddress(o) || anyAddress(ip) }) {
						j.addViolation("%s: host port %d is wanted twice, by %s too", n.name, p.HostPort, s.kind.name)
						break
					}
					taken[key] = append(taken[key], ip)
				}
			}
		}
	}
}

func anyAddress(ip string) bool { return ip == "" || ip == "0.0.0.0" || ip == "::" }

// checkTypes checks the types that are left to the launch: each must be sold somewhere that the pool and every pod
// allow, hold the pods, and together they must be as many as the pool wants.
func (j *workloadCheck) checkTypes(n *plannedNode, p *api.NodePool, c workload.NodeClaim) {
	if len(c.TypeOptions) > 0 && !slices.Contains(c.TypeOptions, c.InstanceType) {
		j.addViolation("%s: its own type is not among its options", n.name)
	}
	for _, name := range c.TypeOptions {
		t := j.market.types[name]
		if t == nil {
			j.addViolation("%s: option %s does not exist", n.name, name)
			continue
		}
		if !j.typeUsable(n, p, t) {
			j.addViolation("%s: option %s does not hold its pods or is not sold to it", n.name, name)
		}
	}
	for _, r := range p.Spec.Template.Spec.Requirements {
		if r.MinValues == nil || !decidedByType(r.Key) {
			continue
		}
		if got := j.valuesLeft(n, p, c, r.Key); got < *r.MinValues {
			j.addViolation("%s: its options have %d values of %s, pool %s wants %d", n.name, got, r.Key, p.Name,
				*r.MinValues)
		}
	}
}

// valuesLeft returns the number of values of the label that the options have, wherever they are sold to the node.
func (j *workloadCheck) valuesLeft(n *plannedNode, p *api.NodePool, c workload.NodeClaim, key string) int {
	seen := map[string]bool{}
	for _, name := range c.TypeOptions {
		t := j.market.types[name]
		if t == nil {
			continue
		}
		for _, zone := range t.zones {
			for _, capacity := range t.usage {
				if labels, ok := j.usableAt(n, p, t, zone, capacity); ok && labels[key] != "" {
					seen[labels[key]] = true
				}
			}
		}
	}
	return len(seen)
}

// typeUsable reports whether the node could be of the type somewhere. The node's own zone and capacity type are tried
// first.
func (j *workloadCheck) typeUsable(n *plannedNode, p *api.NodePool, t *soldType) bool {
	if _, ok := j.usableAt(n, p, t, n.object.Labels[labelZone], n.object.Labels[labelCapacity]); ok {
		return true
	}
	for _, zone := range t.zones {
		for _, capacity := range t.usage {
			if _, ok := j.usableAt(n, p, t, zone, capacity); ok {
				return true
			}
		}
	}
	return false
}

// usableAt returns the labels of the node if it were of the type there; ok says whether it could be.
func (j *workloadCheck) usableAt(n *plannedNode, p *api.NodePool, t *soldType, zone, capacity string) (
	labels map[string]string, ok bool) {
	if _, sold := t.priceAt(zone, capacity); !sold {
		return nil, false
	}
	o := *n
	o.typ, o.object = t, j.nodeObject(n.name, p, t, zone, capacity)
	if firstRefusal(p, o.object.Labels) != "" {
		return nil, false
	}
	j.chooseLabels(&o, p)
	if slices.ContainsFunc(o.came, func(s podShare) bool { return !s.kind.admitsNode(o.object) }) {
		return nil, false
	}
	_, ok = j.podsNeed(&o).firstShort(t.allocatable)
	return o.object.Labels, ok
}
