package translate

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"joiner.sh/pkg/model/cluster"
)

// Pods require the features that kube-scheduler infers, and nodes have those that the kubelet declares.
func TestFeatures(t *testing.T) {
	const restarts = "feature RestartAllContainersOnContainerExits"
	for text, want := range map[string][]string{
		`spec: {containers: [{name: a}]}`:                                                                                    nil,
		`spec: {containers: [{name: a, restartPolicyRules: [{action: Restart}]}]}`:                                           nil,
		`spec: {containers: [{name: a, restartPolicyRules: [{action: RestartAllContainers}]}]}`:                              {restarts},
		`spec: {containers: [{name: a}], initContainers: [{name: i, restartPolicyRules: [{action: RestartAllContainers}]}]}`: {restarts},
		`spec: {hostNetwork: true, containers: [{name: a}]}`:                                                                 nil,
		`spec: {hostNetwork: true, hostUsers: false, containers: [{name: a, restartPolicyRules: [{action: RestartAllContainers}]}]}`: {
			restarts, "feature UserNamespacesHostNetworkSupport"},
	} {
		if diff := cmp.Diff(want, Pod(read[corev1.Pod](t, text)).Requires); diff != "" {
			t.Errorf("%s (-want +got):\n%s", text, diff)
		}
	}
	n := read[corev1.Node](t, `status: {declaredFeatures: [Unheard, RestartAllContainersOnContainerExits]}`)
	if got := Node(n).Provides; !slices.Equal(got, []string{restarts}) {
		t.Errorf("a node provides %q", got)
	}
}

// Volumes of a CSI driver that opts in keep a pod off nodes on which it has not registered. Those of others do not.
func TestDriversThatOptIn(t *testing.T) {
	s := shelf(t, bound, `{spec: {awsElasticBlockStore: {volumeID: v}}}`, `{}`)
	for name, c := range map[string]struct {
		optIn map[string]bool
		want  []string
	}{
		"opts in":     {map[string]bool{"ebs.csi.aws.com": true}, []string{"CSI driver ebs.csi.aws.com"}},
		"another one": {map[string]bool{"x": true, "ebs.csi.aws.com": false}, nil},
	} {
		s.OptIn = c.optIn
		p := cluster.Pod{Namespace: "ns", UnreadClaims: []string{"data"}}
		n := cluster.Node{}
		s.FillPod(&p)
		s.AddDrivers(&n, []string{"kubernetes.io/aws-ebs", "y"})
		if !slices.Equal(p.Requires, c.want) || !slices.Equal(n.Provides, c.want) {
			t.Errorf("%s: the pod requires %q, the node provides %q, want %q", name, p.Requires, n.Provides, c.want)
		}
	}
}
