package bootstrap_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"sigs.k8s.io/yaml"
)

// toldSettings is what a kubelet reads from user data, decoded as the image of the family does: "labels team" is a. A
// setting that stands twice is an error.
type toldSettings map[string]string

func (k toldSettings) add(name, value string) error {
	if _, twice := k[name]; twice {
		return fmt.Errorf("%s stands twice", name)
	}
	k[name] = value
	return nil
}

// addFlags reads the kubelet's command line.
func (k toldSettings) addFlags(line string) error {
	words, err := splitWords(line)
	for _, w := range words {
		flag, value, _ := strings.Cut(w, "=")
		var name string
		sep := "="
		switch flag {
		case "--node-labels":
			name = "labels"
		case "--system-reserved":
			name = "systemReserved"
		case "--eviction-hard":
			name, sep = "evictionHard", "<"
		case "--register-with-taints":
			for taint := range strings.SplitSeq(value, ",") {
				err = errors.Join(err, k.add("taint "+taint, ""))
			}
			continue
		default:
			err = errors.Join(err, k.add(strings.Replace(flag, "--max-pods", "maxPods", 1), value))
			continue
		}
		for pair := range strings.SplitSeq(value, ",") {
			key, v, _ := strings.Cut(pair, sep)
			err = errors.Join(err, k.add(name+" "+key, v))
		}
	}
	return err
}

// splitWords splits as a shell does, with an error for what a shell would expand or run.
func splitWords(line string) (words []string, err error) {
	word, in, quote := "", false, rune(0)
	for _, r := range line + " " {
		switch {
		case quote != 0 && r == quote:
			quote = 0
		case quote == '"' && strings.ContainsRune("$`\\", r), quote == 0 && strings.ContainsRune("$`;&|<>(){}*?#!~\r", r):
			return nil, fmt.Errorf("%q means something to a shell: %s", r, line)
		case quote == 0 && (r == '\'' || r == '"'):
			quote, in = r, true
		case quote == 0 && (r == ' ' || r == '\n' || r == '\\'): // the backslash continues the line
			if in {
				words = append(words, word)
			}
			word, in = "", false
		default:
			word, in = word+string(r), true
		}
	}
	if quote != 0 {
		return nil, fmt.Errorf("a quote is left open: %s", line)
	}
	return words, nil
}

// secondPart is the second of two parts of a MIME document.
func secondPart(text string) (string, error) {
	head, body, _ := strings.Cut(text, "\n\n")
	_, media, _ := strings.Cut(head, "Content-Type: ")
	_, params, err := mime.ParseMediaType(media)
	if err != nil {
		return "", err
	}
	var parts []string
	for r := multipart.NewReader(strings.NewReader(body), params["boundary"]); ; {
		p, err := r.NextRawPart()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return "", err
		}
		b, err := io.ReadAll(p)
		if err != nil {
			return "", err
		}
		parts = append(parts, string(b))
	}
	if len(parts) != 2 {
		return "", fmt.Errorf("%d parts", len(parts))
	}
	return parts[1], nil
}

// decodeNodeadm reads a NodeConfig.
func decodeNodeadm(text string) (toldSettings, error) {
	part, err := secondPart(text)
	if err != nil {
		return nil, err
	}
	var doc struct {
		APIVersion, Kind string
		Spec             struct {
			Cluster struct{ Name, APIServerEndpoint, CertificateAuthority, CIDR string }
			Kubelet struct {
				Flags  []string
				Config map[string]any
			}
		}
	}
	if err := yaml.UnmarshalStrict([]byte(part), &doc); err != nil {
		return nil, err
	}
	k := toldSettings{"--dns": fmt.Sprint(doc.Spec.Kubelet.Config["clusterDNS"].([]any)[0])}
	// nodeadm writes the flags one after another into the environment of the service
	if err := k.addFlags(strings.Join(doc.Spec.Kubelet.Flags, " ")); err != nil {
		return nil, err
	}
	delete(doc.Spec.Kubelet.Config, "clusterDNS")
	for _, t := range doc.Spec.Kubelet.Config["registerWithTaints"].([]any) {
		t := t.(map[string]any)
		value := ""
		if v := t["value"]; v != nil {
			value = "=" + v.(string)
		}
		err = errors.Join(err, k.add(fmt.Sprintf("taint %s%s:%s", t["key"], value, t["effect"]), ""))
	}
	delete(doc.Spec.Kubelet.Config, "registerWithTaints")
	return k, errors.Join(err, k.addTree(doc.Spec.Kubelet.Config))
}

