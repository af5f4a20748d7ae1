package bootstrap_test

import (
	"encoding/base64"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	awsv1 "joiner.sh/pkg/api/aws/v1"
	karpv1 "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/nodeclaim/bootstrap"
	"joiner.sh/pkg/testing/syntax"
)

func input(t *testing.T, family string) bootstrap.Input {
	t.Helper()
	node, err := bootstrap.NewNodeRegistration(
		map[string]string{
			"karpenter.sh/nodepool": "general", "karpenter.sh/capacity-type": "spot", "team": "a",
			"topology.k8s.aws/zone-id": "usw2-az1", "node.kubernetes.io/instance-type": "m5.large",
			"kubelet.kubernetes.io/pet": "cat", "kubernetes.io/arch": "amd64", "kubernetes.io/os": "linux",
			"topology.kubernetes.io/zone": "us-west-2a", "topology.kubernetes.io/region": "us-west-2",
			"node-restriction.kubernetes.io/x": "y", "sub.node-restriction.kubernetes.io/x": "y",
			"k8s.io/x": "y", "foo.k8s.io/x": "y", "kubernetes.io/role": "agent", "foo.kubernetes.io/x": "y",
		},
		[]cluster.Taint{
			{Key: "dedicated", Value: "gpu", Effect: "NoSchedule"}, {Key: "dedicated", Value: "gpu", Effect: "NoExecute"},
			{Key: "startup", Effect: "NoSchedule"},
		})
	if err != nil {
		t.Fatal(err)
	}
	return bootstrap.Input{
		Family: family, ClusterName: "demo", Endpoint: "https://ABC.gr7.us-west-2.eks.amazonaws.com", CABundle: "Q0E=",
		DNSAddress: "172.20.0.10", ServiceCIDR: "172.20.0.0/16", MaxPods: 29, Node: node,
	}
}

func allKubelet() awsv1.KubeletConfiguration {
	n := func(v int32) *int32 { return &v }
	quota := false
	return awsv1.KubeletConfiguration{
		ClusterDNS: []string{"10.0.0.53", "10.0.0.54"}, MaxPods: n(42), PodsPerCore: n(4),
		SystemReserved: map[string]string{"memory": "100Mi", "cpu": "100m"}, KubeReserved: map[string]string{"cpu": "200m", "pid": "10"},
		EvictionHard:              map[string]string{"memory.available": "5%", "nodefs.available": "10%"},
		EvictionSoft:              map[string]string{"memory.available": "500Mi"},
		EvictionSoftGracePeriod:   map[string]karpv1.Duration{"memory.available": karpv1.NewDuration(time.Minute)},
		EvictionMaxPodGracePeriod: n(60), ImageGCHighThresholdPercent: n(85), ImageGCLowThresholdPercent: n(80), CPUCFSQuota: &quota,
	}
}

// Each file holds one family. The input of a case is the user's text; make golden rewrites the outputs.
func TestUserData(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			in := input(t, d.Cmd)
			in.UserData = d.Input
			for _, a := range d.CmdArgs {
				switch a.Key {
				case "plain":
					in.Node = bootstrap.NodeRegistration{}
				case "kubelet":
					in.Kubelet = allKubelet()
				case "extra":
					in.Kubelet.Extra = map[string]string{"logging": `{"format":"json"}`, "serializeImagePulls": "false", "registerWithTaints": "[]"}
				case "raid0":
					in.RAID0 = true
				case "dns":
					in.DNSAddress = strings.Join(a.Vals, "")
				case "image":
					in.ImageVersion = a.Vals[0]
				case "cidr":
					in.ServiceCIDR = strings.Join(a.Vals, "")
				default:
					d.Fatalf(t, "%v", syntax.UnknownWord("option", a.Key, "plain", "kubelet", "extra", "raid0", "dns", "image", "cidr"))
				}
			}
			text, err := bootstrap.RenderUserData(in)
			if err != nil {
				e, ok := errors.AsType[*bootstrap.Error](err)
				if !ok {
					t.Fatalf("%v is no *Error", err)
				}
				return e.Reason + ": " + err.Error()
			}
			if strings.Contains(text, "karpenter.sh/unregistered") {
				t.Error("a pod would have to wait for a tick of ours")
			}
			return text
		})
	})
}

func TestEncodedAndLimited(t *testing.T) {
	in := input(t, awsv1.AMIFamilyCustom)
	in.UserData = strings.Repeat("x", bootstrap.MaxBytes)
	got, err := bootstrap.UserData(in)
	if err != nil || got != base64.StdEncoding.EncodeToString([]byte(in.UserData)) {
		t.Errorf("16384 bytes: %v, %d characters", err, len(got))
	}
	in.UserData += "x"
	_, err = bootstrap.UserData(in)
	want := "user data: it has 16385 bytes with what the node needs, EC2 takes at most 16384; shorten spec.userData"
	if err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}
