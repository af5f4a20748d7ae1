package kubelet

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/pelletier/go-toml/v2"
)

// bootstrapScript is what starts the kubelet on AL2.
const bootstrapScript = "/etc/eks/bootstrap.sh"

// parseScript finds the call of bootstrap.sh and reads its arguments as the shell would split them.
func parseScript(text string) (Boot, error) {
	_, call, _ := strings.Cut(text, bootstrapScript)
	words, err := shellWords(call)
	if err != nil {
		return Boot{}, fmt.Errorf("bootstrap.sh: %w", err)
	}
	b := Boot{Format: FormatBootstrap, ReplacesKube: true}
	for i := 0; i < len(words); i++ {
		word := words[i]
		if !strings.HasPrefix(word, "--") {
			b.Cluster = word
			continue
		}
		i++
		if i == len(words) {
			return b, fmt.Errorf("bootstrap.sh: %s has no value", word)
		}
		switch word {
		case "--apiserver-endpoint":
			b.Endpoint = words[i]
		case "--b64-cluster-ca":
			b.CA = words[i]
		case "--local-disks":
			b.RAID0 = words[i] == "raid0"
		case "--kubelet-extra-args":
			if err := b.readArguments(words[i]); err != nil {
				return b, fmt.Errorf("bootstrap.sh: %w", err)
			}
		case "--dns-cluster-ip", "--use-max-pods", "--ip-family", "--container-runtime", "--service-ipv6-cidr":
		default:
			return b, fmt.Errorf("bootstrap.sh: unknown argument %s", word)
		}
	}
	if b.Cluster == "" {
		return b, errors.New("bootstrap.sh: no cluster name")
	}
	return b, nil
}

// readArguments reads the kubelet's own command line.
func (b *Boot) readArguments(line string) error {
	words, err := shellWords(line)
	if err != nil {
		return err
	}
	for _, word := range words {
		name, value, _ := strings.Cut(word, "=")
		var err error
		switch name {
		case "--node-labels":
			err = b.addLabels(value)
		case "--register-with-taints":
			for text := range strings.SplitSeq(value, ",") {
				t, bad := readTaint(text)
				err = errors.Join(err, bad)
				b.Taints = append(b.Taints, t)
			}
		case "--max-pods":
			b.MaxPods, err = strconv.ParseInt(value, 10, 64)
		case "--pods-per-core":
			b.PodsPerCore, err = strconv.ParseInt(value, 10, 64)
		case "--kube-reserved":
			b.KubeReserved, err = readPairs(value, "=")
		case "--system-reserved":
			b.SystemReserved, err = readPairs(value, "=")
		case "--eviction-hard":
			b.EvictionHard, err = readPairs(value, "<")
		}
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

// shellWords splits the first command line as a shell does: quotes, backslashes, and lines joined by a backslash at
// their end. Variables are not known.
func shellWords(text string) ([]string, error) {
	var words []string
	var word strings.Builder
	inWord, quote := false, rune(0)
	end := func() {
		if inWord {
			words = append(words, word.String())
		}
		word.Reset()
		inWord = false
	}
	runes := []rune(text)
	for i := 0; i < len(runes); i++ {
		r := runes[i]
		switch {
		case quote != 0 && r == quote:
			quote = 0
		case quote == '\'':
			word.WriteRune(r)
		case r == '\\' && i+1 < len(runes):
			i++
			if runes[i] != '\n' {
				word.WriteRune(runes[i])
				inWord = true
			}
		case quote == '"':
			word.WriteRune(r)
		case r == '\'' || r == '"':
			quote, inWord = r, true
		case r == '\n' || r == ';':
			end()
			return words, nil
		case r == ' ' || r == '\t' || r == '\r':
			end()
		default:
			word.WriteRune(r)
			inWord = true
		}
	}
	if quote != 0 {
		return nil, fmt.Errorf("unclosed %c", quote)
	}
	end()
	return words, nil
}

// settings is the part of Bottlerocket's TOML that makes the Node.
type settings struct {
	Settings struct {
		Kubernetes *struct {
			ClusterName    string            `toml:"cluster-name"`
			APIServer      string            `toml:"api-server"`
			Certificate    string            `toml:"cluster-certificate"`
			NodeLabels     map[string]string `toml:"node-labels"`
			NodeTaints     map[string]any    `toml:"node-taints"`
			MaxPods        int64             `toml:"max-pods"`
			KubeReserved   map[string]string `toml:"kube-reserved"`
			SystemReserved map[string]string `toml:"system-reserved"`
			EvictionHard   map[string]string `toml:"eviction-hard"`
		} `toml:"kubernetes"`
		Commands map[string]struct {
			Commands [][]string `toml:"commands"`
		} `toml:"bootstrap-commands"`
	} `toml:"settings"`
}

func parseSettings(text string) (Boot, error) {
	var s settings
	if err := toml.Unmarshal([]byte(text), &s); err != nil {
		return Boot{}, fmt.Errorf("neither nodeadm, bootstrap.sh nor TOML: %w", err)
	}
	k := s.Settings.Kubernetes
	if k == nil {
		return Boot{}, errors.New("it starts no kubelet")
	}
	b := Boot{
		Format: FormatBottlerock, Cluster: k.ClusterName, Endpoint: k.APIServer, CA: k.Certificate,
		Labels:  k.NodeLabels,
		MaxPods: k.MaxPods, KubeReserved: k.KubeReserved, SystemReserved: k.SystemReserved,
		EvictionHard: k.EvictionHard,
	}
	for _, key := range sortedKeys(k.NodeTaints) {
		// One "value:effect" or a list of them.
		list, ok := k.NodeTaints[key].([]any)
		if !ok {
			list = []any{k.NodeTaints[key]}
		}
		for _, item := range list {
			value, effect, _ := strings.Cut(fmt.Sprint(item), ":")
			t, err := readTaint(key + "=" + value + ":" + effect)
			if err != nil {
				return b, fmt.Errorf("settings.kubernetes.node-taints: %w", err)
			}
			b.Taints = append(b.Taints, t)
		}
	}
	for _, c := range s.Settings.Commands {
		b.RAID0 = b.RAID0 || slices.ContainsFunc(c.Commands, func(words []string) bool {
			return slices.Equal(words, []string{"apiclient", "ephemeral-storage", "init"})
		})
	}
	return b, nil
}
