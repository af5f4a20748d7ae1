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

// allFeatures are what clusters are made of beside plain pods and pools.
func allFeatures() []feature {
	return slices.Concat(podFeatures(), resourceFeatures(), ruleFeatures(), templateFeatures(), poolFeatures(),
		clusterFeatures())
}

// pickGroup draws one of the groups.
func (d *draw) pickGroup() *groupDraw { return pickOne(d, d.groups...) }

func (d *draw) pickPool() *poolDraw { return pickOne(d, d.pools...) }

// podFeatures are about single pods.
func podFeatures() []feature {
	return []feature{
		{"select a label", true, func(d *draw) {
			label := pickOne(d, [2]string{keyZone, pickOne(d, zoneNames()...)}, [2]string{keyZoneID, pickOne(d, zoneIDs()...)},
				[2]string{keyCapacity, pickOne(d, "spot", "on-demand", "reserved")},
				[2]string{keyArch, pickOne(d, "amd64", "arm64")}, [2]string{keyType, pickOne(d, d.c.Settings.Types...)},
				[2]string{keyPool, d.pickPool().name},
				[2]string{keyFamily, familyOf(pickOne(d, d.c.Settings.Types...))}, [2]string{"kubernetes.io/os", "linux"})
			d.pickGroup().selectNodes(label[0], label[1])
		}},
		{"select a tenancy", true, func(d *draw) { d.pickGroup().selectNodes(keyTenancy, pickOne(d, "default", "dedicated")) }},
		{"required node affinity", true, func(d *draw) {
			g := d.pickGroup()
			for range 1 + d.r.IntN(2) {
				var entries []string
				for range 1 + d.r.IntN(2) {
					entries = append(entries, d.drawExpression())
				}
				g.terms = append(g.terms, "{matchExpressions: "+yamlList(entries)+"}")
			}
		}},
		{"preferred node affinity", true, func(d *draw) {
			g := d.pickGroup()
			for range 1 + d.r.IntN(3) {
				g.prefers = append(g.prefers, fmt.Sprintf("{weight: %d, preference: {matchExpressions: [%s]}}",
					1+d.r.IntN(100), d.drawExpression()))
			}
		}},
		{"host port", true, func(d *draw) {
			port := pickOne(d, "{containerPort: 80, hostPort: 80}", "{containerPort: 80, hostPort: 80, protocol: UDP}",
				"{containerPort: 80, hostPort: 80, hostIP: 10.0.0.1}", "{containerPort: 9100, hostPort: 9100}")
			for _, g := range pickSome(d, 1+d.r.IntN(2), d.groups) {
				g.ports = []string{port}
			}
		}},
		{"tolerate", true, func(d *draw) {
			g := d.pickGroup()
			g.tolerations = append(g.tolerations, pickOne(d, "{operator: Exists}", "{key: dedicated, operator: Exists}",
				"{key: dedicated, value: x, effect: NoSchedule}",
				"{key: spare, operator: Exists, effect: PreferNoSchedule}"))
		}},
	}
}

