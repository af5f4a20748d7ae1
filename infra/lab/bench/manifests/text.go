package manifests

import (
	"bytes"
	"encoding/json"
	"fmt"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"sigs.k8s.io/yaml"

	awsv1 "joiner.sh/pkg/api/aws/v1"
	api "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/api/v1alpha1"
	"joiner.sh/pkg/workload/manifest"
)

// settingsName is the ConfigMap that settings are written in.
const settingsName = "compare"

// kind is a list of a cluster and how its objects are called.
type kind struct {
	version, name string
	each          func(write func(any) error) error
	read          func(body []byte) error
}

func kindOf[T any](version, name string, list *[]T) kind {
	return kind{version, name, func(write func(any) error) error {
		for i := range *list {
			if err := write((*list)[i]); err != nil {
				return err
			}
		}
		return nil
	}, func(body []byte) error {
		var one T
		if err := json.Unmarshal(body, &one); err != nil {
			return fmt.Errorf("read %s: %w", name, err)
		}
		*list = append(*list, one)
		return nil
	}}
}

// clusterLists are all lists of the cluster, pods last.
func (c *Cluster) clusterLists() []kind {
	return []kind{
		kindOf[awsv1.EC2NodeClass]("karpenter.k8s.aws/v1", "EC2NodeClass", &c.NodeClasses),
		kindOf[api.NodePool]("karpenter.sh/v1", "NodePool", &c.NodePools),
		kindOf[v1alpha1.NodeOverlay]("karpenter.sh/v1alpha1", "NodeOverlay", &c.NodeOverlays),
		kindOf[corev1.Namespace]("v1", "Namespace", &c.Namespaces),
		kindOf[storagev1.StorageClass]("storage.k8s.io/v1", "StorageClass", &c.StorageClasses),
		kindOf[corev1.PersistentVolume]("v1", "PersistentVolume", &c.Volumes),
		kindOf[corev1.PersistentVolumeClaim]("v1", "PersistentVolumeClaim", &c.VolumeClaims),
		kindOf[storagev1.CSINode]("storage.k8s.io/v1", "CSINode", &c.CSINodes),
		kindOf[api.NodeClaim]("karpenter.sh/v1", "NodeClaim", &c.NodeClaims),
		kindOf[corev1.Node]("v1", "Node", &c.Nodes),
		kindOf[appsv1.DaemonSet]("apps/v1", "DaemonSet", &c.DaemonSets), kindOf[corev1.Pod]("v1", "Pod", &c.Pods),
	}
}

// YAML is the cluster as a stream of manifests, which Read reads back. Of what no object says there is a ConfigMap;
// joiner plan -f reads the stream too, and leaves out that one and what it does not plan with.
func (c *Cluster) YAML() ([]byte, error) {
	var out bytes.Buffer
	settings, err := json.Marshal(c.Settings)
	if err != nil {
		return nil, fmt.Errorf("write settings: %w", err)
	}
	write := func(version, name string, one any) error {
		b, err := json.Marshal(one)
		if err != nil {
			return fmt.Errorf("write %s: %w", name, err)
		}
		var tree map[string]any
		if err := json.Unmarshal(b, &tree); err != nil {
			return fmt.Errorf("write %s: %w", name, err)
		}
		tree["apiVersion"], tree["kind"] = version, name
		text, err := yaml.Marshal(pruneEmpty(tree))
		if err != nil {
			return fmt.Errorf("write %s: %w", name, err)
		}
		fmt.Fprintf(&out, "---\n%s", text)
		return nil
	}
	if err := write("v1", "ConfigMap", corev1.ConfigMap{ObjectMeta: metaOf(settingsName),
		Data: map[string]string{"settings": string(settings)}}); err != nil {
		return nil, err
	}
	for _, k := range c.clusterLists() {
		if err := k.each(func(one any) error { return write(k.version, k.name, one) }); err != nil {
			return nil, err
		}
	}
	return out.Bytes(), nil
}

// pruneEmpty leaves out what says nothing: null and empty maps, but for selectors, which select everything when they
// are empty.
func pruneEmpty(tree map[string]any) map[string]any {
	for key, value := range tree {
		switch v := value.(type) {
		case nil:
			delete(tree, key)
		case map[string]any:
			if pruneEmpty(v); len(v) == 0 && key != "labelSelector" && key != "namespaceSelector" {
				delete(tree, key)
			}
		case []any:
			for _, one := range v {
				if m, ok := one.(map[string]any); ok {
					pruneEmpty(m)
				}
			}
		}
	}
	return tree
}

// ParseCluster reads what YAML wrote.
func ParseCluster(path string, text []byte) (*Cluster, error) {
	docs, err := manifest.ParseManifests(path, text)
	if err != nil {
		return nil, fmt.Errorf("read cluster: %w", err)
	}
	c := &Cluster{}
	kinds := map[string]kind{}
	for _, k := range c.clusterLists() {
		kinds[k.version+" "+k.name] = k
	}
	for _, d := range docs {
		if d.Kind == "ConfigMap" && d.Name == settingsName {
			var m corev1.ConfigMap
			if err := json.Unmarshal(d.Body, &m); err != nil {
				return nil, fmt.Errorf("read settings: %w", err)
			}
			if err := json.Unmarshal([]byte(m.Data["settings"]), &c.Settings); err != nil {
				return nil, fmt.Errorf("read settings: %w", err)
			}
			continue
		}
		k, ok := kinds[d.APIVersion+" "+d.Kind]
		if !ok {
			return nil, d.Errorf("kind", "%s %s is not known here", d.APIVersion, d.Kind)
		}
		if err := k.read(d.Body); err != nil {
			return nil, err
		}
	}
	return c, nil
}

func metaOf(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Name: name} }
