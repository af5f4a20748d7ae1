package manifest_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"joiner.sh/pkg/workload/manifest"
)

const stream = `# two pods and a list
apiVersion: v1
kind: Pod
metadata:
  name: a
spec:
  containers:
  - name: c
    resources:
      requests:
        cpu: lots
---
# nothing
--- # more
apiVersion: v1
kind: List
items:
- apiVersion: v1
  kind: Pod
  metadata: {name: b, namespace: x}
  spec:
    containers:
    - name: c
      image: 7
---
{"apiVersion": "v1", "kind": "PodList", "items": [{"metadata": {"name": "c"}}]}
--- {apiVersion: v1, kind: Pod, metadata: {generateName: d-}, spek: {}}
`

func parse(t *testing.T, text string) []manifest.Document {
	t.Helper()
	docs, err := manifest.ParseManifests("f.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return docs
}

func TestObjectsOfAStream(t *testing.T) {
	var got []string
	for _, d := range parse(t, stream) {
		got = append(got, fmt.Sprintf("%s %s %q line %d", d.APIVersion, d.Object(), d.Namespace, d.Line("")))
	}
	want := []string{`v1 Pod a "" line 2`, `v1 Pod b "x" line 18`, `v1 Pod c "" line 26`, `v1 Pod d "" line 27`}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("objects (-want +got):\n%s", diff)
	}
}

// A complaint about a field names the line on which it stands, in the file and not in the document.
func TestComplaintsNameFileLineObjectAndField(t *testing.T) {
	docs := parse(t, stream)
	for i, want := range []string{
		"f.yaml:11: Pod a: spec.containers[0].resources.requests.cpu: lots is no quantity; write it like 500m or 2Gi",
		"f.yaml:24: Pod b: spec.containers.image: a number does not belong here; quote it",
	} {
		var p corev1.Pod
		_, err := docs[i].Decode(&p)
		if err == nil || err.Error() != want {
			t.Errorf("document %d: %v, want %s", i, err, want)
		}
	}
	var p corev1.Pod
	unknown, err := docs[3].Decode(&p)
	if diff := cmp.Diff([]string{"spek"}, unknown); diff != "" || err != nil {
		t.Errorf("unknown fields (-want +got):\n%s%v", diff, err)
	}
	if got := docs[3].Errorf("spek", "it is misspelt").Error(); got != "f.yaml:27: Pod d: spek: it is misspelt" {
		t.Error(got)
	}
}

// protobufPod is a pod as the API server keeps it.
const protobufPod = "k8s\x00\n\t\n\x02v1\x12\x03Pod\x12\x07\n\x05\n\x03web\x1a\x00\"\x00"

func TestFilesThatCannotBeRead(t *testing.T) {
	var packed bytes.Buffer
	zw := gzip.NewWriter(&packed)
	if _, err := zw.Write([]byte("a: b\n---\nc: [")); err != nil {
		t.Fatal(err)
	}
	if err := zw.Close(); err != nil {
		t.Fatal(err)
	}
	bomb := "a: &a [x,x,x,x,x,x,x,x,x]\n"
	for i := 'b'; i < 'h'; i++ {
		bomb += fmt.Sprintf("%c: &%c [*%c,*%c,*%c,*%c,*%c,*%c,*%c,*%c,*%c]\n", i, i, i-1, i-1, i-1, i-1, i-1, i-1, i-1, i-1, i-1)
	}
	for name, c := range map[string]struct {
		text, want string
		read       int // documents that can be read
	}{
		"two broken documents":              {"kind: [\n---\na: b\n---\n\na:\n\t- b", "f.yaml:1: neither JSON nor YAML: did not find expected node content\nf.yaml:7: neither JSON nor YAML: found character that cannot start any token", 1},
		"a key twice":                       {"a: 1\nb: 2\na: 3\n", `f.yaml:3: neither JSON nor YAML: key "a" already set in map`, 0},
		"text":                              {"a: b\n---\nhello\n", "f.yaml:3: it is no object: want apiVersion, kind and so on", 1},
		"a list":                            {"- a\n", "f.yaml:1: it is no object", 0},
		"packed":                            {packed.String(), "f.yaml:3: neither JSON nor YAML", 1},
		"broken packing":                    {"\x1f\x8babc", "f.yaml: it is larger than 256 MiB", 0},
		"a bomb":                            {bomb, "f.yaml:1: neither JSON nor YAML: document contains excessive aliasing", 0},
		"a number as a name":                {"metadata:\n  name: 7\n", "f.yaml:2: metadata.name: a number does not belong here; quote it", 0},
		"huge":                              {"a: " + strings.Repeat("x", 65<<20), "f.yaml:1: neither JSON nor less than 64 MiB of YAML; convert it to JSON or split it", 0},
		"many":                              {strings.Repeat("a: b\n---\n", 100_001), "f.yaml: it holds more than 100000 objects; split it", 0},
		"protobuf":                          {protobufPod, "f.yaml: it is protobuf of the API server; write the objects with -o json or -o yaml", 0},
		"protobuf that is cut":              {protobufPod[:9], "f.yaml: it is protobuf of the API server", 0},
		"a list that is cut":                {"apiVersion: v1\nkind: List\nitems:\n- kind: A\n- kind: B\n  metadata: {name: b", "f.yaml:6: neither JSON nor YAML", 0},
		"packing that is cut":               {packed.String()[:packed.Len()-12], "f.yaml: ", 0},
		"a row that is cut":                 {"{\"kind\": \"A\"}\n{\"kind\": \"B\"}\n{\"kind\":", "f.yaml:3: neither JSON nor YAML: did not find expected node content", 2},
		"less indented than its first line": {"  kind: A\n  b: c\nd: e\n", "f.yaml:2: neither JSON nor YAML: did not find expected <document start>", 0},
	} {
		docs, err := manifest.ParseManifests("f.yaml", []byte(c.text))
		if err == nil || !strings.HasPrefix(err.Error(), c.want) || len(docs) > c.read {
			t.Errorf("%s: %v\nwant %s", name, err, c.want)
		}
		if _, ok := errors.AsType[*manifest.Error](err); !ok {
			t.Errorf("%s: the error is a %T", name, err)
		}
	}
}