// resourceFeatures are about what single pods need, and how they stand.
func resourceFeatures() []feature {
	return []feature{
		{"GPU", false, func(d *draw) {
			d.c.Settings.Types = append(d.c.Settings.Types, pickOne(d, "g4dn.xlarge", "g5.xlarge", "g6.xlarge"),
				pickOne(d, "g4dn.12xlarge", "g5.12xlarge"))
			slices.Sort(d.c.Settings.Types)
			d.c.Settings.Types = slices.Compact(d.c.Settings.Types)
			p := d.pickPool()
			p.types = d.c.Settings.Types
			if d.oneIn(2) {
				p.taints = append(p.taints, "{key: nvidia.com/gpu, effect: NoSchedule}")
			}
			g := d.pickGroup()
			g.requests = append(g.requests, fmt.Sprintf("nvidia.com/gpu: '%d'", 1+d.r.IntN(2)))
			g.tolerations = append(g.tolerations, "{key: nvidia.com/gpu, operator: Exists}")
		}},
		{"pod-level resources", true, func(d *draw) { d.pickGroup().podLevel = true }},
		{"ephemeral storage", false, func(d *draw) {
			g := d.pickGroup()
			g.requests = append(g.requests, fmt.Sprintf("ephemeral-storage: %dGi", 1+d.r.IntN(18)))
		}},
		{"init containers", true, func(d *draw) {
			g := d.pickGroup()
			g.more = withoutField(g.more, "initContainers")
			g.more = append(g.more, pickOne(d, "initContainers: [{name: i, image: app, resources: {requests: {cpu: 1500m, memory: 2Gi}}}]",
				"initContainers: [{name: s, image: app, restartPolicy: Always, resources: {requests: {cpu: 200m, memory: 100Mi}}}, {name: i, image: app, resources: {requests: {cpu: 1}}}]"))
		}},
		{"overhead", false, func(d *draw) {
			g := d.pickGroup()
			g.more = append(withoutField(g.more, "overhead"), "overhead: {cpu: "+pickOne(d, "250m", "1500m")+", memory: 120Mi}")
		}},
		{"priority", true, func(d *draw) {
			g := d.pickGroup()
			g.more = append(withoutField(g.more, "priority"), fmt.Sprintf("priority: %d", pickOne(d, -10, 100, 1000)))
		}},
		{"state of pods", true, func(d *draw) {
			g := d.pickGroup()
			switch d.r.IntN(4) {
			case 0:
				g.terminating = true
			case 1:
				g.unnoticed = true
			case 2:
				g.owner = pickOne(d, "DaemonSet", "StatefulSet", "ReplicaSet")
			case 3:
				g.nominated = "node-0"
			}
		}},
	}
}

// withoutField are the fields but those of that name.
func withoutField(fields []string, name string) []string {
	return slices.DeleteFunc(slices.Clone(fields), func(f string) bool { return strings.HasPrefix(f, name+":") })
}

func familyOf(name string) string {
	f, _, _ := strings.Cut(name, ".")
	return f
}

// drawExpression draws a requirement of node affinity.
func (d *draw) drawExpression() string {
	return pickOne(d,
		inRequirement(keyZone, pickSome(d, 1+d.r.IntN(2), zoneNames())...),
		"{key: "+keyZone+", operator: NotIn, values: ["+pickOne(d, zoneNames()...)+"]}",
		inRequirement(keyCapacity, pickOne(d, "spot", "on-demand")), inRequirement(keyArch, pickOne(d, "amd64", "arm64")),
		fmt.Sprintf("{key: %s, operator: Gt, values: ['%d']}", keyCPU, pickOne(d, 1, 3, 7)),
		fmt.Sprintf("{key: %s, operator: Lt, values: ['%d']}", keyCPU, pickOne(d, 3, 5, 17)),
		inRequirement(keyCategory, pickOne(d, "m", "c", "r")), "{key: "+keyTeam+", operator: "+pickOne(d, "Exists", "DoesNotExist")+"}",
		inRequirement(keyTeam, pickOne(d, "red", "blue")),
		"{key: "+keyTeam+", operator: NotIn, values: [red]}",
		inRequirement(keyType, pickSome(d, 1+d.r.IntN(2), d.c.Settings.Types)...),
		inRequirement(keyTenancy, pickOne(d, "default", "dedicated")),
		"{key: "+keyFamily+", operator: NotIn, values: ["+familyOf(pickOne(d, d.c.Settings.Types...))+"]}",
		"{key: karpenter.k8s.aws/instance-local-nvme, operator: "+pickOne(d, "Exists", "DoesNotExist")+"}",
	)
}

// spreadKeys are the labels that pods may be spread over.
func spreadKeys() []string {
	return []string{keyZone, keyZone, keyZone, keyHost, keyHost, keyCapacity, keyArch, keyType, keyZoneID, keyTenancy,
		keyFamily, keyTeam, keyPool, keyPartition}
}

