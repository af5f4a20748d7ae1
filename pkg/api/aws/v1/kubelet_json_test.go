package v1

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestFieldsOfTheKubeletSurvive(t *testing.T) {
	const text = `{"containerLogMaxSize":"50Mi","cpuCFSQuota":false,"logging":{"format":"json","options":{"json":{"infoBufferSize":"100Mi"}}},"maxPods":42,"oomScoreAdj":-999,"serializeImagePulls":false}`
	var k KubeletConfiguration
	if err := json.Unmarshal([]byte(text), &k); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"containerLogMaxSize": `"50Mi"`, "serializeImagePulls": "false", "oomScoreAdj": "-999",
		"logging": `{"format":"json","options":{"json":{"infoBufferSize":"100Mi"}}}`}
	if d := cmp.Diff(want, k.Extra); d != "" || *k.MaxPods != 42 || *k.CPUCFSQuota {
		t.Errorf("%+v, other fields (-want +got):\n%s", k, d)
	}
	got, err := json.Marshal(k)
	if err != nil || string(got) != text {
		t.Errorf("%v\n%s, want\n%s", err, got, text)
	}
	if err := json.Unmarshal([]byte(`{"podsPerCore": "many"}`), &k); err == nil || len(k.Extra) != 4 {
		t.Errorf("error %v, and the value is changed: %v", err, k)
	}
}

// A class that sets no other field has the hash that it had before there were such fields.
func TestOtherFieldsOfTheKubeletChangeTheHash(t *testing.T) {
	n := int32(5)
	class := func(extra map[string]string) *EC2NodeClass {
		return &EC2NodeClass{Spec: EC2NodeClassSpec{Role: "r", Kubelet: &KubeletConfiguration{MaxPods: &n, Extra: extra}}}
	}
	plain, read := class(nil).Hash(""), class(nil)
	if err := json.Unmarshal([]byte(`{"maxPods":5}`), read.Spec.Kubelet); err != nil || read.Hash("") != plain {
		t.Errorf("no other field: %v, %s, want %s", err, read.Hash(""), plain)
	}
	one, other := class(map[string]string{"podPidsLimit": "1024"}).Hash(""), class(map[string]string{"podPidsLimit": "4201"}).Hash("")
	if one == plain || one == other {
		t.Errorf("hashes %s, %s and %s are not three", plain, one, other)
	}
}

// An expression in maxPods, as Karpenter 1.15 may have stored it, is kept and read as no number.
func TestAnExpressionInMaxPodsIsKept(t *testing.T) {
	const text = `{"maxPods":"min(110, capacity.eni)","podsPerCore":2}`
	var k KubeletConfiguration
	if err := json.Unmarshal([]byte(text), &k); err != nil || k.MaxPods != nil || *k.PodsPerCore != 2 {
		t.Fatalf("error %v, %+v", err, k)
	}
	if got, err := json.Marshal(k); err != nil || string(got) != text {
		t.Errorf("error %v, %s, want %s", err, got, text)
	}
}
