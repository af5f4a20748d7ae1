package kubelet

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

const nodeadmText = `MIME-Version: 1.0
Content-Type: multipart/mixed; boundary="//"

--//
Content-Type: text/x-shellscript; charset="us-ascii"

#!/bin/bash
echo user

--//
Content-Type: application/node.eks.aws

apiVersion: node.eks.aws/v1alpha1
kind: NodeConfig
spec:
  kubelet:
    config:
      maxPods: 10
      kubeReserved:
        cpu: 200m
      evictionHard:
        memory.available: 5%
    flags:
      - --node-labels=user=first,team=a

--//
Content-Type: application/node.eks.aws

# Made by a controller
apiVersion: node.eks.aws/v1alpha1
kind: NodeConfig
metadata:
  creationTimestamp: null
spec:
  cluster:
    apiServerEndpoint: https://127.0.0.1:6443
    certificateAuthority: Q0E=
    cidr: 10.100.0.0/16
    name: demo
  containerd: {}
  instance:
    localStorage:
      strategy: RAID0
  kubelet:
    config:
      clusterDNS:
      - 10.100.0.10
      maxPods: 29
      registerWithTaints:
      - effect: NoExecute
        key: karpenter.sh/unregistered
      - effect: NoSchedule
        key: dedicated
        value: gpu
    flags:
    - --node-labels="karpenter.sh/nodepool=default,team=b"

--//--
`

const bootstrapText = `MIME-Version: 1.0
Content-Type: multipart/mixed; boundary="//"

--//
Content-Type: text/x-shellscript; charset="us-ascii"

#!/bin/bash -xe
exec > >(tee /var/log/user-data.log|logger -t user-data -s 2>/dev/console) 2>&1
/etc/eks/bootstrap.sh 'demo' --apiserver-endpoint 'https://127.0.0.1:6443' --b64-cluster-ca 'Q0E=' \
--dns-cluster-ip '10.100.0.10' \
--use-max-pods false \
--kubelet-extra-args '--node-labels="a=1,b=" --register-with-taints="dedicated=gpu:NoSchedule,karpenter.sh/unregistered:NoExecute" --max-pods=29 --kube-reserved="cpu=100m,memory=1Gi" --eviction-hard="memory.available<200Mi"' \
--local-disks raid0

--//--
`

const bottlerocketText = `
[settings]
[settings.kubernetes]
api-server = 'https://127.0.0.1:6443'
cluster-certificate = 'Q0E='
cluster-name = 'demo'
max-pods = 29
[settings.kubernetes.node-labels]
"karpenter.sh/nodepool" = 'default'
[settings.kubernetes.node-taints]
dedicated = ['gpu:NoSchedule', 'gpu:NoExecute']
"karpenter.sh/unregistered" = [':NoExecute']
[settings.kubernetes.eviction-hard]
"memory.available" = '12%'
[settings.kernel]
lockdown = 'integrity'
[settings.bootstrap-commands.000-mount-instance-storage]
commands = [['apiclient', 'ephemeral-storage', 'init'], ['apiclient', 'ephemeral-storage', 'bind']]
mode = 'always'
essential = true
`

