package main

import (
	"fmt"
	"slices"
	"strings"

	"joiner.sh/pkg/model/instancetypes"
)

// feature is something that users write.
type feature struct {
	name  string
	often bool // may come more than once
	add   func(d *draw)
}

// features are what clusters are made of beside plain pods and pools.
func features() []feature {
	return slices.Concat(podFeatures(), resourceFeatures(), ruleFeatures(), templateFeatures(), poolFeatures(),
		clusterFeatures())
}

// group is one of the groups.
func (d *draw) group() *groupDraw { return pick(d, d.groups...) }

func (d *draw) pool() *poolDraw { return pick(d, d.pools...) }

// podFeatures are about single pods.
func podFeatures() []feature {
	return []feature{
		{"select a label", true, func(d *draw) {
			label := pick(d, [2]string{keyZone, pick(d, zones()...)}, [2]string{keyZoneID, pick(d, zoneIDs()...)},
				[2]string{keyCapacity, pick(d, "spot", "on-demand", "reserved")},
				[2]string{keyArch, pick(d, "amd64", "arm64")}, [2]string{keyType, pick(d, d.c.Settings.Types...)},
				[2]string{keyPool, d.pool().name},
				[2]string{keyFamily, familyOf(pick(d, d.c.Settings.Types...))}, [2]string{"kubernetes.io/os", "linux"})
			d.group().chooses(label[0], label[1])
		}},
		{"select a tenancy", true, func(d *draw) { d.group().chooses(keyTenancy, pick(d, "default", "dedicated")) }},
		{"required node affinity", true, func(d *draw) {
			g := d.group()
			for range 1 + d.r.IntN(2) {
				var entries []string
				for range 1 + d.r.IntN(2) {
					entries = append(entries, d.expression())
				}
				g.terms = append(g.terms, "{matchExpressions: "+list(entries)+"}")
			}
		}},
		{"preferred node affinity", true, func(d *draw) {
			g := d.group()
			for range 1 + d.r.IntN(3) {
				g.prefers = append(g.prefers, fmt.Sprintf("{weight: %d, preference: {matchExpressions: [%s]}}",
					1+d.r.IntN(100), d.expression()))
			}
		}},
		{"host port", true, func(d *draw) {
			port := pick(d, "{containerPort: 80, hostPort: 80}", "{containerPort: 80, hostPort: 80, protocol: UDP}",
				"{containerPort: 80, hostPort: 80, hostIP: 10.0.0.1}", "{containerPort: 9100, hostPort: 9100}")
			for _, g := range some(d, 1+d.r.IntN(2), d.groups) {
				g.ports = []string{port}
			}
		}},
		{"tolerate", true, func(d *draw) {
			g := d.group()
			g.tolerations = append(g.tolerations, pick(d, "{operator: Exists}", "{key: dedicated, operator: Exists}",
				"{key: dedicated, value: x, effect: NoSchedule}",
				"{key: spare, operator: Exists, effect: PreferNoSchedule}"))
		}},
	}
}

// resourceFeatures are about what single pods need, and how they stand.
func resourceFeatures() []feature {
	return []feature{
		{"GPU", false, func(d *draw) {
			d.c.Settings.Types = append(d.c.Settings.Types, pick(d, "g4dn.xlarge", "g5.xlarge", "g6.xlarge"),
				pick(d, "g4dn.12xlarge", "g5.12xlarge"))
			slices.Sort(d.c.Settings.Types)
			d.c.Settings.Types = slices.Compact(d.c.Settings.Types)
			p := d.pool()
			p.types = d.c.Settings.Types
			if d.one(2) {
				p.taints = append(p.taints, "{key: nvidia.com/gpu, effect: NoSchedule}")
			}
			g := d.group()
			g.requests = append(g.requests, fmt.Sprintf("nvidia.com/gpu: '%d'", 1+d.r.IntN(2)))
			g.tolerations = append(g.tolerations, "{key: nvidia.com/gpu, operator: Exists}")
		}},
		{"pod-level resources", true, func(d *draw) { d.group().podLevel = true }},
		{"ephemeral storage", false, func(d *draw) {
			g := d.group()
			g.requests = append(g.requests, fmt.Sprintf("ephemeral-storage: %dGi", 1+d.r.IntN(18)))
		}},
		{"init containers", true, func(d *draw) {
			g := d.group()
			g.more = without(g.more, "initContainers")
			g.more = append(g.more, pick(d, "initContainers: [{name: i, image: app, resources: {requests: {cpu: 1500m, memory: 2Gi}}}]",
				"initContainers: [{name: s, image: app, restartPolicy: Always, resources: {requests: {cpu: 200m, memory: 100Mi}}}, {name: i, image: app, resources: {requests: {cpu: 1}}}]"))
		}},
		{"overhead", false, func(d *draw) {
			g := d.group()
			g.more = append(without(g.more, "overhead"), "overhead: {cpu: 250m, memory: 120Mi}")
		}},
		{"priority", true, func(d *draw) {
			g := d.group()
			g.more = append(without(g.more, "priority"), fmt.Sprintf("priority: %d", pick(d, -10, 100, 1000)))
		}},
		{"state of pods", true, func(d *draw) {
			g := d.group()
			switch d.r.IntN(4) {
			case 0:
				g.terminating = true
			case 1:
				g.unnoticed = true
			case 2:
				g.owner = pick(d, "DaemonSet", "StatefulSet", "ReplicaSet")
			case 3:
				g.nominated = "node-0"
			}
		}},
	}
}

