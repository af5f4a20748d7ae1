package app

import (
	"context"

	awsv1 "joiner/pkg/api/aws/v1"
	v1 "joiner/pkg/api/v1"
	"joiner/pkg/cluster"
	"joiner/pkg/kube"
)

// recorder writes events through the Kubernetes adapter.
type recorder struct{ kube *kube.Client }

// Event fills in what Kubernetes wants besides.
func (r recorder) Event(ctx context.Context, e cluster.Event) error {
	out := kube.Event{Kind: e.Kind, APIVersion: "v1", Namespace: e.Namespace, Name: e.Name, UID: e.UID, Type: "Normal",
		Reason: e.Reason, Message: e.Message}
	if e.Warning {
		out.Type = "Warning"
	}
	switch e.Kind {
	case "NodeClaim", "NodePool":
		out.APIVersion = v1.GroupVersion().String()
	case "EC2NodeClass":
		out.APIVersion = awsv1.GroupVersion().String()
	}
	return r.kube.Event(ctx, out)
}

// evictor removes pods through the Kubernetes adapter.
type evictor struct{ *kube.Client }

// Evict translates the answer.
func (e evictor) Evict(ctx context.Context, p cluster.Pod) (cluster.Eviction, error) {
	got, err := e.Client.Evict(ctx, p)
	return cluster.Eviction{Refused: got.Outcome == kube.Refused, Gone: got.Outcome == kube.Gone, Message: got.Message}, err
}
