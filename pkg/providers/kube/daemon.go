package kube

import (
	"context"
	"slices"

	appsv1 "k8s.io/api/apps/v1"

	"joiner/pkg/nodeclass/translate"
)

func (c *Client) listDaemons(ctx context.Context) ([]translate.DaemonTemplate, error) {
	out, _, err := listAll(ctx, c, listQuery{place: daemonSets()},
		func() *appsv1.DaemonSetList { return &appsv1.DaemonSetList{} },
		func(l *appsv1.DaemonSetList) []translate.DaemonTemplate {
			return translatePage(l.Items, translate.NewDaemonTemplate)
		})
	slices.SortFunc(out, func(a, b translate.DaemonTemplate) int { return translate.ComparePods(a.Pod, b.Pod) })
	return out, err
}
