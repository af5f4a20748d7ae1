package api

import (
	"context"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	v1beta1 "joiner.sh/pkg/api/autoscaling/v1beta1"
	awsv1 "joiner.sh/pkg/api/aws/v1"
	joinerv1alpha1 "joiner.sh/pkg/api/joiner/v1alpha1"
	karpv1 "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/api/v1alpha1"
	"joiner.sh/pkg/install"

	"joiner.sh/infra/local/controlplane/client"
)

const (
	poll     = 50 * time.Millisecond
	patience = 4 * time.Minute
)

func TestMain(m *testing.M) { os.Exit(client.RunTests(m)) }

// cluster is a plane in which everything of pkg/install is applied, CRDs of other projects too.
type cluster struct {
	dynamic.Interface
	config *rest.Config
}

// installed is done once: no test changes what is installed.
var installed sync.Once

func newCluster(t *testing.T) cluster {
	t.Helper()
	c := clusterAs(t, client.ForTest(t).RESTConfig())
	installed.Do(func() { c.install(t) })
	return c
}

func clusterAs(t *testing.T, config *rest.Config) cluster {
	t.Helper()
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return cluster{Interface: client, config: config}
}

func (c cluster) install(t *testing.T) {
	t.Helper()
	all, err := install.Objects()
	if err != nil {
		t.Fatal(err)
	}
	borrowed, err := install.Borrowed()
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range append(all, borrowed...) {
		options := metav1.ApplyOptions{FieldManager: "apitest", Force: true}
		_, err := c.of(t, o).Apply(t.Context(), o.GetName(), o, options)
		if err != nil {
			t.Fatalf("apply %s %s: %v", o.GetKind(), o.GetName(), err)
		}
	}
	for _, r := range []schema.GroupVersionResource{pools(), claims(), classes(), overlays(), buffers(), rollouts()} {
		err := wait.PollUntilContextTimeout(t.Context(), poll, patience, true, func(ctx context.Context) (bool, error) {
			_, err := c.Resource(r).List(ctx, metav1.ListOptions{})
			return err == nil, ignoreNotServed(err)
		})
		if err != nil {
			t.Fatalf("wait for %s: %v", r.Resource, err)
		}
	}
}

func ignoreNotServed(err error) error {
	if apierrors.IsNotFound(err) || apierrors.IsTooManyRequests(err) {
		return nil
	}
	return err
}

func pools() schema.GroupVersionResource {
	return karpv1.GroupVersion().WithResource(karpv1.NodePoolResource)
}

func claims() schema.GroupVersionResource {
	return karpv1.GroupVersion().WithResource(karpv1.NodeClaimResource)
}

func classes() schema.GroupVersionResource {
	return awsv1.GroupVersion().WithResource(awsv1.EC2NodeClassResource)
}

func overlays() schema.GroupVersionResource {
	return v1alpha1.GroupVersion().WithResource(v1alpha1.NodeOverlayResource)
}

func rollouts() schema.GroupVersionResource {
	return joinerv1alpha1.GroupVersion().WithResource(joinerv1alpha1.NodeRolloutResource)
}

func buffers() schema.GroupVersionResource {
	return v1beta1.GroupVersion().WithResource(v1beta1.CapacityBufferResource)
}

// of is where the object lives.
func (c cluster) of(t *testing.T, o *unstructured.Unstructured) dynamic.ResourceInterface {
	t.Helper()
	r := c.Resource(resourceOf(t, o))
	if o.GetNamespace() == "" {
		return r
	}
	return r.Namespace(o.GetNamespace())
}

// resourceOf is the plural of an object's kind; the plane need not be asked for those used here.
func resourceOf(t *testing.T, o *unstructured.Unstructured) schema.GroupVersionResource {
	t.Helper()
	plurals := map[string]string{
		karpv1.NodePoolKind: karpv1.NodePoolResource, karpv1.NodeClaimKind: karpv1.NodeClaimResource,
		awsv1.EC2NodeClassKind: awsv1.EC2NodeClassResource, "CustomResourceDefinition": "customresourcedefinitions",
		v1alpha1.NodeOverlayKind: v1alpha1.NodeOverlayResource, v1beta1.CapacityBufferKind: v1beta1.CapacityBufferResource,
		joinerv1alpha1.NodeRolloutKind: joinerv1alpha1.NodeRolloutResource,
		"Namespace":                    "namespaces", "ClusterRole": "clusterroles", "ClusterRoleBinding": "clusterrolebindings",
		"Role": "roles", "RoleBinding": "rolebindings",
		"FlowSchema": "flowschemas", "PriorityLevelConfiguration": "prioritylevelconfigurations",
		"ValidatingAdmissionPolicy": "validatingadmissionpolicies", "ValidatingAdmissionPolicyBinding": "validatingadmissionpolicybindings",
	}
	plural, ok := plurals[o.GetKind()]
	if !ok {
		t.Fatalf("no plural known of kind %q", o.GetKind())
	}
	return o.GroupVersionKind().GroupVersion().WithResource(plural)
}

// create stores an object until the end of the test.
func (c cluster) create(t *testing.T, o *unstructured.Unstructured) *unstructured.Unstructured {
	t.Helper()
	r := c.of(t, o)
	got, err := r.Create(t.Context(), o, metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict})
	if err != nil {
		t.Fatalf("create %s %s: %v", o.GetKind(), o.GetName(), err)
	}
	t.Cleanup(func() {
		if err := r.Delete(context.Background(), got.GetName(), metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
			t.Error(fmt.Errorf("delete %s: %w", got.GetName(), err))
		}
	})
	return got
}
