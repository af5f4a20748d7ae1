package main

import (
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/types"

	awsv1 "joiner.sh/pkg/api/aws/v1"
	"joiner.sh/pkg/api/v1alpha1"
)

// driver is that of EBS volumes.
const driver = "ebs.csi.aws.com"

// clusterFeatures are about what the cluster has beside pods and pools.
func clusterFeatures() []feature {
	return []feature{
		{"reservations", false, (*draw).addReservations},
		{"placement group", false, (*draw).addPartitions},
		{"DaemonSet", true, (*draw).addDaemonSet},
		{"NodeOverlay", true, (*draw).addOverlay},
		{"volumes", true, (*draw).addVolumes},
		{"nodes", false, func(d *draw) { d.addNodes(1 + d.r.IntN(4)) }},
		{"more nodes", false, func(d *draw) { d.addNodes(1 + d.r.IntN(3)) }},
		{"preferences are ignored", false, func(d *draw) { d.c.Settings.IgnorePreferences = d.oneIn(2) }},
		{"few pods on a node", false, func(d *draw) {
			n := int32(pickOne(d, 4, 8, 20))
			d.c.NodeClasses[0].Spec.Kubelet = &awsv1.KubeletConfiguration{MaxPods: &n}
		}},
	}
}

// addReservations adds capacity reservations of the class, and what may use them.
func (d *draw) addReservations() {
	class := &d.c.NodeClasses[0]
	for i := range 1 + d.r.IntN(3) {
		id := fmt.Sprintf("cr-%d", i)
		kind := pickOne(d, "default", "default", "capacity-block")
		text := fmt.Sprintf("{id: %s, availabilityZone: %s, instanceType: %s, instanceMatchCriteria: %s, ownerID: '111122223333', reservationType: %s, interruptible: %t, state: %s}",
			id, pickOne(d, zoneNames()...), pickOne(d, d.c.Settings.Types...), pickOne(d, "open", "targeted"), kind, d.oneIn(6),
			pickOne(d, "active", "active", "active", "expiring"))
		var r awsv1.CapacityReservation
		if err := parseYAML(text, &r); err != nil {
			panic(err)
		}
		class.Status.CapacityReservations = append(class.Status.CapacityReservations, r)
		d.c.Settings.Reserved[id] = int64(pickOne(d, 0, 1, 1, 2, 5))
		for _, p := range pickSome(d, 1, d.pools) {
			p.capacities = pickOne(d, []string{"reserved"}, []string{"reserved", "on-demand"},
				[]string{"reserved", "spot", "on-demand"})
			p.types = sortedWith(p.types, r.InstanceType)
		}
		if d.oneIn(2) {
			label := pickOne(d, [2]string{keyCapacity, "reserved"}, [2]string{keyReservation, id},
				[2]string{"karpenter.k8s.aws/capacity-reservation-type", kind})
			d.pickGroup().selectNodes(label[0], label[1])
		}
	}
}

func sortedWith(list []string, one string) []string {
	out := append(slices.Clone(list), one)
	slices.Sort(out)
	return slices.Compact(out)
}

// addPartitions gives a class a placement group of partitions, and pods that want one.
func (d *draw) addPartitions() {
	class := &d.c.NodeClasses[0]
	if d.oneIn(2) {
		d.addClass("partitioned")
		class = &d.c.NodeClasses[len(d.c.NodeClasses)-1]
		d.pickPool().class = "partitioned"
	}
	class.Spec.PlacementGroupSelector = &awsv1.PlacementGroupSelector{ID: "pg-1"}
	d.c.Settings.Partitions["pg-1"] = int64(2 + d.r.IntN(3))
	for _, g := range pickSome(d, 1+d.r.IntN(2), d.groups) {
		switch d.r.IntN(3) {
		case 0:
			g.selectNodes(keyPartition, fmt.Sprint(1+d.r.IntN(3)))
		case 1:
			g.spread = append(g.spread, d.spreadOver(keyPartition, g, false))
		case 2:
			g.apart = append(g.apart, "{topologyKey: "+keyPartition+", labelSelector: {matchLabels: {app: "+g.app+"}}}")
		}
	}
}

func (d *draw) addDaemonSet() {
	name := fmt.Sprintf("daemon-%d", len(d.c.DaemonSets))
	g := &groupDraw{name: name, namespace: "default", app: name, cpu: pickOne(d, 50, 100, 400, 900),
		memory: pickOne(d, 64, 128, 600, 1500)}
	for range d.r.IntN(3) {
		switch d.r.IntN(6) {
		case 0:
			g.selectNodes(keyZone, pickOne(d, zoneNames()...))
		case 1:
			g.selectNodes(keyArch, pickOne(d, "amd64", "arm64"))
		case 2:
			g.terms = append(g.terms, "{matchExpressions: ["+d.drawExpression()+"]}")
		case 3:
			g.ports = []string{"{containerPort: 9100, hostPort: 9100}"}
		case 4:
			g.tolerations = append(g.tolerations, "{operator: Exists}")
		case 5:
			g.tolerations = append(g.tolerations, "{key: dedicated, operator: Exists}")
		}
	}
	p, err := g.newPod(name)
	if err != nil {
		panic(err)
	}
	set := appsv1.DaemonSet{Spec: appsv1.DaemonSetSpec{Template: corev1.PodTemplateSpec{ObjectMeta: p.ObjectMeta,
		Spec: p.Spec}}}
	set.Spec.Template.Name, set.Spec.Template.Namespace, set.Spec.Template.UID = "", "", ""
	set.Namespace, set.Name, set.UID, set.CreationTimestamp = "default", name, types.UID("owner-"+name),
		p.CreationTimestamp
	d.c.DaemonSets = append(d.c.DaemonSets, set)
}

