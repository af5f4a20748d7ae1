package kube

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	karpv1 "joiner/pkg/api/v1"
	"joiner/pkg/model/cluster"
)

// TolerateNomination makes the pod tolerate the taint of a held node, and the one such nodes boot with; nothing else of
// a pod can be changed once it exists, and nothing else is changed. A pod that is gone is no error, one that was
// replaced by another of its name is.
func (c *Client) TolerateNomination(ctx context.Context, p cluster.Pod, t cluster.Taint) error {
	what := apiCall{verb: "let tolerate", place: podPath(), namespace: p.Namespace, name: p.Name, uid: p.UID}
	own := corev1.Toleration{Key: t.Key, Operator: corev1.TolerationOpEqual, Value: t.Value,
		Effect: corev1.TaintEffect(t.Effect)}
	boot := own
	boot.Value = karpv1.HoldAtBoot
	patch := []patchFields{{"op": "test", "path": "/metadata/uid", "value": p.UID}}
	switch {
	case len(p.Holds) > 0:
		patch = append(patch, patchFields{"op": "add", "path": "/spec/tolerations/-", "value": own})
	case len(p.Tolerations) > 0:
		patch = append(patch, patchFields{"op": "add", "path": "/spec/tolerations/-", "value": boot},
			patchFields{"op": "add", "path": "/spec/tolerations/-", "value": own})
	default: // there is no list to add to
		patch = append(patch, patchFields{"op": "add", "path": "/spec/tolerations",
			"value": []corev1.Toleration{boot, own}})
	}
	body, err := json.Marshal(patch)
	if err != nil {
		return fmt.Errorf("%s: encode: %w", what, err)
	}
	at := what.place.pathTo(what.namespace, what.name, "")
	got, began := &corev1.Pod{}, time.Now()
	err = c.sendWithRetries(ctx, what, func() *rest.Request {
		return c.restClient(what.place).Patch(types.JSONPatchType).AbsPath(at...).Body(body)
	}, got)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err == nil {
		c.own.noteVersion(what.place, got.ResourceVersion, began)
	}
	return err
}

// OpenNode takes the hold off the node. A node that is gone or was replaced is a *ConflictError.
func (c *Client) OpenNode(ctx context.Context, n cluster.Node) error {
	return c.changeNode(ctx, "open", n, func(o *corev1.Node) patchFields {
		taints := slices.DeleteFunc(slices.Clone(o.Spec.Taints),
			func(t corev1.Taint) bool { return t.Key == karpv1.TaintHold })
		if len(taints) == len(o.Spec.Taints) {
			return nil
		}
		return patchFields{"spec": patchFields{"taints": taints}}
	})
}
