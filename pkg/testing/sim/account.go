package sim

import (
	"fmt"
	"maps"
	"slices"
	"time"

	awsv1 "joiner.sh/pkg/api/aws/v1"
	"joiner.sh/pkg/nodeclass"
)

const caBundle = "Q0E=" // of the cluster, a part of the drift hashes of classes

// account holds what the AWS account knows for the classes: images and instance profiles.
type account struct {
	*engine
	catalog  *catalog
	image    int       // number of the newest
	changed  time.Time // since when it is
	before   int       // the one before, which look-ups may show for a while
	profiles map[string]nodeclass.Profile
	edited   bool                  // nodes may have drifted
	looked   time.Time             // when refresh looked last
	faults   map[string]imageFault // by image
}

// resolveClass returns what AWS shows for a class. It makes its instance profile, as the real adapter does.
func (a *account) resolveClass(c *awsv1.EC2NodeClass) nodeclass.Resolved {
	name := "profile-" + c.Name
	if _, made := a.profiles[name]; !made {
		a.profiles[name] = nodeclass.Profile{Name: name, ClassUID: string(c.UID), Created: time.Now()}
		a.countMutation("make instance profile")
	}
	image := a.image
	if time.Since(a.changed) < a.plan.listLag {
		image = a.before
	}
	out := nodeclass.Resolved{Profile: name, Region: "us-west-2", ServiceCIDR: "172.20.0.0/16",
		SecurityGroups: []awsv1.SecurityGroup{{ID: "sg-1"}},
		Images: []nodeclass.Image{{ID: fmt.Sprintf("ami-%d", image), Name: fmt.Sprintf("al2023-%d", image),
			Arch: "amd64", Created: a.began.Truncate(time.Hour)}}}
	for _, zone := range slices.Sorted(maps.Keys(a.catalog.market.Zones)) {
		out.Subnets = append(out.Subnets, nodeclass.Subnet{ID: "subnet-" + zone, Zone: zone,
			ZoneID: a.catalog.market.Zones[zone], Free: 1000})
	}
	return out
}

// newImage is one that look-ups show a little later.
func (a *account) newImage() {
	a.before, a.image, a.changed = a.image, a.image+1, time.Now()
	a.addTrace("there is a new image, ami-%d", a.image)
}
