package workload

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	resourcev1 "k8s.io/api/resource/v1"
	resourcev1beta2 "k8s.io/api/resource/v1beta2"

	"joiner.sh/pkg/model/lists"
	"joiner.sh/pkg/workload/manifest"
)

// Devices holds what manifests say about devices that pods claim.
type Devices struct {
	Classes    []resourcev1.DeviceClass
	Templates  []resourcev1.ResourceClaimTemplate // with their namespace
	Claims     []resourcev1.ResourceClaim         // with their namespace
	Slices     []resourcev1.ResourceSlice
	TaintRules []resourcev1beta2.DeviceTaintRule
}

// Any reports whether anything is said.
func (d Devices) Any() bool {
	return len(d.Classes)+len(d.Templates)+len(d.Claims)+len(d.Slices)+len(d.TaintRules) > 0
}

// addDevices takes an object about devices that pods claim.
func (c *manifestCollector) addDevices(d manifest.Document) (known bool, err error) {
	group, version, _ := strings.Cut(d.APIVersion, "/")
	versions := servedVersions(d.Kind)
	switch {
	case group != resourcev1.GroupName || versions == nil:
		return false, nil
	case !slices.Contains(versions, version):
		return true, d.Errorf("apiVersion", "%q is not known for kind %s; %s of %s are", d.APIVersion, d.Kind,
			strings.Join(versions, ", "), group)
	case version == "v1beta1":
		d.Body = asV1(d.Body)
	}
	switch d.Kind {
	case "DeviceClass":
		_, err = addNamed(c, d, &c.Devices.Classes)
	case "ResourceClaimTemplate":
		var t *resourcev1.ResourceClaimTemplate
		if t, err = addNamespaced(c, d, &c.Devices.Templates); err == nil {
			err = checkClaim(d, "spec.spec.devices", t.Spec.Spec.Devices)
		}
	case "ResourceClaim":
		var r *resourcev1.ResourceClaim
		if r, err = addNamespaced(c, d, &c.Devices.Claims); err == nil {
			err = checkClaim(d, "spec.devices", r.Spec.Devices)
		}
	case "ResourceSlice":
		var s *resourcev1.ResourceSlice
		if s, err = addNamed(c, d, &c.Devices.Slices); err == nil {
			err = checkSlice(d, s.Spec)
		}
	case "DeviceTaintRule":
		var r *resourcev1beta2.DeviceTaintRule
		if r, err = addNamed(c, d, &c.Devices.TaintRules); err == nil {
			err = checkEffect(d, "spec.taint", string(r.Spec.Taint.Effect))
		}
	}
	return true, err
}

// servedVersions are the versions of resource.k8s.io in which the API servers of Kubernetes 1.36 and 1.37 take a kind
// about devices; none for any other kind.
func servedVersions(kind string) []string {
	switch kind {
	case "DeviceClass", "ResourceClaim", "ResourceClaimTemplate", "ResourceSlice":
		return []string{"v1", "v1beta2", "v1beta1"}
	case "DeviceTaintRule":
		return []string{"v1", "v1beta2", "v1alpha3"}
	}
	return nil
}

// checkClaim returns the API server's refusal of a claim whose devices could be counted all the same; at is where in
// the document it stands.
func checkClaim(d manifest.Document, at string, in resourcev1.DeviceClaim) error {
	names := map[string]bool{}
	for i, r := range in.Requests {
		at := fmt.Sprintf("%s.requests[%d].", at, i)
		if r.Name == "" || names[r.Name] {
			return d.Errorf(at+"name", "it is %q; each request has a name of its own", r.Name)
		}
		names[r.Name] = true
		for _, sub := range r.FirstAvailable {
			names[r.Name+"/"+sub.Name] = true
		}
		if r.Exactly != nil {
			if err := checkExactly(d, at+"exactly.", *r.Exactly); err != nil {
				return err
			}
		}
	}
	for i, c := range in.Constraints {
		if err := checkNamed(d, fmt.Sprintf("%s.constraints[%d].requests", at, i), c.Requests, names); err != nil {
			return err
		}
	}
	for i, c := range in.Config {
		if err := checkNamed(d, fmt.Sprintf("%s.config[%d].requests", at, i), c.Requests, names); err != nil {
			return err
		}
	}
	return nil
}

// checkNamed wants every request that is named to be one of the claim.
func checkNamed(d manifest.Document, at string, requests []string, names map[string]bool) error {
	if i := slices.IndexFunc(requests, func(r string) bool { return !names[r] }); i >= 0 {
		return d.Errorf(at, "it names %s, which is no request of the claim", requests[i])
	}
	return nil
}

