package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"joiner.sh/infra/lab/bench/manifests"
	awsv1 "joiner.sh/pkg/api/aws/v1"
	api "joiner.sh/pkg/api/v1"
)

func minutes(n int) time.Duration { return time.Duration(n) * time.Minute }

// Label keys by the names that features use.
const (
	keyZone        = "topology.kubernetes.io/zone"
	keyZoneID      = "topology.k8s.aws/zone-id"
	keyHost        = "kubernetes.io/hostname"
	keyArch        = "kubernetes.io/arch"
	keyType        = "node.kubernetes.io/instance-type"
	keyCapacity    = "karpenter.sh/capacity-type"
	keyPool        = "karpenter.sh/nodepool"
	keyFamily      = "karpenter.k8s.aws/instance-family"
	keyCategory    = "karpenter.k8s.aws/instance-category"
	keyCPU         = "karpenter.k8s.aws/instance-cpu"
	keyTenancy     = "karpenter.k8s.aws/instance-tenancy"
	keyPartition   = "karpenter.k8s.aws/placement-group-partition"
	keyReservation = "karpenter.k8s.aws/capacity-reservation-id"
	keyTeam        = "example.com/team"
)

func zoneNames() []string { return []string{"us-west-2a", "us-west-2b", "us-west-2c"} }
func zoneIDs() []string   { return []string{"usw2-az2", "usw2-az1", "usw2-az3"} }

// poolDraw is a NodePool in the making. Lists hold entries of flow YAML.
type poolDraw struct {
	name, class  string
	types        []string // that it may have
	zones        []string
	capacities   []string
	requirements []string // beside those
	labels       []string
	taints       []string
	startup      []string
	limits       []string
	minTypes     int
	weight       int
	notReady     bool
	deleting     bool
	static       bool
	values       map[string]string // of labels that a node of it has beside those of its type
}

// addTypes chooses what is sold.
func (d *draw) addTypes() {
	families := []string{"m5", "c5", "r5", "m6i", "c6i", "r6i", "m6g", "c6g", "t3", "c7i", "m7g", "i4i", "c5d", "g4dn",
		"g5"}
	sizes := []string{"medium", "large", "xlarge", "2xlarge", "4xlarge", "12xlarge", "metal"}
	for _, f := range pickSome(d, 1+d.r.IntN(6), families) {
		for _, s := range pickSome(d, 2+d.r.IntN(len(sizes)-2), sizes) {
			if _, ok := d.all.Find(f + "." + s); ok {
				d.c.Settings.Types = append(d.c.Settings.Types, f+"."+s)
			}
		}
	}
	if len(d.c.Settings.Types) < 4 {
		d.c.Settings.Types = append(d.c.Settings.Types, "m5a.large", "m5a.xlarge", "m5a.2xlarge", "c5a.large")
	}
	slices.Sort(d.c.Settings.Types)
	d.c.Settings.Types = slices.Compact(d.c.Settings.Types)
}

// addClass adds an EC2NodeClass that is ready, with an image for each architecture and subnets in three zones.
func (d *draw) addClass(name string) {
	var subnets []string
	for i, z := range zoneNames() {
		subnets = append(subnets, fmt.Sprintf("{id: subnet-%d, zone: %s, zoneID: %s}", i, z, zoneIDs()[i]))
	}
	text := fmt.Sprintf(`{metadata: {name: %s, uid: class-%s}, spec: {amiSelectorTerms: [{alias: al2023@latest}], role: node,
subnetSelectorTerms: [{tags: {cluster: demo}}], securityGroupSelectorTerms: [{tags: {cluster: demo}}]}, status: {subnets: %s, securityGroups: [{id: sg-1}],
amis: [{id: ami-1, requirements: [{key: %s, operator: In, values: [amd64]}]}, {id: ami-2, requirements: [{key: %s, operator: In, values: [arm64]}]}],
conditions: [{type: Ready, status: 'True', reason: Ready, message: '', lastTransitionTime: '2026-01-01T00:00:00Z'}]}}`, name, name, yamlList(subnets), keyArch, keyArch)
	var class awsv1.EC2NodeClass
	if err := parseYAML(text, &class); err != nil {
		panic(err) // it is the same text for all seeds
	}
	d.c.NodeClasses = append(d.c.NodeClasses, class)
}