// without are the fields but those of that name.
func without(fields []string, name string) []string {
	return slices.DeleteFunc(slices.Clone(fields), func(f string) bool { return strings.HasPrefix(f, name+":") })
}

func familyOf(name string) string {
	f, _, _ := strings.Cut(name, ".")
	return f
}

// expression is a requirement of node affinity.
func (d *draw) expression() string {
	return pick(d,
		in(keyZone, some(d, 1+d.r.IntN(2), zones())...),
		"{key: "+keyZone+", operator: NotIn, values: ["+pick(d, zones()...)+"]}",
		in(keyCapacity, pick(d, "spot", "on-demand")), in(keyArch, pick(d, "amd64", "arm64")),
		fmt.Sprintf("{key: %s, operator: Gt, values: ['%d']}", keyCPU, pick(d, 1, 3, 7)),
		fmt.Sprintf("{key: %s, operator: Lt, values: ['%d']}", keyCPU, pick(d, 3, 5, 17)),
		in(keyCategory, pick(d, "m", "c", "r")), "{key: "+keyTeam+", operator: "+pick(d, "Exists", "DoesNotExist")+"}",
		in(keyTeam, pick(d, "red", "blue")),
		"{key: "+keyTeam+", operator: NotIn, values: [red]}",
		in(keyType, some(d, 1+d.r.IntN(2), d.c.Settings.Types)...),
		in(keyTenancy, pick(d, "default", "dedicated")),
		"{key: "+keyFamily+", operator: NotIn, values: ["+familyOf(pick(d, d.c.Settings.Types...))+"]}",
		"{key: karpenter.k8s.aws/instance-local-nvme, operator: "+pick(d, "Exists", "DoesNotExist")+"}",
	)
}

// spreadKeys are the labels that pods may be spread over.
func spreadKeys() []string {
	return []string{keyZone, keyZone, keyZone, keyHost, keyHost, keyCapacity, keyArch, keyType, keyZoneID, keyTenancy,
		keyFamily, keyTeam, keyPool, keyPartition}
}

func (d *draw) spreadOver(key string, g *groupDraw, soft bool) string {
	out := fmt.Sprintf("{maxSkew: %d, topologyKey: %s, labelSelector: {matchLabels: {app: %s}}", pick(d, 1, 1, 1, 2, 3),
		key, pick(d, g.app, g.app, g.app, d.group().app))
	if soft {
		return out + ", whenUnsatisfiable: ScheduleAnyway}"
	}
	out += ", whenUnsatisfiable: DoNotSchedule"
	if d.one(4) {
		out += fmt.Sprintf(", minDomains: %d", 1+d.r.IntN(4))
	}
	if d.one(5) {
		out += ", nodeAffinityPolicy: " + pick(d, "Ignore", "Honor")
	}
	if d.one(5) {
		out += ", nodeTaintsPolicy: " + pick(d, "Ignore", "Honor")
	}
	if d.one(6) {
		g.labels = []string{"revision: '" + pick(d, "1", "2") + "'"}
		out += ", matchLabelKeys: [revision]"
	}
	return out + "}"
}

// term is a pod affinity term about pods of some group.
func (d *draw) term(g *groupDraw) string {
	key := pick(d, keyHost, keyHost, keyZone, keyZone, keyZone, keyCapacity, keyArch, keyTenancy, keyPartition, keyTeam,
		keyType)
	selector := "{matchLabels: {app: " + pick(d, g.app, g.app, d.group().app) + "}}"
	if d.one(8) {
		selector = "{matchExpressions: [{key: app, operator: " + pick(d, "Exists", "DoesNotExist") + "}]}"
	}
	out := "{topologyKey: " + key + ", labelSelector: " + selector
	if d.one(5) {
		out += pick(d, ", namespaceSelector: {}", ", namespaceSelector: {matchLabels: {stage: prod}}",
			", namespaces: [default, prod]", ", namespaces: [dev]")
	}
	return out + "}"
}

