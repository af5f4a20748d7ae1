package kubelet

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime"
	"mime/multipart"
	"net/mail"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// Formats of user data that make a kubelet start.
const (
	FormatNodeadm    = "nodeadm"      // AL2023
	FormatBootstrap  = "bootstrap.sh" // AL2
	FormatBottlerock = "bottlerocket"
)

// Boot is what an instance's user data tells its kubelet.
type Boot struct {
	Format         string
	Cluster        string
	Endpoint       string
	CA             string // base64
	Labels         map[string]string
	Taints         []corev1.Taint
	MaxPods        int64 // 0: the image works it out
	PodsPerCore    int64
	KubeReserved   map[string]string // set by the user data; the image's own come on top in node.go
	SystemReserved map[string]string
	EvictionHard   map[string]string
	ReplacesKube   bool // KubeReserved and EvictionHard replace the image's own instead of being merged (AL2's flags)
	RAID0          bool
}

// section is one part of user data with its MIME type.
type section struct {
	kind string
	text string
}

// ParseUserData reads decoded user data as the image would: nodeadm's documents if there are any, else a script that
// runs bootstrap.sh, else Bottlerocket's settings. The error says what would keep the kubelet from starting.
func ParseUserData(text string) (Boot, error) {
	parts, err := splitSections(text)
	if err != nil {
		return Boot{}, fmt.Errorf("parse user data: %w", err)
	}
	var documents, scripts []string
	for _, p := range parts {
		switch {
		case p.kind == "application/node.eks.aws" || (p.kind == "" && strings.Contains(p.text, "kind: NodeConfig")):
			documents = append(documents, p.text)
		case strings.Contains(p.text, bootstrapScript):
			scripts = append(scripts, p.text)
		}
	}
	var b Boot
	switch {
	case len(documents) > 0:
		b, err = parseNodeadm(documents)
	case len(scripts) > 0:
		b, err = parseScript(scripts[len(scripts)-1])
	case len(parts) == 1 && parts[0].kind == "":
		b, err = parseSettings(text)
	default:
		err = errors.New("it starts no kubelet")
	}
	if err != nil {
		return Boot{}, fmt.Errorf("parse user data: %w", err)
	}
	return b, nil
}

// splitSections splits MIME multipart user data; anything else is one section without a type.
func splitSections(text string) ([]section, error) {
	if !strings.HasPrefix(text, "MIME-Version:") && !strings.HasPrefix(text, "Content-Type:") {
		return []section{{text: text}}, nil
	}
	message, err := mail.ReadMessage(strings.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("read MIME header: %w", err)
	}
	kind, parameters, err := mime.ParseMediaType(message.Header.Get("Content-Type"))
	if err != nil {
		return nil, fmt.Errorf("read content type: %w", err)
	}
	if !strings.HasPrefix(kind, "multipart/") {
		body, err := io.ReadAll(message.Body)
		return []section{{kind: kind, text: string(body)}}, err
	}
	var out []section
	reader := multipart.NewReader(message.Body, parameters["boundary"])
	for {
		part, err := reader.NextPart()
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return nil, fmt.Errorf("read MIME part %d: %w", len(out)+1, err)
		}
		s, err := readPart(part)
		if err != nil {
			return nil, fmt.Errorf("read MIME part %d: %w", len(out)+1, err)
		}
		out = append(out, s)
	}
}

func readPart(part *multipart.Part) (section, error) {
	body, err := io.ReadAll(part)
	if err != nil {
		return section{}, err
	}
	if part.Header.Get("Content-Transfer-Encoding") == "base64" {
		if body, err = base64.StdEncoding.DecodeString(string(bytes.Join(bytes.Fields(body), nil))); err != nil {
			return section{}, err
		}
	}
	kind, _, err := mime.ParseMediaType(part.Header.Get("Content-Type"))
	if err != nil {
		return section{}, fmt.Errorf("read content type: %w", err)
	}
	return section{kind: kind, text: string(body)}, nil
}

// addLabels reads the value of --node-labels. Several flags add up, as the kubelet's do.
func (b *Boot) addLabels(text string) error {
	if b.Labels == nil {
		b.Labels = map[string]string{}
	}
	labels, err := readPairs(text, "=")
	maps.Copy(b.Labels, labels)
	if err != nil {
		return fmt.Errorf("node labels: %w", err)
	}
	return nil
}

// readPairs reads "k=v,k=v" with the given sign between key and value.
func readPairs(text, sign string) (map[string]string, error) {
	out := map[string]string{}
	if text == "" {
		return out, nil
	}
	for pair := range strings.SplitSeq(text, ",") {
		key, value, ok := strings.Cut(pair, sign)
		if !ok || key == "" {
			return out, fmt.Errorf("%q is no pair of key%svalue", pair, sign)
		}
		out[strings.TrimSpace(key)] = strings.TrimSpace(value)
	}
	return out, nil
}

// readTaint reads key=value:effect or key:effect.
func readTaint(text string) (corev1.Taint, error) {
	name, effect, ok := strings.Cut(text, ":")
	key, value, _ := strings.Cut(name, "=")
	t := corev1.Taint{Key: key, Value: value, Effect: corev1.TaintEffect(effect)}
	if !ok || key == "" {
		return t, fmt.Errorf("%q is no taint", text)
	}
	return t, checkEffect(t)
}

func checkEffect(t corev1.Taint) error {
	switch t.Effect {
	case corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute:
		return nil
	default:
		return fmt.Errorf("taint %s: %q is no effect", t.Key, t.Effect)
	}
}
