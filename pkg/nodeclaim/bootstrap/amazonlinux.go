package bootstrap

import (
	"bytes"
	"cmp"
	"encoding/json"
	"regexp"
	"strings"

	"sigs.k8s.io/yaml"

	awsv1 "joiner.sh/pkg/api/aws/v1"
	"joiner.sh/pkg/model/lists"
)

// al2UserData writes MIME: the user's parts, then a script that runs /etc/eks/bootstrap.sh.
func al2UserData(in Input) (string, error) {
	parts, err := userParts(in.UserData, func(string) string { return typeShell })
	if err != nil {
		return "", err
	}
	return writeMIME(append(parts, newPart(typeShell, al2Script(in))))
}

// userParts returns the parts of the user's text; what is not MIME becomes one part of the type that its first line
// says, or else typeOf.
func userParts(text string, typeOf func(string) string) ([]mimePart, error) {
	switch {
	case text == "":
		return nil, nil
	case isMIME(text):
		return parseMIME(text)
	}
	return []mimePart{newPart(cmp.Or(cloudInitType(text), typeOf(text)), text)}, nil
}

func al2Script(in Input) string {
	var b strings.Builder
	b.WriteString("#!/bin/bash -xe\n" +
		"exec > >(tee /var/log/user-data.log | logger -t user-data -s 2>/dev/console) 2>&1\n" +
		"/etc/eks/bootstrap.sh " + shellQuote(in.ClusterName) +
		" --apiserver-endpoint " + shellQuote(in.Endpoint) + " --b64-cluster-ca " + shellQuote(in.CABundle))
	if dns := in.clusterDNS(); len(dns) > 0 {
		if strings.Contains(dns[0], ":") {
			b.WriteString(" \\\n--ip-family ipv6")
		}
		b.WriteString(" \\\n--dns-cluster-ip " + shellQuote(dns[0]))
	}
	b.WriteString(" \\\n--use-max-pods false")
	b.WriteString(" \\\n--kubelet-extra-args " + shellQuote(kubeletArgs(in)))
	if in.RAID0 {
		b.WriteString(" \\\n--local-disks raid0")
	}
	b.WriteString("\n")
	return b.String()
}

// shellQuote makes one word of s for the shell.
func shellQuote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// al2023UserData writes MIME: the user's parts, then the NodeConfig, which is last because nodeadm lets the last one
// win.
func al2023UserData(in Input) (string, error) {
	if in.ServiceCIDR == "" {
		return "", &Error{Reason: ReasonServiceCIDR,
			Message: "AL2023 needs the service CIDR of the cluster, which is unknown"}
	}
	parts, err := userParts(in.UserData, func(text string) string {
		if isMapping(text) {
			return typeNodeadm
		}
		return typeShell
	})
	if err != nil {
		return "", err
	}
	config, err := nodeConfig(in)
	if err != nil {
		return "", err
	}
	return writeMIME(append(parts, newPart(typeNodeadm, config)))
}

// isMapping reports whether the text is a YAML mapping, or YAML without content.
func isMapping(text string) bool {
	var m map[string]any
	return yaml.Unmarshal([]byte(text), &m) == nil
}

// The part of nodeadm's NodeConfig that is written, see the nodeadm API node.eks.aws/v1alpha1.
type (
	nodeadmConfig struct {
		APIVersion string      `json:"apiVersion"`
		Kind       string      `json:"kind"`
		Spec       nodeadmSpec `json:"spec"`
	}
	nodeadmSpec struct {
		Cluster  nodeadmCluster   `json:"cluster"`
		Instance *nodeadmInstance `json:"instance,omitempty"`
		Kubelet  nodeadmKubelet   `json:"kubelet"`
	}
	nodeadmCluster struct {
		Name                 string `json:"name"`
		APIServerEndpoint    string `json:"apiServerEndpoint"`
		CertificateAuthority string `json:"certificateAuthority"`
		CIDR                 string `json:"cidr"`
	}
	nodeadmInstance struct {
		LocalStorage nodeadmStorage `json:"localStorage"`
	}
	nodeadmStorage struct {
		Strategy string `json:"strategy"`
	}
	nodeadmKubelet struct {
		Config awsv1.KubeletConfiguration `json:"config"`
		Flags  []string                   `json:"flags,omitempty"`
	}
)

// kubeletFile is the kubelet's configuration with the taints of the node, which no class can set.
func kubeletFile(in Input) (awsv1.KubeletConfiguration, error) {
	file, pods := in.Kubelet, int32(in.maxPods())
	file.MaxPods, file.ClusterDNS = &pods, in.clusterDNS()
	file.Extra = lists.CopyMap(in.Kubelet.Extra)
	delete(file.Extra, awsv1.KubeletTaints)
	delete(file.Extra, awsv1.KubeletMaxPods) // an expression, of which MaxPods came
	if len(in.Node.taints) == 0 {
		return file, nil
	}
	text, err := json.Marshal(in.Node.taints)
	if err != nil {
		return file, malformedError("write the node's taints: %v", err)
	}
	file.Extra[awsv1.KubeletTaints] = string(text)
	return file, nil
}

func nodeConfig(in Input) (string, error) {
	file, err := kubeletFile(in)
	if err != nil {
		return "", err
	}
	config := nodeadmConfig{APIVersion: "node.eks.aws/v1alpha1", Kind: "NodeConfig", Spec: nodeadmSpec{
		Cluster: nodeadmCluster{
			Name: in.ClusterName, APIServerEndpoint: in.Endpoint, CertificateAuthority: in.CABundle,
			CIDR: in.ServiceCIDR,
		},
		Kubelet: nodeadmKubelet{Config: file, Flags: []string{`--node-labels="` + joinPairs(in.Node.nodeLabels(), "=") +
			`"`}},
	}}
	if in.RAID0 {
		config.Spec.Instance = &nodeadmInstance{LocalStorage: nodeadmStorage{Strategy: "RAID0"}}
	}
	text, err := json.Marshal(config)
	if err != nil {
		return "", malformedError("write NodeConfig: %v", err)
	}
	// line breaks to a reader of YAML 1.1, which its encoder takes for such too: JSON, which is YAML, spells them out
	text = bytes.ReplaceAll(text, []byte("\u0085"), []byte(`\u0085`))
	if regexp.MustCompile(`\\u(0085|2028|2029)`).Match(text) {
		return nodeConfigHead + string(text) + "\n", nil
	}
	if text, err = yaml.JSONToYAML(text); err != nil {
		return "", malformedError("write NodeConfig: %v", err)
	}
	return nodeConfigHead + string(text), nil
}

// nodeConfigHead begins every NodeConfig.
const nodeConfigHead = "# Made by Joiner\n"
