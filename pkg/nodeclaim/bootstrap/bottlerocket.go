package bootstrap

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/pelletier/go-toml/v2"
)

// tomlTable is a TOML table.
type tomlTable = map[string]any

// bottlerocketUserData writes the user's settings with ours put over them. Settings that Joiner does not know stay as
// they are, also those under settings.kubernetes, which Karpenter loses.
func bottlerocketUserData(in Input) (string, error) {
	doc := tomlTable{}
	if err := toml.Unmarshal([]byte(in.UserData), &doc); err != nil {
		return "", malformedError("spec.userData is no TOML: %v", err)
	}
	settings, err := childTable(doc, "settings")
	if err != nil {
		return "", err
	}
	kubernetes, err := childTable(settings, "kubernetes")
	if err != nil {
		return "", err
	}
	if err := putCluster(kubernetes, in); err != nil {
		return "", err
	}
	putKubelet(kubernetes, in)
	if in.RAID0 {
		commands, err := childTable(settings, "bootstrap-commands")
		if err != nil {
			return "", err
		}
		if !initializesStorage(commands) {
			commands["000-mount-instance-storage"] = mountInstanceStore(in.ImageVersion)
		}
	}
	text, err := toml.Marshal(doc)
	if err != nil {
		return "", malformedError("write TOML: %v", err)
	}
	return string(text), nil
}

// childTable returns the table under key, which it makes when there is none.
func childTable(parent tomlTable, key string) (tomlTable, error) {
	switch v := parent[key].(type) {
	case nil:
		t := tomlTable{}
		parent[key] = t
		return t, nil
	case tomlTable:
		return v, nil
	}
	return nil, malformedError("spec.userData: %s must be a TOML table", key)
}

// putCluster sets what a node cannot join without, whatever the user wrote.
func putCluster(k tomlTable, in Input) error {
	k["cluster-name"], k["api-server"], k["cluster-certificate"] = in.ClusterName, in.Endpoint, in.CABundle
	k["max-pods"] = in.maxPods()
	ours := in.Node.nodeLabels()
	labels, err := childTable(k, "node-labels")
	if err != nil {
		return err
	}
	for _, key := range slices.Sorted(maps.Keys(ours)) {
		labels[key] = ours[key]
	}
	delete(k, "node-taints")
	taints := tomlTable{}
	for _, t := range in.Node.taints {
		list, _ := taints[t.Key].([]string)
		taints[t.Key] = append(list, t.Value+":"+t.Effect)
	}
	if len(taints) > 0 {
		k["node-taints"] = taints
	}
	return nil
}

// putKubelet sets what the class says of the kubelet. Bottlerocket has no setting for podsPerCore.
func putKubelet(k tomlTable, in Input) {
	if dns := in.clusterDNS(); len(dns) > 0 {
		k["cluster-dns-ip"] = dns[0]
	}
	for _, m := range []struct {
		key    string
		values map[string]string
	}{
		{"system-reserved", in.Kubelet.SystemReserved}, {"kube-reserved", in.Kubelet.KubeReserved},
		{"eviction-hard", in.Kubelet.EvictionHard}, {"eviction-soft", in.Kubelet.EvictionSoft},
		{"eviction-soft-grace-period", gracePeriods(in)},
	} {
		if len(m.values) > 0 {
			k[m.key] = maps.Clone(m.values)
		}
	}
	if v := in.Kubelet.EvictionMaxPodGracePeriod; v != nil {
		k["eviction-max-pod-grace-period"] = *v
	}
	if v := in.Kubelet.ImageGCHighThresholdPercent; v != nil {
		k["image-gc-high-threshold-percent"] = strconv.Itoa(int(*v))
	}
	if v := in.Kubelet.ImageGCLowThresholdPercent; v != nil {
		k["image-gc-low-threshold-percent"] = strconv.Itoa(int(*v))
	}
	if v := in.Kubelet.CPUCFSQuota; v != nil {
		k["cpu-cfs-quota-enforced"] = *v
	}
}

// initializesStorage reports whether one of the user's bootstrap commands joins the local disks. A second one fails,
// and the node with it.
func initializesStorage(commands tomlTable) bool {
	for _, name := range slices.Sorted(maps.Keys(commands)) {
		one, _ := commands[name].(tomlTable)
		list, _ := one["commands"].([]any)
		for _, command := range list {
			if strings.HasPrefix(fmt.Sprint(command), "[apiclient ephemeral-storage init") {
				return true
			}
		}
	}
	return false
}

// mountInstanceStore is the bootstrap command that joins the local disks and puts the pods' directories on them. Since
// 1.46 Bottlerocket knows these directories itself.
func mountInstanceStore(version string) tomlTable {
	bind := []string{"apiclient", "ephemeral-storage", "bind"}
	if !bindsByItself(version) {
		bind = append(bind, "--dirs", "/var/lib/containerd", "/var/lib/kubelet", "/var/log/pods")
	}
	return tomlTable{
		"commands": [][]string{{"apiclient", "ephemeral-storage", "init"}, bind}, "mode": "always", "essential": true,
	}
}

// bindsByItself reports whether the image version, or the name that holds it, is latest or at least 1.46.0.
func bindsByItself(version string) bool {
	if version == "latest" {
		return true
	}
	m := regexp.MustCompile(`(?:^|[-v])(\d+)\.(\d+)\.\d+`).FindStringSubmatch(version)
	if m == nil {
		return false
	}
	major, err1 := strconv.Atoi(m[1])
	minor, err2 := strconv.Atoi(m[2])
	return err1 == nil && err2 == nil && (major > 1 || major == 1 && minor >= 46)
}
