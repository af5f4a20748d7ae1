package cli

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	yamlv3 "go.yaml.in/yaml/v3"
	"sigs.k8s.io/yaml"

	"joiner.sh/pkg/install/crdcheck"
	"joiner.sh/pkg/workload"
)

// Folders and files in the forms that people keep: as many pods are planned as a counter finds that shares no code with
// what reads manifests, and what convert prints of them is what the API server takes.
func TestRealFiles(t *testing.T) {
	judge, err := crdcheck.NewJudge()
	if err != nil {
		t.Fatal(err)
	}
	paths, err := filepath.Glob("testdata/real/*")
	if err != nil || len(paths) < 10 {
		t.Fatalf("%v: %v", paths, err)
	}
	for _, path := range append(paths, "testdata/real", "testdata/files/dump.yaml", "testdata/files/apps.yaml") {
		want := countPods(t, path)
		code, out, progress := run("plan", "-f", path, "-o", "json", "--search-steps", "0")
		var p workload.Placement
		if code == 0 {
			if err := json.Unmarshal([]byte(out), &p); err != nil {
				t.Errorf("%s: %v", path, err)
			}
		} else if want > 0 {
			t.Errorf("%s: exit %d, %s", path, code, progress)
		}
		if p.Pods != want {
			t.Errorf("%s: %d pods are planned, and the counter finds %d; %s", path, p.Pods, want, progress)
		}
		if strings.HasSuffix(path, "values.yaml") || strings.HasSuffix(path, "kustomization.yaml") {
			continue
		}
		code, out, progress = run("convert", "-f", path, "--strict", "--cluster", "prod")
		if code != 0 && code != 3 {
			t.Errorf("convert %s: exit %d, %s", path, code, progress)
		}
		for _, text := range strings.Split(out, "\n---\n") {
			body, err := yaml.YAMLToJSON([]byte(text))
			var head struct{ APIVersion, Kind string }
			if err == nil {
				err = json.Unmarshal(body, &head)
			}
			v, _, judged := judge.Judge(head.APIVersion, head.Kind, body)
			if err != nil || judged != nil || len(v.Refused) > 0 || len(v.Unknown) > 0 {
				t.Errorf("convert %s: %s: %v %v %v %v", path, head.Kind, err, judged, v.Refused, v.Unknown)
			}
		}
	}
}

// countPods counts the pods of a file or folder.
func countPods(t *testing.T, path string) int {
	t.Helper()
	names := []string{path}
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		names, _ = filepath.Glob(path + "/*") // the pattern is a good one
	}
	var objects []map[string]any
	for _, name := range names {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		next := yamlv3.NewDecoder(bytes.NewReader(data)).Decode
		if filepath.Ext(name) == ".json" {
			next = json.NewDecoder(bytes.NewReader(data)).Decode
		}
		for one := (map[string]any{}); next(&one) == nil; one = nil {
			items, list := one["items"].([]any)
			if !list {
				objects = append(objects, one)
			}
			for _, item := range items {
				o := item.(map[string]any)
				if o["kind"] == nil {
					o["kind"] = strings.TrimSuffix(one["kind"].(string), "List")
				}
				objects = append(objects, o)
			}
		}
	}
	names = nil
	least := map[string]int{}
	for _, o := range objects {
		if at(o, "kind") == "HorizontalPodAutoscaler" {
			least[at(o, "spec", "scaleTargetRef", "name").(string)] = number(at(o, "spec", "minReplicas"), 1)
		}
		if name, ok := at(o, "metadata", "name").(string); ok {
			names = append(names, name)
		}
	}
	total := 0
	for _, o := range objects {
		total += podsOf(o, names, least)
	}
	return total
}

// podsOf is how many pods an object makes that no other one of those named makes.
func podsOf(o map[string]any, names []string, least map[string]int) int {
	if refs, ok := at(o, "metadata", "ownerReferences").([]any); ok {
		for _, name := range names {
			if owner := refs[0].(map[string]any)["name"].(string); owner == name || strings.HasPrefix(owner, name+"-") {
				return 0
			}
		}
	}
	spec := []string{"spec"}
	switch at(o, "kind") {
	case "Deployment", "StatefulSet", "ReplicaSet":
		name, _ := at(o, "metadata", "name").(string)
		return max(number(at(o, "spec", "replicas"), 1), least[name])
	case "Pod":
		if at(o, "spec", "nodeName") == nil {
			return 1
		}
		return 0
	case "CronJob":
		if at(o, "spec", "suspend") == true {
			return 0
		}
		spec = []string{"spec", "jobTemplate", "spec"}
	case "Job":
	default:
		return 0
	}
	if at(o, append(spec, "suspend")...) == true || at(o, "status", "conditions") != nil {
		return 0
	}
	n := number(at(o, append(spec, "parallelism")...), 1)
	return min(n, number(at(o, append(spec, "completions")...), n))
}

// at is the value at the path, nil where there is none.
func at(v any, path ...string) any {
	for _, key := range path {
		m, ok := v.(map[string]any)
		if !ok {
			return nil
		}
		v = m[key]
	}
	return v
}

func number(v any, without int) int {
	switch n := v.(type) {
	case int:
		return n
	case float64:
		return int(n)
	}
	return without
}