func (d *draw) spreadOver(key string, g *groupDraw, soft bool) string {
	out := fmt.Sprintf("{maxSkew: %d, topologyKey: %s, labelSelector: {matchLabels: {app: %s}}", pickOne(d, 1, 1, 1, 2, 3),
		key, pickOne(d, g.app, g.app, g.app, d.pickGroup().app))
	if soft {
		return out + ", whenUnsatisfiable: ScheduleAnyway}"
	}
	out += ", whenUnsatisfiable: DoNotSchedule"
	if d.oneIn(4) {
		out += fmt.Sprintf(", minDomains: %d", 1+d.r.IntN(4))
	}
	if d.oneIn(5) {
		out += ", nodeAffinityPolicy: " + pickOne(d, "Ignore", "Honor")
	}
	if d.oneIn(5) {
		out += ", nodeTaintsPolicy: " + pickOne(d, "Ignore", "Honor")
	}
	if d.oneIn(6) {
		g.labels = []string{"revision: '" + pickOne(d, "1", "2") + "'"}
		out += ", matchLabelKeys: [revision]"
	}
	return out + "}"
}

// drawTerm draws a pod affinity term about pods of some group.
func (d *draw) drawTerm(g *groupDraw) string {
	key := pickOne(d, keyHost, keyHost, keyZone, keyZone, keyZone, keyCapacity, keyArch, keyTenancy, keyPartition, keyTeam,
		keyType)
	selector := "{matchLabels: {app: " + pickOne(d, g.app, g.app, d.pickGroup().app) + "}}"
	if d.oneIn(8) {
		selector = "{matchExpressions: [{key: app, operator: " + pickOne(d, "Exists", "DoesNotExist") + "}]}"
	}
	out := "{topologyKey: " + key + ", labelSelector: " + selector
	if d.oneIn(5) {
		out += pickOne(d, ", namespaceSelector: {}", ", namespaceSelector: {matchLabels: {stage: prod}}",
			", namespaces: [default, prod]", ", namespaces: [dev]")
	}
	return out + "}"
}

// ruleFeatures are about pods beside each other.
func ruleFeatures() []feature {
	weighted := func(d *draw, g *groupDraw) string {
		return fmt.Sprintf("{weight: %d, podAffinityTerm: %s}", 1+d.r.IntN(100), d.drawTerm(g))
	}
	return []feature{
		{"spread", true, func(d *draw) {
			g := d.pickGroup()
			key := pickOne(d, spreadKeys()...)
			g.spread = append(g.spread, d.spreadOver(key, g, false))
			if d.oneIn(4) {
				g.spread = append(g.spread, d.spreadOver(key, g, true))
			}
		}},
		{"spread over two keys", false, func(d *draw) {
			g := d.pickGroup()
			g.spread = append(g.spread, d.spreadOver(keyZone, g, d.oneIn(4)),
				d.spreadOver(pickOne(d, keyHost, keyCapacity), g, d.oneIn(3)))
		}},
		{"soft spread", true, func(d *draw) {
			g := d.pickGroup()
			g.spread = append(g.spread, d.spreadOver(pickOne(d, spreadKeys()...), g, true))
		}},
		{"anti-affinity", true, func(d *draw) { g := d.pickGroup(); g.apart = append(g.apart, d.drawTerm(g)) }},
		{"affinity", true, func(d *draw) { g := d.pickGroup(); g.near = append(g.near, d.drawTerm(g)) }},
		{"preferred pod affinity", true, func(d *draw) {
			g := d.pickGroup()
			g.wantsNear = append(g.wantsNear,
				weighted(d, g))
		}},
		{"preferred pod anti-affinity", true, func(d *draw) {
			g := d.pickGroup()
			g.wantsApart = append(g.wantsApart,
				weighted(d, g))
		}},
		{"namespaces", false, func(d *draw) {
			for _, g := range pickSome(d, 1+d.r.IntN(2), d.groups) {
				g.namespace = pickOne(d, "prod", "dev")
			}
		}},
		{"shared label", true, func(d *draw) { d.pickGroup().app = d.groups[0].app }},
	}
}

