package kube

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/runtime"

	awsv1 "joiner.sh/pkg/api/aws/v1"
)

// FuzzTotals feeds the annotation of a lease: it is read as no totals, or as some that can be added to and listed.
func FuzzTotals(f *testing.F) {
	for _, text := range []string{`{"a":null}`, `{"joiner_launches_total":{"f":"joiner_launches_total","v":1e308}}`, `{"x":{"f":"","b":[1,2,3],"r":[{"t":"2026-01-01T00:00:00Z","s":-1}]}}`, `[]`, `null`} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(_ *testing.T, text []byte) {
		var packed bytes.Buffer
		z := gzip.NewWriter(&packed)
		_, _ = z.Write(text)
		_ = z.Close()
		unpackTotals(string(text))
		t := unpackTotals(base64.StdEncoding.EncodeToString(packed.Bytes()))
		if t == nil {
			return
		}
		now := time.Unix(0, 0)
		t.Clone().List(now)
		for name := range t {
			t.Count(name, 1)
			t.Measure(name, time.Second, now)
		}
		t.List(now)
	})
}

// FuzzRevision feeds the ControllerRevision in which a class is kept: it is left out, or a class.
func FuzzRevision(f *testing.F) {
	for _, text := range []string{`{"spec":{"kubelet":{"maxPods":"vcpus"},"amiSelectorTerms":[{"alias":"al2023@latest"}]},"status":{"subnets":[{}],"amis":[{"requirements":[{"operator":"?"}]}]}}`,
		`{"spec":null,"status":{"amis":null}}`, `{"spec":{"blockDeviceMappings":[{"ebs":null}]}}`, `7`} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(_ *testing.T, text []byte) {
		r := &appsv1.ControllerRevision{Data: runtime.RawExtension{Raw: text}}
		r.Labels = map[string]string{labelClass: "default"}
		class := awsv1.EC2NodeClass{}
		class.Name = "default"
		describeRevision(r, []awsv1.EC2NodeClass{class})
	})
}
