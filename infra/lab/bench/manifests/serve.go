package manifests

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"path"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/providers/kube"
)

// ReadSnapshot returns the cluster as Joiner reads it, with the catalog and the rules of its settings.
func (c *Cluster) ReadSnapshot(ctx context.Context, all instancetypes.Catalog) (cluster.Snapshot, error) {
	client, err := kube.New(kube.Config{Endpoint: "https://cluster.invalid", Transport: c, Now: ClusterTime})
	if err != nil {
		return cluster.Snapshot{}, fmt.Errorf("read cluster: %w", err)
	}
	s, err := client.ReadSnapshot(ctx)
	if err == nil {
		s, err = client.WithVolumes(ctx, s)
	}
	if err != nil {
		return s, fmt.Errorf("read cluster: %w", err)
	}
	for i := range s.Classes {
		c.completeClass(&s.Classes[i])
	}
	if s.Catalog, err = c.SoldCatalog(all); err != nil {
		return s, err
	}
	s.Unavailable = c.UnavailableOfferings()
	s.Rules = cluster.Settings{RelaxMinValues: c.Settings.RelaxMinValues,
		IgnorePreferences: c.Settings.IgnorePreferences}
	return s, nil
}

// RoundTrip answers a list as the API server does, in one page. What is not here is an empty list.
func (c *Cluster) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method != http.MethodGet {
		return nil, fmt.Errorf("%s %s: the cluster is only read", r.Method, r.URL)
	}
	var items any = []string{}
	switch path.Base(r.URL.Path) {
	case "pods":
		items = c.selectPods(r.URL.Query().Get("fieldSelector"))
	case "nodes":
		items = c.Nodes
	case "namespaces":
		items = c.Namespaces
	case "daemonsets":
		items = c.DaemonSets
	case "persistentvolumes":
		items = c.Volumes
	case "persistentvolumeclaims":
		items = c.VolumeClaims
	case "storageclasses":
		items = c.StorageClasses
	case "csinodes":
		items = c.CSINodes
	case "nodepools":
		items = c.NodePools
	case "nodeclaims":
		items = c.NodeClaims
	case "ec2nodeclasses":
		items = c.NodeClasses
	case "nodeoverlays":
		items = c.NodeOverlays
	}
	kind, version := listOf(r.URL.Path)
	body, err := json.Marshal(map[string]any{"kind": kind, "apiVersion": version,
		"metadata": map[string]string{"resourceVersion": "1"}, "items": items})
	if err != nil {
		return nil, fmt.Errorf("serve %s: %w", r.URL.Path, err)
	}
	return &http.Response{
		Status: "200 OK", StatusCode: http.StatusOK, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: r,
		Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(bytes.NewReader(body)),
		ContentLength: int64(len(body)),
	}, nil
}

// selectPods returns the pods that a field selector on spec.nodeName and status.phase selects.
func (c *Cluster) selectPods(fields string) []corev1.Pod {
	out := []corev1.Pod{}
	for _, p := range c.Pods {
		ok := true
		for term := range strings.SplitSeq(fields, ",") {
			switch key, value, _ := strings.Cut(term, "="); key {
			case "spec.nodeName":
				ok = ok && p.Spec.NodeName == value
			case "status.phase!":
				ok = ok && string(p.Status.Phase) != value
			}
		}
		if ok {
			out = append(out, p)
		}
	}
	return out
}

// listOf is the kind and API version of the list that is served at the path.
func listOf(at string) (kind, version string) {
	kinds := map[string]string{
		"pods": "Pod", "nodes": "Node", "namespaces": "Namespace", "daemonsets": "DaemonSet",
		"persistentvolumes":      "PersistentVolume",
		"persistentvolumeclaims": "PersistentVolumeClaim", "storageclasses": "StorageClass", "csinodes": "CSINode",
		"csidrivers": "CSIDriver",
		"nodepools":  "NodePool",
		"nodeclaims": "NodeClaim", "ec2nodeclasses": "EC2NodeClass", "nodeoverlays": "NodeOverlay",
		"poddisruptionbudgets": "PodDisruptionBudget",
		"capacitybuffers":      "CapacityBuffer", "podtemplates": "PodTemplate", "deviceclasses": "DeviceClass",
		"resourceslices": "ResourceSlice",
		"resourceclaims": "ResourceClaim",
	}
	version = strings.TrimPrefix(strings.TrimPrefix(path.Dir(at), "/apis/"), "/api/")
	return kinds[path.Base(at)] + "List", version
}
