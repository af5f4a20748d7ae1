package checker

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	api "joiner/pkg/api/v1"
	"joiner/pkg/workload"
)

// admits reports whether node selector and required node affinity allow the node. Faulty terms match nothing.
func (k *kind) admits(n *corev1.Node) bool {
	ok, err := k.match.Match(n)
	return ok && err == nil
}

// bears returns the first taint that keeps the pod away, if there is one.
func (k *kind) bears(taints []corev1.Taint) (corev1.Taint, bool) {
	for _, t := range taints {
		if t.Effect == corev1.TaintEffectPreferNoSchedule {
			continue
		}
		if !slices.ContainsFunc(k.pod.Spec.Tolerations, func(tol corev1.Toleration) bool { return bears(tol, t) }) {
			return t, false
		}
	}
	return corev1.Taint{}, true
}

func bears(tol corev1.Toleration, t corev1.Taint) bool {
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

// alone checks what concerns one node and its pods (rules 3 and 4, and host ports).
func (j *job) alone(n *node) {
	if len(n.came) == 0 {
		return
	}
	for _, s := range n.came {
		if !s.kind.admits(n.object) {
			j.bad("%s: node selector or affinity of %s keeps it away", n.name, s.kind.name)
		}
		if t, ok := s.kind.bears(n.taints); !ok {
			j.bad("%s: %s does not tolerate %s", n.name, s.kind.name, t.ToString())
		}
	}
	need, room := j.need(n), n.typ.allocatable
	if short, ok := need.fits(room); !ok {
		j.bad("%s: its pods want %d of %s, there is %d", n.name, need[short], short, room[short])
	}
	j.ports(n)
}

// need is what the node's pods ask for, with the DaemonSets that it admits.
func (j *job) need(n *node) amounts {
	sum := amounts{}
	for _, d := range j.daemons {
		if _, ok := d.bears(n.taints); ok && d.admits(n.object) {
			sum.add(d.need, 1)
		}
	}
	for _, s := range n.all() {
		sum.add(s.kind.need, int64(s.n))
	}
	return sum
}

type port struct {
	protocol corev1.Protocol
	number   int32
}

// ports wants no host port twice, unless on different addresses.
func (j *job) ports(n *node) {
	taken := map[port][]string{}
	for _, s := range n.all() {
		for _, c := range s.kind.pod.Spec.Containers {
			for _, p := range c.Ports {
				if p.HostPort == 0 {
					continue
				}
				key, ip := port{p.Protocol, p.HostPort}, p.HostIP
				if key.protocol == "" {
					key.protocol = corev1.ProtocolTCP
				}
				for range s.n {
					if slices.ContainsFunc(taken[key], func(o string) bool { return o == ip || anyAddress(o) || anyAddress(ip) }) {
						j.bad("%s: host port %d is wanted twice, by %s too", n.name, p.HostPort, s.kind.name)
						break
					}
					taken[key] = append(taken[key], ip)
				}
			}
		}
	}
}

func anyAddress(ip string) bool { return ip == "" || ip == "0.0.0.0" || ip == "::" }

// options checks the types that are left to the launch: each must be sold somewhere that the pool and every pod allow, hold
// the pods, and together they must be as many as the pool wants.
func (j *job) options(n *node, p *api.NodePool, c workload.NodeClaim) {
	if len(c.TypeOptions) > 0 && !slices.Contains(c.TypeOptions, c.InstanceType) {
		j.bad("%s: its own type is not among its options", n.name)
	}
	for _, name := range c.TypeOptions {
		t := j.market.types[name]
		if t == nil {
			j.bad("%s: option %s does not exist", n.name, name)
			continue
		}
		if !j.usable(n, p, t) {
			j.bad("%s: option %s does not hold its pods or is not sold to it", n.name, name)
		}
	}
	for _, r := range p.Spec.Template.Spec.Requirements {
		if r.MinValues == nil {
			continue
		}
		var values []string
		for _, name := range c.TypeOptions {
			if t := j.market.types[name]; t != nil && t.labels[r.Key] != "" {
				values = append(values, t.labels[r.Key])
			}
		}
		slices.Sort(values)
		if got := len(slices.Compact(values)); decidedByType(r.Key) && r.Key != labelZone && r.Key != labelCapacity && got < *r.MinValues {
			j.bad("%s: its options have %d values of %s, pool %s wants %d", n.name, got, r.Key, p.Name, *r.MinValues)
		}
	}
}

// usable reports whether the node could be of the type somewhere. The node's own zone and capacity type are tried first.
func (j *job) usable(n *node, p *api.NodePool, t *sold) bool {
	try := func(zone, capacity string) bool {
		if _, ok := t.price(zone, capacity); !ok {
			return false
		}
		o := *n
		o.typ, o.object = t, j.object(n.name, p, t, zone, capacity)
		if refuses(p, o.object.Labels) != "" {
			return false
		}
		j.choose(&o, p)
		if slices.ContainsFunc(o.came, func(s share) bool { return !s.kind.admits(o.object) }) {
			return false
		}
		_, ok := j.need(&o).fits(t.allocatable)
		return ok
	}
	if try(n.object.Labels[labelZone], n.object.Labels[labelCapacity]) {
		return true
	}
	for _, zone := range t.zones {
		for _, capacity := range t.usage {
			if try(zone, capacity) {
				return true
			}
		}
	}
	return false
}
