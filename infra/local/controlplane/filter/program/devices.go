package main

import (
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/dynamic-resource-allocation/structured"
	fwk "k8s.io/kube-scheduler/framework"

	"joiner.sh/infra/local/controlplane/filter"
)

// deviceManager lists the DeviceClasses, ResourceSlices and ResourceClaims of a question. A claim that a pod reserved
// devices for counts as allocated. What no filter asks for is not there.
type deviceManager struct {
	fwk.SharedDRAManager
	q      filter.Question
	claims map[string]*resourcev1.ResourceClaim // by namespace and name
}

func (m *deviceManager) set(q filter.Question) {
	m.q, m.claims = q, map[string]*resourcev1.ResourceClaim{}
	for _, c := range q.ResourceClaims {
		m.claims[c.Namespace+"/"+c.Name] = c
	}
}

func (m *deviceManager) ResourceClaims() fwk.ResourceClaimTracker     { return claimTracker{m: m} }
func (m *deviceManager) ResourceSlices() fwk.ResourceSliceLister      { return m }
func (m *deviceManager) DeviceClasses() fwk.DeviceClassLister         { return m }
func (m *deviceManager) DeviceClassResolver() fwk.DeviceClassResolver { return m }

// GetDeviceClass is the class that serves an extended resource, or that it is named after.
func (m *deviceManager) GetDeviceClass(name corev1.ResourceName) *resourcev1.DeviceClass {
	for _, c := range m.q.DeviceClasses {
		if string(name) == resourcev1.ResourceDeviceClassPrefix+c.Name ||
			c.Spec.ExtendedResourceName != nil && *c.Spec.ExtendedResourceName == string(name) {
			return c
		}
	}
	return nil
}

func (m *deviceManager) ListWithDeviceTaintRules() ([]*resourcev1.ResourceSlice, error) {
	return m.q.ResourceSlices, nil
}

func (m *deviceManager) List() ([]*resourcev1.DeviceClass, error) { return m.q.DeviceClasses, nil }

func (m *deviceManager) Get(name string) (*resourcev1.DeviceClass, error) {
	for _, c := range m.q.DeviceClasses {
		if c.Name == name {
			return c, nil
		}
	}
	return nil, apierrors.NewNotFound(resourcev1.Resource("deviceclasses"), name)
}

type claimTracker struct {
	fwk.ResourceClaimTracker
	m *deviceManager
}

func (t claimTracker) Get(namespace, name string) (*resourcev1.ResourceClaim, error) {
	if c, ok := t.m.claims[namespace+"/"+name]; ok {
		return c, nil
	}
	return nil, apierrors.NewNotFound(resourcev1.Resource("resourceclaims"), name)
}

func (t claimTracker) ListAllAllocatedDevices() (sets.Set[structured.DeviceID], error) {
	out := sets.New[structured.DeviceID]()
	for _, c := range t.m.claims {
		if c.Status.Allocation == nil {
			continue
		}
		for _, r := range c.Status.Allocation.Devices.Results {
			if r.AdminAccess == nil || !*r.AdminAccess {
				out.Insert(structured.MakeDeviceID(r.Driver, r.Pool, r.Device))
			}
		}
	}
	return out, nil
}

func (t claimTracker) GatherAllocatedState() (*structured.AllocatedState, error) {
	devices, err := t.ListAllAllocatedDevices()
	return &structured.AllocatedState{AllocatedDevices: devices,
		AllocatedSharedDeviceIDs: sets.New[structured.SharedDeviceID](),
		AggregatedCapacity:       structured.ConsumedCapacityCollection{}}, err
}

// SignalClaimPendingAllocation is called when a pod reserves devices.
func (t claimTracker) SignalClaimPendingAllocation(_ types.UID, c *resourcev1.ResourceClaim) error {
	t.m.claims[c.Namespace+"/"+c.Name] = c
	return nil
}

func (claimTracker) GetPendingAllocation(types.UID) *resourcev1.AllocationResult { return nil }
