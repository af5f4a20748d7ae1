package kubelet

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	kubeletv1 "k8s.io/kubelet/config/v1beta1"
	"sigs.k8s.io/yaml"
)

// nodeConfig is nodeadm's document. What has no bearing on the Node is only checked for its place.
type nodeConfig struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Metadata   any    `json:"metadata,omitempty"`
	Spec       struct {
		Cluster struct {
			Name                 string `json:"name"`
			APIServerEndpoint    string `json:"apiServerEndpoint"`
			CertificateAuthority string `json:"certificateAuthority"`
			CIDR                 string `json:"cidr"`
			EnableOutpost        any    `json:"enableOutpost,omitempty"`
			ID                   any    `json:"id,omitempty"`
		} `json:"cluster"`
		Containerd   any `json:"containerd,omitempty"`
		FeatureGates any `json:"featureGates,omitempty"`
		Instance     struct {
			LocalStorage struct {
				Strategy       string `json:"strategy"`
				MountPath      any    `json:"mountPath,omitempty"`
				DisabledMounts any    `json:"disabledMounts,omitempty"`
			} `json:"localStorage"`
			Environment any `json:"environment,omitempty"`
			Network     any `json:"network,omitempty"`
		} `json:"instance"`
		Kubelet struct {
			Config map[string]any `json:"config"`
			Flags  []string       `json:"flags"`
		} `json:"kubelet"`
	} `json:"spec"`
}

// parseNodeadm merges the documents in order, as nodeadm does: a later one wins field by field, flags add up.
func parseNodeadm(documents []string) (Boot, error) {
	merged := map[string]any{}
	var flags []string
	for i, text := range documents {
		var c nodeConfig
		if err := yaml.UnmarshalStrict([]byte(text), &c); err != nil {
			return Boot{}, fmt.Errorf("NodeConfig %d: %w", i+1, err)
		}
		if c.APIVersion != "node.eks.aws/v1alpha1" || c.Kind != "NodeConfig" {
			return Boot{}, fmt.Errorf("NodeConfig %d: it is %s %s", i+1, c.APIVersion, c.Kind)
		}
		flags = append(flags, c.Spec.Kubelet.Flags...)
		var raw map[string]any
		if err := yaml.Unmarshal([]byte(text), &raw); err != nil {
			return Boot{}, fmt.Errorf("NodeConfig %d: %w", i+1, err)
		}
		mergeMaps(merged, raw)
	}
	text, err := json.Marshal(merged)
	if err != nil {
		return Boot{}, fmt.Errorf("merge NodeConfigs: %w", err)
	}
	var c nodeConfig
	if err := json.Unmarshal(text, &c); err != nil {
		return Boot{}, fmt.Errorf("merge NodeConfigs: %w", err)
	}
	return c.readBoot(flags)
}

// mergeMaps puts what is in from over what is in into; lists and scalars replace, objects merge.
func mergeMaps(into, from map[string]any) {
	for key, value := range from {
		below, isMap := value.(map[string]any)
		old, wasMap := into[key].(map[string]any)
		if isMap && wasMap {
			mergeMaps(old, below)
			continue
		}
		into[key] = value
	}
}

func (c nodeConfig) readBoot(flags []string) (Boot, error) {
	cluster := c.Spec.Cluster
	for name, value := range map[string]string{
		"name": cluster.Name, "apiServerEndpoint": cluster.APIServerEndpoint,
		"certificateAuthority": cluster.CertificateAuthority, "cidr": cluster.CIDR,
	} {
		if value == "" {
			return Boot{}, fmt.Errorf("NodeConfig: spec.cluster.%s is missing", name)
		}
	}
	config, err := json.Marshal(c.Spec.Kubelet.Config)
	if err != nil {
		return Boot{}, fmt.Errorf("NodeConfig: %w", err)
	}
	var k kubeletv1.KubeletConfiguration
	if err := yaml.UnmarshalStrict(config, &k); err != nil {
		return Boot{}, fmt.Errorf("NodeConfig: spec.kubelet.config: %w", err)
	}
	b := Boot{
		Format: FormatNodeadm, Cluster: cluster.Name, Endpoint: cluster.APIServerEndpoint,
		CA:     cluster.CertificateAuthority,
		Taints: k.RegisterWithTaints, MaxPods: int64(k.MaxPods), PodsPerCore: int64(k.PodsPerCore),
		KubeReserved: k.KubeReserved, SystemReserved: k.SystemReserved, EvictionHard: k.EvictionHard,
		RAID0: c.Spec.Instance.LocalStorage.Strategy == "RAID0",
	}
	for _, t := range b.Taints {
		if err := checkEffect(t); err != nil {
			return b, err
		}
	}
	for _, flag := range flags {
		name, value, _ := strings.Cut(flag, "=")
		switch name {
		case "--node-labels":
			if err := b.addLabels(strings.Trim(value, `"'`)); err != nil {
				return b, err
			}
		case "--register-with-taints", "--max-pods":
			return b, errors.New(name + ": give it in spec.kubelet.config")
		}
	}
	return b, nil
}
