package main

import (
	"context"
	_ "embed"
	"fmt"
	"os"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	nodefast "sigs.k8s.io/kwok/kustomize/stage/node/fast"
	nodeheartbeat "sigs.k8s.io/kwok/kustomize/stage/node/heartbeat-with-lease"
	podfast "sigs.k8s.io/kwok/kustomize/stage/pod/fast"
	"sigs.k8s.io/kwok/pkg/apis/internalversion"
	kwokclientset "sigs.k8s.io/kwok/pkg/client/clientset/versioned"
	kwokconfig "sigs.k8s.io/kwok/pkg/config"
	"sigs.k8s.io/kwok/pkg/kwok/controllers"
	"sigs.k8s.io/kwok/pkg/log"
	kwokclient "sigs.k8s.io/kwok/pkg/utils/client"
)

// podDeleteStage lets a deleted pod live for its grace period, as a kubelet does; kwok's own deletes at once.
//
//go:embed pod-delete.yaml
var podDeleteStage string

const (
	fakeNodes         = "kwok.x-k8s.io/node=fake"
	podNetwork        = "10.0.0.0/16" // only for the look of it: nothing routes there
	leaseSeconds      = 40            // a kubelet's default
	kwokPodWorkers    = 64            // kwok's default of 4 makes about 60 pods/s Running
	kwokNodeWorkers   = 16
	kwokResyncWorkers = 4
	kwokLeaseWorkers  = 16
)

// startKwok plays the kubelet of every node that carries the annotation of fakeNodes. It uses kwok's controller
// rather than its command, which reads os.Args and the process' flags, both of which are ours.
func startKwok(ctx context.Context, kubeconfig string) error {
	ctx = log.NewContext(ctx, log.NewLogger(os.Stderr, log.LevelWarn))
	stages, err := kwokStages()
	if err != nil {
		return err
	}
	config, err := kwokConfig(kubeconfig)
	if err != nil {
		return err
	}
	config.LocalStages = stages
	controller, err := controllers.NewController(config)
	if err != nil {
		return fmt.Errorf("make controller: %w", err)
	}
	return controller.Start(ctx)
}

func kwokStages() (map[internalversion.StageResourceRef][]*internalversion.Stage, error) {
	stages := map[internalversion.StageResourceRef][]*internalversion.Stage{}
	for _, text := range []string{
		nodefast.DefaultNodeInit,
		nodeheartbeat.DefaultNodeHeartbeatWithLease,
		podfast.DefaultPodReady,
		podfast.DefaultPodComplete,
		podDeleteStage,
	} {
		stage, err := kwokconfig.UnmarshalWithType[*internalversion.Stage](text)
		if err != nil {
			return nil, fmt.Errorf("read stage: %w", err)
		}
		ref := stage.Spec.ResourceRef
		stages[ref] = append(stages[ref], stage)
	}
	return stages, nil
}

func kwokConfig(kubeconfig string) (controllers.Config, error) {
	clients, err := kwokclient.NewClientset("", kubeconfig)
	if err != nil {
		return controllers.Config{}, fmt.Errorf("make clients: %w", err)
	}
	config, err := clients.ToRESTConfig()
	if err != nil {
		return controllers.Config{}, err
	}
	id, err := controllers.Identity()
	if err != nil {
		return controllers.Config{}, err
	}
	c := controllers.Config{
		ID:                                id,
		Clock:                             clock.RealClock{},
		ImpersonatingDynamicClient:        clients.ToImpersonatingDynamicClient(),
		ImpersonatingTypedClient:          clients.ToImpersonatingTypedClient(),
		ManageNodesWithAnnotationSelector: fakeNodes,
		CIDR:                              podNetwork,
		PodPlayStageParallelism:           kwokPodWorkers,
		NodePlayStageParallelism:          kwokNodeWorkers,
		PodsOnNodeSyncParallelism:         kwokResyncWorkers,
		NodeLeaseParallelism:              kwokLeaseWorkers,
		NodeLeaseDurationSeconds:          leaseSeconds,
		EnablePodsOnNodeSyncListPager:     true,
	}
	if c.DynamicClient, err = clients.ToDynamicClient(); err != nil {
		return c, fmt.Errorf("make dynamic client: %w", err)
	}
	if c.RESTMapper, err = clients.ToRESTMapper(); err != nil {
		return c, fmt.Errorf("make REST mapper: %w", err)
	}
	if c.RESTClient, err = rest.RESTClientFor(config); err != nil {
		return c, fmt.Errorf("make REST client: %w", err)
	}
	terse := rest.CopyConfig(config)
	terse.ContentType = runtime.ContentTypeProtobuf // it watches every pod
	if c.TypedClient, err = kubernetes.NewForConfig(terse); err != nil {
		return c, fmt.Errorf("make client: %w", err)
	}
	if c.TypedKwokClient, err = kwokclientset.NewForConfig(config); err != nil {
		return c, fmt.Errorf("make kwok client: %w", err)
	}
	return c, nil
}
