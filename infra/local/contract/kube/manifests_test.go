package kube_test

import (
	"log/slog"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"joiner.sh/pkg/install"
	"joiner.sh/pkg/install/preflight"
	"joiner.sh/pkg/install/setup"
)

// What somebody else applied is complete for setup, although the API server fills in what it likes; setup may read it
// with the rights of the manifests themselves, and no other.
func TestManifestsThatSomebodyElseApplied(t *testing.T) {
	c := newEnv(t)
	all, err := install.External()
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range all {
		c.apply(t, o)
	}
	client, r := c.client(t)
	r.header = http.Header{"Impersonate-User": {"arn:aws:sts::1:assumed-role/setup"}, "Impersonate-Group": {"joiner-setup", "system:authenticated"}}
	s := &setup.Setup{Cluster: client.Objects, External: true, Poll: poll, Patience: patience, Log: slog.New(slog.DiscardHandler), Now: time.Now, Observe: true,
		Access: setup.Access{External: true, Cluster: preflight.Cluster{Name: "demo", Found: true, Status: "ACTIVE", Mode: "API", Endpoint: "https://x", Public: true, CIDRs: []string{"0.0.0.0/0"}}}}
	lacks, err := s.CheckManifests(t.Context())
	if d := cmp.Diff([]string(nil), lacks); d != "" || err != nil {
		t.Fatalf("error %v (-want +got):\n%s", err, d)
	}

	role, err := c.RbacV1().ClusterRoles().Get(t.Context(), "joiner-rebalance", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.install(t) // a clean-up has no context any more
	role.Rules = role.Rules[:len(role.Rules)-1]
	if _, err := c.RbacV1().ClusterRoles().Update(t.Context(), role, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := c.FlowcontrolV1().FlowSchemas().Delete(t.Context(), "joiner-lists", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	lacks, err = s.CheckManifests(t.Context())
	if d := cmp.Diff([]string{"ClusterRole joiner-rebalance is older or changed, at rules", "FlowSchema joiner-lists is missing"}, lacks); d != "" || err != nil {
		t.Errorf("error %v (-want +got):\n%s", err, d)
	}
}
