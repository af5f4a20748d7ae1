package kube

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	awsv1 "joiner.sh/pkg/api/aws/v1"
	karpv1 "joiner.sh/pkg/api/v1"
)

// apiServer is an API server without a network. Its watches tell what its watch cache has got to, which may be late,
// with bookmarks as kube-apiserver sends them: once a minute, and two seconds before the end on a tick of a second.
// Consistent lists have the watch cache of their kind catch up. All it does is under one lock.
type apiServer struct {
	rng *rand.Rand

	mu       sync.Mutex
	revision uint64
	kinds    map[string]*storedKind // by plural
	lists    map[string]int         // full lists, by plural
	rest     map[string]restOfList  // by the token of the next page
	pages    int                    // of lists
	watches  map[string]int

	// disasters
	late      time.Duration // that events need at most to the watch cache
	deaf      bool          // watches tell nothing more, and end when their time is up
	noMarks   bool          // no bookmarks
	breaking  float64       // chance that a watch ends with an event
	repeating float64       // chance that an event is told twice
}

// storedKind is the objects of one kind, and what happened to them.
type storedKind struct {
	kind, group string
	objects     map[string]map[string]any // by name
	events      []storedEvent
	compacted   uint64 // events up to it are forgotten
	reached     uint64 // by the watch cache
}

type storedEvent struct {
	what   string
	object map[string]any
	at     uint64
	seen   time.Time // by the watch cache
}

func newAPIServer(seed uint64) *apiServer {
	kind := func(kind, group string) *storedKind {
		return &storedKind{kind: kind, group: group, objects: map[string]map[string]any{}}
	}
	return &apiServer{rng: rand.New(rand.NewPCG(seed, 1)), revision: 100, lists: map[string]int{}, watches: map[string]int{}, rest: map[string]restOfList{},
		kinds: map[string]*storedKind{"pods": kind("Pod", "v1"), "nodes": kind("Node", "v1"),
			"nodeclaims": kind("NodeClaim", "karpenter.sh/v1")}}
}

// client is a client of the server, in a process of its own.
func (s *apiServer) client() *Client {
	c, err := New(Config{Endpoint: "http://api.invalid", Transport: s})
	if err != nil {
		panic(err)
	}
	return c
}

// put stores an object, and returns it as stored.
func (s *apiServer) put(plural string, o metav1.Object) map[string]any {
	s.mu.Lock()
	defer s.mu.Unlock()
	body, err := json.Marshal(o)
	if err != nil {
		panic(err)
	}
	object := map[string]any{}
	if err := json.Unmarshal(body, &object); err != nil {
		panic(err)
	}
	return s.store(plural, object)
}

func (s *apiServer) store(plural string, object map[string]any) map[string]any {
	k := s.kinds[plural]
	meta := object["metadata"].(map[string]any)
	if before, there := k.objects[meta["name"].(string)]; there &&
		before["metadata"].(map[string]any)["uid"] != meta["uid"] {
		s.removeLocked(plural, meta["name"].(string))
	}
	s.revision++
	meta["resourceVersion"] = strconv.FormatUint(s.revision, 10)
	object["kind"], object["apiVersion"] = k.kind, k.group
	name := meta["name"].(string)
	what := "ADDED"
	if _, there := k.objects[name]; there {
		what = "MODIFIED"
	}
	if meta["deletionTimestamp"] != nil && meta["finalizers"] == nil {
		what = "DELETED"
		delete(k.objects, name)
	} else {
		k.objects[name] = object
	}
	s.tell(k, what, object)
	return object
}

// remove takes an object away at once.
func (s *apiServer) remove(plural, name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.removeLocked(plural, name)
}

func (s *apiServer) removeLocked(plural, name string) {
	k := s.kinds[plural]
	object, ok := k.objects[name]
	if !ok {
		return
	}
	s.revision++
	object = maps.Clone(object)
	meta := maps.Clone(object["metadata"].(map[string]any))
	meta["resourceVersion"] = strconv.FormatUint(s.revision, 10)
	object["metadata"] = meta
	delete(k.objects, name)
	s.tell(k, "DELETED", object)
}

