package api

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"joiner.sh/pkg/install"
)

// rights are requests as "verb resource[/subresource][.group][ name][@namespace]".
type rights struct{ may, mayNot []string }

// everybody may not do these, whatever the group.
func everybodyMayNot() []string {
	return []string{
		"get secrets@joiner-system", "list secrets@kube-system", "get secrets@default", "create pods@default",
		"get configmaps@kube-system", "update configmaps@default", "get leases.coordination.k8s.io@kube-system",
		"get services kubernetes@default", "get services other@kube-system", "list services@kube-system",
		"create clusterrolebindings.rbac.authorization.k8s.io", "impersonate users", "create nodes", "update pods@default", "patch pods/status@default",
		"delete nodepools.karpenter.sh", "create nodepools.karpenter.sh", "delete ec2nodeclasses.karpenter.k8s.aws",
		"create ec2nodeclasses.karpenter.k8s.aws", "create nodeoverlays.karpenter.sh", "patch nodeoverlays.karpenter.sh",
		"patch capacitybuffers.autoscaling.x-k8s.io@default", "patch deployments.apps@default", "create serviceaccounts/token@kube-system", "delete configmaps@joiner-system",
		"create resourceclaims.resource.k8s.io@default", "patch resourceclaims/status.resource.k8s.io@default", "patch deviceclasses.resource.k8s.io",
	}
}

