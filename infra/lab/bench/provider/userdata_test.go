package provider

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"mime/multipart"
	"regexp"
	"slices"
	"strings"
	"testing"

	peerv1 "github.com/aws/karpenter-provider-aws/pkg/apis/v1"
	"github.com/aws/karpenter-provider-aws/pkg/providers/amifamily/bootstrap"
	"github.com/google/go-cmp/cmp"
	"github.com/pelletier/go-toml/v2"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	awsv1 "joiner.sh/pkg/api/aws/v1"
	"joiner.sh/pkg/model/cluster"
	joiner "joiner.sh/pkg/nodeclaim/bootstrap"
)

// forms are what users write, by family; names say what they are.
func forms() map[string]map[string]string {
	const script = "#!/bin/bash\necho hello\n"
	const config = "apiVersion: node.eks.aws/v1alpha1\nkind: NodeConfig\nspec:\n  kubelet:\n    config:\n      maxPods: 5\n"
	archive := "MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=\"XX\"\n\n--XX\nContent-Type: text/x-shellscript; charset=\"us-ascii\"\n\n" + script +
		"--XX\nContent-Type: application/node.eks.aws\n\n" + config + "--XX--\n"
	mime := map[string]string{"nothing": "", "a script": script, "MIME": archive,
		"MIME by its type alone": strings.TrimPrefix(archive, "MIME-Version: 1.0\n")}
	al2023 := maps.Clone(mime)
	al2023["a NodeConfig"], al2023["comments"] = config, "# nothing yet\n"
	return map[string]map[string]string{
		"AL2": mime, "AL2023": al2023, "Custom": {"nothing": "", "a script": script},
		"Bottlerocket": {"nothing": "", "settings": "[settings.kernel]\nlockdown = \"integrity\"\n[settings.host-containers.admin]\nenabled = false\n",
			"Kubernetes settings": "[settings.kubernetes]\nmax-pods = 3\ncluster-name = \"other\"\nallowed-unsafe-sysctls = [\"net.core.somaxconn\"]\n[settings.kubernetes.node-labels]\nmine = \"yes\"\nteam = \"b\"\n[settings.kubernetes.node-taints]\nold = [\"x:NoSchedule\"]\n[settings.kubernetes.eviction-hard]\n\"memory.available\" = \"15%\"\n",
			"a bootstrap command": "[settings.bootstrap-commands.001-mine]\ncommands = [[\"apiclient\", \"set\", \"motd=hi\"]]\nmode = \"once\"\nessential = false\n"},
		"Windows2019": {"nothing": "", "PowerShell": "Write-Host \"hello\""}, "Windows2022": {"nothing": "", "PowerShell": "Write-Host \"hello\""},
		"Windows2025": {"nothing": "", "PowerShell": "Write-Host \"hello\""},
	}
}

// setting is what a node is told beside the user's text.
type setting struct {
	kubelet string // settings as YAML
	taints  []corev1.Taint
	raid0   bool
}

func settings() map[string]setting {
	taints := []corev1.Taint{{Key: "a", Value: "b", Effect: "NoSchedule"}, {Key: "c", Effect: "NoExecute"}}
	all := map[string]setting{
		"plain":   {kubelet: "{maxPods: 29, clusterDNS: [172.20.0.10]}"},
		"tainted": {kubelet: "{maxPods: 29, clusterDNS: [172.20.0.10]}", taints: taints},
		"RAID0":   {kubelet: "{maxPods: 29, clusterDNS: [172.20.0.10]}", raid0: true},
		"IPv6":    {kubelet: "{maxPods: 29, clusterDNS: ['fd00::10']}"},
		"all settings": {taints: taints, kubelet: `{maxPods: 42, podsPerCore: 4, clusterDNS: [10.0.0.53, 10.0.0.54], systemReserved: {cpu: 100m, memory: 100Mi, pid: '7'},
  kubeReserved: {cpu: 200m, ephemeral-storage: 1Gi}, evictionHard: {memory.available: 5%, nodefs.available: 10%}, evictionSoft: {memory.available: 500Mi},
  evictionSoftGracePeriod: {memory.available: 1m30s}, evictionMaxPodGracePeriod: 60, imageGCHighThresholdPercent: 85, imageGCLowThresholdPercent: 80, cpuCFSQuota: false}`},
	}
	maps.Copy(all, settingsOfRelease(taints))
	return all
}

func labels() map[string]string {
	return map[string]string{"karpenter.sh/nodepool": "general", "karpenter.sh/capacity-type": "spot", "team": "a", "topology.k8s.aws/zone-id": "usw2-az1", "karpenter.sh/do-not-sync-taints": "true"}
}