// tell has the watch cache see an event, after those before it.
func (s *apiServer) tell(k *storedKind, what string, object map[string]any) {
	seen := time.Now()
	if s.late > 0 {
		seen = seen.Add(time.Duration(s.rng.Int64N(int64(s.late))))
	}
	if n := len(k.events); n > 0 && k.events[n-1].seen.After(seen) {
		seen = k.events[n-1].seen
	}
	k.events = append(k.events, storedEvent{what, clone(object), s.revision, seen})
}

func clone(object map[string]any) map[string]any {
	object = maps.Clone(object)
	object["metadata"] = maps.Clone(object["metadata"].(map[string]any))
	return object
}

// compact forgets the events of a kind so far: no watch can begin before them any more.
func (s *apiServer) compact(plural string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.kinds[plural].compacted = s.revision
}

// restore takes the store back to a revision of before, as a restore of a backup does: what watches knew is no more.
func (s *apiServer) restore() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.revision -= 50
	for _, k := range s.kinds {
		k.events, k.compacted, k.reached = nil, s.revision, s.revision
		for name, o := range k.objects {
			if s.rng.IntN(4) == 0 {
				delete(k.objects, name)
				continue
			}
			o = clone(o)
			o["metadata"].(map[string]any)["resourceVersion"] = strconv.FormatUint(s.revision, 10)
			k.objects[name] = o
		}
	}
}

// RoundTrip answers a request.
func (s *apiServer) RoundTrip(r *http.Request) (*http.Response, error) {
	time.Sleep(time.Millisecond)
	defer time.Sleep(time.Millisecond)
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	at := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	plural, name := at[len(at)-1], ""
	if _, ok := s.kinds[plural]; !ok {
		plural, name = at[len(at)-2], at[len(at)-1]
	}
	k := s.kinds[plural]
	if k == nil {
		return answer(http.StatusOK, map[string]any{"kind": "List", "apiVersion": "v1",
			"metadata": map[string]any{"resourceVersion": "1"}, "items": []any{}})
	}
	q := r.URL.Query()
	switch {
	case q.Get("watch") == "true":
		return s.watch(r.Context(), plural, q.Get("resourceVersion"), q.Get("timeoutSeconds"))
	case r.Method == http.MethodDelete:
		return s.delete(r, plural, name)
	case r.Method == http.MethodPatch:
		return s.patch(r, plural, name)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if token := q.Get("continue"); token != "" {
		rest, ok := s.rest[token]
		if !ok || rest.version < k.compacted {
			return answer(http.StatusGone, status(http.StatusGone, metav1.StatusReasonExpired))
		}
		return s.servePage(k, rest)
	}
	k.reached = s.revision
	for i := range k.events {
		k.events[i].seen = time.Time{} // the watch cache has caught up
	}
	items := []any{}
	for _, name := range slices.Sorted(maps.Keys(k.objects)) {
		items = append(items, k.objects[name])
	}
	if q.Get("limit") != "1" {
		s.lists[plural]++
		return s.servePage(k, restOfList{s.revision, items})
	}
	meta := map[string]any{"resourceVersion": strconv.FormatUint(s.revision, 10)}
	if q.Get("fieldSelector") == "" && len(items) > 1 {
		meta["remainingItemCount"] = len(items) - 1
	}
	return answer(http.StatusOK, map[string]any{"kind": k.kind + "List", "apiVersion": k.group, "items": items[:min(1, len(items))], "metadata": meta})
}

func (s *apiServer) patch(r *http.Request, plural, name string) (*http.Response, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	object, ok := s.kinds[plural].objects[name]
	if !ok {
		return answer(http.StatusNotFound, status(http.StatusNotFound, metav1.StatusReasonNotFound))
	}
	var change struct {
		Metadata struct {
			Annotations map[string]any
		}
	}
	if err := json.NewDecoder(r.Body).Decode(&change); err != nil {
		return nil, err
	}
	object = clone(object)
	object["metadata"].(map[string]any)["annotations"] = change.Metadata.Annotations
	return answer(http.StatusOK, s.store(plural, object))
}

// delete removes an object at once, unless it is another one than is wanted.
func (s *apiServer) delete(r *http.Request, plural, name string) (*http.Response, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	object, ok := s.kinds[plural].objects[name]
	if !ok {
		return answer(http.StatusNotFound, status(http.StatusNotFound, metav1.StatusReasonNotFound))
	}
	options, err := deleteOptions(r.Body)
	if err != nil {
		return nil, err
	}
	if p := options.Preconditions; p != nil && p.UID != nil &&
		any(string(*p.UID)) != object["metadata"].(map[string]any)["uid"] {
		return answer(http.StatusConflict, status(http.StatusConflict, metav1.StatusReasonConflict))
	}
	s.removeLocked(plural, name)
	return answer(http.StatusOK, metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
		Status: metav1.StatusSuccess})
}