func rightsOf() map[string]rights {
	reads := func(resources ...string) (all []string) {
		for _, r := range resources {
			all = append(all, "get "+r, "list "+r, "watch "+r)
		}
		return all
	}
	writes := func(verbs string, resource string) (all []string) {
		for verb := range strings.FieldsSeq(verbs) {
			all = append(all, verb+" "+resource)
		}
		return all
	}
	shared := reads("pods@default", "nodes", "namespaces", "persistentvolumes", "persistentvolumeclaims@default",
		"daemonsets.apps@default", "poddisruptionbudgets.policy@default", "storageclasses.storage.k8s.io", "csinodes.storage.k8s.io", "csidrivers.storage.k8s.io",
		"nodeclaims.karpenter.sh", "nodepools.karpenter.sh", "ec2nodeclasses.karpenter.k8s.aws")
	shared = join(shared, writes("list", "deviceclasses.resource.k8s.io"), writes("list", "resourceslices.resource.k8s.io"), writes("list", "devicetaintrules.resource.k8s.io"), writes("list", "resourceclaims.resource.k8s.io@default"), writes("list", "resourceclaimtemplates.resource.k8s.io@default"))
	wishes := join(reads("nodeoverlays.karpenter.sh", "capacitybuffers.autoscaling.x-k8s.io@default"),
		writes("get", "podtemplates@default"), writes("get", "deployments.apps@default"), writes("get", "replicasets.apps@default"),
		writes("get", "statefulsets.apps@default"))
	bufferStatus := writes("update patch", "capacitybuffers/status.autoscaling.x-k8s.io@default")
	events := writes("create patch", "events@default")
	maps := writes("get list create update patch", "configmaps@joiner-system")
	marks := writes("get create update", "configmaps@joiner-system")
	claims := writes("get list patch delete", "nodeclaims.karpenter.sh")
	watchers := writes("get", "leases.coordination.k8s.io joiner-watch-provision@joiner-system")
	interrupts := rights{
		may: join(events, marks, claims, watchers, writes("get", "leases.coordination.k8s.io joiner-watch-lifecycle@joiner-system"), writes("get patch", "nodes")),
		mayNot: []string{"patch pods@default", "create nodeclaims.karpenter.sh", "delete nodes", "list pods@default", "delete pods@default", "create pods/eviction@default",
			"list nodepools.karpenter.sh", "list nodeoverlays.karpenter.sh", "patch ec2nodeclasses.karpenter.k8s.aws", "update leases.coordination.k8s.io@joiner-system"},
	}
	return map[string]rights{
		install.GroupProvision: {
			may: join(shared, reads("noderollouts.joiner.sh"), writes("get list", "controllerrevisions.apps@joiner-system"), wishes, bufferStatus, events, maps,
				writes("create update patch delete", "nodeclaims.karpenter.sh"), writes("update patch", "nodeclaims/status.karpenter.sh"),
				writes("patch", "nodepools.karpenter.sh"), writes("patch", "nodepools/status.karpenter.sh"),
				writes("get create update patch", "leases.coordination.k8s.io@joiner-system"),
				[]string{"get services kube-dns@kube-system", "patch pods@default"}),
			mayNot: []string{"delete nodes", "patch nodes", "update nodes", "delete pods@default", "create pods/eviction@default",
				"patch ec2nodeclasses.karpenter.k8s.aws", "patch ec2nodeclasses/status.karpenter.k8s.aws",
				"patch nodeoverlays/status.karpenter.sh", "list deployments.apps@default"},
		},
		install.GroupLifecycle: {
			may: join(shared, wishes, events, watchers, reads("volumeattachments.storage.k8s.io"), writes("create", "leases.coordination.k8s.io@joiner-system"),
				writes("get update", "leases.coordination.k8s.io joiner-watch-lifecycle@joiner-system"),
				writes("create", "configmaps@joiner-system"), writes("get update", "configmaps joiner-sold-out@joiner-system"),
				writes("update patch delete", "nodes"), writes("delete", "pods@default"), writes("create", "pods/eviction@default"),
				writes("update patch delete", "nodeclaims.karpenter.sh"), writes("update patch", "nodeclaims/status.karpenter.sh"),
				writes("patch", "nodepools.karpenter.sh"), writes("patch", "nodepools/status.karpenter.sh")),
			mayNot: []string{"patch pods@default", "create nodeclaims.karpenter.sh", "update nodepools.karpenter.sh", "patch ec2nodeclasses.karpenter.k8s.aws",
				"patch nodeoverlays/status.karpenter.sh", "patch capacitybuffers/status.autoscaling.x-k8s.io@default",
				"get configmaps@joiner-system", "update leases.coordination.k8s.io@joiner-system", "update leases.coordination.k8s.io joiner-capacity@joiner-system"},
		},
		install.GroupRefresh: {
			may: join(events, writes("list", "nodes"), writes("list", "nodeoverlays.karpenter.sh"), writes("list", "capacitybuffers.autoscaling.x-k8s.io@default"),
				writes("get list patch", "ec2nodeclasses.karpenter.k8s.aws"), writes("get list patch", "nodepools.karpenter.sh"),
				writes("get list patch", "nodeclaims.karpenter.sh"), writes("update", "ec2nodeclasses/status.karpenter.k8s.aws"),
				writes("update", "nodepools/status.karpenter.sh"), writes("update", "nodeoverlays/status.karpenter.sh"),
				writes("update", "capacitybuffers/status.autoscaling.x-k8s.io@default"), writes("get", "deployments.apps@default"),
				[]string{"get services kube-dns@kube-system"}),
			mayNot: []string{"patch pods@default", "list pods@default", "get nodes", "patch nodes", "delete nodeclaims.karpenter.sh",
				"create nodeclaims.karpenter.sh", "create pods/eviction@default", "update leases.coordination.k8s.io@joiner-system",
				"get configmaps@joiner-system", "create configmaps@joiner-system", "watch nodepools.karpenter.sh", "update nodepools.karpenter.sh"},
		},
		install.GroupDisrupt: {
			may: join(shared, reads("noderollouts.joiner.sh"), writes("update", "noderollouts/status.joiner.sh"), writes("update", "noderollouts/finalizers.joiner.sh"),
				writes("get list create delete", "controllerrevisions.apps@joiner-system"), wishes, events, maps, writes("patch", "nodes"), writes("create update patch delete", "nodeclaims.karpenter.sh"),
				writes("update patch", "nodeclaims/status.karpenter.sh"), writes("get create update patch", "leases.coordination.k8s.io@joiner-system")),
			mayNot: []string{"patch pods@default", "delete pods@default", "create pods/eviction@default", "delete nodes", "update nodes",
				"patch nodepools.karpenter.sh", "patch nodepools/status.karpenter.sh", "patch ec2nodeclasses.karpenter.k8s.aws",
				"get services kube-dns@kube-system"},
		},
		install.GroupSpotInterruption:        interrupts,
		install.GroupReservationInterruption: interrupts,
		install.GroupScheduledChange: {
			may: join(events, claims, watchers, writes("get patch", "nodes")),
			mayNot: []string{"patch pods@default", "create nodeclaims.karpenter.sh", "delete nodes", "list pods@default", "delete pods@default",
				"get configmaps@joiner-system", "update leases.coordination.k8s.io@joiner-system"},
		},
		install.GroupRebalance: {
			may: join(events, marks, watchers, writes("get list patch", "nodeclaims.karpenter.sh"), writes("get", "nodepools.karpenter.sh"), writes("get", "nodes")),
			mayNot: []string{"patch pods@default", "create nodeclaims.karpenter.sh", "delete nodeclaims.karpenter.sh", "patch nodes", "list pods@default",
				"patch nodepools.karpenter.sh", "update leases.coordination.k8s.io@joiner-system"},
		},
		install.GroupStateChange: {
			may: join(events, claims, watchers, writes("get patch delete", "nodes"), writes("list delete", "pods@default")),
			mayNot: []string{"patch pods@default", "create nodeclaims.karpenter.sh", "create pods/eviction@default", "get configmaps@joiner-system",
				"list nodepools.karpenter.sh", "update leases.coordination.k8s.io@joiner-system"},
		},
	}
}

