package setup

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"joiner.sh/pkg/install"
)

// Cluster reads and writes objects by the path under which the API server serves them. All calls may be repeated.
type Cluster interface {
	// Apply makes the object what it says by server-side apply.
	Apply(ctx context.Context, path string, o *unstructured.Unstructured) error
	// Get reads one object; found is false when there is none.
	Get(ctx context.Context, path string) (o *unstructured.Unstructured, found bool, err error)
	// List calls each for every object; a kind that is not there has none.
	List(ctx context.Context, path string, each func(*unstructured.Unstructured) error) error
	// Patch merges a change in; a resourceVersion in it is the precondition.
	Patch(ctx context.Context, path string, change map[string]any) error
	// Replace writes the object as it is, its resourceVersion being the precondition.
	Replace(ctx context.Context, path string, o *unstructured.Unstructured) error
	// Delete begins a deletion; an object that is gone is no error.
	Delete(ctx context.Context, path string) error
}

// Waker runs the lifecycle function soon. May be repeated.
type Waker interface {
	Wake(ctx context.Context) error
}

// SpotRole is the service-linked role of the account without which EC2 sells no spot capacity.
type SpotRole interface {
	// EnsureRole makes it unless it is there. May be repeated.
	EnsureRole(ctx context.Context) error
}

// Leftovers removes what launches left in the account: instance profiles and launch templates.
type Leftovers interface {
	// RemoveLeftovers deletes them. May be repeated.
	RemoveLeftovers(ctx context.Context) error
}

// Setup works on one cluster.
type Setup struct {
	Cluster   Cluster
	Lifecycle Waker
	SpotRole  SpotRole      // nil: IAM cannot be reached
	Access    Access        // to say what is wrong
	Poll      time.Duration // between two looks
	Patience  time.Duration // for what EKS and the API server need a moment for
	Log       *slog.Logger
	Now       func() time.Time

	External            bool     // somebody else installs the objects, and removes them
	Observe             bool     // mode observe: CRDs that are there stay as they are, and no finalizer is taken off
	KarpenterNamespaces []string // where a leader lease of Karpenter may be

	Sleep map[string]string // annotations of our namespace that say when the whole cluster sleeps; empty for never

	Leaving   Leaving       // node roles that the update takes away
	Leftovers Leftovers     // removed with drain
	IAMDelay  time.Duration // for which a refresh whose role is gone may still make leftovers

	Push install.Address // whom the cluster's webhook calls; without a URL there is no webhook
}

// InstallObjects applies CRDs and RBAC and returns how many objects. It may be repeated, with the same manifests or
// newer ones.
func (s *Setup) InstallObjects(ctx context.Context) (int, error) {
	if err := s.reachCluster(ctx); err != nil {
		return 0, err
	}
	crds, err := install.CRDs()
	if err != nil {
		return 0, err
	}
	rbac, err := install.RBAC()
	if err != nil {
		return 0, err
	}
	others, err := s.crdsAreOthers(ctx)
	if err != nil {
		return 0, err
	}
	for _, crd := range crds {
		if err := s.applyCRD(ctx, crd, others); err != nil {
			return 0, err
		}
	}
	for _, crd := range crds {
		if err := s.awaitEstablished(ctx, crd.GetName()); err != nil {
			return 0, err
		}
	}
	for _, o := range rbac {
		if o.GetKind() == "Namespace" {
			o.SetAnnotations(s.Sleep)
		}
		if err := s.applyObject(ctx, o); err != nil {
			return 0, err
		}
	}
	ranked, err := s.applyPriority(ctx)
	if err != nil {
		return 0, err
	}
	s.linkSpot(ctx)
	announced, err := s.applyWebhook(ctx)
	return len(crds) + len(rbac) + ranked + announced, err
}

// linkSpot makes the role of spot. An account whose rules forbid it can still have on-demand capacity, so this stops
// nothing.
func (s *Setup) linkSpot(ctx context.Context) {
	const byHand = "aws iam create-service-linked-role --aws-service-name spot.amazonaws.com"
	switch {
	case s.Observe:
	case s.SpotRole == nil:
		s.Log.Info("IAM is not reached from here: for spot capacity the account needs its service-linked role", "once",
			byHand)
	default:
		if err := s.SpotRole.EnsureRole(ctx); err != nil {
			s.Log.Warn("there may be no spot capacity until somebody makes its service-linked role", "once", byHand,
				"error", err)
		}
	}
}

