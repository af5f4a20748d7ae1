package app

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"joiner.sh/pkg/install"
)

// A port method needs a verb with a resource of Kubernetes, such as "patch nodes" or "create pods/eviction", or an
// action of AWS.
const (
	readPools     = "list nodepools.karpenter.sh"
	readClaims    = "list nodeclaims.karpenter.sh"
	patchClaim    = "patch nodeclaims.karpenter.sh"
	writeStatus   = "patch nodeclaims.karpenter.sh/status"
	patchNode     = "patch nodes"
	readRecord    = "get configmaps"
	writeRecord   = "get configmaps, create configmaps, update configmaps"
	readOfferings = readPools + ", list ec2nodeclasses.karpenter.k8s.aws, list nodeoverlays.karpenter.sh"
	readVolumes   = "list persistentvolumes, list persistentvolumeclaims, list storageclasses.storage.k8s.io, list csidrivers.storage.k8s.io, list csinodes.storage.k8s.io"
	readBuffers   = "list capacitybuffers.autoscaling.x-k8s.io, get podtemplates, get deployments.apps, get replicasets.apps, get statefulsets.apps"
	readDevices   = "list deviceclasses.resource.k8s.io, list resourceslices.resource.k8s.io, list devicetaintrules.resource.k8s.io, list resourceclaims.resource.k8s.io, list resourceclaimtemplates.resource.k8s.io"
	watches       = "watch pods, watch nodes, watch nodeclaims.karpenter.sh"
	snapshot      = "list pods, list nodes, list namespaces, list daemonsets.apps, list poddisruptionbudgets.policy, " + readClaims + ", " + readOfferings + ", " +
		readBuffers + ", " + readDevices
	launches    = "ec2:CreateFleet, ec2:RunInstances, ec2:CreateLaunchTemplate, ec2:CreateTags, ec2:DescribeLaunchTemplates, ec2:DescribeInstances, iam:PassRole"
	makeProfile = "iam:GetInstanceProfile, iam:CreateInstanceProfile, iam:TagInstanceProfile, iam:AddRoleToInstanceProfile, iam:RemoveRoleFromInstanceProfile, iam:PassRole"
	dropProfile = "iam:GetInstanceProfile, iam:RemoveRoleFromInstanceProfile, iam:DeleteInstanceProfile"
	resolve     = "ec2:DescribeSubnets, ec2:DescribeSecurityGroups, ec2:DescribeImages, ec2:DescribeCapacityReservations, ec2:DescribePlacementGroups, ssm:GetParameter"
	refreshAll  = "ec2:DescribeInstanceTypes, ec2:DescribeInstanceTypeOfferings, ec2:DescribeSpotPriceHistory, pricing:GetProducts, s3:PutObject"
)

