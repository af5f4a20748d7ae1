package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	cliflag "k8s.io/component-base/cli/flag"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	apiserveroptions "k8s.io/kubernetes/cmd/kube-apiserver/app/options"
	controllers "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	controlleroptions "k8s.io/kubernetes/cmd/kube-controller-manager/app/options"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	scheduleroptions "k8s.io/kubernetes/cmd/kube-scheduler/app/options"

	"joiner.sh/infra/local/controlplane/client"
)

// components are Kubernetes' own three programs. Their cobra commands cannot share a process (each installs the
// process' one signal handler), so their option structs are filled from argument lists and run directly.
type components struct {
	apiserver  *apiserveroptions.ServerRunOptions
	scheduler  *scheduleroptions.Options
	controller *controlleroptions.KubeControllerManagerOptions
}

// parseComponents fills all three before any runs, because they share one registry of feature gates, set once.
func (r *run) parseComponents(etcdURL string) (*components, error) {
	controller, err := controlleroptions.NewKubeControllerManagerOptions()
	if err != nil {
		return nil, fmt.Errorf("make kube-controller-manager options: %w", err)
	}
	c := &components{
		apiserver:  apiserveroptions.NewServerRunOptions(),
		scheduler:  scheduleroptions.NewOptions(),
		controller: controller,
	}
	if err := parseFlags("kube-apiserver", c.apiserver.Flags(), r.apiserverArgs(etcdURL)); err != nil {
		return nil, err
	}
	if err := parseFlags("kube-scheduler", *c.scheduler.Flags, r.schedulerArgs()); err != nil {
		return nil, err
	}
	sets := controller.Flags(controllers.KnownControllers(), controllers.ControllersDisabledByDefault(),
		controllers.ControllerAliases())
	controller.ParsedFlags = &sets
	if err := parseFlags("kube-controller-manager", sets, r.controllerArgs()); err != nil {
		return nil, err
	}
	if err := c.apiserver.GenericServerRunOptions.ComponentGlobalsRegistry.Set(); err != nil {
		return nil, fmt.Errorf("set feature gates: %w", err)
	}
	c.apiserver.SecureServing.Listener = r.listener // held since the start, so nobody can take the port
	return c, nil
}

func parseFlags(name string, sets cliflag.NamedFlagSets, args []string) error {
	all := pflag.NewFlagSet(name, pflag.ContinueOnError)
	for _, set := range sets.FlagSets {
		all.AddFlagSet(set)
	}
	if err := all.Parse(args); err != nil {
		return fmt.Errorf("parse flags of %s: %w", name, err)
	}
	return nil
}

func (r *run) apiserverArgs(etcdURL string) []string {
	args := []string{
		"--etcd-servers=" + etcdURL,
		"--bind-address=127.0.0.1",
		"--advertise-address=127.0.0.1",
		fmt.Sprintf("--secure-port=%d", r.listenPort()),
		"--tls-cert-file=" + r.pkiPath("apiserver.crt"),
		"--tls-private-key-file=" + r.pkiPath("apiserver.key"),
		"--client-ca-file=" + r.pkiPath("ca.crt"),
		"--cert-dir=" + r.filePath("pki"),
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file=" + r.pkiPath("service-accounts.pub"),
		"--service-account-signing-key-file=" + r.pkiPath("service-accounts.key"),
		"--authorization-mode=Node,RBAC",
		"--enable-admission-plugins=NodeRestriction,Priority",
		"--allow-privileged=true",
		"--service-cluster-ip-range=" + serviceNet,
		"--endpoint-reconciler-type=none",
		"--requestheader-client-ca-file=" + r.pkiPath("front-proxy-ca.crt"),
		"--requestheader-allowed-names=front-proxy-client",
		"--requestheader-extra-headers-prefix=X-Remote-Extra-",
		"--requestheader-group-headers=X-Remote-Group",
		"--requestheader-username-headers=X-Remote-User",
		"--proxy-client-cert-file=" + r.pkiPath("front-proxy-client.crt"),
		"--proxy-client-key-file=" + r.pkiPath("front-proxy-client.key"),
	}
	if r.options.tokenWebhook != "" {
		args = append(args,
			"--authentication-token-webhook-config-file="+r.kubeconfigPath("token-webhook"),
			"--authentication-token-webhook-version=v1",
			"--authentication-token-webhook-cache-ttl=30s",
		)
	}
	if r.options.audit {
		args = append(args, "--audit-log-path="+r.filePath(client.AuditFile), "--audit-log-maxsize=0",
			"--audit-policy-file="+r.filePath(auditPolicyFile))
	}
	return args
}