func TestParseUserData(t *testing.T) {
	unregistered := corev1.Taint{Key: "karpenter.sh/unregistered", Effect: corev1.TaintEffectNoExecute}
	gpu := corev1.Taint{Key: "dedicated", Value: "gpu", Effect: corev1.TaintEffectNoSchedule}
	gpuNoExecute := corev1.Taint{Key: "dedicated", Value: "gpu", Effect: corev1.TaintEffectNoExecute}
	cases := []struct {
		name, text string
		want       Boot
	}{
		{"nodeadm merges its documents", nodeadmText, Boot{
			Format: FormatNodeadm, Cluster: "demo", Endpoint: "https://127.0.0.1:6443", CA: "Q0E=",
			Labels: map[string]string{"user": "first", "team": "b", "karpenter.sh/nodepool": "default"},
			Taints: []corev1.Taint{unregistered, gpu}, MaxPods: 29, RAID0: true,
			KubeReserved: map[string]string{"cpu": "200m"}, EvictionHard: map[string]string{"memory.available": "5%"},
		}},
		{"bootstrap.sh", bootstrapText, Boot{
			Format: FormatBootstrap, Cluster: "demo", Endpoint: "https://127.0.0.1:6443", CA: "Q0E=",
			Labels: map[string]string{"a": "1", "b": ""}, Taints: []corev1.Taint{gpu, unregistered}, MaxPods: 29,
			KubeReserved: map[string]string{"cpu": "100m", "memory": "1Gi"},
			EvictionHard: map[string]string{"memory.available": "200Mi"}, ReplacesKube: true, RAID0: true,
		}},
		{"bottlerocket", bottlerocketText, Boot{
			Format: FormatBottlerock, Cluster: "demo", Endpoint: "https://127.0.0.1:6443", CA: "Q0E=",
			Labels: map[string]string{"karpenter.sh/nodepool": "default"},
			Taints: []corev1.Taint{gpu, gpuNoExecute, unregistered}, MaxPods: 29,
			EvictionHard: map[string]string{"memory.available": "12%"}, RAID0: true,
		}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got, err := ParseUserData(c.text)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestParseUserDataRefuses(t *testing.T) {
	change := func(from, to string) string {
		if !strings.Contains(nodeadmText, from) {
			t.Fatalf("the text has no %q", from)
		}
		return strings.Replace(nodeadmText, from, to, 1)
	}
	cases := []struct{ name, text, want string }{
		{"nothing", "", "it starts no kubelet"},
		{"other script", "#!/bin/bash\necho hello\n", "neither nodeadm, bootstrap.sh nor TOML"},
		{"other MIME", "Content-Type: text/x-shellscript\n\n#!/bin/bash\necho hello\n", "it starts no kubelet"},
		{"other TOML", "[settings.kernel]\nlockdown = 'none'\n", "it starts no kubelet"},
		{"no cidr", change("    cidr: 10.100.0.0/16\n", ""), "spec.cluster.cidr is missing"},
		{"no name", change("    name: demo\n", ""), "spec.cluster.name is missing"},
		{"unknown field", change("    name: demo\n", "    name: demo\n    color: blue\n"), `NodeConfig 2: error unmarshaling JSON: while decoding JSON: json: unknown field "color"`},
		{"unknown kubelet field", change("maxPods: 29", "maxPod: 29"), `unknown field "maxPod"`},
		{"text for a number", change("maxPods: 29", "maxPods: many"), "spec.kubelet.config"},
		{"bad effect", change("effect: NoSchedule", "effect: NoWay"), `taint dedicated: "NoWay" is no effect`},
		{"bad label", change("team=b", "team"), `"team" is no pair`},
		{"other version", change("node.eks.aws/v1alpha1", "node.eks.aws/v1"), "it is node.eks.aws/v1 NodeConfig"},
		{"cut off", strings.TrimSuffix(nodeadmText, "--//--\n"), "read MIME part"},
		{"unclosed quote", "/etc/eks/bootstrap.sh 'demo", "unclosed '"},
		{"unknown argument", "/etc/eks/bootstrap.sh demo --max-pod 3", "unknown argument --max-pod"},
		{"bad taint", "/etc/eks/bootstrap.sh demo --kubelet-extra-args '--register-with-taints=a=b'", `"a=b" is no taint`},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			_, err := ParseUserData(c.text)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error = %v, want it to contain %q", err, c.want)
			}
		})
	}
}

func TestReaches(t *testing.T) {
	c := Cluster{Name: "demo", Endpoint: "https://127.0.0.1:6443", CA: []byte("CA\n")}
	good := Boot{Cluster: "demo", Endpoint: "https://127.0.0.1:6443/", CA: "Q0E="}
	cases := []struct {
		name   string
		change func(*Boot)
		want   string
	}{
		{"good", func(*Boot) {}, ""},
		{"cluster", func(b *Boot) { b.Cluster = "prod" }, `the user data is for cluster "prod"`},
		{"endpoint", func(b *Boot) { b.Endpoint = "https://10.0.0.1" }, `no API server at "https://10.0.0.1"`},
		{"authority", func(b *Boot) { b.CA = "T1RIRVI=" }, "unknown authority"},
		{"no base64", func(b *Boot) { b.CA = "-----BEGIN" }, "is no base64"},
	}
	for _, tc := range cases {
		b := good
		tc.change(&b)
		err := c.checkBoot(b)
		if (err == nil) != (tc.want == "") || (err != nil && !strings.Contains(err.Error(), tc.want)) {
			t.Errorf("%s: error = %v, want %q", tc.name, err, tc.want)
		}
	}
}
