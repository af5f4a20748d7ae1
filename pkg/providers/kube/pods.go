package kube

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	karpv1 "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/lists"
	"joiner.sh/pkg/nodeclass/translate"
)

// Pods reads and writes pods.
type Pods struct{ *connection }

// EvictPod asks the API server to evict this very pod, once. A refusal is an answer, not an error. Repeating it is
// harmless.
func (p Pods) EvictPod(ctx context.Context, pod cluster.Pod) (cluster.Eviction, error) {
	what := apiCall{verb: "evict", place: podPath(), namespace: pod.Namespace, name: pod.Name}
	if pod.UID == "" {
		return cluster.Eviction{}, fmt.Errorf("%s: its UID is not known", what)
	}
	uid := uidOf(pod.UID)
	body := &policyv1.Eviction{
		ObjectMeta:    metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name},
		DeleteOptions: &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}},
	}
	err := requestOnce(ctx, p.core.Post().AbsPath(podPath().pathTo(pod.Namespace, pod.Name, "eviction")...).Body(body),
		nil)
	if err == nil {
		p.own.expectEvent(podPath(), uid, ending)
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
func (p Pods) DeletePod(ctx context.Context, pod cluster.Pod, graceSec int64) error {
	return p.deleteObject(ctx, apiCall{verb: "delete", place: podPath(), namespace: pod.Namespace, name: pod.Name},
		pod.UID, new(max(graceSec, 1)))
}

// TolerateNomination makes the pod tolerate the taint of a held node, and the one such nodes boot with; nothing else of
// a pod can be changed once it exists, and nothing else is changed. A pod that is gone is no error, one that was
// replaced by another of its name is.
func (p Pods) TolerateNomination(ctx context.Context, pod cluster.Pod, t cluster.Taint) error {
	what := apiCall{verb: "let tolerate", place: podPath(), namespace: pod.Namespace, name: pod.Name, uid: pod.UID}
	own := corev1.Toleration{Key: t.Key, Operator: corev1.TolerationOpEqual, Value: t.Value,
		Effect: corev1.TaintEffect(t.Effect)}
	boot := own
	boot.Value = karpv1.HoldAtBoot
	patch := []patchFields{{"op": "test", "path": "/metadata/uid", "value": pod.UID}}
	switch {
	case len(pod.Holds) > 0:
		patch = append(patch, patchFields{"op": "add", "path": "/spec/tolerations/-", "value": own})
	case len(pod.Tolerations) > 0:
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
	err = p.sendWithRetries(ctx, what, func() *rest.Request {
		return p.restClient(what.place).Patch(types.JSONPatchType).AbsPath(at...).Body(body)
	}, got)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err == nil {
		p.own.noteVersion(what.place, got.ResourceVersion, began)
	}
	return err
}

// PodsOn lists the pods of a node, those that have ended too, sorted. The API server finds them by index.
func (p Pods) PodsOn(ctx context.Context, node string) ([]cluster.Pod, error) {
	out, _, err := listAll(ctx, p.connection, listQuery{place: podPath(), fields: "spec.nodeName=" + node},
		func(l *corev1.PodList) []cluster.Pod { return translatePage(l.Items, translate.Pod) })
	return out, err
}

// RemovePod removes this very pod at once, without asking its kubelet: only right where its processes have ended. A pod
// that is gone is no error.
func (p Pods) RemovePod(ctx context.Context, pod cluster.Pod) error {
	return p.deleteObject(ctx, apiCall{verb: "remove", place: podPath(), namespace: pod.Namespace, name: pod.Name},
		pod.UID, new(int64(0)))
}

// podPages is the list of the pods that have not ended.
type podPages = pagedList[*corev1.PodList, *translate.ListedPod]

func (p Pods) newPodPages() *podPages {
	return &podPages{connection: p.connection, query: listQuery{place: podPath(), fields: notEnded}, fresh: newPods,
		translate: func(l *corev1.PodList) []*translate.ListedPod { return translatePage(l.Items, p.shapes.ListPod) }}
}

// allPods lists the pods that have not ended, by UID.
func (p Pods) allPods(ctx context.Context) (map[string]*translate.ListedPod, string, error) {
	return p.readPods(ctx, p.newPodPages())
}

// readPods is allPods for a list that may go on.
func (p Pods) readPods(ctx context.Context, pages *podPages) (map[string]*translate.ListedPod, string, error) {
	all, version, err := pages.readAll(ctx)
	if err != nil {
		return nil, "", err
	}
	out := lists.Index(all, func(pod *translate.ListedPod) string { return pod.UID })
	p.seen.keepPods(version, findWaiting(out))
	return out, version, nil
}

// listWaiting lists the pods that exist and need a node.
func (p Pods) listWaiting(ctx context.Context) ([]cluster.Pod, error) {
	out, version, err := listAll(ctx, p.connection, listQuery{place: podPath(), fields: withoutOne},
		func(l *corev1.PodList) []cluster.Pod { return translatePage(l.Items, p.waitingFrom) })
	if err != nil {
		return nil, err
	}
	out = cluster.KeepProvisionable(out)
	p.seen.keepPods(version, out)
	return out, nil
}

// findWaiting finds the pods that need a node.
func findWaiting(all map[string]*translate.ListedPod) (out []cluster.Pod) {
	for _, listed := range all {
		if !listed.HasNode() {
			out = append(out, listed.Pod())
		}
	}
	return cluster.KeepProvisionable(out)
}

func (p Pods) waitingFrom(pod *corev1.Pod) cluster.Pod { return p.shapes.ListPod(pod).Pod() }

func newPods() *corev1.PodList { return &corev1.PodList{} }
