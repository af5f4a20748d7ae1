package kube

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"joiner.sh/pkg/nodeclass/translate"
)

// heavyPods is an API server whose pods are made as they are read, in protobuf, so that it needs little memory itself.
type heavyPods struct {
	t    testing.TB
	pods int
	pod  func(i int) []byte // encoded

	mu     sync.Mutex
	limits []string // of objects in a page, as asked for
	peak   int64    // of the heap, in bytes
}

func (s *heavyPods) RoundTrip(r *http.Request) (*http.Response, error) {
	q := r.URL.Query()
	if !strings.HasSuffix(r.URL.Path, "/pods") {
		return answer(http.StatusOK, map[string]any{"kind": "List", "apiVersion": "v1", "metadata": map[string]any{"resourceVersion": "1"}, "items": []any{}})
	}
	s.mu.Lock()
	s.limits = append(s.limits, q.Get("limit"))
	s.mu.Unlock()
	from, _ := strconv.Atoi(q.Get("continue"))
	limit, err := strconv.Atoi(q.Get("limit"))
	if err != nil {
		s.t.Error(err)
	}
	reader, writer := io.Pipe()
	go func() { writer.CloseWithError(s.writePage(writer, from, min(s.pods, from+limit))) }()
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/vnd.kubernetes.protobuf"}}, Body: reader}, nil
}

func (s *heavyPods) writePage(w io.Writer, from, to int) error {
	meta := metav1.ListMeta{ResourceVersion: "7"}
	if to < s.pods {
		meta.Continue = strconv.Itoa(to)
	}
	head, err := meta.Marshal()
	if err != nil {
		return err
	}
	lengthOf := func(n int) int { return len(binary.AppendUvarint([]byte{0}, uint64(n))) + n }
	size := lengthOf(len(head))
	for i := from; i < to; i++ {
		size += lengthOf(len(s.pod(i)))
	}
	kind := []byte("\x0a\x02v1\x12\x07PodList")
	out := bytes.NewBufferString("k8s\x00")
	field := func(number byte, body []byte) {
		out.Write(binary.AppendUvarint([]byte{number<<3 | 2}, uint64(len(body))))
		out.Write(body)
	}
	field(1, kind)
	out.Write(binary.AppendUvarint([]byte{2<<3 | 2}, uint64(size)))
	field(1, head)
	for i := from; i < to; i++ {
		field(2, s.pod(i))
		if _, err := out.WriteTo(w); err != nil {
			return err
		}
		s.sampleHeap()
	}
	field(4, []byte("application/x"))
	_, err = out.WriteTo(w)
	return err
}

// sampleHeap notes how much the heap has.
func (s *heavyPods) sampleHeap() {
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(sample)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.peak = max(s.peak, int64(sample[0].Value.Uint64()))
}

// peakHeap is the most that the heap had whenever a pod was sent while f ran, with little garbage, beyond what it had
// before.
func (s *heavyPods) peakHeap(f func()) int64 {
	defer debug.SetGCPercent(debug.SetGCPercent(50))
	before := int64(heapInUse())
	f()
	s.sampleHeap()
	return s.peak - before
}

// heavyPod is the encoded pod of that number: the one given, with a name and a label of its own.
func heavyPod(t testing.TB, i int, like []byte) []byte {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "evil", Name: fmt.Sprintf("heavy-%03d", i), UID: types.UID(fmt.Sprint("u", i)),
		Labels: map[string]string{"own": fmt.Sprint(i)}}}
	return slices.Concat(like, encodePod(t, p)) // messages one after the other are merged
}

func encodePod(t testing.TB, p *corev1.Pod) []byte {
	body, err := p.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	return body
}

// 170 pods of 1.3 MB, as one long environment variable makes them, are read in little memory: in smaller pages, pod by
// pod. The page grows again once pods are small.
func TestPodsOfAMegabyteAreReadInLittleMemory(t *testing.T) {
	env := []corev1.EnvVar{{Name: "E", Value: strings.Repeat("x", 1_300_000)}}
	like := encodePod(t, &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "a", Env: env}}}})
	s := &heavyPods{t: t, pods: 170, pod: func(i int) []byte { return heavyPod(t, i, like) }}
	c, err := New(Config{Endpoint: "http://api.invalid", Transport: s})
	if err != nil {
		t.Fatal(err)
	}
	var got int
	peak := s.peakHeap(func() {
		all, err := c.ReadSnapshot(t.Context())
		if err != nil {
			t.Error(err)
		}
		got = len(all.Pods)
	})
	t.Logf("%d MiB at most", peak>>20)
	if got != 170 || peak > 48<<20 {
		t.Errorf("%d pods in %d MiB at most, want 170 in less than 48", got, peak>>20)
	}
	if got := strings.Join(s.limits, " "); !strings.HasPrefix(got, "500 50 5 5 ") {
		t.Errorf("pages of %s objects, want 500 50 5 5 ...", got)
	}
}

