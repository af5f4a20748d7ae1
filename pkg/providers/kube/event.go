package kube

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	awsv1 "joiner.sh/pkg/api/aws/v1"
	joinerv1alpha1 "joiner.sh/pkg/api/joiner/v1alpha1"
	karpv1 "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/controls"
)

const (
	component      = "joiner"
	eventEvery     = 2 * time.Minute // the same event is told at most this often
	longestMessage = 1000            // bytes; the API server takes 1024
	longestPrefix  = 200
)

// toldEvents holds the time when each event was told last, so that a pass which finds the same as before costs no call.
type toldEvents struct {
	mu sync.Mutex
	at map[string]time.Time
}

func newToldEvents() *toldEvents { return &toldEvents{at: map[string]time.Time{}} }

// toldWithin reports whether the event was told within that time.
func (t *toldEvents) toldWithin(name string, now time.Time, every time.Duration) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	at, ok := t.at[name]
	return ok && now.Sub(at) < every
}

func (t *toldEvents) noteTold(name string, now time.Time) {
	const most = 10_000
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.at) >= most {
		clear(t.at)
	}
	t.at[name] = now
}

// Events writes Kubernetes events.
type Events struct {
	*connection
	told *toldEvents
}

// RecordEvent stores an event for people to see. The same event of the same object is one Event object, whose count and
// last time move on at most every two minutes, or as the event says, whoever tells it.
func (e Events) RecordEvent(ctx context.Context, event cluster.Event) error {
	obj := eventFrom(event, e.now())
	key := obj.Namespace + "/" + obj.Name
	every := max(event.Every, eventEvery)
	if e.told.toldWithin(key, e.now(), every) {
		return nil
	}
	if err := e.storeEvent(ctx, obj, every); err != nil {
		return err
	}
	e.told.noteTold(key, e.now())
	return nil
}

// storeEvent makes the event, or moves the one that is there on if it was told longer ago than every. Losing against
// somebody who tells the same is fine.
func (e Events) storeEvent(ctx context.Context, event *corev1.Event, every time.Duration) error {
	what := apiCall{verb: "store", place: eventPath(), namespace: event.Namespace, name: event.Name}
	err := e.createObject(ctx, what, event, &corev1.Event{})
	if !apierrors.IsAlreadyExists(err) {
		return err
	}
	old := &corev1.Event{}
	// changes nothing and answers with the object; functions may not read events
	err = e.patchObject(ctx, what, "", patchFields{}, old)
	if err == nil && e.now().Sub(old.LastTimestamp.Time) >= every {
		err = e.patchObject(ctx, what, "", withVersion(patchFields{
			"count": old.Count + 1, "lastTimestamp": event.LastTimestamp,
		}, old.ResourceVersion), &corev1.Event{})
	}
	if isConflict(err) || isNotFound(err) {
		return nil
	}
	return err
}

func eventFrom(e cluster.Event, now time.Time) *corev1.Event {
	namespace := cmp.Or(e.Namespace, metav1.NamespaceDefault) // where events of objects without a namespace belong
	message := cutText(oneLine(e.Message), longestMessage)
	sum := sha256.Sum256([]byte(e.Kind + "\n" + e.Namespace + "\n" + e.Name + "\n" + e.UID + "\n" + typeOf(e) + "\n" +
		e.Reason + "\n" + message))
	at := metav1.NewTime(now)
	return &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: cutText(e.Name, longestPrefix) + "." +
			hex.EncodeToString(sum[:8])},
		InvolvedObject: corev1.ObjectReference{
			Kind: e.Kind, APIVersion: versionOf(e.Kind), Namespace: e.Namespace, Name: e.Name, UID: uidOf(e.UID),
		},
		Type: typeOf(e), Reason: e.Reason, Message: message, Count: 1, FirstTimestamp: at, LastTimestamp: at,
		Source: corev1.EventSource{Component: component}, ReportingController: component, ReportingInstance: component,
	}
}

// oneLine is the text in one line, with the characters spelt out that a terminal obeys. It may quote what anybody
// wrote, and kubectl prints it.
func oneLine(s string) string {
	return strings.NewReplacer("\n", " ", "\t", " ").Replace(controls.Escape(s))
}

// cutText shortens a text to at most that many bytes, at a character.
func cutText(s string, most int) string {
	if len(s) <= most {
		return s
	}
	for most > 0 && s[most]&0xC0 == 0x80 {
		most--
	}
	return s[:most]
}

func typeOf(e cluster.Event) string {
	if e.Warning {
		return corev1.EventTypeWarning
	}
	return corev1.EventTypeNormal
}

// versionOf is the API version of the kinds that we tell about.
func versionOf(kind string) string {
	switch kind {
	case karpv1.NodeClaimKind, karpv1.NodePoolKind:
		return karpv1.GroupVersion().String()
	case "DaemonSet":
		return appsv1.SchemeGroupVersion.String()
	case joinerv1alpha1.NodeRolloutKind:
		return joinerv1alpha1.GroupVersion().String()
	case awsv1.EC2NodeClassKind:
		return awsv1.GroupVersion().String()
	}
	return corev1.SchemeGroupVersion.String()
}