// ruleFeatures are about pods beside each other.
func ruleFeatures() []feature {
	weighted := func(d *draw, g *groupDraw) string {
		return fmt.Sprintf("{weight: %d, podAffinityTerm: %s}", 1+d.r.IntN(100), d.term(g))
	}
	return []feature{
		{"spread", true, func(d *draw) {
			g := d.group()
			g.spread = append(g.spread, d.spreadOver(pick(d, spreadKeys()...), g, false))
		}},
		{"spread over two keys", false, func(d *draw) {
			g := d.group()
			g.spread = append(g.spread, d.spreadOver(keyZone, g, d.one(4)),
				d.spreadOver(pick(d, keyHost, keyCapacity), g, d.one(3)))
		}},
		{"soft spread", true, func(d *draw) {
			g := d.group()
			g.spread = append(g.spread, d.spreadOver(pick(d, spreadKeys()...), g, true))
		}},
		{"anti-affinity", true, func(d *draw) { g := d.group(); g.apart = append(g.apart, d.term(g)) }},
		{"affinity", true, func(d *draw) { g := d.group(); g.near = append(g.near, d.term(g)) }},
		{"preferred pod affinity", true, func(d *draw) {
			g := d.group()
			g.wantsNear = append(g.wantsNear,
				weighted(d, g))
		}},
		{"preferred pod anti-affinity", true, func(d *draw) {
			g := d.group()
			g.wantsApart = append(g.wantsApart,
				weighted(d, g))
		}},
		{"namespaces", false, func(d *draw) {
			for _, g := range some(d, 1+d.r.IntN(2), d.groups) {
				g.namespace = pick(d, "prod", "dev")
			}
		}},
		{"shared label", true, func(d *draw) { d.group().app = d.groups[0].app }},
	}
}

// templateFeatures are about the nodes of NodePools.
func templateFeatures() []feature {
	return []feature{
		{"label of the pool", true, func(d *draw) {
			p := d.pool()
			value := pick(d, "red", "blue")
			p.labels, p.values[keyTeam] = []string{keyTeam + ": " + value}, value
			p.requirements = slices.DeleteFunc(p.requirements,
				func(r string) bool { return strings.Contains(r, keyTeam) })
			d.group().chooses(keyTeam, pick(d, "red", "blue"))
		}},
		{"custom requirement", true, func(d *draw) {
			p := d.pool()
			if p.values[keyTeam] != "" {
				return
			}
			p.requirements = append(p.requirements,
				pick(d, in(keyTeam, "red", "blue"), "{key: "+keyTeam+", operator: Exists}"))
			p.values[keyTeam] = pick(d, "red", "blue")
			for _, g := range some(d, 2, d.groups) {
				g.chooses(keyTeam, pick(d, "red", "blue"))
			}
		}},
		{"taint of the pool", true, func(d *draw) {
			p := d.pool()
			p.taints = append(p.taints, pick(d, "{key: dedicated, value: x, effect: NoSchedule}",
				"{key: spare, effect: PreferNoSchedule}", "{key: night, effect: NoExecute}"))
			g := d.group()
			g.tolerations = append(g.tolerations, pick(d, "{key: dedicated, operator: Exists}", "{operator: Exists}",
				"{key: night, operator: Exists, tolerationSeconds: 60}"))
		}},
		{"startup taint", true, func(d *draw) {
			p := d.pool()
			p.startup = append(p.startup,
				"{key: cni, effect: NoSchedule}")
		}},
		{"requirement of the pool", true, func(d *draw) {
			p := d.pool()
			p.requirements = append(p.requirements,
				pick(d, in(keyArch, "amd64"), in(keyTenancy, "dedicated"), in(keyTenancy, "default", "dedicated"),
					fmt.Sprintf("{key: %s, operator: Gt, values: ['2']}", keyCPU)))
		}},
	}
}

// poolFeatures are about how much NodePools may have, and whether they are of use.
func poolFeatures() []feature {
	return []feature{
		{"limits", true, func(d *draw) {
			d.pool().limits = []string{pick(d, "cpu: 8", "cpu: 24", "memory: 32Gi", "nodes: 2", "cpu: 16, memory: 64Gi",
				"nvidia.com/gpu: 1")}
		}},
		{"minValues", false, func(d *draw) {
			d.pool().minTypes = 2 + d.r.IntN(4)
			d.c.Settings.RelaxMinValues = d.one(2)
		}},
		{"minValues of families", false, func(d *draw) {
			p := d.pool()
			p.requirements = append(p.requirements,
				fmt.Sprintf("{key: %s, operator: Exists, minValues: %d}", keyFamily, 1+d.r.IntN(3)))
			d.c.Settings.RelaxMinValues = d.one(2)
		}},
		{"another pool", true, func(d *draw) {
			if len(d.pools) < 4 {
				d.addPool(fmt.Sprintf("pool-%d", len(d.pools)))
			}
		}},
		{"pool of no use", false, func(d *draw) {
			d.addPool("pool-x")
			p := d.pools[len(d.pools)-1]
			p.notReady, p.deleting, p.static = false, false, false
			switch d.r.IntN(3) {
			case 0:
				p.notReady = true
			case 1:
				p.deleting = true
			default:
				p.static, p.weight = true, 0
			}
		}},
		{"sold out", true, func(d *draw) {
			for range 1 + d.r.IntN(4) {
				d.c.Settings.SoldOut = append(d.c.Settings.SoldOut,
					instancetypes.Offer{CapacityType: pick(d, "spot", "on-demand"),
						Type: pick(d, append(d.c.Settings.Types, "")...), Zone: pick(d, zones()...)})
			}
		}},
	}
}