// portNeeds says for each port method that a function may call what it needs to be allowed by the provider behind it.
func portNeeds() map[string]string {
	return map[string]string{
		"Buffers.ListBuffers": readBuffers, "Buffers.WriteBufferStatus": "update capacitybuffers.autoscaling.x-k8s.io/status",
		"CatalogReader.ReadCatalog": "s3:GetObject, s3:ListBucket", "CatalogRefresher.Refresh": refreshAll,
		"ClaimReader.ClaimsOf": readClaims, "Claims.AdoptClaim": patchClaim, "Claims.AnnotateClaim": patchClaim,
		"Claims.CreateClaim": "create nodeclaims.karpenter.sh", "Claims.DeleteClaim": "delete nodeclaims.karpenter.sh",
		"Claims.LabelClaim": patchClaim, "Claims.ReleaseClaim": patchClaim, "Claims.UnreserveClaim": patchClaim, "Claims.WriteClaimStatus": writeStatus,
		"ClassFinder.DeleteArtifacts": "ec2:DescribeLaunchTemplates, ec2:DeleteLaunchTemplate, " + dropProfile, "ClassFinder.DeleteProfile": dropProfile,
		"ClassFinder.FindAll": resolve + ", " + makeProfile, "ClassLookup.FindAll": resolve, "ClassFinder.ListProfiles": "iam:ListInstanceProfiles",
		"Classes.ListClasses": "list ec2nodeclasses.karpenter.k8s.aws", "Classes.ReadClass": "get ec2nodeclasses.karpenter.k8s.aws",
		"Classes.MarkClass": "get ec2nodeclasses.karpenter.k8s.aws, patch ec2nodeclasses.karpenter.k8s.aws", "Classes.ReleaseClass": "patch ec2nodeclasses.karpenter.k8s.aws",
		"Classes.WriteClassStatus":       "update ec2nodeclasses.karpenter.k8s.aws/status",
		"ConfirmingWaker.WakeAndConfirm": "lambda:InvokeFunction, get leases.coordination.k8s.io",
		"DecisionLog.WritePass":          "s3:PutObject", "DisruptionMemory.ReadMemory": readRecord, "DisruptionMemory.WriteMemory": writeRecord,
		// the setting that turns them on brings their rights
		"StateStore.ReadState": "", "StateStore.WriteState": "", "SeriesWriter.WriteSeries": "", "Surroundings.ReadSurroundings": "get leases.coordination.k8s.io",
		"PassTotals.ChangeTotals":      "", // with the release of the lease
		"DryRunner.DryRun":             "", // the setting that turns it on brings the rights of a launch
		"Health.ListStatuses":          "ec2:DescribeInstanceStatus",
		"InstanceLister.ListInstances": "ec2:DescribeInstances",
		"Instances.SweepTemplates":     "ec2:DescribeLaunchTemplates, ec2:DeleteLaunchTemplate", "Instances.TagInstance": "ec2:CreateTags",
		"Instances.TerminateInstances": "ec2:TerminateInstances", "Instances.StopInstances": "ec2:StopInstances", "Instances.StartInstance": "ec2:StartInstances",
		"StoppedCapacity.StartNodes": "ec2:StartInstances, " + patchClaim + ", " + writeStatus + ", " + writeRecord + ", create events",
		"Launcher.LaunchBatch":       launches, "Launcher.LaunchInstances": launches,
		"Lease.Acquire":                   "get leases.coordination.k8s.io, create leases.coordination.k8s.io, update leases.coordination.k8s.io",
		"LaunchFailures.NoteUnusedNodes":  writeRecord,
		"LaunchFailures.NoteFailedLaunch": writeRecord,
		"LiveReader.ReadClaim":            "get nodeclaims.karpenter.sh", "LiveReader.PodsOn": "list pods",
		"LeaseHolders.LeaseSign": "get leases.coordination.k8s.io", "Metrics.Put": "", // metrics are lines of the log
		"NodeLister.ListNodes": "list nodes", "NodePods.DeletePod": "delete pods", "NodePods.PodsOn": "list pods", "NodePods.RemovePod": "delete pods",
		"NodeReader.ReadNode": "get nodes", "NodeTainter.TaintNode": patchNode, "NodeTainter.UntaintNode": patchNode,
		"NodeTainter.TaintRevision": patchNode, "NodeTainter.UntaintRevision": patchNode,
		"Nodes.DeleteNode": "delete nodes", "Nodes.InitializeNode": patchNode, "Nodes.RegisterNode": patchNode, "Nodes.ReleaseNode": patchNode,
		"Nodes.TaintForTermination": patchNode, "Nodes.TaintNode": patchNode, "Nodes.UnreserveNode": patchNode, "NominationOpener.OpenNode": patchNode,
		"Overlays.ReadOfferingInputs": readOfferings, "Overlays.WriteOverlayStatus": "update nodeoverlays.karpenter.sh/status",
		"Pods.DeletePod": "delete pods", "Pods.EvictPod": "create pods/eviction",
		"PoolReader.PoolAnnotations": "get nodepools.karpenter.sh", "PoolStatus.CountPool": "patch nodepools.karpenter.sh/status",
		"PoolStatus.RecordRegistrations": "get nodepools.karpenter.sh, patch nodepools.karpenter.sh, patch nodepools.karpenter.sh/status",
		"PoolStatus.NoteShifts":          "patch nodepools.karpenter.sh",
		"ZonalShifts.ListShifts":         "", // the setting that turns it on brings the right
		"Pools.AnnotateClaim":            "get nodeclaims.karpenter.sh, " + patchClaim, "Pools.ListClaims": readClaims, "Pools.ListPools": readPools, "Pools.PatchPoolMeta": "get nodepools.karpenter.sh, patch nodepools.karpenter.sh",
		"Pools.WritePoolStatus": "update nodepools.karpenter.sh/status", "RateQuota.TakeOne": writeRecord,
		"Reader.ListClaims": readClaims, "Reader.PendingPods": "list pods", "Reader.ReadClass": "get ec2nodeclasses.karpenter.k8s.aws",
		"Reader.ReadSnapshot": snapshot + ", " + watches, "Reader.CachedSnapshot": snapshot + ", " + watches, "Reader.StaticPools": readPools, "Reader.Wait": watches,
		"ClassReader.ReadClass": "get ec2nodeclasses.karpenter.k8s.aws",
		"Store.ListRollouts":    "list noderollouts.joiner.sh, list controllerrevisions.apps, " + readPools + ", list ec2nodeclasses.karpenter.k8s.aws",
		"Store.ReadRevision":    "get controllerrevisions.apps, get ec2nodeclasses.karpenter.k8s.aws",
		"Store.KeepRevision":    "create controllerrevisions.apps, update noderollouts.joiner.sh/finalizers", "Store.ForgetRevision": "delete controllerrevisions.apps",
		"AlarmReader.ReadAlarms":    "cloudwatch:DescribeAlarms",
		"ImageReader.FindImages":    "ec2:DescribeImages",
		"VersionReader.ReadVersion": "", // whoever is known may ask for it
		"Store.WriteRolloutStatus":  "update noderollouts.joiner.sh/status",
		"Rollouts.AddRollouts":      "list noderollouts.joiner.sh, list controllerrevisions.apps, " + readOfferings,
		"Rollouts.ReadRevision":     "get controllerrevisions.apps, get ec2nodeclasses.karpenter.k8s.aws",
		"RolloutSteps.AdvanceRollouts": "get ec2nodeclasses.karpenter.k8s.aws, create controllerrevisions.apps, " +
			"delete controllerrevisions.apps, update noderollouts.joiner.sh/status, cloudwatch:DescribeAlarms, ec2:DescribeImages",
		"Reader.WithVolumes": readVolumes, "Recorder.RecordEvent": "create events, patch events",
		"PurchaseBrake.NoteUnusedNodes": writeRecord,
		"RemainingCapacity.FindGroup":   "ec2:DescribePlacementGroups", "RemainingCapacity.RemainingAddresses": "ec2:DescribeSubnets",
		"RemainingCapacity.RemainingReservations": "ec2:DescribeCapacityReservations", "Tolerator.TolerateNomination": "patch pods",
		"UnavailableOfferings.ListUnavailable": readRecord, "UnavailableOfferings.MarkUnavailable": writeRecord,
		"Volumes.ListAttachments": "list volumeattachments.storage.k8s.io, list persistentvolumes", "Waker.Wake": "lambda:InvokeFunction",
		"WatchAwareWaker.IsWatched": "get leases.coordination.k8s.io",
	}
}

