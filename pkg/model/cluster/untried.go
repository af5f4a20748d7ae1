package cluster

import (
	"maps"
	"reflect"
	"slices"
)

// ExpectUnscheduled counts pods as Unscheduled that kube-scheduler will find no node for once it tries them. It found
// none for another pod that asks for the same, of the same controller or, if they have none, with the same labels.
// kube-scheduler tries some dozens of pods a second, and those of a burst are to be packed together. A plan gives free
// room away first, so that nothing is bought for pods that still fit in.
func ExpectUnscheduled(pods []Pod) {
	refused := map[podFamily][]*Pod{}
	for i := range pods {
		p := &pods[i]
		if !p.Unscheduled || p.Virtual || !p.Provisionable() {
			continue
		}
		if of := refused[p.family()]; len(of) < mostTemplates && !p.asksAsOneOf(of) {
			refused[p.family()] = append(of, p)
		}
	}
	if len(refused) == 0 {
		return
	}
	for i := range pods {
		if p := &pods[i]; p.Untried && p.asksAsOneOf(refused[p.family()]) {
			p.Unscheduled, p.Untried = true, false
		}
	}
}

// KeepProvisionable keeps the pods that need a node, those that ExpectUnscheduled counts included.
func KeepProvisionable(pods []Pod) []Pod {
	ExpectUnscheduled(pods)
	return slices.DeleteFunc(pods, func(p Pod) bool { return !p.Provisionable() })
}

// mostTemplates caps the kinds of refused pods of one family that are told apart.
const mostTemplates = 16

// podFamily identifies the pods from one template.
type podFamily struct{ namespace, controller string }

func (p *Pod) family() podFamily { return podFamily{p.Namespace, p.Controller} }

func (p *Pod) asksAsOneOf(others []*Pod) bool { return slices.ContainsFunc(others, p.asksAs) }

// asksAs reports whether kube-scheduler decides about the pod as about the other one of its family. What sets the pods
// of a controller apart are labels with their index, and their own volumes.
func (p *Pod) asksAs(other *Pod) bool {
	return p.Priority == other.Priority && reflect.DeepEqual(p.asks(), other.asks()) &&
		(p.Controller != "" || maps.Equal(p.Labels, other.Labels) && slices.Equal(p.UnreadClaims, other.UnreadClaims))
}

func (p *Pod) asks() [11]any {
	return [...]any{p.Need, p.NodeSelector, p.NodeAffinity, p.Tolerations, p.Spread, p.Affinity, p.AntiAffinity,
		p.HostPorts, p.Unmodelled, p.DeviceTemplates, p.DeviceClaims}
}
