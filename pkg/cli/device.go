package cli

import (
	"slices"

	resourcev1 "k8s.io/api/resource/v1"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/lists"
	"joiner.sh/pkg/nodeclass/translate"
	"joiner.sh/pkg/workload"
)

// fillDevices adds the devices that pods claim by what files say to what they need, and those of ResourceSlices to their
// nodes. DeviceClasses that the files do not have are there as the charts of known drivers install them. Claims of
// a cluster whose nodes the files do not have are planned as if nobody had their devices.
func fillDevices(s *cluster.Snapshot, d workload.Devices) {
	var classes, serving []translate.DeviceClass
	for i := range d.Classes {
		classes = append(classes, translate.NewDeviceClass(&d.Classes[i]))
	}
	for _, usual := range translate.UsualDeviceClasses() {
		if !slices.ContainsFunc(classes, func(c translate.DeviceClass) bool { return c.Name == usual.Name }) {
			classes = append(classes, usual)
		}
	}
	translate.GroupClasses(classes)
	rules := translate.NewDeviceTaintRules(d.TaintRules)
	translate.TaintClasses(classes, rules)
	translate.RefuseTainted(s, classes)
	named := translate.NewClaimedDevices()
	for _, c := range d.Claims {
		if len(s.Nodes) == 0 {
			c.Status = resourcev1.ResourceClaimStatus{}
		}
		named.AddClaim(&c)
	}
	claims := translate.NewDeviceClaims(classes, named)
	for i := range d.Templates {
		claims.AddTemplate(&d.Templates[i])
	}
	var asking []*cluster.Pod
	for i := range s.Pods {
		if p := &s.Pods[i]; len(p.DeviceTemplates)+len(p.DeviceClaims) > 0 {
			asking = append(asking, p)
		}
	}
	claims.NoteSharing(asking)
	for _, p := range asking {
		claims.FillPod(p)
	}
	translate.SettleClaims(s.Pods, classes)
	for _, name := range translate.UnmetResources(*s) {
		for _, c := range translate.ServingClasses(classes, name) {
			serving, s.Devices.Classes = append(serving, c), append(s.Devices.Classes, c.DeviceClass)
		}
	}
	s.Devices.Known = len(serving) > 0
	published := lists.Of(d.Slices, func(s resourcev1.ResourceSlice) translate.DeviceSlice {
		return translate.NewDeviceSlice(&s, serving, rules)
	})
	counts := translate.CountDevices(published, named.Taken, classes)
	counts.AddTo(s, serving)
}