// neverCalled are the port methods that the kinds of notices of a function do not lead to.
func neverCalled() map[string][]string {
	// only where an instance ends
	changesNodes := []string{"NodePods.DeletePod", "NodePods.PodsOn", "NodePods.RemovePod", "Nodes.DeleteNode"}
	// only on a recommendation
	forPools := []string{"PoolReader.PoolAnnotations", "RateQuota.TakeOne"}
	return map[string][]string{
		"SpotInterruption":        slices.Concat(changesNodes, forPools),
		"ReservationInterruption": slices.Concat(changesNodes, forPools),
		// the offering is as good as ever
		"ScheduledChange": slices.Concat(changesNodes, forPools, []string{"UnavailableOfferings.MarkUnavailable"}),
		"StateChange":     slices.Concat(forPools, []string{"UnavailableOfferings.MarkUnavailable"}),
		// a recommendation deletes nothing, so that it needs no right to change nodes.
		"Rebalance": slices.Concat(changesNodes, []string{"Claims.DeleteClaim", "Nodes.ReleaseNode", "Nodes.TaintForTermination"}),
	}
}

// TestRightsCoverPortCalls compares what each function may call with what its group may do in Kubernetes and its role
// in AWS. Whether a right is limited to the right objects is not looked at: the tests of the local environment do that.
func TestRightsCoverPortCalls(t *testing.T) {
	calls, needs, used := controllerCalls(t), portNeeds(), map[string]bool{}
	kubernetes, aws := rightsOfGroups(t), rightsOfRoles(t)
	for role, entry := range map[string]string{
		"Provision": "provision.Run", "Lifecycle": "lifecycle.Run", "Disrupt": "disrupt.Run", "Refresh": "refresh.Run",
		"SpotInterruption": "notices.Handle", "ReservationInterruption": "notices.Handle", "Rebalance": "notices.Handle",
		"ScheduledChange": "notices.Handle", "StateChange": "notices.Handle",
	} {
		group := "joiner-" + strings.ToLower(role)
		if len(kubernetes[group]) == 0 || len(aws[role]) == 0 {
			t.Errorf("%s: %d rights in Kubernetes, %d in AWS", role, len(kubernetes[group]), len(aws[role]))
		}
		never := neverCalled()[role]
		for _, call := range calls.portsFrom(t, entry) {
			needed, known := needs[call]
			used[call] = true
			if !known {
				t.Errorf("%s calls %s, of which portNeeds does not say what it needs", role, call)
			}
			if i := slices.Index(never, call); i >= 0 {
				never = slices.Delete(slices.Clone(never), i, i+1)
				continue
			}
			for _, right := range strings.Split(needed, ", ") {
				if right != "" && !kubernetes[group][right] && !aws[role][right] {
					t.Errorf("%s may call %s, and has no right to %s", role, call, right)
				}
			}
		}
		for _, call := range never {
			t.Errorf("%s: nothing leads to %s any more; take it out of neverCalled", role, call)
		}
	}
	for _, call := range slices.Sorted(maps.Keys(needs)) {
		if !used[call] {
			t.Errorf("no function calls %s; take it out of portNeeds", call)
		}
	}
}