func (d *draw) addOverlay() {
	n := len(d.c.NodeOverlays)
	what := pickOne(d, "price: '0.0"+fmt.Sprint(1+d.r.IntN(9))+"'", "priceAdjustment: '-"+fmt.Sprint(d.r.IntN(90))+"%'",
		"priceAdjustment: '+0.05'", "capacity: {example.com/fuse: 3}", "capacity: {example.com/fuse: 3}")
	if strings.Contains(what, "fuse") {
		if g := d.pickGroup(); !slices.Contains(g.requests, "example.com/fuse: 1") {
			g.requests = append(g.requests, "example.com/fuse: 1")
		}
	}
	on := pickOne(d, inRequirement(keyType, pickSome(d, 1+d.r.IntN(3), d.c.Settings.Types)...),
		inRequirement(keyCapacity, pickOne(d, "spot", "on-demand")), inRequirement(keyFamily, familyOf(pickOne(d, d.c.Settings.Types...))),
		"{key: "+keyPool+", operator: In, values: ["+d.pickPool().name+"]}", inRequirement(keyArch, "amd64"),
		fmt.Sprintf("{key: %s, operator: Gt, values: ['2']}", keyCPU))
	var o v1alpha1.NodeOverlay
	if err := parseYAML(fmt.Sprintf("{metadata: {name: overlay-%d}, spec: {weight: %d, requirements: [%s], %s}}", n, 1+n,
		on, what), &o); err != nil {
		panic(err)
	}
	d.c.NodeOverlays = append(d.c.NodeOverlays, o)
}

// addVolumes gives pods volumes: of their own or one for all, that exist in a zone or are yet to be made.
func (d *draw) addVolumes() {
	if len(d.c.StorageClasses) == 0 {
		wait, now := storagev1.VolumeBindingWaitForFirstConsumer, storagev1.VolumeBindingImmediate
		for _, s := range []storagev1.StorageClass{
			{Provisioner: driver, VolumeBindingMode: &wait}, {Provisioner: driver, VolumeBindingMode: &now},
			{Provisioner: driver, VolumeBindingMode: &wait, AllowedTopologies: []corev1.TopologySelectorTerm{{
				MatchLabelExpressions: []corev1.TopologySelectorLabelRequirement{{Key: pickOne(d, keyZone,
					"topology.ebs.csi.aws.com/zone"), Values: pickSome(d, 1+d.r.IntN(2), zoneNames())}}}}},
		} {
			s.Name = fmt.Sprintf("class-%d", len(d.c.StorageClasses))
			d.c.StorageClasses = append(d.c.StorageClasses, s)
		}
	}
	g := d.pickGroup()
	how := pickOne(d, "class-0", "class-0", "class-1", "class-2", "zone", "zone", "zone", "anywhere", "missing")
	if g.ownVolumes != "" || len(g.volumes) > 0 {
		return
	}
	if d.oneIn(2) {
		g.ownVolumes = how
		return
	}
	name := "shared-" + g.name
	d.addClaim(g.namespace, name, how)
	g.volumes = []string{"{name: data, persistentVolumeClaim: {claimName: " + name + "}}"}
}

// addOwnVolume gives the pod a volume of its own.
func (d *draw) addOwnVolume(g *groupDraw, p *corev1.Pod) error {
	name := "own-" + p.Name
	d.addClaim(g.namespace, name, g.ownVolumes)
	p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: "data",
		VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{
			ClaimName: name}}})
	return nil
}

// addClaim adds a PersistentVolumeClaim with, where how names none of the classes, the volume it is bound to.
func (d *draw) addClaim(namespace, name, how string) {
	if how == "missing" {
		return
	}
	meta := fmt.Sprintf("name: %s, namespace: %s, uid: uid-%s", name, namespace, name)
	var v corev1.PersistentVolumeClaim
	if strings.HasPrefix(how, "class-") {
		if err := parseYAML(fmt.Sprintf("{metadata: {%s}, spec: {accessModes: [ReadWriteOnce], storageClassName: %s, resources: {requests: {storage: 1Gi}}}, status: {phase: Pending}}", meta, how), &v); err != nil {
			panic(err)
		}
		d.c.VolumeClaims = append(d.c.VolumeClaims, v)
		return
	}
	where := ""
	if how == "zone" {
		where = fmt.Sprintf(", nodeAffinity: {required: {nodeSelectorTerms: [{matchExpressions: [%s]}]}}",
			inRequirement(pickOne(d, keyZone, "topology.ebs.csi.aws.com/zone"), pickOne(d, zoneNames()...)))
	}
	var pv corev1.PersistentVolume
	if err := parseYAML(fmt.Sprintf("{metadata: {name: pv-%s-%s}, spec: {accessModes: [ReadWriteOnce], capacity: {storage: 1Gi}, storageClassName: class-0, csi: {driver: %s, volumeHandle: %s}, claimRef: {namespace: %s, name: %s, uid: uid-%s}%s}, status: {phase: Bound}}",
		namespace, name, driver, name, namespace, name, name, where), &pv); err != nil {
		panic(err)
	}
	if err := parseYAML(fmt.Sprintf("{metadata: {%s, annotations: {pv.kubernetes.io/bind-completed: 'yes'}}, spec: {accessModes: [ReadWriteOnce], storageClassName: class-0, volumeName: %s, resources: {requests: {storage: 1Gi}}}, status: {phase: Bound}}", meta, pv.Name), &v); err != nil {
		panic(err)
	}
	d.c.Volumes, d.c.VolumeClaims = append(d.c.Volumes, pv), append(d.c.VolumeClaims, v)
}
