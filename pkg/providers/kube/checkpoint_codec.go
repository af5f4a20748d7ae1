package kube

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"
	"unique"

	"github.com/google/uuid"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/compact"
	"joiner.sh/pkg/model/requirements"
	"joiner.sh/pkg/nodeclass/translate"
)

const (
	// checkpointFormat changes with the order in which a checkpoint is written.
	checkpointFormat = "joiner checkpoint 1"
	// maxCheckpoint is the size in bytes beyond which none is written or read; 150,000 pods take about 10 MB.
	maxCheckpoint = 64 << 20
	// maxPerNode is the largest number of bytes of it for each node of the cluster, more than one takes with 250 pods
	// of 73 bytes. A forged one takes 18 bytes of memory for each of its own, in functions of 512 MiB.
	maxPerNode = 24 << 10
	// maxCheckpointAge is the age beyond which nobody believes a checkpoint, as a cache that was frozen for so long.
	maxCheckpointAge = longestFrozen
	// clockSkew is the time by which a checkpoint may be later than the clock of its reader.
	clockSkew = time.Minute

	uuidBytes, uuidText = 16, 36
)

// checkpoint holds what a cache knew of each kind, up to a version of it; 0 where it is not known.
type checkpoint struct {
	written  time.Time
	versions [kindCount]uint64
	took     [kindCount]time.Duration // to list the kind last
	pods     translate.SortedPods
	nodes    map[string]cluster.Node
	claims   map[string]cluster.Claim
	digests  map[string]uint64 // of nodes, by name
}

// kindCount is the number of kinds that a cache follows, in the order of ClusterCache.kinds.
const kindCount = 3

// checkpointHead holds what tells whether a checkpoint may be believed.
type checkpointHead struct {
	Format  string
	Of      string // whose cache
	Types   string
	Written time.Time
}