// addPool draws a NodePool of some types, zones and capacity types.
func (d *draw) addPool(name string) {
	p := &poolDraw{name: name, class: "default", types: d.c.Settings.Types, values: map[string]string{}}
	if d.oneIn(2) {
		p.types = pickSome(d, 1+d.r.IntN(len(p.types)), p.types)
	}
	p.capacities = pickOne(d, nil, []string{"on-demand"}, []string{"spot"}, []string{"on-demand", "spot"},
		[]string{"on-demand", "reserved"})
	if d.oneIn(4) {
		p.zones = pickSome(d, 1+d.r.IntN(2), zoneNames())
	}
	if d.oneIn(3) {
		p.weight = 1 + d.r.IntN(3)
	}
	d.pools = append(d.pools, p)
}

// listAllows reports whether the list has the value, or names none.
func listAllows(list []string, value string) bool {
	return len(list) == 0 || slices.Contains(list, value)
}

func inRequirement(key string, values ...string) string {
	return fmt.Sprintf("{key: %s, operator: In, values: [%s]}", key, quoteAll(values))
}

func quoteAll(values []string) string {
	out := make([]string, len(values))
	for i, v := range values {
		out[i] = "'" + v + "'"
	}
	return strings.Join(out, ", ")
}

// writePool makes the NodePool.
func (p *poolDraw) writePool(c *manifests.Cluster) error {
	requirements := slices.Clone(p.requirements)
	kinds := inRequirement(keyType, p.types...)
	if p.minTypes > 0 {
		kinds = strings.TrimSuffix(kinds, "}") + fmt.Sprintf(", minValues: %d}", p.minTypes)
	}
	requirements = append(requirements, kinds)
	if len(p.zones) > 0 {
		requirements = append(requirements, inRequirement(keyZone, p.zones...))
	}
	if len(p.capacities) > 0 {
		requirements = append(requirements, inRequirement(keyCapacity, p.capacities...))
	}
	spec := fmt.Sprintf("nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: %s}, requirements: %s",
		p.class, yamlList(requirements))
	if len(p.taints) > 0 {
		spec += ", taints: " + yamlList(p.taints)
	}
	if len(p.startup) > 0 {
		spec += ", startupTaints: " + yamlList(p.startup)
	}
	status := "'True'"
	if p.notReady {
		status = "'False'"
	}
	var conditions []string
	for _, kind := range []string{"ValidationSucceeded", "NodeClassReady", "Ready"} {
		conditions = append(conditions, fmt.Sprintf(
			"{type: %s, status: %s, reason: %s, message: '', lastTransitionTime: '2026-01-01T00:00:00Z'}", kind, status,
			kind))
	}
	top := fmt.Sprintf("template: {metadata: {labels: {%s}}, spec: {%s}}", strings.Join(p.labels, ", "), spec)
	if p.weight > 0 {
		top += fmt.Sprintf(", weight: %d", p.weight)
	}
	if len(p.limits) > 0 {
		top += ", limits: {" + strings.Join(p.limits, ", ") + "}"
	}
	if p.static {
		top += ", replicas: 1"
	}
	deleting := ""
	if p.deleting {
		deleting = ", deletionTimestamp: '2026-01-01T00:00:00Z', finalizers: [x]"
	}
	var pool api.NodePool
	text := fmt.Sprintf("{metadata: {name: %s, uid: pool-%s%s, creationTimestamp: '2025-12-01T00:00:00Z'}, spec: {%s}, status: {conditions: %s}}",
		p.name, p.name, deleting, top, yamlList(conditions))
	if err := parseYAML(text, &pool); err != nil {
		return err
	}
	c.NodePools = append(c.NodePools, pool)
	return nil
}