func status(code int32, why metav1.StatusReason) metav1.Status {
	return metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: "Failure", Reason: why,
		Code: code}
}

func answer(code int, body any) (*http.Response, error) {
	text, err := json.Marshal(body)
	return &http.Response{StatusCode: code, Header: http.Header{"Content-Type": {"application/json"}},
		Body: io.NopCloser(bytes.NewReader(text))}, err
}

// watch tells events from a version on, until its time is up.
func (s *apiServer) watch(ctx context.Context, plural, from, seconds string) (*http.Response, error) {
	version, err := strconv.ParseUint(from, 10, 64)
	if err != nil {
		return nil, err
	}
	n, err := strconv.Atoi(seconds)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.watches[plural]++
	if version < s.kinds[plural].compacted {
		return answer(http.StatusGone, status(http.StatusGone, metav1.StatusReasonExpired))
	}
	reader, writer := io.Pipe()
	deaf := s.deaf
	go func() {
		defer writer.Close()
		until, end := context.WithTimeout(ctx, time.Duration(n)*time.Second)
		defer end()
		s.follow(until, plural, version, deaf, json.NewEncoder(writer))
	}()
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, Body: reader},
		nil
}

func (s *apiServer) follow(ctx context.Context, plural string, version uint64, deaf bool,
	out *json.Encoder) {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	end, _ := ctx.Deadline()
	for marked := false; ; {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		for _, e := range s.ready(plural, &version, deaf) {
			if out.Encode(map[string]any{"type": e.what, "object": e.object}) != nil {
				return
			}
			s.mu.Lock()
			breaks := s.rng.Float64() < s.breaking
			s.mu.Unlock()
			if breaks {
				return
			}
		}
		if left := time.Until(end); !marked && left < 2*time.Second && left > time.Second {
			marked = true
			s.bookmark(plural, version, deaf, out)
		}
	}
}

// ready are the events after the version that the watch cache has seen; some are told once more, later.
func (s *apiServer) ready(plural string, version *uint64, deaf bool) (out []storedEvent) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, e := range s.kinds[plural].events {
		if e.at <= *version || deaf || e.seen.After(time.Now()) {
			continue
		}
		*version = e.at
		out = append(out, e)
		if s.rng.Float64() < s.repeating {
			out = append(out, s.kinds[plural].events[s.rng.IntN(i+1)])
		}
	}
	return out
}

func (s *apiServer) bookmark(plural string, version uint64, deaf bool, out *json.Encoder) {
	s.mu.Lock()
	k := s.kinds[plural]
	last := max(version, k.reached)
	for _, e := range k.events {
		if e.at > version {
			last = version // not told yet, so neither is what came after it
			break
		}
	}
	silent := deaf || s.noMarks
	s.mu.Unlock()
	if !silent {
		_ = out.Encode(map[string]any{"type": "BOOKMARK", "object": map[string]any{"kind": k.kind, "apiVersion": k.group,
			"metadata": map[string]any{"resourceVersion": strconv.FormatUint(last, 10)}}})
	}
}

func testPod(name string, uid int, node string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID(fmt.Sprint("pod-", uid)),
		Labels: map[string]string{"at": fmt.Sprint(uid)}}, Spec: corev1.PodSpec{NodeName: node}}
}

func testNode(name string, uid int, zone string) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(fmt.Sprint("node-", uid)),
		Labels: map[string]string{"zone": zone}}}
}

func testClaim(name string, uid int, image string) *karpv1.NodeClaim {
	return &karpv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(fmt.Sprint("claim-", uid))},
		Spec: karpv1.NodeClaimSpec{NodeClassRef: &karpv1.NodeClassReference{Group: awsv1.Group, Kind: awsv1.EC2NodeClassKind,
			Name: "default"}}, Status: karpv1.NodeClaimStatus{ImageID: image}}
}