// checkpointTypes tells checkpoints apart that another program wrote with other types.
func checkpointTypes() string {
	sum := sha256.New()
	for _, t := range []reflect.Type{reflect.TypeFor[cluster.Pod](), reflect.TypeFor[cluster.Node](),
		reflect.TypeFor[cluster.Claim]()} {
		text, err := compact.Fingerprint(t)
		if err != nil {
			panic("write a checkpoint: " + err.Error()) // a test has all of them written
		}
		sum.Write([]byte(text))
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// encode writes the checkpoint for those who read one of the same.
func (c *checkpoint) encode(of string) []byte {
	var w compact.Writer
	const bytesOfPod, bytesOfNode = 80, 1000 // about
	w.Grow(c.pods.Len()*bytesOfPod + (len(c.nodes)+len(c.claims))*bytesOfNode)
	head := checkpointHead{checkpointFormat, of, checkpointTypes(), c.written}
	compact.WriteValue(&w, &head)
	for i := range kindCount {
		w.WriteUint(c.versions[i])
		w.WriteInt(int64(c.took[i]))
	}
	writePods(&w, c.pods)
	w.WriteUint(uint64(len(c.nodes)))
	for _, uid := range slices.Sorted(maps.Keys(c.nodes)) {
		n := c.nodes[uid]
		compact.WriteValue(&w, &n)
		w.WriteUint(c.digests[n.Name])
	}
	w.WriteUint(uint64(len(c.claims)))
	for _, uid := range slices.Sorted(maps.Keys(c.claims)) {
		one := c.claims[uid]
		compact.WriteValue(&w, &one)
	}
	sum := sha256.Sum256(w.Bytes())
	w.WriteRaw(sum[:])
	return w.Bytes()
}

// decodeCheckpoint reads a checkpoint. The error says why it must not be believed: it is damaged, too old, or of
// another cluster or program.
func decodeCheckpoint(b []byte, of string, now time.Time, shapes *translate.PodShapes) (*checkpoint, error) {
	body := b[:max(0, len(b)-sha256.Size)]
	if sum := sha256.Sum256(body); !bytes.Equal(sum[:], b[len(body):]) {
		return nil, errors.New("it is damaged: its checksum is another")
	}
	return decodeBody(body, of, now, shapes)
}

func decodeBody(body []byte, of string, now time.Time, shapes *translate.PodShapes) (*checkpoint, error) {
	r := compact.NewReader(body)
	var head checkpointHead
	compact.ReadValue(r, &head)
	switch age := now.Sub(head.Written); {
	case r.Err() != nil:
		return nil, r.Err()
	case head.Format != checkpointFormat || head.Types != checkpointTypes():
		return nil, errors.New("it has the format of another version")
	case head.Of != of:
		return nil, fmt.Errorf("it is of %q and not of %q", head.Of, of)
	case age > maxCheckpointAge || age < -clockSkew:
		return nil, fmt.Errorf("it was written %s ago", age.Round(time.Second))
	}
	c := &checkpoint{written: head.Written, nodes: map[string]cluster.Node{}, claims: map[string]cluster.Claim{},
		digests: map[string]uint64{}}
	for i := range kindCount {
		c.versions[i], c.took[i] = r.ReadUint(), time.Duration(r.ReadInt())
	}
	c.pods = readPods(r, shapes)
	for range r.ReadCount() {
		var n cluster.Node
		compact.ReadValue(r, &n)
		c.nodes[n.UID], c.digests[n.Name] = n, r.ReadUint()
		if r.Err() != nil {
			return nil, r.Err()
		}
	}
	for range r.ReadCount() {
		var one cluster.Claim
		compact.ReadValue(r, &one)
		c.claims[one.UID] = one
		if r.Err() != nil {
			return nil, r.Err()
		}
	}
	if r.Err() == nil && r.Rest() > 0 {
		return nil, errors.New("it is longer than what it holds")
	}
	return c, r.Err()
}

// writePods writes the different shapes, and then what each pod has beside its shape.
func writePods(w *compact.Writer, pods translate.SortedPods) {
	at, shapes := map[*cluster.Pod]uint64{}, []*cluster.Pod(nil)
	for p := range pods.All() {
		if _, ok := at[p.Shape]; !ok {
			at[p.Shape] = uint64(len(shapes))
			shapes = append(shapes, p.Shape)
		}
	}
	w.WriteUint(uint64(len(shapes)))
	for _, s := range shapes {
		compact.WriteValue(w, s)
	}
	w.WriteUint(uint64(pods.Len()))
	for p := range pods.All() {
		w.WriteUint(at[p.Shape])
		writePod(w, p)
	}
}

// Of a pod, what its shape has too is left out.
const (
	ownLabels uint64 = 1 << iota
	ownAffinity
	ownClaims
	oddUID
	isDeleting
)

func podFlags(f *translate.ListedPod, isUUID bool) (flags uint64) {
	set := func(flag uint64, is bool) {
		if is {
			flags |= flag
		}
	}
	set(ownLabels, !f.SharesLabels())
	set(ownAffinity, !f.SharesAffinity())
	set(ownClaims, f.Claims != nil)
	set(oddUID, !isUUID)
	set(isDeleting, f.Deleting != noTime())
	return flags
}

func writePod(w *compact.Writer, f *translate.ListedPod) {
	id, isUUID := packUUID(f.UID)
	flags := podFlags(f, isUUID)
	w.WriteUint(flags)
	if isUUID {
		w.WriteRaw(id[:])
	} else {
		w.WriteText(f.UID)
	}
	stem := f.Name[:strings.LastIndexByte(f.Name, '-')+1] // which its replicas share
	w.WriteWord(stem)
	w.WriteText(f.Name[len(stem):])
	w.WriteWord(f.Node.Value())
	w.WriteInt(f.Created)
	for _, at := range []int64{f.Started, f.Bound, f.ReadySince} { // seconds after each other as a rule
		w.WriteInt(at - f.Created)
	}
	if flags&isDeleting != 0 {
		w.WriteInt(f.Deleting)
	}
	if flags&ownLabels != 0 {
		compact.WriteValue(w, &f.Labels)
	}
	if flags&ownAffinity != 0 {
		compact.WriteValue(w, &f.NodeAffinity)
	}
	if flags&ownClaims != 0 {
		compact.WriteValue(w, &f.Claims)
	}
}

func noTime() int64 { return time.Time{}.Unix() }

func readPods(r *compact.Reader, known *translate.PodShapes) translate.SortedPods {
	type shape struct {
		own, shared *cluster.Pod
	}
	var shapes []shape
	for range r.ReadCount() {
		if r.Err() != nil {
			return translate.SortedPods{}
		}
		p := &cluster.Pod{}
		compact.ReadValue(r, p)
		shapes = append(shapes, shape{p, known.ShareShape(p)})
	}
	var out []*translate.ListedPod
	for range r.ReadCount() {
		at := r.ReadUint()
		if at >= uint64(len(shapes)) || r.Err() != nil {
			r.Fail()
			return translate.SortedPods{}
		}
		f := readPod(r, shapes[at].own)
		f.Shape = shapes[at].shared
		out = append(out, f)
	}
	return translate.SortPods(slices.Values(out))
}

func readPod(r *compact.Reader, shape *cluster.Pod) *translate.ListedPod {
	f := &translate.ListedPod{Deleting: noTime(), Labels: shape.Labels, NodeAffinity: shape.NodeAffinity}
	flags := r.ReadUint()
	if flags&oddUID != 0 {
		f.UID = r.ReadText()
	} else {
		f.UID = unpackUUID(r.ReadRaw(uuidBytes))
	}
	f.Name = r.ReadWord() + r.ReadText()
	f.Node = unique.Make(r.ReadWord())
	f.Created = r.ReadInt()
	for _, at := range []*int64{&f.Started, &f.Bound, &f.ReadySince} {
		*at = f.Created + r.ReadInt()
	}
	if flags&isDeleting != 0 {
		f.Deleting = r.ReadInt()
	}
	if flags&ownLabels != 0 {
		f.Labels = nil
		compact.ReadValue(r, &f.Labels)
	}
	if flags&ownAffinity != 0 {
		f.NodeAffinity = [][]requirements.Requirement(nil)
		compact.ReadValue(r, &f.NodeAffinity)
	}
	if flags&ownClaims != 0 {
		compact.ReadValue(r, &f.Claims)
	}
	return f
}

// packUUID is a UUID as Kubernetes writes it; ok is false for any other text.
func packUUID(s string) (id uuid.UUID, ok bool) {
	if len(s) != uuidText {
		return id, false
	}
	id, err := uuid.Parse(s)
	return id, err == nil && id.String() == s
}

func unpackUUID(b []byte) string {
	id, err := uuid.FromBytes(b)
	if err != nil {
		return ""
	}
	return id.String()
}
