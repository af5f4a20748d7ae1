package rollout

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	api "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/lists"
	"joiner.sh/pkg/nodeclass"
)

// mostRevisions caps the revisions of a rollout that are kept, beside the one that is tried and the last good one.
const mostRevisions = 10

// RevisionName names the state of a class: by the hash of what static drift compares and by its images.
func RevisionName(c instancetypes.Class) string {
	text := []string{c.HashVersion, c.Hash}
	for _, i := range c.Images {
		text = append(text, fmt.Sprint(i.ID, i.Requirements))
	}
	sum := sha256.Sum256([]byte(strings.Join(text, "\x00")))
	return longestPrefix(c.Name) + "-" + hex.EncodeToString(sum[:])[:10]
}

// longestPrefix leaves room for the digest in the name of an object.
func longestPrefix(name string) string { return strings.TrimRight(name[:min(len(name), 240)], ".-") }

// sameImages reports whether both launch the same images.
func sameImages(a, b instancetypes.Class) bool {
	return slices.EqualFunc(a.Images, b.Images, func(x, y instancetypes.Image) bool {
		return x.ID == y.ID && fmt.Sprint(x.Requirements) == fmt.Sprint(y.Requirements)
	})
}

// currentRevision returns the name of the class as it is now: that of the stored revision that it equals, else its own.
// ok is false while its status is not of its spec, or it is not ready: then nobody knows. Hashes of different versions
// are not compared, so an upgrade of Joiner begins no rollout.
func currentRevision(s cluster.Snapshot, r cluster.Rollout, class string) (name string, ok bool) {
	c, found := s.ClassOf(class)
	if !found || !c.Ready || c.Unseen || c.Hash == "" || len(c.Images) == 0 {
		return "", false
	}
	for i := len(r.Revisions) - 1; i >= 0; i-- {
		v := r.Revisions[i].Resolved
		if sameImages(v, c) && (v.HashVersion != c.HashVersion || v.Hash == c.Hash) {
			return r.Revisions[i].Name, true
		}
	}
	return RevisionName(c), true
}

func keptRevision(r cluster.Rollout, name string) (cluster.NodeRevision, bool) {
	return lists.Find(r.Revisions, func(v cluster.NodeRevision) bool { return v.Name == name })
}

// ClassOf returns the one class of the rollout's NodePools, or why there is none.
func ClassOf(s cluster.Snapshot, r cluster.Rollout) (class, refused string) {
	taken := ""
	for _, p := range s.Pools {
		switch {
		case !slices.Contains(r.Pools, p.Name):
		case !owns(s, r, p.Name):
			taken = p.Name
		case class != "" && class != p.Class:
			return "", fmt.Sprintf("spec.nodePoolSelector: the NodePools use EC2NodeClass %s and %s; make a NodeRollout for each",
				class, p.Class)
		default:
			class = p.Class
		}
	}
	switch {
	case class == "" && taken != "":
		return "", "spec.nodePoolSelector: NodePool " + taken + " belongs to another NodeRollout"
	case class == "":
		return "", "spec.nodePoolSelector: there is no such NodePool"
	}
	return class, ""
}

// surplusRevisions are the names of revisions that need not be kept, oldest first.
func surplusRevisions(r cluster.Rollout, st cluster.RolloutStatus, used map[string]bool) (out []string) {
	left := len(r.Revisions) - mostRevisions
	for _, v := range r.Revisions {
		if left > 0 && v.Name != st.LastGood && v.Name != st.PreviousGood &&
			v.Name != st.Revision && v.Name != r.Pinned && !used[v.Name] {
			out, left = append(out, v.Name), left-1
		}
	}
	return out
}

// DoubtfulImages are the images of the last good revision, sorted, that its class does not have now, or of which nobody
// knows that: nobody else notices when they go.
func DoubtfulImages(s cluster.Snapshot, r cluster.Rollout) (ids []string) {
	name, refused := ClassOf(s, r)
	good, kept := keptRevision(r, r.Status.LastGood)
	if refused != "" || !kept {
		return nil
	}
	now, _ := s.ClassOf(name)
	for _, image := range good.Resolved.Images {
		seen := func(other instancetypes.Image) bool { return other.ID == image.ID }
		if !now.Ready || now.Unseen || !slices.ContainsFunc(now.Images, seen) {
			ids = append(ids, image.ID)
		}
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// unavailable says why the last good revision cannot be launched, or should not be, as far as anybody has found out.
func (a *advance) unavailable() string {
	st := a.out.Status
	if st.LastGood == "" {
		return ""
	}
	good, kept := keptRevision(a.r, st.LastGood)
	if !kept && a.out.Keep != st.LastGood {
		return "revision " + st.LastGood + " is not stored any more"
	}
	for _, kubelet := range good.KubeletVersions {
		if why := nodeclass.KubeletMisfit(kubelet, a.r.ClusterVersion); why != "" {
			return "revision " + st.LastGood + " does not fit the cluster: " + why
		}
	}
	if len(a.r.GoneImages) > 0 && st.LastGood == a.r.Status.LastGood {
		return "revision " + st.LastGood + ": EC2 has no AMI " + strings.Join(a.r.GoneImages, ", ") + " any more"
	}
	for _, c := range a.claims {
		k := c.Condition(api.ConditionLaunched)
		if c.Annotations[api.AnnotationNodeRevision] == st.LastGood && k.Status != "True" &&
			strings.Contains(k.Reason+k.Message, "InvalidAMIID") {
			return "revision " + st.LastGood + ": " + k.Message
		}
	}
	return ""
}
