package setup

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/util/retry"

	"joiner.sh/infra/local/awsemulator"
	"joiner.sh/infra/local/env"
	"joiner.sh/infra/local/lambdahost"
	"joiner.sh/pkg/install/preflight"
	"joiner.sh/pkg/install/setup"
	"joiner.sh/pkg/providers/kube"
)

func TestSetup(t *testing.T) {
	w := start(t) // which asks for Create
	t.Run("what was installed is setup's own", w.testOwner)
	t.Run("an update mends what is missing", w.testUpdate)
	t.Run("an old CRD is upgraded", w.testUpgrade)
	t.Run("a cluster that cannot be used is refused with instructions", w.testRefusals)
	t.Run("why the API server refuses", w.testReasons)
	t.Run("requests of others", w.testForged)
	t.Run("what EKS Auto Mode has stays as it is", w.testAutoMode)
	t.Run("drain", w.testDrain)
	t.Run("keep", w.testKeep)
}

func (w *world) testOwner(t *testing.T) {
	o, err := w.Kube.Dynamic.Resource(crds()).Get(t.Context(), "nodepools.karpenter.sh", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range o.GetManagedFields() {
		if f.Manager == "joiner" && f.Operation == metav1.ManagedFieldsOperationApply {
			return
		}
	}
	t.Errorf("no field of the CRD was applied by joiner: %v", o.GetManagedFields())
}

func (w *world) testUpdate(t *testing.T) {
	if err := w.Kube.RbacV1().ClusterRoles().Delete(t.Context(), "joiner-provision", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	w.ask(t, "Update", setupType, "", map[string]any{"Manifests": "other"})
	if _, err := w.Kube.RbacV1().ClusterRoles().Get(t.Context(), "joiner-provision", metav1.GetOptions{}); err != nil {
		t.Error(err)
	}
}

// testUpgrade has the CRD as Karpenter 1.0 left it: with objects that may be stored as v1beta1, and a conversion
// webhook whose service is gone.
func (w *world) testUpgrade(t *testing.T) {
	const name = "nodepools.karpenter.sh"
	old := map[string]any{"name": "v1beta1", "served": true, "storage": false, "schema": map[string]any{
		"openAPIV3Schema": map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}
	// the API server writes the CRD's conditions meanwhile
	if err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		o, err := w.Kube.Dynamic.Resource(crds()).Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		versions, _, err := unstructured.NestedSlice(o.Object, "spec", "versions")
		if err != nil {
			return err
		}
		if err := unstructured.SetNestedSlice(o.Object, append(versions, old), "spec", "versions"); err != nil {
			return err
		}
		_, err = w.Kube.Dynamic.Resource(crds()).Update(t.Context(), o, metav1.UpdateOptions{})
		return err
	}); err != nil {
		t.Fatal(err)
	}
	w.patch(t, name, "status", `{"status":{"storedVersions":["v1beta1","v1"]}}`)
	pool := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "karpenter.sh/v1beta1", "kind": "NodePool",
		"metadata": map[string]any{"name": "old"}, "spec": map[string]any{"template": map[string]any{"spec": map[string]any{
			"requirements": []any{}, "nodeClassRef": map[string]any{"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"}}}}}}
	eventually(t, "a NodePool of v1beta1 is taken", func(ctx context.Context) (string, bool) {
		err := w.Kube.ApplyObject(ctx, pool)
		if err != nil {
			return err.Error(), false
		}
		return "", true
	})
	w.patch(t, name, "", `{"spec":{"conversion":{"strategy":"Webhook","webhook":{"conversionReviewVersions":["v1"],"clientConfig":{"url":"https://127.0.0.1:1/convert"}}}}}`)

	w.ask(t, "Update", setupType, "", nil)
	after, err := w.Kube.Dynamic.Resource(crds()).Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	served, _, _ := unstructured.NestedSlice(after.Object, "spec", "versions")
	stored, _, _ := unstructured.NestedStringSlice(after.Object, "status", "storedVersions")
	strategy, _, _ := unstructured.NestedString(after.Object, "spec", "conversion", "strategy")
	if len(served) != 1 || strings.Join(stored, " ") != "v1" || strategy != "None" {
		t.Errorf("%d versions, stored %v, conversion %s; want 1, v1, None", len(served), stored, strategy)
	}
	if err := w.Kube.Dynamic.Resource(env.NodePools()).Delete(t.Context(), "old", metav1.DeleteOptions{}); err != nil {
		t.Errorf("the NodePool did not survive: %v", err)
	}
}

func (w *world) testRefusals(t *testing.T) {
	defer w.Cloud.SetClusterAccess("API", true)
	for _, c := range []struct {
		mode   string
		public bool
		says   string
	}{
		{"CONFIG_MAP", true, "aws eks update-cluster-config --region us-west-2 --name demo --access-config authenticationMode=API_AND_CONFIG_MAP"},
		{"API", false, "has no public endpoint"},
	} {
		w.Cloud.SetClusterAccess(c.mode, c.public)
		newer := map[string]any{"Deployment": "2099-01-01T00:00:00Z", "OnDelete": "keep", "Reserved": "1204"}
		w.ask(t, "Update", preflightType, c.says, newer)
		w.ask(t, "Update", setupType, c.says, newer)
		w.ask(t, "Update", preflightType, "", nil) // what CloudFormation sends next, with the properties of before
		w.ask(t, "Delete", preflightType, "", nil) // a rollback goes through
	}
	w.Cloud.SetClusterAccess("API", true)
	w.ask(t, "Create", preflightType, "nodeRole: KarpenterNodeRole-demo", nil) // the role is there
	w.ask(t, "Update", preflightType, "", nil)                                 // and is the stack's
	w.Cloud.SetConcurrency(300)
	defer w.Cloud.SetConcurrency(1000)
	w.ask(t, "Create", preflightType, "aws service-quotas request-service-quota-increase --service-code lambda", nil)
	w.ask(t, "Update", preflightType, "", nil) // what it has reserved it may keep
	// Others in the account ask EKS as often as it allows.
	w.Cloud.AddFault(awsemulator.Fault{Service: "eks", Action: "DescribeCluster", Kind: awsemulator.Throttle, Times: 3})
	w.ask(t, "Update", preflightType, "are to reserve 1205 ", map[string]any{"Reserved": "1205"})
}

