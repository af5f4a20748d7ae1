package whatif

import (
	"slices"
	"strings"
	"testing"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/testing/scenario"
)

// thread is a public report of a pod that waits, as an input of our own with the cause that the thread found, and the
// change that it ended with: what the edit of an answer begins with. An empty change is a miss: the thread ended with
// something that is no edit here.
type thread struct {
	name  string // where it is
	lines []string
	ends  string
}

// threads are reports whose end is known. KP is aws/karpenter-provider-aws, KC kubernetes-sigs/karpenter.
func threads() []thread {
	return []thread{
		{"KP#5975: limits of the pool used up at rush hours", []string{"pool p\nlimit cpu 4000", "node n type=m.xl zone=a pool=p",
			"pods old on=n cpu=3500 mem=1024", "pods x cpu=2500 mem=4096"}, "change spec.limits.cpu of NodePool p from 4 to 8"},
		{"JiRaska/open-bank-oss#3352: cpu and memory limits below the smallest node that may come", []string{
			"pool p\nlimit cpu 4000\nlimit memory 16384\nrequire type In m.xl", "node n type=m.l zone=a pool=p", "node m type=m.l zone=a pool=p",
			"pods old on=n cpu=1800 mem=7000", "pods older on=m cpu=1800 mem=7000", "pods x cpu=1000 mem=2048"}, "change spec.limits.cpu of NodePool p from 4 to 8"},
		{"KP#6328: a limit that is no multiple of the only type", []string{"pool p\nlimit cpu 5000\nrequire type In m.xl", "node n type=m.xl zone=a pool=p",
			"pods old on=n cpu=3500 mem=1024", "pods x cpu=2500 mem=4096"}, "change spec.limits.cpu of NodePool p from 5 to 8"},
		{"KP#1630: the taint of the provisioner is not tolerated", []string{"pool p\ntaint systemnodes:NoSchedule", "pods x cpu=500 mem=512"},
			"add spec.tolerations systemnodes:NoSchedule"},
		{"kouhan.cn/29491: the nodes of the control plane are tainted", []string{"node n type=m.xl zone=a unmanaged\ntaint node-role.example.com/master:NoSchedule",
			"pods x cpu=500 mem=512"}, "add spec.tolerations node-role.example.com/master:NoSchedule"},
		{"KP#5691: a taint of an agent among taints, not startupTaints", []string{"pool p\ntaint efs.csi.aws.com/agent-not-ready:NoExecute", "pods x cpu=500 mem=512"},
			"remove spec.template.spec.taints efs.csi.aws.com/agent-not-ready:NoExecute from NodePool p"},
		{"2i2c-org/infrastructure#677: a node selector that no node meets", []string{"pool p", "pods x cpu=500 mem=512\nselect pool=worker"},
			"change spec.nodeSelector.karpenter.sh/nodepool"},
		{"koti.dev/pod-stuck-pending: tier=premium is on no node", []string{"pool p\nlabel tier=standard", "pods x cpu=500 mem=512\naffinity tier In premium"},
			"change spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0]"},
		{"knowledgesystems-k8s-deployment#452: no pool declares the label workload", []string{"pool p", "pods x cpu=500 mem=512\nselect workload=cbioagent"},
			"add spec.template.metadata.labels.workload cbioagent to NodePool p"},
		{"KP#7535: label workload does not have known values", []string{"pool p\nrequire arch In amd64", "pods x cpu=500 mem=512\nselect workload=on-demand"},
			"add spec.template.metadata.labels.workload on-demand to NodePool p"},
		{"KC#1162: label nodegroup does not have known values", []string{"pool p", "pods x cpu=500 mem=512\naffinity nodegroup In dpd"},
			"add spec.template.metadata.labels.nodegroup dpd to NodePool p"},
		{"KP#7574: pods select the label of a managed node group", []string{"pool app", "pool gpu\ntaint nvidia.com/gpu=1:NoSchedule",
			"pods x cpu=500 mem=512\nselect eks.amazonaws.com/nodegroup=app"}, "remove spec.nodeSelector.eks.amazonaws.com/nodegroup"},
		{"selkies-project#35: cpu requests too high for the chosen node", []string{"pool p", "pods x cpu=4100 mem=512\nselect type=m.xl"},
			"change spec.containers[*].resources.requests.cpu"},
		{"KC#1536: 240Gi on m6i.16xlarge, 220Gi works", []string{"pool p", "daemon d cpu=100 mem=1024\ntolerate all", "pods x cpu=500 mem=16000\nselect type=m.xl"},
			"change spec.containers[*].resources.requests.memory"},
		{"KP#5676: 28Gi on m6a.2xlarge beside daemons, 26Gi works", []string{"pool p\nrequire type In m.xl", "daemon d cpu=100 mem=800\ntolerate all", "pods x cpu=500 mem=15900"},
			"change spec.containers[*].resources.requests.memory"},
		{"karpenter-provider-azure#1426: 1,500m on nodes of 2 vCPU", []string{"pool p\nrequire type In m.l", "daemon d cpu=600 mem=128\ntolerate all", "pods x cpu=1500 mem=512"},
			"change spec.template.spec.requirements[key=node.kubernetes.io/instance-type] of NodePool p from node.kubernetes.io/instance-type in (m.l) to node.kubernetes.io/instance-type in (m.l, m.xl)"},
		{"KC#2164: the capacity type xspot", []string{"pool p\nrequire capacity In xspot", "pods x cpu=500 mem=512"},
			"change spec.template.spec.requirements[key=karpenter.sh/capacity-type] of NodePool p"},
		{"KC#1034: minValues of zones beside a spread over zones", []string{"pool p\nrequire zone In a b min=2", "pods x cpu=500 mem=512\nspread zone skew=1 app=x"},
			"change spec.template.spec.requirements[key=topology.kubernetes.io/zone].minValues of NodePool p from 2 to 1"},
		{"KC#2999: minValues of zones beside a volume", []string{"pool p\nrequire zone In a b min=2", "pods x cpu=500 mem=512\nvolume zone In a"},
			"change spec.template.spec.requirements[key=topology.kubernetes.io/zone].minValues of NodePool p from 2 to 1"},
		{"jorijn.com topology spread: domains that taints keep the pod off count", []string{"pool p\nrequire zone In a b", "node t type=m.l zone=c unmanaged\ntaint dedicated=tenant:NoSchedule",
			"node n type=m.l zone=a pool=p", "node m type=m.l zone=b pool=p", "pods x-a on=n cpu=1800 mem=512\nlabel app=x", "pods x-b on=m cpu=1800 mem=512\nlabel app=x",
			"pods x cpu=1800 mem=512\nspread zone skew=1 app=x\nselect os=linux"}, "change spec.topologySpreadConstraints[0].nodeTaintsPolicy"},
		{"besthub.dev topology spread: too strict beside anti-affinity", []string{"pool p\nrequire zone In a", "node u type=m.l zone=b unmanaged", "node n type=m.l zone=a pool=p",
			"pods x-a on=n cpu=500 mem=512\nlabel app=x", "pods y on=u cpu=1900 mem=512", "pods x cpu=500 mem=512\nspread zone skew=1 app=x\napart host app=x"},
			"change spec.topologySpreadConstraints[0].maxSkew"},
		{"KP#6160, KP#4531: Karpenter's own pods require a node of no NodePool", []string{"pool p", "pods x cpu=500 mem=512\naffinity pool DoesNotExist"},
			"change spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0]"},
		{"KP#2971: the volume is in a zone without nodes of the pool", []string{"pool p\nrequire zone In a b", "pods x cpu=500 mem=512\nvolume zone In c"},
			"change spec.template.spec.requirements[key=topology.kubernetes.io/zone] of NodePool p"},
		{"KP#8914: zone of the affinity and of the volume differ", []string{"pool p", "node n type=m.l zone=a pool=p", "pods db on=n cpu=500 mem=512\nlabel app=db",
			"pods x cpu=500 mem=512\nnear zone app=db\nvolume zone In c"}, "remove spec.affinity.podAffinity"},
		{"comfyui-on-eks#16: no pool has GPUs for the pod", []string{"pool p\nrequire type In m.l", "type gpu cpu=4000 mem=16384 milliusd=500\nresource nvidia.com/gpu 1",
			"pods x cpu=500 mem=512\nresource nvidia.com/gpu 1"}, "change spec.template.spec.requirements[key=node.kubernetes.io/instance-type] of NodePool p"},
		{"KP#4407: the EC2NodeClass selects no subnet", []string{"class none broken=(no subnets)", "pool p class=none", "pods x cpu=500 mem=512"}, "change status.conditions[type=Ready] of EC2NodeClass none from no subnets to True"},
		{"KP#4192: the EC2NodeClass selects no subnet", []string{"class none broken=(no subnets)", "pool p class=none", "pods x cpu=2000 mem=512"}, "change status.conditions[type=Ready] of EC2NodeClass none from no subnets to True"},
		{"KC#2438: the EC2NodeClass selects no subnet", []string{"class none broken=(no subnets)", "pool p class=none\nrequire capacity In spot on-demand", "pods x cpu=4000 mem=512"}, "change status.conditions[type=Ready] of EC2NodeClass none from no subnets to True"},
		{"KP#2217: no type has vpc.amazonaws.com/pod-eni (where a setting has them counted, which Joiner always does)", []string{"pool p",
			"pods x cpu=500 mem=512\nresource vpc.amazonaws.com/pod-eni 1"}, "change spec.containers[*].resources.limits.vpc.amazonaws.com/pod-eni of Pod default/x-1 from 1 to 0"},
		{"KP#8068: the limits of the pool with GPUs have room for one node", []string{"type gpu cpu=4000 mem=16384 milliusd=500\nresource nvidia.com/gpu 1",
			"pool gpu\nlimit cpu 4000\ntaint nvidia.com/gpu:NoSchedule", "pool spot\nrequire type In m.l m.xl", "node n type=gpu zone=a pool=gpu",
			"pods old on=n cpu=500 mem=512\nresource nvidia.com/gpu 1", "pods x cpu=500 mem=512\nresource nvidia.com/gpu 1\ntolerate nvidia.com/gpu:NoSchedule"},
			"change spec.limits.cpu of NodePool gpu from 4 to 8"},
		{"KP#5199: the account's quota of spot instances is used up, on-demand ones would do", []string{"pool p\nrequire capacity In spot", "unavailable m.l capacity=spot",
			"unavailable m.xl capacity=spot", "pods x cpu=500 mem=512"}, "change spec.template.spec.requirements[key=karpenter.sh/capacity-type] of NodePool p"},
		{"knix#41: three replicas apart on two machines", []string{"node n type=m.l zone=a unmanaged", "node m type=m.l zone=b unmanaged", "pods y on=n cpu=500 mem=512\nlabel app=dl",
			"pods z on=m cpu=500 mem=512\nlabel app=dl", "pods x cpu=500 mem=512\nlabel app=dl\napart host app=dl"}, "remove spec.affinity.podAntiAffinity"},
		{"kubernetes/autoscaler#5692: the group has as many nodes as it may", []string{"pool p\nlimit nodes 1", "node n type=m.l zone=a pool=p",
			"pods y on=n cpu=1800 mem=512", "pods x cpu=500 mem=512"}, "change spec.limits.nodes of NodePool p from 1 to 2"},
		{"KC#2093: a DaemonSet has the host port on each new node", []string{"pool p", "daemon d cpu=100 mem=64\ntolerate all\nport 8080", "pods x cpu=500 mem=512\nport 8080"},
			"remove spec.containers[*].ports[hostPort=8080]"},
		{"omnigent#2309: amd64 is selected, and all machines are arm64", []string{"node n type=m.l zone=a unmanaged\nlabel arch=arm64", "pods x cpu=500 mem=512\nselect arch=amd64"},
			"change spec.nodeSelector.kubernetes.io/arch"},
		{"dapr#2605: amd64 is required, and all machines are arm64", []string{"node n type=m.l zone=a unmanaged\nlabel arch=arm64", "pods x cpu=500 mem=512\naffinity arch In amd64"},
			"change spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchExpressions[key=kubernetes.io/arch]"},
		{"kubernetes#109364: spreads over zones and hosts contradict each other from the sixth replica on", []string{"node n1 type=m.xl zone=a unmanaged",
			"node n2 type=m.xl zone=a unmanaged", "node n3 type=m.xl zone=b unmanaged", "pods y on=n1 n=2 cpu=500 mem=512\nlabel app=x", "pods z on=n2 cpu=500 mem=512\nlabel app=x",
			"pods v on=n3 n=2 cpu=500 mem=512\nlabel app=x", "pods x cpu=500 mem=512\nspread zone skew=1 app=x\nspread host skew=1 app=x"}, "change spec.topologySpreadConstraints["},
		{"rhobs/troubleshooting-scenarios#37: no node has the label disk-type", []string{"node n type=m.l zone=a unmanaged", "pods x cpu=500 mem=512\nselect disk-type=ssd-high-iops"},
			"remove spec.nodeSelector.disk-type"},
		{"koti.dev/pod-stuck-pending: a request of many times a node", []string{"pool p", "pods x cpu=64000 mem=512"}, "change spec.containers[*].resources.requests.cpu of Pod default/x-1 from 64 to 4"},
	}
}

