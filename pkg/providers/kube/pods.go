package kube

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"joiner/pkg/model/cluster"
)

// EvictPod asks the API server to evict this very pod, once. A refusal is an answer, not an error. Repeating it is
// harmless.
func (c *Client) EvictPod(ctx context.Context, p cluster.Pod) (cluster.Eviction, error) {
	what := apiCall{verb: "evict", place: podPath(), namespace: p.Namespace, name: p.Name}
	if p.UID == "" {
		return cluster.Eviction{}, fmt.Errorf("%s: its UID is not known", what)
	}
	uid := uidOf(p.UID)
	body := &policyv1.Eviction{
		ObjectMeta:    metav1.ObjectMeta{Namespace: p.Namespace, Name: p.Name},
		DeleteOptions: &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}},
	}
	err := requestOnce(ctx, c.core.Post().AbsPath(podPath().pathTo(p.Namespace, p.Name, "eviction")...).Body(body), nil)
	if err == nil {
		c.own.expectEvent(uid, ending)
	}
	return evictionAnswer(what, err)
}

func evictionAnswer(what apiCall, err error) (cluster.Eviction, error) {
	if err == nil {
		return cluster.Eviction{Outcome: cluster.Evicted}, nil
	}
	if status, ok := errors.AsType[*apierrors.StatusError](err); ok {
		text := status.Status().Message
		switch code := int(status.Status().Code); {
		case code == http.StatusNotFound, code == http.StatusConflict:
			return cluster.Eviction{Outcome: cluster.Gone}, nil
		case code == http.StatusTooManyRequests:
			return cluster.Eviction{Outcome: cluster.Refused, Message: text}, nil
		case code == http.StatusInternalServerError && strings.Contains(text, "more than one PodDisruptionBudget"):
			return cluster.Eviction{Outcome: cluster.Refused, Message: "eviction does not support multiple PDBs: " +
				text}, nil
		}
	}
	return cluster.Eviction{}, wrapError(what, err)
}

// DeletePod deletes this very pod, past any budget, and gives it graceSec seconds (at least one: zero would remove it
// before its processes ended). A pod that is gone is no error.
func (c *Client) DeletePod(ctx context.Context, p cluster.Pod, graceSec int64) error {
	grace := max(graceSec, 1)
	return c.deleteObject(ctx, apiCall{verb: "delete", place: podPath(), namespace: p.Namespace, name: p.Name}, p.UID,
		&grace)
}