// applyWebhook makes the webhook of push, or removes what an earlier deployment made. Who only observes leaves the
// cluster without.
func (s *Setup) applyWebhook(ctx context.Context) (made int, err error) {
	o, err := install.Push(s.Push)
	if err != nil {
		return 0, err
	}
	if s.Push.URL != "" && !s.Observe {
		return 1, s.applyObject(ctx, o)
	}
	path, err := ObjectPath(o)
	if err != nil {
		return 0, err
	}
	if _, found, err := s.Cluster.Get(ctx, path); err != nil || !found {
		return 0, err
	}
	s.Log.Info("removed the webhook of push")
	return 0, s.Cluster.Delete(ctx, path)
}

// applyCRD makes a CRD ours, or only makes one that is missing.
func (s *Setup) applyCRD(ctx context.Context, crd *unstructured.Unstructured, onlyMissing bool) error {
	if onlyMissing {
		if _, found, err := s.Cluster.Get(ctx, definitions+"/"+crd.GetName()); err != nil || found {
			return err
		}
	}
	if err := s.prepareCRD(ctx, crd); err != nil {
		return err
	}
	return s.applyObject(ctx, crd)
}

func (s *Setup) applyObject(ctx context.Context, o *unstructured.Unstructured) error {
	path, err := ObjectPath(o)
	if err != nil {
		return err
	}
	return s.Cluster.Apply(ctx, path, o)
}

// ObjectPath returns the path at which the API server serves an object of pkg/install. Another kind is an error: then
// this table needs an entry.
func ObjectPath(o *unstructured.Unstructured) (string, error) {
	const rbac, admission = "/apis/rbac.authorization.k8s.io/v1", "/apis/admissionregistration.k8s.io/v1"
	const flow = "/apis/flowcontrol.apiserver.k8s.io/v1"
	at := map[string]string{
		"flowcontrol.apiserver.k8s.io/v1 FlowSchema":                 flow + "/flowschemas",
		"flowcontrol.apiserver.k8s.io/v1 PriorityLevelConfiguration": flow + "/prioritylevelconfigurations",
		"v1 Namespace": "/api/v1/namespaces",
		"apiextensions.k8s.io/v1 CustomResourceDefinition":          definitions,
		"admissionregistration.k8s.io/v1 ValidatingAdmissionPolicy": admission + "/validatingadmissionpolicies",
		"admissionregistration.k8s.io/v1 ValidatingWebhookConfiguration": admission +
			"/validatingwebhookconfigurations",
		"admissionregistration.k8s.io/v1 ValidatingAdmissionPolicyBinding": admission +
			"/validatingadmissionpolicybindings",
		"rbac.authorization.k8s.io/v1 ClusterRole":        rbac + "/clusterroles",
		"rbac.authorization.k8s.io/v1 ClusterRoleBinding": rbac + "/clusterrolebindings",
		"rbac.authorization.k8s.io/v1 Role": rbac + "/namespaces/" + o.GetNamespace() +
			"/roles",
		"rbac.authorization.k8s.io/v1 RoleBinding": rbac + "/namespaces/" + o.GetNamespace() +
			"/rolebindings",
	}[o.GetAPIVersion()+" "+o.GetKind()]
	if at == "" || o.GetName() == "" {
		return "", fmt.Errorf("apply %s %s %s: setup does not know where it is served", o.GetAPIVersion(), o.GetKind(),
			o.GetName())
	}
	return at + "/" + o.GetName(), nil
}

// pollUntil looks again and again until done, an error, or the time given is over; then it returns what was seen last.
func (s *Setup) pollUntil(ctx context.Context, patience time.Duration,
	look func(context.Context) (seen error, done bool, err error)) error {
	end := time.After(patience)
	for {
		seen, done, err := look(ctx)
		if done || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return errors.Join(seen, ctx.Err())
		case <-end: // what came to be since the last look counts, however long that took
			seen, done, err := look(ctx)
			if done || err != nil {
				return err
			}
			return seen
		case <-time.After(s.Poll):
		}
	}
}