// Pods of 60,000 labels, of 769 kB each, take little memory, and are refused by name.
func TestPodsOfManyLabelsAreKeptInLittleMemory(t *testing.T) {
	labels := map[string]string{}
	for i := range 60_000 {
		labels[fmt.Sprintf("label-%05d", i)] = ""
	}
	like := encodePod(t, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Labels: labels}})
	s := &heavyPods{t: t, pods: 20, pod: func(i int) []byte { return heavyPod(t, i, like) }}
	c, err := New(Config{Endpoint: "http://api.invalid", Transport: s})
	if err != nil {
		t.Fatal(err)
	}
	before := int64(heapInUse())
	all, err := c.ReadSnapshot(t.Context())
	if err != nil || len(all.Pods) != 20 {
		t.Fatalf("%d pods: %v", len(all.Pods), err)
	}
	if kept := int64(heapInUse()) - before; kept > 4<<20 {
		t.Errorf("%d MiB are kept of 20 pods, want less than 4", kept>>20)
	}
	if why := all.Pods[19].Unmodelled; len(why) == 0 || why[0] != "it has 60001 labels, more than 100" {
		t.Errorf("%s: %q", all.Pods[19].Key(), why)
	}
	runtime.KeepAlive(c)
}

// A page becomes larger again when objects are small.
func TestAPageGrowsAgain(t *testing.T) {
	long := map[string]string{"a": strings.Repeat("x", 1_300_000)}
	like := encodePod(t, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: long}})
	s := &heavyPods{t: t, pods: 1_500, pod: func(i int) []byte {
		if i < 30 {
			return heavyPod(t, i, like)
		}
		return heavyPod(t, i, nil)
	}}
	c, err := New(Config{Endpoint: "http://api.invalid", Transport: s})
	if err != nil {
		t.Fatal(err)
	}
	all, _, err := c.allPods(t.Context())
	if got := strings.Join(s.limits, " "); err != nil || len(all) != 1_500 || got != "500 50 5 5 5 5 5 5 5 50 500 500 500" {
		t.Errorf("%d pods in pages of %s: %v", len(all), got, err)
	}
}

// A body that ends too early, or is no list, is an error and no shorter list.
func TestABrokenListIsAnError(t *testing.T) {
	s := &heavyPods{t: t, pods: 3, pod: func(i int) []byte { return heavyPod(t, i, nil) }}
	var whole bytes.Buffer
	if err := s.writePage(&whole, 0, 3); err != nil {
		t.Fatal(err)
	}
	read := func(body []byte) (int, error) {
		found := 0
		shapes := translate.PodShapes{}
		_, _, err := listDecoder[*corev1.PodList]{fresh: newPods, take: func(l *corev1.PodList) {
			found += len(translatePage(l.Items, shapes.ListPod))
		}}.decode(bytes.NewReader(body))
		return found, err
	}
	if n, err := read(whole.Bytes()); n != 3 || err != nil {
		t.Fatalf("%d pods: %v", n, err)
	}
	inList := whole.Len() - len("\x22\x0dapplication/x")
	for n := range whole.Len() {
		if _, err := read(whole.Bytes()[:n]); err == nil && n < inList {
			t.Errorf("the first %d of %d bytes are a list", n, whole.Len())
		}
	}
}

// FuzzListBody feeds bodies that an API server does not send.
func FuzzListBody(f *testing.F) {
	s := &heavyPods{t: f, pods: 2, pod: func(i int) []byte { return heavyPod(f, i, nil) }}
	var whole bytes.Buffer
	if err := s.writePage(&whole, 0, 2); err != nil {
		f.Fatal(err)
	}
	f.Add(whole.Bytes())
	f.Add([]byte("k8s\x00\x12\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x12\x01"))
	f.Fuzz(func(_ *testing.T, body []byte) {
		if !bytes.HasPrefix(body, []byte("k8s\x00")) {
			return
		}
		_, _, _ = listDecoder[*corev1.PodList]{fresh: newPods, take: func(*corev1.PodList) {}}.decode(bytes.NewReader(body))
	})
}
