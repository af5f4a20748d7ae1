package awsemulator

import (
	"slices"
	"strings"
	"time"

	"joiner.sh/infra/local/awsemulator/wire"
)

// arc is ARC zonal shift.
type arc struct {
	*account
	shifts []ZonalShift
}

// ZonalShift takes the cluster's traffic away from a zone.
type ZonalShift struct {
	ZoneID string
	Until  time.Time
	Auto   bool // AWS did it
	Void   bool // it is not applied
}

// AddShift adds a zonal shift of the cluster.
func (c *arc) AddShift(s ZonalShift) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.shifts = append(c.shifts, s)
}

// EndShifts ends all zonal shifts.
func (c *arc) EndShifts() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.shifts = nil
}

func (c *account) shiftOperations() map[string]operation {
	return map[string]operation{"GetManagedResource": op(c.arc.getManagedResource)}
}

func (c *arc) clusterARN() string {
	return "arn:aws:eks:" + c.opt.Region + ":" + c.opt.Account + ":cluster/" + c.opt.ClusterName
}

func (c *arc) getManagedResource(r *call, _ *struct{}) (any, error) {
	if r.pathPart(1) != c.clusterARN() {
		return nil, wire.Fail(404, "ResourceNotFoundException", "The resource %s is not registered", r.pathPart(1))
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	applied := map[bool]string{true: "NOT_APPLIED", false: "APPLIED"}
	manual, auto := []map[string]any{}, []map[string]any{}
	for _, s := range c.shifts {
		if s.Auto {
			auto = append(auto, map[string]any{"appliedStatus": applied[s.Void], "awayFrom": s.ZoneID,
				"startTime": unixSeconds(time.Now())})
			continue
		}
		manual = append(manual, map[string]any{"appliedStatus": applied[s.Void], "awayFrom": s.ZoneID,
			"expiryTime": unixSeconds(s.Until), "startTime": unixSeconds(time.Now()),
			"comment": "", "resourceIdentifier": c.clusterARN(), "zonalShiftId": hash16(s.ZoneID)})
	}
	slices.SortFunc(manual, func(a, b map[string]any) int {
		return strings.Compare(a["awayFrom"].(string),
			b["awayFrom"].(string))
	})
	return map[string]any{"arn": c.clusterARN(), "name": c.opt.ClusterName, "appliedWeights": map[string]float64{},
		"zonalShifts": manual, "autoshifts": auto}, nil
}

// askManaged asks without a resource, since IAM knows only load balancers as resources of ARC: what the path names is
// the value of a condition key.
func (c *arc) askManaged(r *call) ([]access, error) {
	return []access{{action: "arc-zonal-shift:GetManagedResource", resource: "*",
		keys: map[string][]string{"arc-zonal-shift:ResourceIdentifier": {r.pathPart(1)}}}}, nil
}