// TestRights asks the API server, as each group, what it may do.
func TestRights(t *testing.T) {
	c := newCluster(t)
	for group, r := range rightsOf() {
		t.Run(group, func(t *testing.T) {
			client := c.as(t, group)
			// The API server hears of roles a moment after they are stored.
			left := r.may
			if err := wait.PollUntilContextTimeout(t.Context(), poll, patience, true, func(context.Context) (bool, error) {
				left = slices.DeleteFunc(slices.Clone(left), func(right string) bool { return allowed(t, client, right) })
				return len(left) == 0, nil
			}); err != nil {
				t.Errorf("may not %q: %v", left, err)
			}
			for _, right := range join(r.mayNot, everybodyMayNot()) {
				if allowed(t, client, right) {
					t.Errorf("may %s", right)
				}
			}
		})
	}
}

// TestRefusedInDeed does not ask: the objects themselves are out of reach.
func TestRefusedInDeed(t *testing.T) {
	c := newCluster(t)
	client := c.as(t, install.GroupProvision)
	if err := client.CoreV1().Nodes().Delete(t.Context(), "any", metav1.DeleteOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("delete a node: %v", err)
	}
	if _, err := client.CoreV1().Secrets("kube-system").List(t.Context(), metav1.ListOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("list secrets: %v", err)
	}
	if err := wait.PollUntilContextTimeout(t.Context(), poll, patience, true, func(ctx context.Context) (bool, error) {
		_, err := client.CoreV1().Pods("").List(ctx, metav1.ListOptions{})
		if apierrors.IsForbidden(err) {
			return false, nil
		}
		return err == nil, err
	}); err != nil {
		t.Errorf("list pods of all namespaces: %v", err)
	}
	dry := metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}
	sold := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "apitest"}}
	if _, err := client.CoreV1().ConfigMaps(install.Namespace).Create(t.Context(), sold, dry); err != nil {
		t.Errorf("create a config map: %v", err)
	}
}

// TestAdmins finds the rights on pools and classes in the cluster's own role `admin`, where the controller manager puts
// them.
func TestAdmins(t *testing.T) {
	c := newCluster(t)
	client, err := kubernetes.NewForConfig(c.config)
	if err != nil {
		t.Fatal(err)
	}
	err = wait.PollUntilContextTimeout(t.Context(), poll, patience, true, func(ctx context.Context) (bool, error) {
		admin, err := client.RbacV1().ClusterRoles().Get(ctx, "admin", metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		return slices.ContainsFunc(admin.Rules, func(r rbacv1.PolicyRule) bool {
			return slices.Contains(r.Resources, "ec2nodeclasses") && slices.Contains(r.Verbs, "create")
		}), nil
	})
	if err != nil {
		t.Errorf("wait for the role admin to have the rights of joiner-admin: %v", err)
	}
}

func (c cluster) as(t *testing.T, group string) *kubernetes.Clientset {
	t.Helper()
	config := rest.CopyConfig(c.config)
	config.Impersonate = rest.ImpersonationConfig{UserName: "apitest", Groups: []string{group}}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func allowed(t *testing.T, client *kubernetes.Clientset, right string) bool {
	t.Helper()
	review := &authorizationv1.SelfSubjectAccessReview{}
	attributes := parseRight(right)
	review.Spec.ResourceAttributes = &attributes
	got, err := client.AuthorizationV1().SelfSubjectAccessReviews().Create(t.Context(), review, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(fmt.Errorf("ask for %s: %w", right, err))
	}
	return got.Status.Allowed
}

func parseRight(right string) authorizationv1.ResourceAttributes {
	right, namespace, _ := strings.Cut(right, "@")
	verb, rest, _ := strings.Cut(right, " ")
	what, name, _ := strings.Cut(rest, " ")
	what, group, _ := strings.Cut(what, ".")
	resource, sub, _ := strings.Cut(what, "/")
	return authorizationv1.ResourceAttributes{
		Verb: verb, Group: group, Resource: resource, Subresource: sub, Name: name, Namespace: namespace,
	}
}

func join(lists ...[]string) (all []string) {
	for _, l := range lists {
		all = append(all, l...)
	}
	return all
}
