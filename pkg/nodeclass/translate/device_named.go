package translate

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/lists"
	"joiner.sh/pkg/model/requirements"
)

// namedClaim holds what matters of a ResourceClaim that pods name.
type namedClaim struct {
	ask       deviceAsk
	deleting  bool
	allocated bool
	places    [][]requirements.Requirement // alternatives that the allocated devices leave; none for any node
	unread    string                       // why these are not known
	users     []resourcev1.ResourceClaimConsumerReference
}

func newNamedClaim(in *resourcev1.ResourceClaim, ask deviceAsk) namedClaim {
	out := namedClaim{ask: ask, deleting: in.DeletionTimestamp != nil, allocated: in.Status.Allocation != nil,
		users: in.Status.ReservedFor}
	if !out.allocated || in.Status.Allocation.NodeSelector == nil {
		return out
	}
	for _, t := range in.Status.Allocation.NodeSelector.NodeSelectorTerms {
		one, err := claimPlace(t)
		if err != nil {
			out.unread = "where its devices are is not known: " + err.Error()
		}
		out.places = append(out.places, one)
	}
	return out
}

// claimPlace reads where allocated devices can be used: kube-scheduler names a node by its name, as a field.
func claimPlace(t corev1.NodeSelectorTerm) ([]requirements.Requirement, error) {
	var nodes []requirements.Requirement
	for _, f := range t.MatchFields {
		if f.Key == "metadata.name" && f.Operator == corev1.NodeSelectorOpIn {
			nodes = append(nodes, requirements.Of(corev1.LabelHostname, f.Values...))
		}
	}
	if len(nodes) == len(t.MatchFields) {
		t.MatchFields = nil
	}
	others, err := termFrom(t)
	return append(nodes, others...), err
}

// sharers are the pods that share a ResourceClaim: those that wait for devices that nobody has, or those that have them
// and need others when their node goes.
type sharers struct {
	pods   []*cluster.Pod // the first gets the devices, the others go where it goes
	apart  bool           // not all are on one node
	others string         // who has the devices too and never moves; empty for nobody
}

// NoteSharing finds the pods of a namespace that share a ResourceClaim. Of several the oldest gets the devices.
func (d DeviceClaims) NoteSharing(pods []*cluster.Pod) {
	users := map[string]map[types.UID]bool{}
	for _, p := range pods {
		for _, name := range p.DeviceClaims {
			d.addSharer(p.Namespace+"/"+name, p, users)
		}
	}
	for key, shared := range d.sharing {
		shared.others = cmp.Or(d.claimed.named[key].otherUser(users[key]), shared.others)
		slices.SortFunc(shared.pods, func(a, b *cluster.Pod) int {
			return cmp.Or(a.Created.Compare(b.Created), cmp.Compare(a.Name, b.Name))
		})
		d.sharing[key] = shared
		if len(shared.pods) > 1 {
			p := shared.pods[0]
			labels := lists.CopyMap(p.Labels)
			_, name, _ := strings.Cut(key, "/")
			labels[cluster.SharedClaim+name] = "first"
			p.Labels = labels
		}
	}
}

// addSharer adds a pod that names the claim. Users are the pods on nodes that name an allocated one, by claim.
func (d DeviceClaims) addSharer(key string, p *cluster.Pod, users map[string]map[types.UID]bool) {
	shared, allocated := d.sharing[key], d.claimed.named[key].allocated
	joins := p.Provisionable()
	if allocated {
		joins = p.NodeName != "" && p.Reschedulable()
	}
	switch {
	case joins:
		shared.pods = append(shared.pods, p)
		shared.apart = shared.apart || p.NodeName != shared.pods[0].NodeName
	case allocated && p.NodeName != "" && p.Active():
		shared.others = "pod " + p.Name
	}
	d.sharing[key] = shared
	if allocated && p.NodeName != "" {
		if users[key] == nil {
			users[key] = map[types.UID]bool{}
		}
		users[key][types.UID(p.UID)] = true
	}
}

// otherUser returns who has the devices of the claim beside these pods; empty for nobody.
func (c namedClaim) otherUser(pods map[types.UID]bool) (who string) {
	for _, u := range c.users {
		if u.APIGroup != "" || u.Resource != "pods" || !pods[u.UID] {
			who = strings.TrimSuffix(u.Resource, "s") + " " + u.Name
		}
	}
	return who
}

// stayer returns who has the devices that the pod has, and does not go when its node does; empty for nobody.
func (s sharers) stayer(p *cluster.Pod) string {
	if s.apart && s.others == "" {
		i := slices.IndexFunc(s.pods, func(q *cluster.Pod) bool { return q.NodeName != p.NodeName })
		return fmt.Sprintf("pod %s on node %s", s.pods[i].Name, s.pods[i].NodeName)
	}
	return s.others
}

// askOfNamed returns what the pod lacks of the devices of a ResourceClaim that it names, and where that counts. It
// counts now, anew if only another pod in its stead lacks them, or nowhere. A pod that waits for devices that are
// allocated may be where these are, and one that shares them with a pod that gets them first goes where that goes. A
// pod does not move if somebody else has its devices and stays.
func (d DeviceClaims) askOfNamed(p *cluster.Pod, name string, now, anew map[string]int64) (ask deviceAsk,
	into map[string]int64) {
	key := p.Namespace + "/" + name
	c, ok := d.claimed.named[key]
	shared := d.sharing[key]
	follows := len(shared.pods) > 1 && shared.pods[0] != p
	switch {
	case !ok:
		ask.refused = "it does not exist"
	case c.deleting:
		ask.refused = "it is being deleted"
	case c.allocated && p.NodeName != "" && shared.stayer(p) != "":
		ask.refused = fmt.Sprintf("%s has its devices too and stays, so that this pod does not move", shared.stayer(p))
	case follows && (c.allocated == (p.NodeName != "")):
		first := requirements.Any(cluster.SharedClaim + name)
		p.Affinity = append(slices.Clip(p.Affinity), cluster.AffinityTerm{Key: corev1.LabelHostname,
			Selector: &cluster.Selector{Requirements: []requirements.Requirement{first}}})
		return c.ask, map[string]int64{}
	case !c.allocated:
		return c.ask, now
	case p.NodeName != "":
		return c.ask, anew
	case c.unread != "":
		ask.refused = c.unread
	default:
		p.VolumeZones = requirements.CombineAlternatives(p.VolumeZones, c.places)
	}
	return ask, now
}