// addTree adds what stands in a tree of two levels.
func (k toldSettings) addTree(tree map[string]any) (err error) {
	for name, v := range tree {
		inner, isMap := v.(map[string]any)
		if !isMap {
			inner = map[string]any{"": v}
		}
		for key, x := range inner {
			value, isText := x.(string)
			if !isText {
				b, _ := json.Marshal(x)
				value = string(b)
			}
			err = errors.Join(err, k.add(strings.TrimSpace(name+" "+key), value))
		}
	}
	return err
}

// decodeScript reads the words that /etc/eks/bootstrap.sh is called with.
func decodeScript(text string) (toldSettings, error) {
	part, err := secondPart(text)
	if err != nil {
		return nil, err
	}
	_, call, _ := strings.Cut(part, "\n/etc/eks/bootstrap.sh ")
	words, err := splitWords(call)
	if err != nil {
		return nil, err
	}
	words = slices.DeleteFunc(words, func(w string) bool { return w == "--ip-family" || w == "ipv6" })
	if len(words) != 11 || !slices.Equal(words[:6], []string{"demo", "--apiserver-endpoint", "https://api", "--b64-cluster-ca", "Q0E=", "--dns-cluster-ip"}) ||
		!slices.Equal(words[7:10], []string{"--use-max-pods", "false", "--kubelet-extra-args"}) {
		return nil, fmt.Errorf("words %q", words)
	}
	k := toldSettings{"--dns": words[6]}
	return k, k.addFlags(words[10])
}

// decodePowerShell reads the literals of the call of the script of EKS: PowerShell knows five single quotes, of which
// two in a row are one.
func decodePowerShell(text string) (toldSettings, error) {
	quotes := "'\u2018\u2019\u201a\u201b"
	_, call, _ := strings.Cut(text, "\n& $EKSBootstrapScriptFile ")
	call, end, _ := strings.Cut(call, "\n")
	if end != "</powershell>\n" {
		return nil, fmt.Errorf("after the call: %q", end)
	}
	var words []string
	rs, literal, word := []rune(call), false, ""
	for i := 0; i < len(rs); i++ {
		isQuote := strings.ContainsRune(quotes, rs[i])
		switch {
		case isQuote && literal && i+1 < len(rs) && strings.ContainsRune(quotes, rs[i+1]):
			word, i = word+string(rs[i]), i+1
		case isQuote:
			literal = !literal
		case rs[i] == ' ' && !literal:
			words, word = append(words, word), ""
		default:
			word += string(rs[i])
		}
	}
	words = append(words, word)
	want := []string{"-EKSClusterName", "demo", "-APIServerEndpoint", "https://api", "-Base64ClusterCA", "Q0E=", "-KubeletExtraArgs"}
	if len(words) != 10 || !slices.Equal(words[:7], want) || words[8] != "-DNSClusterIP" || literal {
		return nil, fmt.Errorf("words %q", words)
	}
	k := toldSettings{"--dns": words[9]}
	return k, k.addFlags(words[7])
}

// decodeBottlerocket reads settings.
func decodeBottlerocket(text string) (toldSettings, error) {
	var doc struct {
		Settings struct{ Kubernetes map[string]any }
	}
	if err := toml.NewDecoder(strings.NewReader(text)).DisallowUnknownFields().Decode(&doc); err != nil {
		return nil, err
	}
	tree, k := doc.Settings.Kubernetes, toldSettings{}
	var err error
	for key, list := range tree["node-taints"].(map[string]any) {
		for _, v := range list.([]any) {
			value, effect, _ := strings.Cut(v.(string), ":")
			if value != "" {
				value = "=" + value
			}
			err = errors.Join(err, k.add("taint "+key+value+":"+effect, ""))
		}
	}
	for ours, theirs := range map[string]string{"labels": "node-labels", "systemReserved": "system-reserved", "evictionHard": "eviction-hard",
		"maxPods": "max-pods", "--dns": "cluster-dns-ip"} {
		tree[ours] = tree[theirs]
		delete(tree, theirs)
	}
	for name, want := range map[string]string{"api-server": "https://api", "cluster-name": "demo", "cluster-certificate": "Q0E="} {
		if tree[name] != want {
			err = errors.Join(err, fmt.Errorf("%s is %v", name, tree[name]))
		}
		delete(tree, name)
	}
	delete(tree, "node-taints")
	return k, errors.Join(err, k.addTree(tree))
}