// testForged: who may invoke setup is not CloudFormation, and is given no answer.
func (w *world) testForged(t *testing.T) {
	fn := w.FunctionName("setup")
	for name, event := range map[string]string{
		"another stack":   `{"RequestType":"Delete","ResourceType":"Custom::JoinerSetup","PhysicalResourceId":"joiner-setup-demo","StackId":"arn:aws:cloudformation:us-west-2:1:stack/x/1","ResponseURL":"http://127.0.0.1:1/","ResourceProperties":{"OnDelete":"drain"}}`,
		"an answer to me": `{"RequestType":"Delete","ResourceType":"Custom::JoinerSetup","PhysicalResourceId":"joiner-setup-demo","StackId":"` + w.StackID() + `","ResponseURL":"https://example.com/","ResourceProperties":{"ServiceToken":"x"}}`,
	} {
		res, err := w.Host.InvokeFunction(t.Context(), fn, lambdahost.RequestResponse, []byte(event))
		if err != nil || res.FunctionError == "" || !strings.Contains(string(res.Payload), "refuse a request") {
			t.Errorf("%s: %v %s %s", name, err, res.FunctionError, res.Payload)
		}
	}
}

// testReasons uses the same code with the patience of a test.
func (w *world) testReasons(t *testing.T) {
	nobody, weak := w.Cloud.PutRole("nobody"), w.Cloud.PutRole("weak")
	w.Cloud.PutAccessEntry(awsemulator.AccessEntry{PrincipalARN: weak, KubernetesGroups: []string{"joiner-refresh"}})
	for _, c := range []struct{ role, endpoint, says string }{
		{nobody, w.Plane.ServerURL(), "its access entry is missing"},
		{weak, w.Plane.ServerURL(), "its access entry lacks the policy AmazonEKSClusterAdminPolicy"},
		{weak, "https://127.0.0.1:1", "cannot reach the API server of cluster demo at https://127.0.0.1:1"},
	} {
		keys := w.Cloud.IssueCredentials(c.role, "test", 0)
		client, err := kube.New(kube.Config{Endpoint: c.endpoint, CA: w.Plane.CA(), UserAgent: "setuptest",
			Token: kube.EKSToken(sts.NewFromConfig(aws.Config{Region: env.Region, BaseEndpoint: aws.String(w.Cloud.URL()),
				Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) { return keys, nil })}), env.ClusterName, time.Now)})
		if err != nil {
			t.Fatal(err)
		}
		s := setup.Setup{Cluster: client.Objects, Poll: time.Millisecond, Patience: time.Millisecond, Log: slog.New(slog.DiscardHandler),
			Access: setup.Access{Role: c.role, Cluster: preflight.Cluster{Name: "demo", Region: env.Region, Found: true, Status: "ACTIVE", Mode: "API", Endpoint: c.endpoint, Public: true}}}
		if _, err := s.InstallObjects(t.Context()); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("role %s at %s: %v, want %q", c.role, c.endpoint, err, c.says)
		}
	}
}

func (w *world) testKeep(t *testing.T) {
	w.ask(t, "Create", setupType, "", nil) // the stack comes back
	w.launch(t, "stays")
	if held, claims := w.finalizers(t); held != 3 || claims != 1 {
		t.Fatalf("%d finalizers and %d claims before, want 3 and 1", held, claims)
	}
	w.ask(t, "Delete", setupType, "", map[string]any{"OnDelete": "keep"})
	if held, claims := w.finalizers(t); held != 0 || claims != 1 || w.running() != 1 {
		t.Errorf("%d finalizers, %d claims, %d instances left; want 0, 1, 1", held, claims, w.running())
	}
}

func (w *world) testDrain(t *testing.T) {
	w.launch(t, "goes")
	w.keepStopped(t)
	if _, claims := w.finalizers(t); claims != 2 || w.running() != 1 || w.living() != 2 {
		t.Fatalf("%d claims, %d instances run and %d live before, want 2, 1 and 2", claims, w.running(), w.living())
	}
	w.ask(t, "Delete", setupType, "", nil)
	held, claims := w.finalizers(t)
	nodes, err := w.Kube.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	if err != nil || held != 0 || claims != 0 || w.living() != 0 || len(nodes.Items) != 0 {
		t.Errorf("%d finalizers, %d claims, %d instances, %d nodes left (%v); want none", held, claims, w.living(), len(nodes.Items), err)
	}
	if _, err := w.Kube.Dynamic.Resource(env.NodePools()).Get(t.Context(), "default", metav1.GetOptions{}); err != nil {
		t.Errorf("the user's NodePool: %v", err)
	}
}