// Each thread is answered by what it ended with, among the four cheapest changes, or is a miss that is known.
func TestThreads(t *testing.T) {
	missed := 0
	for _, c := range threads() {
		lines := append([]string{"type m.l cpu=2000 mem=8192 milliusd=96 spot=40", "type m.xl cpu=4000 mem=16384 milliusd=192 spot=80"}, c.lines...)
		w := scenario.Scripted(t, lines...)
		i := slices.IndexFunc(w.Snapshot.Pods, func(p cluster.Pod) bool { return p.NodeName == "" })
		a := ForPod(w.Snapshot, w.Market, w.Snapshot.Pods[i].Key(), Limits{})
		said := []string{}
		for _, x := range a.Changes {
			said = append(said, x.String())
		}
		at := slices.IndexFunc(said, func(s string) bool { return strings.HasPrefix(s, c.ends) })
		switch {
		case c.ends == "" && len(said) == 0:
			missed++
		case c.ends == "":
			t.Errorf("%s: a miss, answered by\n%s", c.name, strings.Join(said, "\n"))
		case at < 0:
			t.Errorf("%s: want %q in\n%s", c.name, c.ends, strings.Join(said, "\n"))
		case at > 3:
			t.Errorf("%s: it is the %dth of\n%s", c.name, at+1, strings.Join(said, "\n"))
		}
	}
	t.Logf("%d of %d threads are missed", missed, len(threads()))
}
