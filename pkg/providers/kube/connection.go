package kube

import (
	"net/http"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	resourcev1 "k8s.io/api/resource/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"

	v1beta1 "joiner.sh/pkg/api/autoscaling/v1beta1"
	awsv1 "joiner.sh/pkg/api/aws/v1"
	joinerv1alpha1 "joiner.sh/pkg/api/joiner/v1alpha1"
	karpv1 "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/api/v1alpha1"
	"joiner.sh/pkg/nodeclass/translate"
)

func newREST(c Config, scheme *runtime.Scheme, hc *http.Client, contentType string) (rest.Interface, error) {
	return rest.UnversionedRESTClientForConfigAndClient(&rest.Config{
		Host:           c.Endpoint,
		UserAgent:      c.UserAgent,
		QPS:            qps,
		Burst:          burst,
		WarningHandler: rest.NoWarnings{},
		ContentConfig: rest.ContentConfig{
			NegotiatedSerializer: serializer.NewCodecFactory(scheme).WithoutConversion(),
			ContentType:          contentType,
			AcceptContentTypes:   contentType,
		},
	}, hc)
}

func newScheme() (*runtime.Scheme, error) {
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		corev1.AddToScheme, appsv1.AddToScheme, policyv1.AddToScheme, storagev1.AddToScheme, coordinationv1.AddToScheme,
		resourcev1.AddToScheme,
		karpv1.AddToScheme, awsv1.AddToScheme, v1alpha1.AddToScheme, v1beta1.AddToScheme,
		joinerv1alpha1.AddToScheme,
	} {
		if err := add(s); err != nil {
			return nil, err
		}
	}
	metav1.AddToGroupVersion(s, metav1.SchemeGroupVersion)
	return s, nil
}

// connection sends requests to one API server, and remembers what was read and written over it.
type connection struct {
	core   rest.Interface // protobuf
	custom rest.Interface // JSON
	json   runtime.Decoder
	now    func() time.Time
	seen   *readCache
	own    pendingWrites
	shapes translate.PodShapes

	traffic *trafficMeter // nil: nothing is counted
}

// apiPath is the path where objects of one kind are served.
type apiPath struct {
	name   string // singular, for errors
	path   string // up to the namespace or the plural
	plural string
	json   bool
}

// pathTo is the path of an object, of all objects if there is no name, or of a subresource.
func (p apiPath) pathTo(namespace, name, sub string) []string {
	out := []string{p.path}
	if namespace != "" {
		out = append(out, "namespaces", namespace)
	}
	out = append(out, p.plural)
	if name != "" {
		out = append(out, name)
	}
	if sub != "" {
		out = append(out, sub)
	}
	return out
}

func (c *connection) restClient(p apiPath) rest.Interface {
	if p.json {
		return c.custom
	}
	return c.core
}