// Every family, with every form of the user's text and every kind of setting, is told the same as by Karpenter, but for
// the taint karpenter.sh/unregistered, which neither is given here.
func TestUserDataSaysWhatKarpentersSays(t *testing.T) {
	n := 0
	for _, family := range slices.Sorted(maps.Keys(forms())) {
		for form, text := range forms()[family] {
			for name, s := range settings() {
				n++
				t.Run(family+", "+form+", "+name, func(t *testing.T) {
					want, err := peerScript(t, family, text, s)
					if err != nil {
						t.Fatal(err)
					}
					in := joiner.Input{Family: family, ImageVersion: "v1.40.0", ClusterName: "demo", Endpoint: "https://api", CABundle: "Q0E=", ServiceCIDR: "172.20.0.0/16",
						UserData: text, RAID0: s.raid0}
					var taints []cluster.Taint
					for _, taint := range s.taints {
						taints = append(taints, cluster.Taint{Key: taint.Key, Value: taint.Value, Effect: string(taint.Effect)})
					}
					if in.Node, err = joiner.NewNodeRegistration(labels(), taints); err != nil {
						t.Fatal(err)
					}
					if err := yaml.UnmarshalStrict([]byte(s.kubelet), &in.Kubelet); err != nil {
						t.Fatal(err)
					}
					got, err := joiner.RenderUserData(in)
					if err != nil {
						t.Fatal(err)
					}
					if d := cmp.Diff(meaning(t, family, want), meaning(t, family, got)); d != "" {
						t.Errorf("(-karpenter +joiner):\n%s\ntheirs:\n%s\nours:\n%s", d, want, got)
					}
				})
			}
		}
	}
	if n < 100 {
		t.Errorf("only %d cases", n)
	}
}

func peerScript(t *testing.T, family, text string, s setting) (string, error) {
	o, err := bootstrapOptions(s.kubelet)
	if err != nil {
		t.Fatal(err)
	}
	ca, cidr := "Q0E=", "172.20.0.0/16"
	o.ClusterName, o.ClusterEndpoint, o.ClusterCIDR, o.CABundle = "demo", "https://api", &cidr, &ca
	o.Taints, o.Labels = s.taints, labels()
	if text != "" {
		o.CustomUserData = &text
	}
	if s.raid0 {
		policy := peerv1.InstanceStorePolicyRAID0
		o.InstanceStorePolicy = &policy
	}
	var b bootstrap.Bootstrapper
	switch {
	case family == awsv1.AMIFamilyAL2:
		b = bootstrap.EKS{Options: o}
	case family == awsv1.AMIFamilyAL2023:
		b = bootstrap.Nodeadm{Options: o}
	case family == awsv1.AMIFamilyBottlerocket:
		b = bootstrap.Bottlerocket{Options: o}
	case family == awsv1.AMIFamilyCustom:
		b = bootstrap.Custom{Options: o}
	default:
		b = bootstrap.Windows{Options: o}
	}
	out, err := b.Script(context.Background())
	if err != nil {
		return "", err
	}
	plain, err := base64.StdEncoding.DecodeString(out)
	return string(plain), err
}

// meaning is the text without what means nothing: order of maps, white space, line breaks of commands.
func meaning(t *testing.T, family, text string) any {
	switch family {
	case awsv1.AMIFamilyAL2, awsv1.AMIFamilyAL2023:
		return parts(t, text)
	case awsv1.AMIFamilyBottlerocket:
		var doc map[string]any
		if err := toml.Unmarshal([]byte(text), &doc); err != nil {
			t.Fatal(err)
		}
		return pruned(doc)
	case awsv1.AMIFamilyCustom:
		return text
	}
	return command(text)
}

// pruned leaves empty tables out.
func pruned(doc map[string]any) map[string]any {
	out := map[string]any{}
	for k, v := range doc {
		if inner, ok := v.(map[string]any); ok {
			if inner = pruned(inner); len(inner) > 0 {
				out[k] = inner
			}
		} else {
			out[k] = v
		}
	}
	return out
}

func parts(t *testing.T, text string) []string {
	_, body, found := strings.Cut(text, "\n\n")
	if !found || !strings.HasPrefix(text, "MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=\"//\"\n") {
		t.Fatalf("no MIME: %s", text)
	}
	var out []string
	for r := multipart.NewReader(strings.NewReader(body), "//"); ; {
		p, err := r.NextPart()
		if err == io.EOF { //nolint:errorlint // as the package promises
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(p)
		if err != nil {
			t.Fatal(err)
		}
		content := command(string(b))
		var doc map[string]any
		if yaml.Unmarshal(b, &doc) == nil && doc["kind"] == "NodeConfig" {
			j, err := json.Marshal(nodeConfig(doc))
			if err != nil {
				t.Fatal(err)
			}
			content = string(j)
		}
		out = append(out, fmt.Sprintf("%s: %s", p.Header.Get("Content-Type"), content))
	}
}

// nodeConfig leaves out what says nothing: empty structs and nulls of the API's Go types.
func nodeConfig(doc map[string]any) map[string]any {
	out := map[string]any{}
	for k, v := range doc {
		switch inner := v.(type) {
		case nil:
		case map[string]any:
			if inner = nodeConfig(inner); len(inner) > 0 {
				out[k] = inner
			}
		default:
			out[k] = v
		}
	}
	return out
}

func command(text string) string {
	text = strings.ReplaceAll(strings.ReplaceAll(text, "\\\n", " "), " --register-with-taints=\"\"", "")
	text = regexp.MustCompile(`="[^"]*"`).ReplaceAllStringFunc(text, func(list string) string {
		items := strings.Split(strings.Trim(list, `="`), ",")
		slices.Sort(items)
		return `="` + strings.Join(items, ",") + `"`
	})
	text = strings.ReplaceAll(text, " | logger", "|logger")
	return strings.Join(strings.Fields(text), " ")
}
