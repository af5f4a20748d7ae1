package kube

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"

	v1beta1 "joiner.sh/pkg/api/autoscaling/v1beta1"
	awsv1 "joiner.sh/pkg/api/aws/v1"
	joinerv1alpha1 "joiner.sh/pkg/api/joiner/v1alpha1"
	karpv1 "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/api/v1alpha1"
)

// Namespace is the namespace of Joiner's own objects: its leases and its data.
const Namespace = "joiner-system"

const (
	callTimeout = 10 * time.Second
	pageSize    = 500
	qps         = 200
	burst       = 400
)

// Config says how to reach a cluster.
type Config struct {
	Endpoint string // https URL of the API server
	CA       []byte // PEM of the authority that signed its certificate; empty for the system's
	// Authority, if set, is asked for the CA of today when that one's certificates are not believed: EKS may have
	// changed it. Nothing, or the same, changes nothing.
	Authority func(ctx context.Context) (pem []byte, err error)
	// Token makes a bearer token and says until when it can be used. It is called when there is none or the last one is
	// used up.
	Token func(ctx context.Context) (token string, expires time.Time, err error)
	// Transport, if set, is used in place of one made of CA and Token; it knows whom to trust and who we are.
	Transport http.RoundTripper
	// Now is the wall clock, time.Now if nil. It dates conditions, events and leases, and tells when a token is too
	// old.
	Now       func() time.Time
	UserAgent string
	// Wrap, if set, stands around the HTTP transport, for example to count requests.
	Wrap func(http.RoundTripper) http.RoundTripper
}

// Client talks to one API server: a part for each kind of object over one connection, which may be used by themselves.
// Its methods may be called concurrently, except Wait, of which one runs at a time. Every call ends after 10 seconds,
// lists after 10 seconds a page, and is tried again a few times when the server is busy or the connection broke. Every
// error names the call and the object.
type Client struct {
	*connection
	Reader // several kinds at once
	Pods
	Nodes
	Claims
	Pools
	Classes
	Overlays
	Buffers
	Volumes
	Devices
	Rollouts Rollouts
	Events
	Leases
	SharedData
	Objects Objects // any kind
}

// New makes a client. It makes no request.
func New(c Config) (*Client, error) {
	if c.Endpoint == "" || c.Token == nil && c.Transport == nil {
		return nil, errors.New("make kubernetes client: endpoint and token are needed")
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	transport, err := c.Transport, error(nil)
	if transport == nil {
		transport, err = newTransport(c)
	}
	if err != nil {
		return nil, fmt.Errorf("make kubernetes client: %w", err)
	}
	scheme, err := newScheme()
	if err != nil {
		return nil, fmt.Errorf("make kubernetes client: %w", err)
	}
	meter := &trafficMeter{next: transport, byKind: map[string]Traffic{}}
	conn := &connection{now: c.Now, seen: newReadCache(), traffic: meter,
		json: serializer.NewCodecFactory(scheme).UniversalDeserializer()}
	hc := &http.Client{Transport: meter}
	conn.core, err = newREST(c, scheme, hc, runtime.ContentTypeProtobuf)
	if err == nil {
		conn.custom, err = newREST(c, scheme, hc, runtime.ContentTypeJSON)
	}
	if err != nil {
		return nil, fmt.Errorf("make kubernetes client: %w", err)
	}
	return newClient(conn), nil
}

func newClient(c *connection) *Client {
	devices := Devices{c, &deviceCache{}}
	return &Client{connection: c, Reader: Reader{c, devices}, Pods: Pods{c}, Nodes: Nodes{c}, Claims: Claims{c},
		Pools: Pools{c}, Classes: Classes{c}, Overlays: Overlays{c}, Buffers: Buffers{c}, Volumes: Volumes{c},
		Rollouts: Rollouts{c, &rolloutMemory{}},
		Devices:  devices, Events: Events{c, newToldEvents()}, Leases: Leases{c, &sync.Map{}, newPendingTotals()},
		SharedData: SharedData{c}, Objects: Objects{c}}
}

func podPath() apiPath       { return apiPath{"pod", "/api/v1", "pods", false} }
func nodePath() apiPath      { return apiPath{"node", "/api/v1", "nodes", false} }
func namespacePath() apiPath { return apiPath{"namespace", "/api/v1", "namespaces", false} }
func servicePath() apiPath   { return apiPath{"service", "/api/v1", "services", false} }
func eventPath() apiPath     { return apiPath{"event", "/api/v1", "events", false} }
func configMaps() apiPath    { return apiPath{"configmap", "/api/v1", "configmaps", false} }
func volumeClaims() apiPath {
	return apiPath{"persistentvolumeclaim", "/api/v1", "persistentvolumeclaims", false}
}
func volumePath() apiPath { return apiPath{"persistentvolume", "/api/v1", "persistentvolumes", false} }
func storageTypes() apiPath {
	return apiPath{"storageclass", "/apis/storage.k8s.io/v1", "storageclasses", false}
}
func attachmentPath() apiPath {
	return apiPath{"volumeattachment", "/apis/storage.k8s.io/v1", "volumeattachments", false}
}
func csiDrivers() apiPath {
	return apiPath{"csidriver", "/apis/storage.k8s.io/v1", "csidrivers", false}
}
func csiNodes() apiPath       { return apiPath{"csinode", "/apis/storage.k8s.io/v1", "csinodes", false} }
func daemonSets() apiPath     { return apiPath{"daemonset", "/apis/apps/v1", "daemonsets", false} }
func deploymentPath() apiPath { return apiPath{"deployment", "/apis/apps/v1", "deployments", false} }
func replicaSets() apiPath    { return apiPath{"replicaset", "/apis/apps/v1", "replicasets", false} }
func statefulSets() apiPath   { return apiPath{"statefulset", "/apis/apps/v1", "statefulsets", false} }
func podTemplates() apiPath   { return apiPath{"podtemplate", "/api/v1", "podtemplates", false} }
func budgetPath() apiPath {
	return apiPath{"poddisruptionbudget", "/apis/policy/v1", "poddisruptionbudgets", false}
}
func leasePath() apiPath { return apiPath{"lease", "/apis/coordination.k8s.io/v1", "leases", false} }
func claimPath() apiPath {
	return apiPath{"nodeclaim", "/apis/karpenter.sh/v1", karpv1.NodeClaimResource, true}
}
func poolPath() apiPath {
	return apiPath{"nodepool", "/apis/karpenter.sh/v1", karpv1.NodePoolResource, true}
}
func classPath() apiPath {
	return apiPath{"ec2nodeclass", "/apis/karpenter.k8s.aws/v1", awsv1.EC2NodeClassResource, true}
}
func overlayPath() apiPath {
	return apiPath{"nodeoverlay", "/apis/karpenter.sh/v1alpha1", v1alpha1.NodeOverlayResource, true}
}
func rolloutPath() apiPath {
	return apiPath{"noderollout", "/apis/joiner.sh/v1alpha1", joinerv1alpha1.NodeRolloutResource, true}
}
func controllerRevisions() apiPath {
	return apiPath{"controllerrevision", "/apis/apps/v1", "controllerrevisions", true}
}
func capacityBuffers() apiPath {
	return apiPath{"capacitybuffer", "/apis/autoscaling.x-k8s.io/v1beta1", v1beta1.CapacityBufferResource, true}
}