// templateFeatures are about the nodes of NodePools.
func templateFeatures() []feature {
	return []feature{
		{"label of the pool", true, func(d *draw) {
			p := d.pickPool()
			value := pickOne(d, "red", "blue")
			p.labels, p.values[keyTeam] = []string{keyTeam + ": " + value}, value
			p.requirements = slices.DeleteFunc(p.requirements,
				func(r string) bool { return strings.Contains(r, keyTeam) })
			d.pickGroup().selectNodes(keyTeam, pickOne(d, "red", "blue"))
		}},
		{"custom requirement", true, func(d *draw) {
			p := d.pickPool()
			if p.values[keyTeam] != "" {
				return
			}
			p.requirements = append(p.requirements,
				pickOne(d, inRequirement(keyTeam, "red", "blue"), "{key: "+keyTeam+", operator: Exists}"))
			p.values[keyTeam] = pickOne(d, "red", "blue")
			for _, g := range pickSome(d, 2, d.groups) {
				g.selectNodes(keyTeam, pickOne(d, "red", "blue"))
			}
		}},
		{"taint of the pool", true, func(d *draw) {
			p := d.pickPool()
			p.taints = append(p.taints, pickOne(d, "{key: dedicated, value: x, effect: NoSchedule}",
				"{key: spare, effect: PreferNoSchedule}", "{key: night, effect: NoExecute}"))
			g := d.pickGroup()
			g.tolerations = append(g.tolerations, pickOne(d, "{key: dedicated, operator: Exists}", "{operator: Exists}",
				"{key: night, operator: Exists, tolerationSeconds: 60}"))
		}},
		{"startup taint", true, func(d *draw) {
			p := d.pickPool()
			p.startup = append(p.startup,
				"{key: cni, effect: NoSchedule}")
		}},
		{"requirement of the pool", true, func(d *draw) {
			p := d.pickPool()
			p.requirements = append(p.requirements,
				pickOne(d, inRequirement(keyArch, "amd64"), inRequirement(keyTenancy, "dedicated"), inRequirement(keyTenancy, "default", "dedicated"),
					fmt.Sprintf("{key: %s, operator: Gt, values: ['2']}", keyCPU)))
		}},
	}
}

// poolFeatures are about how much NodePools may have, and whether they are of use.
func poolFeatures() []feature {
	return []feature{
		{"limits", true, func(d *draw) {
			d.pickPool().limits = []string{pickOne(d, "cpu: 8", "cpu: 24", "memory: 32Gi", "nodes: 2", "cpu: 16, memory: 64Gi",
				"nvidia.com/gpu: 1")}
		}},
		{"minValues", false, func(d *draw) {
			d.pickPool().minTypes = 2 + d.r.IntN(4)
			d.c.Settings.RelaxMinValues = d.oneIn(2)
		}},
		{"minValues of families", false, func(d *draw) {
			p := d.pickPool()
			p.requirements = append(p.requirements,
				fmt.Sprintf("{key: %s, operator: Exists, minValues: %d}", keyFamily, 1+d.r.IntN(3)))
			d.c.Settings.RelaxMinValues = d.oneIn(2)
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
		{"unavailable", true, func(d *draw) {
			for range 1 + d.r.IntN(4) {
				d.c.Settings.Unavailable = append(d.c.Settings.Unavailable,
					instancetypes.OfferingKey{CapacityType: pickOne(d, "spot", "on-demand"),
						Type: pickOne(d, append(d.c.Settings.Types, "")...), Zone: pickOne(d, zoneNames()...)})
			}
		}},
	}
}
