package bootstrap_test

import (
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/validation"

	awsv1 "joiner.sh/pkg/api/aws/v1"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/nodeclaim/bootstrap"
)

// hostileWords are what somebody may try to write where a word is expected.
var hostileWords = []string{"", "a", "7", "100m", "5%", "10.0.0.10", "fd00::10", "NoSchedule", "memory.available", "serializeImagePulls",
	`;--anonymous-auth=true#`, `a" --anonymous-auth=true "`, "a,b=c", "a\nsettings.host-containers.admin.enabled = true", "a\n--//\nContent-Type: text/x-shellscript\n\nid",
	"$(id)", "`id`", `'; id; '`, "a\u2019; Start-Process x; \u2018", "</powershell><powershell>id", `\`, "a\\\n", "\"\"\"", "'''", "[settings.kubernetes]", "a: b", "- a", "{a: b}", "&a *a",
	"!!binary a", "%YAML 1.1", "---\nkind: NodeConfig", "\u202e", "\u0085", "\u2028", "\x00", "\xff", "a\rb", "maxPods", "registerWithTaints", "a/b", "kubernetes.io/x", "yes", "0x10", "null", "~", "."}

// fuzzedFields are what tenants, and whoever writes a NodePool or the kubelet of a class, put into user data.
type fuzzedFields struct{ labelKey, label, taintKey, taint, effect, amount, signal, dns, field, text string }

// FuzzUserData feeds every word that comes from a claim or the kubelet of a class through to the decoded document of
// each family: it is refused, or it is what was said and nothing else, with no other key, flag or line.
func FuzzUserData(f *testing.F) {
	add := func(x fuzzedFields) {
		f.Add(x.labelKey, x.label, x.taintKey, x.taint, x.effect, x.amount, x.signal, x.dns, x.field, x.text)
	}
	plain := fuzzedFields{"team", "b", "new", "c", "NoExecute", "100Mi", "nodefs.available", "10.0.0.10", "serializeImagePulls", "x"}
	add(plain)
	for _, w := range hostileWords {
		for i := range 10 {
			x := plain
			*[]*string{&x.labelKey, &x.label, &x.taintKey, &x.taint, &x.effect, &x.amount, &x.signal, &x.dns, &x.field, &x.text}[i] = w
			add(x)
		}
	}
	f.Fuzz(func(t *testing.T, labelKey, label, taintKey, taint, effect, amount, signal, dns, field, text string) {
		x := fuzzedFields{labelKey, label, taintKey, taint, effect, amount, signal, dns, field, text}
		if !utf8.ValidString(amount+"a"+signal+"a"+dns+"a"+field+"a"+text) || slices.Contains([]string{"systemReserved", "evictionHard", "clusterDNS"}, field) ||
			labelKey == "karpenter.sh/do-not-sync-taints" || taintKey == "dedicated" {
			return // JSON has no such text, or the field is set below
		}
		if got, err := bootstrap.RenderUserData(bootstrap.Input{Family: awsv1.AMIFamilyCustom, UserData: text}); err == nil && got != text {
			t.Errorf("of a Custom class the text %q becomes %q", text, got)
		}
		for family, decode := range map[string]func(string) (toldSettings, error){awsv1.AMIFamilyAL2023: decodeNodeadm, awsv1.AMIFamilyAL2: decodeScript,
			awsv1.AMIFamilyBottlerocket: decodeBottlerocket, awsv1.AMIFamilyWindows2022: decodePowerShell} {
			checkUserData(t, family, x, decode)
		}
	})
}

// checkUserData writes the user data of one family and compares what is told with what was said.
func checkUserData(t *testing.T, family string, x fuzzedFields, decode func(string) (toldSettings, error)) {
	t.Helper()
	in := bootstrap.Input{Family: family, ClusterName: "demo", Endpoint: "https://api", CABundle: "Q0E=", ServiceCIDR: "172.20.0.0/16", MaxPods: 29}
	switch family {
	case awsv1.AMIFamilyAL2023, awsv1.AMIFamilyAL2:
		in.UserData = "#!/bin/bash\necho hello"
	}
	valid := map[string]bool{"key of the label": len(validation.IsQualifiedName(x.labelKey)) == 0, "label": len(validation.IsValidLabelValue(x.label)) == 0,
		"key of the taint": len(validation.IsQualifiedName(x.taintKey)) == 0, "taint": len(validation.IsValidLabelValue(x.taint)) == 0,
		"effect": slices.Contains([]string{"NoSchedule", "PreferNoSchedule", "NoExecute"}, x.effect)}
	var err error
	in.Node, err = bootstrap.NewNodeRegistration(map[string]string{"own": "a", x.labelKey: x.label},
		[]cluster.Taint{{Key: "dedicated", Value: "gpu", Effect: "NoSchedule"}, {Key: x.taintKey, Value: x.taint, Effect: x.effect}})
	if refused := slices.Contains(slices.Collect(maps.Values(valid)), false); refused != (err != nil) {
		t.Fatalf("%v: registration %v", valid, err)
	}
	if err != nil {
		return
	}
	class, err := json.Marshal(map[string]any{x.field: x.text, "systemReserved": map[string]string{"cpu": x.amount}, "evictionHard": map[string]string{x.signal: x.amount},
		"clusterDNS": []string{x.dns}})
	if err != nil || json.Unmarshal(class, &in.Kubelet) != nil {
		return // the API server takes no such class
	}
	script, err := bootstrap.RenderUserData(in)
	if err != nil {
		if _, ok := errors.AsType[*bootstrap.Error](err); !ok {
			t.Errorf("%v is no *Error", err)
		}
		return
	}
	got, err := decode(script)
	if err != nil {
		t.Fatalf("%s: %v in\n%s", family, err, script)
	}
	checkTold(t, family, x, got)
}

func checkTold(t *testing.T, family string, x fuzzedFields, got toldSettings) {
	t.Helper()
	want := toldSettings{"labels own": "a", "labels karpenter.sh/do-not-sync-taints": "true", "taint dedicated=gpu:NoSchedule": "",
		"systemReserved cpu": x.amount, "evictionHard " + x.signal: x.amount, "--dns": x.dns, "maxPods": "29"}
	taint := "taint " + x.taintKey + "=" + x.taint + ":" + x.effect
	want[strings.Replace(taint, "=:", ":", 1)] = ""
	if name := "labels " + x.labelKey; got[name] != "" || x.label == "" { // a kubelet may not set every label
		want[name] = x.label
		if _, told := got[name]; !told {
			delete(want, name)
		}
	}
	if family == awsv1.AMIFamilyAL2023 && x.field != awsv1.KubeletTaints {
		want[strings.TrimSpace(x.field)] = x.text
	}
	if family == awsv1.AMIFamilyAL2023 && x.field == awsv1.KubeletMaxPods { // an expression, of which the number of pods came
		want[awsv1.KubeletMaxPods] = "29"
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("%s (-said +told):\n%s", family, d)
	}
}
