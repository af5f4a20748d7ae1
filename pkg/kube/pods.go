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

	"joiner/pkg/cluster"
)

// Outcome is what became of an eviction.
type Outcome string

// The outcomes of an eviction (spec core.md §5.3).
const (
	Evicted Outcome = "evicted" // the pod is being deleted
	Refused Outcome = "refused" // a disruption budget does not allow it now
	Gone    Outcome = "gone"    // the pod ended or was replaced by another of its name
)

// Eviction is the answer of the eviction API.
type Eviction struct {
	Outcome Outcome
	Message string // of a refusal, for people
}

// Evict asks the API server to evict this very pod, once. A refusal is an answer, not an error. Repeating it is harmless.
func (c *Client) Evict(ctx context.Context, p cluster.Pod) (Eviction, error) {
	what := call{verb: "evict", place: pods(), namespace: p.Namespace, name: p.Name}
	if p.UID == "" {
		return Eviction{}, fmt.Errorf("%s: its UID is not known", what)
	}
	uid := uidOf(p.UID)
	body := &policyv1.Eviction{
		ObjectMeta:    metav1.ObjectMeta{Namespace: p.Namespace, Name: p.Name},
		DeleteOptions: &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}},
	}
	err := once(ctx, c.core.Post().AbsPath(pods().to(p.Namespace, p.Name, "eviction")...).Body(body), nil)
	return answered(what, err)
}

func answered(what call, err error) (Eviction, error) {
	if err == nil {
		return Eviction{Outcome: Evicted}, nil
	}
	if status, ok := errors.AsType[*apierrors.StatusError](err); ok {
		text := status.Status().Message
		switch code := int(status.Status().Code); {
		case code == http.StatusNotFound, code == http.StatusConflict:
			return Eviction{Outcome: Gone}, nil
		case code == http.StatusTooManyRequests:
			return Eviction{Outcome: Refused, Message: text}, nil
		case code == http.StatusInternalServerError && strings.Contains(text, "more than one PodDisruptionBudget"):
			return Eviction{Outcome: Refused, Message: "eviction does not support multiple PDBs: " + text}, nil
		}
	}
	return Eviction{}, failed(what, err)
}

// DeletePod deletes this very pod, past any budget, and gives it graceSec seconds (at least one: zero would remove it before
// its processes ended). A pod that is gone is no error.
func (c *Client) DeletePod(ctx context.Context, p cluster.Pod, graceSec int64) error {
	grace := max(graceSec, 1)
	return c.remove(ctx, call{verb: "delete", place: pods(), namespace: p.Namespace, name: p.Name}, p.UID, &grace)
}