// clientArgs are what scheduler and controller manager have in common. The client limits are far above the defaults:
// with those the first service account takes 5 s to appear.
func (r *run) clientArgs(user string) []string {
	file := r.kubeconfigPath(user)
	return []string{
		"--kubeconfig=" + file,
		"--authentication-kubeconfig=" + file,
		"--authorization-kubeconfig=" + file,
		"--leader-elect=false",
		"--secure-port=0",
		"--kube-api-qps=500",
		"--kube-api-burst=1000",
	}
}

func (r *run) schedulerArgs() []string { return r.clientArgs("scheduler") }

func (r *run) controllerArgs() []string {
	args := append(r.clientArgs("controller-manager"),
		"--service-account-private-key-file="+r.pkiPath("service-accounts.key"),
		"--root-ca-file="+r.pkiPath("ca.crt"),
		"--cluster-signing-cert-file="+r.pkiPath("ca.crt"),
		"--cluster-signing-key-file="+r.pkiPath("ca.key"),
		"--use-service-account-credentials=true",
		"--controllers="+knownControllers(r.options.controllers),
	)
	if grace := r.options.nodeGrace; grace > 0 {
		period := min(5*time.Second, grace/8) // Kubernetes' default period, unless the grace is too short for it
		args = append(args, "--node-monitor-grace-period="+grace.String(), "--node-monitor-period="+period.String())
	}
	return args
}

// knownControllers leaves out what is off and what this Kubernetes does not have: 1.37 has no controllers for clouds.
func knownControllers(list string) string {
	known, aliases := controllers.KnownControllers(), controllers.ControllerAliases()
	return strings.Join(slices.DeleteFunc(strings.Split(list, ","), func(name string) bool {
		off, isOff := strings.CutPrefix(name, "-")
		return isOff && !slices.Contains(known, off) && aliases[off] == ""
	}), ",")
}

func (c *components) startAPIServer(ctx context.Context, r *run) error {
	completed, err := c.apiserver.Complete(ctx)
	if err != nil {
		return err
	}
	if errs := completed.Validate(); len(errs) > 0 {
		return utilerrors.NewAggregate(errs)
	}
	r.inBackground("kube-apiserver", func() error { return apiserver.Run(ctx, completed) })
	return nil
}

func (c *components) startScheduler(ctx context.Context, r *run) error {
	completed, sched, err := scheduler.Setup(ctx, c.scheduler)
	if err != nil {
		return err
	}
	if err := completed.InformerFactory.Core().V1().Pods().Informer().SetTransform(trimPod); err != nil {
		return fmt.Errorf("trim the pods that it keeps: %w", err)
	}
	r.inBackground("kube-scheduler", func() error { return scheduler.Run(ctx, completed, sched) })
	return nil
}

func (c *components) startControllerManager(ctx context.Context, r *run) error {
	cfg, err := c.controller.Config(ctx, controllers.KnownControllers(), controllers.ControllersDisabledByDefault(),
		controllers.ControllerAliases())
	if err != nil {
		return err
	}
	r.inBackground("kube-controller-manager", func() error { return controllers.Run(ctx, cfg.Complete()) })
	return nil
}
