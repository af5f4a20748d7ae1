package cli

import (
	"slices"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/nodeclass/translate"
	"joiner.sh/pkg/workload"
)

// fillDevices adds the devices that pods claim by the ResourceClaimTemplates of files to what they need. DeviceClasses
// that the files do not have are there as the charts of known drivers install them.
func fillDevices(s *cluster.Snapshot, v workload.Storage) {
	var classes []translate.DeviceClass
	for i := range v.DeviceClasses {
		classes = append(classes, translate.NewDeviceClass(&v.DeviceClasses[i]))
	}
	for _, usual := range translate.UsualDeviceClasses() {
		if !slices.ContainsFunc(classes, func(c translate.DeviceClass) bool { return c.Name == usual.Name }) {
			classes = append(classes, usual)
		}
	}
	translate.GroupClasses(classes)
	named := translate.NewClaimedDevices()
	for i := range v.DeviceClaims {
		named.AddClaim(&v.DeviceClaims[i])
	}
	claims := translate.NewDeviceClaims(classes, named)
	for i := range v.DeviceTemplates {
		claims.AddTemplate(&v.DeviceTemplates[i])
	}
	var asking []*cluster.Pod
	for i := range s.Pods {
		if p := &s.Pods[i]; len(p.DeviceTemplates)+len(p.DeviceClaims) > 0 {
			asking = append(asking, p)
		}
	}
	claims.NoteFirst(asking)
	for _, p := range asking {
		claims.FillPod(p)
	}
	translate.SettleClaims(s.Pods, classes)
	for _, name := range translate.UnmetResources(*s) {
		for _, c := range translate.ServingClasses(classes, name) {
			s.Devices.Classes = append(s.Devices.Classes, c.DeviceClass)
		}
	}
	s.Devices.Known = len(s.Devices.Classes) > 0
}