// refresh may do in Kubernetes what its calls need, and nothing else.
func TestRefreshHasNoRightItDoesNotNeed(t *testing.T) {
	needed := map[string]bool{"get leases.coordination.k8s.io": true, // whether Karpenter leads
		"get services": true} // the address of the cluster's DNS
	for _, call := range controllerCalls(t).portsFrom(t, "refresh.Run") {
		for _, right := range strings.Split(portNeeds()[call], ", ") {
			needed[right] = true
		}
	}
	for _, right := range slices.Sorted(maps.Keys(rightsOfGroups(t)["joiner-refresh"])) {
		if !needed[right] {
			t.Errorf("refresh may %s, and no call needs it", right)
		}
	}
}

// rightsOfGroups are the rights that RBAC gives to each group, whatever the names of the objects.
func rightsOfGroups(t *testing.T) map[string]map[string]bool {
	t.Helper()
	objects, err := install.RBAC()
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]map[string]bool{}
	for _, o := range objects {
		if o.GetKind() != "Role" && o.GetKind() != "ClusterRole" {
			continue
		}
		var role rbacv1.ClusterRole // a Role has the same rules
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &role); err != nil {
			t.Fatal(err)
		}
		if out[role.Name] == nil {
			out[role.Name] = map[string]bool{}
		}
		for _, rule := range role.Rules {
			for _, resource := range rule.Resources {
				for _, verb := range rule.Verbs {
					out[role.Name][verb+" "+qualified(rule.APIGroups[0], resource)] = true
				}
			}
		}
	}
	return out
}

// qualified is such as nodeclaims.karpenter.sh/status.
func qualified(group, resource string) string {
	if group == "" {
		return resource
	}
	name, sub, found := strings.Cut(resource, "/")
	if found {
		sub = "/" + sub
	}
	return name + "." + group + sub
}

// rightsOfRoles are the actions of each role, as the tests of the stack write them down.
func rightsOfRoles(t *testing.T) map[string]map[string]bool {
	t.Helper()
	text, err := os.ReadFile("../../infra/stack/testdata/permissions.txt")
	if err != nil {
		t.Fatal(err)
	}
	out, role := map[string]map[string]bool{}, ""
	for line := range strings.Lines(string(text)) {
		if name, found := strings.CutPrefix(line, "permissions role="); found {
			role = strings.TrimSpace(name)
			out[role] = map[string]bool{}
		} else if _, actions, found := strings.Cut(line, ": "); found && !strings.HasPrefix(line, " ") && role != "" {
			for _, action := range regexp.MustCompile(`[a-z0-9-]+:[A-Za-z]+`).FindAllString(actions, -1) {
				out[role][action] = true
			}
		}
	}
	return out
}
