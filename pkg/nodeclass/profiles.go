package nodeclass

import (
	"slices"
	"time"

	awsv1 "joiner.sh/pkg/api/aws/v1"
	v1 "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/model/cluster"
)

// Profile is an instance profile that was made for a class of the cluster.
type Profile struct {
	Name     string
	ClassUID string
	Created  time.Time
}

// profileMinAge is the age from which an instance profile can be called unused.
const profileMinAge = time.Hour

// UnusedProfiles lists the profiles that no class and no instance needs, sorted by name. A launch that is under way may
// still use the profile of before, so a class with a claim that has no instance yet, or with an instance nobody knows
// the profile of, keeps all of its profiles. The profiles are to be read before classes and claims.
func UnusedProfiles(profiles []Profile, classes []awsv1.EC2NodeClass, claims []cluster.Claim, now time.Time) []string {
	inUse, unsure := map[string]bool{}, map[string]bool{} // by name; by class
	for _, c := range claims {
		name := c.Annotations[awsv1.AnnotationInstanceProfile]
		inUse[name] = true
		if name == "" || !c.Is(v1.ConditionLaunched) {
			unsure[c.Class] = true
		}
	}
	undecided := map[string]bool{} // by class UID
	for i := range classes {
		c := &classes[i]
		inUse[c.Status.InstanceProfile] = true
		if c.Spec.InstanceProfile != nil {
			inUse[*c.Spec.InstanceProfile] = true
		}
		k, _ := c.StatusConditions().Get(awsv1.ConditionInstanceProfileReady)
		if unsure[c.Name] || k.Status != "True" || k.ObservedGeneration != c.Generation {
			undecided[string(c.UID)] = true
		}
	}
	var out []string
	for _, p := range profiles {
		if !inUse[p.Name] && !undecided[p.ClassUID] && now.Sub(p.Created) >= profileMinAge {
			out = append(out, p.Name)
		}
	}
	slices.Sort(out)
	return out
}