// checkExactly is checkClaim of one request.
func checkExactly(d manifest.Document, at string, e resourcev1.ExactDeviceRequest) error {
	switch {
	case e.Count < 0:
		return d.Errorf(at+"count", "it is %d; it must be 1 or more", e.Count)
	case e.Count > 0 && e.AllocationMode == resourcev1.DeviceAllocationModeAll:
		return d.Errorf(at+"count", "it is %d; with allocationMode All there is none", e.Count)
	}
	for i, t := range e.Tolerations {
		at := fmt.Sprintf("%stolerations[%d]", at, i)
		switch {
		case t.Operator == resourcev1.DeviceTolerationOpExists && t.Value != "":
			return d.Errorf(at+".value", "it is given; with operator Exists there is none")
		case !slices.Contains([]resourcev1.DeviceTolerationOperator{"", resourcev1.DeviceTolerationOpEqual,
			resourcev1.DeviceTolerationOpExists}, t.Operator):
			return d.Errorf(at+".operator", "it is %q; use Equal or Exists", t.Operator)
		case t.Effect != "":
			if err := checkEffect(d, at, string(t.Effect)); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkEffect refuses an effect of a taint of devices that there is not.
func checkEffect(d manifest.Document, at, effect string) error {
	if !slices.Contains([]string{"NoSchedule", "NoExecute", "None"}, effect) {
		return d.Errorf(at+".effect", "it is %q; use NoSchedule, NoExecute or None", effect)
	}
	return nil
}

// checkSlice returns the API server's refusal of a ResourceSlice of which no device could be counted.
func checkSlice(d manifest.Document, s resourcev1.ResourceSliceSpec) error {
	places, seen := 0, map[string]bool{}
	for _, is := range []bool{s.NodeName != nil && *s.NodeName != "", s.NodeSelector != nil,
		s.AllNodes != nil && *s.AllNodes, s.PerDeviceNodeSelection != nil && *s.PerDeviceNodeSelection} {
		if is {
			places++
		}
	}
	switch {
	case s.Driver == "":
		return d.Errorf("spec.driver", "it is missing; it says whose devices these are")
	case s.Pool.Name == "":
		return d.Errorf("spec.pool.name", "it is missing; for devices of a node it is the node's name")
	case s.Pool.ResourceSliceCount < 1:
		return d.Errorf("spec.pool.resourceSliceCount", "it is %d; it says how many slices the pool has, this one included",
			s.Pool.ResourceSliceCount)
	case places != 1:
		return d.Errorf("spec", "it has %d of nodeName, nodeSelector, allNodes and perDeviceNodeSelection; one says where the devices are",
			places)
	}
	for i, device := range s.Devices {
		if device.Name == "" || seen[device.Name] {
			return d.Errorf(fmt.Sprintf("spec.devices[%d].name", i), "it is %q; each device has a name of its own", device.Name)
		}
		seen[device.Name] = true
	}
	return nil
}

// checkSlices wants every node that a slice belongs to.
func (f *File) checkSlices() error {
	names := lists.Set(f.Nodes, func(n Node) string { return n.Name })
	for i := range f.Devices.Slices {
		if s := &f.Devices.Slices[i]; s.Spec.NodeName != nil && !names[*s.Spec.NodeName] {
			return fmt.Errorf("ResourceSlice %s: spec.nodeName: the workload has no node %s; give it one, or leave the slice out",
				s.Name, *s.Spec.NodeName)
		}
	}
	return nil
}

// noteDevices says that what a node publishes or has helps nobody where no node is.
func (c *manifestCollector) noteDevices() {
	note := func(names []string, what, why string) {
		if n := len(names); n > 0 {
			c.notes = append(c.notes, fmt.Sprintf("%d %s (%s): %s, unless a workload file has the nodes", n, what,
				lists.Name(names, ", "), why))
		}
	}
	note(lists.Of(c.Devices.Slices, func(s resourcev1.ResourceSlice) string { return s.Name }), "ResourceSlices",
		"nobody gets their devices")
	allocated := lists.Where(c.Devices.Claims,
		func(r resourcev1.ResourceClaim) bool { return r.Status.Allocation != nil })
	note(lists.Of(allocated, func(r resourcev1.ResourceClaim) string { return r.Namespace + "/" + r.Name }),
		"allocated ResourceClaims", "they count as if they were not")
}

// asV1 is an object of resource.k8s.io/v1beta1 as v1 has it: what a request of a claim or of a template asks for
// exactly stands in a field of that name, and what a device of a slice is in none.
func asV1(body []byte) []byte {
	var tree any
	if json.Unmarshal(body, &tree) != nil {
		return body // reading it says what is wrong
	}
	at := func(in any, field string) any {
		object, _ := in.(map[string]any)
		return object[field]
	}
	spec := at(tree, "spec")
	if inner := at(spec, "spec"); inner != nil {
		spec = inner
	}
	requests, _ := at(at(spec, "devices"), "requests").([]any)
	for _, r := range requests {
		request, is := r.(map[string]any)
		if !is || request["deviceClassName"] == nil {
			continue
		}
		exactly := maps.Clone(request)
		delete(exactly, "name")
		maps.DeleteFunc(request, func(field string, _ any) bool { return field != "name" })
		request["exactly"] = exactly
	}
	devices, _ := at(spec, "devices").([]any)
	for _, d := range devices {
		if basic, is := at(d, "basic").(map[string]any); is {
			device, _ := d.(map[string]any)
			delete(device, "basic")
			maps.Copy(device, basic)
		}
	}
	out, err := json.Marshal(tree)
	if err != nil {
		return body
	}
	return out
}
