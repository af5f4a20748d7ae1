package manifest_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
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
	for name, c := range map[string]struct{ text, want string }{
		"two broken documents": {"kind: [\n---\na: b\n---\n\na:\n\t- b", "f.yaml:1: neither JSON nor YAML: did not find expected node content\nf.yaml:7: neither JSON nor YAML: found character that cannot start any token"},
		"a key twice":          {"a: 1\nb: 2\na: 3\n", `f.yaml:3: neither JSON nor YAML: key "a" already set in map`},
		"text":                 {"a: b\n---\nhello\n", "f.yaml:3: it is no object: want apiVersion, kind and so on"},
		"a list":               {"- a\n", "f.yaml:1: it is no object"},
		"packed":               {packed.String(), "f.yaml:3: neither JSON nor YAML"},
		"broken packing":       {"\x1f\x8babc", "f.yaml: unpack: "},
		"a bomb":               {bomb, "f.yaml:1: neither JSON nor YAML: document contains excessive aliasing"},
		"a number as a name":   {"metadata:\n  name: 7\n", "f.yaml:2: metadata.name: a number does not belong here; quote it"},
		"huge":                 {"a: " + strings.Repeat("x", 65<<20), "f.yaml:1: neither JSON nor less than 64 MiB of YAML; convert it to JSON or split it"},
		"many":                 {strings.Repeat("a: b\n---\n", 100_001), "f.yaml: it holds more than 100000 objects; split it"},
	} {
		docs, err := manifest.ParseManifests("f.yaml", []byte(c.text))
		if err == nil || !strings.HasPrefix(err.Error(), c.want) || docs != nil {
			t.Errorf("%s: %v\nwant %s", name, err, c.want)
		}
		if _, ok := errors.AsType[*manifest.Error](err); !ok {
			t.Errorf("%s: the error is a %T", name, err)
		}
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