// Every form that people keep holds the same two objects.
func TestForms(t *testing.T) {
	for name, c := range map[string]struct {
		text  string
		lines [2]int
	}{
		"JSON in a row":        {`{"kind":"A","metadata":{"name":"a"}}` + "\n" + `{"kind":"B","metadata":{"name":"b"}}` + "\n", [2]int{1, 2}},
		"JSON on one line":     {`{"kind":"A","metadata":{"name":"a"}}{"kind":"B","metadata":{"name":"b"}}`, [2]int{1, 1}},
		"JSON over lines":      {"{\n\"kind\": \"A\",\n\"metadata\": {\"name\": \"a\"}\n}\n\n{\n\"kind\": \"B\",\n\"metadata\": {\"name\": \"b\"}\n}", [2]int{1, 6}},
		"JSON after YAML":      {"kind: A\nmetadata: {name: a}\n---\n" + `{"kind":"B","metadata":{"name":"b"}}`, [2]int{1, 4}},
		"document ends":        {"kind: A\nmetadata: {name: a}\n...\nkind: B\nmetadata: {name: b}\n...\n", [2]int{1, 4}},
		"indented":             {"  kind: A\n  metadata: {name: a}\n---\n    kind: B\n    metadata: {name: b}\n", [2]int{1, 4}},
		"quoted keys":          {"\"kind\": A\n'metadata': {\"name\": a}\n---\n{kind: B, metadata: {name: b}}\n", [2]int{1, 4}},
		"carriage returns":     {"kind: A\r\nmetadata:\r\n  name: a\r\n---\r\nkind: B\r\nmetadata: {name: b}\r\n", [2]int{1, 5}},
		"a byte order mark":    {"\ufeffkind: A\nmetadata: {name: a}\n---\nkind: B\nmetadata: {name: b}\n", [2]int{1, 4}},
		"anchors and a merge":  {"kind: A\nmetadata: &m\n  name: a\n---\nx: &n {name: b}\nkind: B\nmetadata: {<<: *n, name: b}\n", [2]int{1, 5}},
		"directives":           {"%YAML 1.2\n---\nkind: A\nmetadata: {name: a}\n---\nkind: B\nmetadata: {name: b}\n", [2]int{3, 6}},
		"as PowerShell writes": {utf16("kind: A\r\nmetadata: {name: a}\r\n---\r\nkind: B\r\nmetadata: {name: b}\r\n"), [2]int{1, 4}},
	} {
		docs, err := manifest.ParseManifests("f", []byte(c.text))
		if err != nil || len(docs) != 2 || docs[0].Object() != "A a" || docs[1].Object() != "B b" {
			t.Errorf("%s: %d objects, %v", name, len(docs), err)
			continue
		}
		if got := [2]int{docs[0].Line(""), docs[1].Line("")}; got != c.lines {
			t.Errorf("%s: lines %v, want %v", name, got, c.lines)
		}
	}
}

// utf16 is ASCII text in two bytes each, the lower first, behind a byte order mark.
func utf16(text string) string {
	out := "\xff\xfe"
	for i := range len(text) {
		out += text[i:i+1] + "\x00"
	}
	return out
}

// A small file that would unpack to more than is read is refused before memory is taken for it.
func TestABombIsRefusedCheaply(t *testing.T) {
	var packed bytes.Buffer
	zw := gzip.NewWriter(&packed)
	block := make([]byte, 1<<20)
	for range 300 {
		if _, err := zw.Write(block); err != nil {
			t.Fatal(err)
		}
	}
	if err := zw.Close(); err != nil {
		t.Fatal(err)
	}
	liar := bytes.Clone(packed.Bytes())
	copy(liar[len(liar)-4:], []byte{1, 0, 0, 0})
	for name, c := range map[string]struct {
		data []byte
		most uint64 // bytes
	}{"honest": {packed.Bytes(), 1 << 20}, "says that it is small": {liar, 1 << 30}} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := manifest.ParseManifests("f", c.data)
		runtime.ReadMemStats(&after)
		if took := after.TotalAlloc - before.TotalAlloc; err == nil || !strings.Contains(err.Error(), "larger than 256 MiB") || took > c.most {
			t.Errorf("%s: %v, took %d bytes", name, err, took)
		}
	}
}

// A list of which every object has something to complain about is not read once for each complaint.
func TestLinesOfALongList(t *testing.T) {
	const objects = 300
	text := "apiVersion: v1\nkind: List\nitems:\n" + strings.Repeat("- apiVersion: v1\n  kind: Pod\n  metadata: {name: a}\n  spek: {a: b}\n", objects)
	docs := parse(t, text)
	if len(docs) != objects || docs[1].Line("spek") != 11 {
		t.Fatalf("%d objects, the second one on line %d", len(docs), docs[1].Line("spek"))
	}
	if allocations := testing.AllocsPerRun(1, func() {
		for _, d := range docs {
			_ = d.Line("spek")
		}
	}); allocations > 20*objects {
		t.Errorf("%.0f allocations for %d lines", allocations, objects)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(stream))
	f.Fuzz(func(_ *testing.T, data []byte) {
		docs, _ := manifest.ParseManifests("f", data)
		for _, d := range docs {
			_ = d.Line("spec.a[0].b")
			_, _ = d.Decode(&corev1.Pod{})
		}
	})
}
