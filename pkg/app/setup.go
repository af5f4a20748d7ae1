package app

import (
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-lambda-go/cfn"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/sts"

	api "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/controllers"
	"joiner.sh/pkg/install"
	"joiner.sh/pkg/install/preflight"
	"joiner.sh/pkg/install/setup"
	"joiner.sh/pkg/model/findings"
	"joiner.sh/pkg/model/version"
	"joiner.sh/pkg/providers/discovery"
	"joiner.sh/pkg/providers/invoke"
	"joiner.sh/pkg/providers/kube"
	"joiner.sh/pkg/settings"
)

// Resource types of the stack that setup answers for.
const (
	preflightType = "Custom::JoinerPreflight"
	setupType     = "Custom::JoinerSetup"
)

const (
	// notInstalled is the physical id of a setup that failed to come into being: deleting it does nothing, so that a
	// rollback does not fail for the same reason.
	notInstalled   = "joiner-setup-not-installed"
	setupPoll      = 500 * time.Millisecond
	setupPatience  = 90 * time.Second
	iamPropagation = 20 * time.Second // until IAM everywhere has forgotten the role of a refresh that runs still
	answerReserve  = 20 * time.Second // kept for the answer to CloudFormation
	// setupAttempts of a call wait 36 seconds in the mean and 71 at most: an account in which others ask EKS often
	// throttles, and a deployment that failed for it would be rolled back.
	setupAttempts = 8
)

// Setup answers CloudFormation for the custom resources of the stack. It reads everything anew at each call and never
// fails to start: CloudFormation waits an hour for a function that does not answer.
func Setup(ctx context.Context, e cfn.Event) (id string, data map[string]any, err error) {
	return CustomResources{Getenv: os.Getenv, Patience: setupPatience, IAMDelay: iamPropagation,
		Around: discovery.OwnSurroundings(),
		AWS: func(ctx context.Context) (aws.Config, error) {
			return config.LoadDefaultConfig(ctx, config.WithAppID("joiner"), config.WithRetryMaxAttempts(setupAttempts))
		}}.Answer(ctx, e)
}

// CustomResources answers for the custom resources of the stack in the surroundings given.
type CustomResources struct {
	Getenv   func(string) string
	AWS      func(context.Context) (aws.Config, error)
	Patience time.Duration // for what EKS and the API server need a moment for
	IAMDelay time.Duration // for which a refresh whose role is gone may still make something
	Around   discovery.Surroundings
}

// Answer does what CloudFormation asks for. The id is the resource's from then on.
func (c CustomResources) Answer(ctx context.Context, e cfn.Event) (id string, data map[string]any, err error) {
	set, err := settings.ParseSettings(c.Getenv)
	if err != nil {
		return failedID(e, ""), nil, err
	}
	log := newLog(set.LogLevel, os.Stdout)
	log.Info("function starts", "version", version.Number)
	log.Info("custom resource", "request", e.RequestType, "type", e.ResourceType, "id", e.PhysicalResourceID)
	own := map[string]string{preflightType: "joiner-preflight-", setupType: "joiner-setup-"}[e.ResourceType]
	if own == "" {
		return failedID(e, ""), nil, fmt.Errorf("resource type %q: setup knows %s and %s", e.ResourceType,
			preflightType, setupType)
	}
	id = own + set.ClusterName
	nothing := e.ResourceType == preflightType || e.PhysicalResourceID == notInstalled
	if e.RequestType == cfn.RequestDelete && nothing {
		return e.PhysicalResourceID, nil, nil
	}
	if e.ResourceType == preflightType {
		data, err = c.answerPreflight(ctx, set, e, log)
	} else {
		data, err = c.answerSetup(ctx, set, e, log)
	}
	if err != nil {
		return failedID(e, id), nil, err
	}
	return id, data, nil
}

// failedID keeps the id of what is there: another one would have CloudFormation delete it.
func failedID(e cfn.Event, id string) string {
	switch {
	case e.PhysicalResourceID != "":
		return e.PhysicalResourceID
	case e.ResourceType == preflightType && id != "":
		return id
	}
	return notInstalled
}

// answerSetup does what the request asks for.
func (c CustomResources) answerSetup(ctx context.Context, set settings.Values, e cfn.Event,
	log *slog.Logger) (map[string]any, error) {
	if e.RequestType != cfn.RequestDelete {
		n, manifests, err := c.install(ctx, set, e, log)
		if err != nil && asksForNothingNew(e) {
			log.Warn("the cluster keeps what an earlier deployment installed", "error", err)
			manifests, err = "unknown: "+err.Error(), nil
		}
		return map[string]any{"Objects": n, "Manifests": manifests}, err
	}
	s, err := c.newSetup(ctx, set, e, log)
	if err != nil {
		return nil, err
	}
	return nil, s.RemoveFromCluster(ctx, textProperty(e, "OnDelete") == settings.OnDeleteDrain, timeLeft(ctx))
}

// install installs the objects and returns their number, unless that takes a role from nodes. Where somebody else
// installs them, it compares. The text is what the stack says of them.
func (c CustomResources) install(ctx context.Context, set settings.Values, e cfn.Event,
	log *slog.Logger) (int, string, error) {
	if textProperty(e, "Inside") == "true" {
		if err := c.checkWays(ctx, set, log); err != nil {
			return 0, "", err
		}
	}
	s, err := c.newSetup(ctx, set, e, log)
	if err != nil {
		return 0, "", err
	}
	if err := s.CheckLeavingRoles(ctx); err != nil {
		return 0, "", err
	}
	if s.External {
		lacks, err := s.CheckManifests(ctx)
		return 0, setup.DescribeManifests(lacks), err
	}
	n, err := s.InstallObjects(ctx)
	return n, setup.DescribeManifests(nil), err
}

// checkWays refuses a network from which setup, and so each function beside it, does not reach what they call. Setup is
// the first that runs in it: preflight is outside, where it can answer whatever the network is like. The name of an
// endpoint that the stack has just made takes a moment to lead to it.
func (c CustomResources) checkWays(ctx context.Context, set settings.Values, log *slog.Logger) error {
	cfg, err := c.AWS(ctx)
	if err != nil {
		return fmt.Errorf("load aws configuration: %w", err)
	}
	within, end := context.WithTimeout(ctx, c.Patience)
	defer end()
	for {
		silent, err := c.Around.FindSilent(ctx, cfg, set.IsolatedVPC)
		if err != nil {
			return err
		}
		found := preflight.JudgeSilence(silent)
		if found.Has(findings.Broken) && controllers.WaitFor(within, min(deniedPoll, c.Patience)) == nil {
			continue
		}
		for _, x := range found {
			if x.Level != findings.Broken {
				log.Warn(x.What, "about", x.About, "mend", x.Mend)
			}
		}
		return preflight.Refusal(found)
	}
}

// asksForNothingNew reports whether the request is for what is deployed already, or for an older deployment. Then
// CloudFormation goes back after an update that failed, and a refusal would leave the stack in
// UPDATE_ROLLBACK_FAILED, from which no deployment leads.
func asksForNothingNew(e cfn.Event) bool {
	if e.RequestType != cfn.RequestUpdate {
		return false
	}
	const deployment = "Deployment"
	to := textProperty(e, deployment)
	before, _ := e.OldResourceProperties[deployment].(string)
	toldNothing := to == "" && before != "" // a release that did not say
	if toldNothing || preflight.IsRollback(to, before) {
		return true
	}
	now, old := maps.Clone(e.ResourceProperties), maps.Clone(e.OldResourceProperties)
	delete(now, deployment)
	delete(old, deployment)
	return reflect.DeepEqual(now, old)
}

func (c CustomResources) newSetup(ctx context.Context, set settings.Values, e cfn.Event,
	log *slog.Logger) (*setup.Setup, error) {
	cfg, err := c.AWS(ctx)
	if err != nil {
		return nil, fmt.Errorf("load aws configuration: %w", err)
	}
	a, err := discovery.DescribeAccess(ctx, eks.NewFromConfig(cfg), set.ClusterName)
	if err != nil {
		return nil, err
	}
	// What cdk.json says of the cluster goes over what EKS says.
	a.Endpoint, a.CABundle = cmp.Or(set.ClusterEndpoint, a.Endpoint), cmp.Or(set.ClusterCABundle, a.CABundle)
	a.Region, a.Inside = cfg.Region, textProperty(e, "Inside") == "true"
	s := &setup.Setup{Poll: min(setupPoll, c.Patience), Patience: c.Patience, IAMDelay: c.IAMDelay, Log: log,
		Now:     time.Now,
		Leaving: leavingRoles(e, set.ClusterName, cfg.Region),
		Leftovers: &discovery.ClassResolver{EC2: ec2.NewFromConfig(cfg), IAM: iam.NewFromConfig(cfg),
			Region: cfg.Region, Cluster: set.ClusterName, Isolated: set.IsolatedVPC},
		External: set.Manifests == settings.ManifestsExternal,
		Observe:  set.Mode == settings.ModeObserve, KarpenterNamespaces: set.KarpenterNamespaces,
		Lifecycle: invoke.Function{Lambda: lambda.NewFromConfig(cfg), Name: set.LifecycleFunction, Reason: "setup"},
		Access: setup.Access{Role: textProperty(e, "RoleArn"), External: set.Manifests == settings.ManifestsExternal,
			Cluster: a}}
	if !set.IsolatedVPC {
		s.SpotRole = discovery.SpotRole{IAM: iam.NewFromConfig(cfg)}
	}
	if at := textProperty(e, "Sleep"); at != "" {
		s.Sleep = map[string]string{api.AnnotationHibernationSchedule: at,
			api.AnnotationHibernationDuration: textProperty(e, "SleepFor"),
			api.AnnotationTimeZone:            textProperty(e, "SleepTimeZone")}
	}
	if s.Push, err = pushAddress(set, e); err != nil {
		return nil, err
	}
	if !a.Found || a.Endpoint == "" {
		return s, nil // the check says it better
	}
	s.Cluster, err = clusterObjects(cfg, a)
	return s, err
}

// leavingRoles are the node roles that the stack had made and makes no more. A stack that keeps its nodes keeps them.
func leavingRoles(e cfn.Event, cluster, region string) setup.Leaving {
	l := setup.Leaving{ProfileOf: func(class, uid, role string) string {
		return discovery.ProfileName(cluster, region, class, uid, role)
	}}
	if before, _ := e.OldResourceProperties["OnDelete"].(string); before != settings.OnDeleteDrain {
		return l
	}
	had, _ := e.OldResourceProperties["NodeRoles"].(string)
	stay := strings.Split(textProperty(e, "NodeRoles"), ",")
	for _, role := range strings.Split(had, ",") {
		if role != "" && !slices.Contains(stay, role) {
			l.Roles = append(l.Roles, role)
		}
	}
	return l
}

// pushAddress returns the address that the cluster's webhook calls, and the authorities that it believes: Amazon's,
// unless the property PushCABundle names others. The secret part of it is no property, because CloudFormation shows
// those.
func pushAddress(set settings.Values, e cfn.Event) (install.Address, error) {
	url := textProperty(e, "PushURL")
	if url == "" {
		return install.Address{}, nil
	}
	ca, err := base64.StdEncoding.DecodeString(textProperty(e, "PushCABundle"))
	if err != nil {
		return install.Address{}, fmt.Errorf("decode PushCABundle: %w", err)
	}
	if set.PushPath == "" {
		return install.Address{}, errors.New("settings: PUSH_PATH is required beside PushURL: the stack sets both with push")
	}
	if len(ca) == 0 {
		ca = install.AmazonRoots()
	}
	return install.Address{URL: strings.TrimSuffix(url, "/") + "/" + set.PushPath, CA: ca}, nil
}

func clusterObjects(cfg aws.Config, a preflight.Cluster) (kube.Objects, error) {
	ca, err := base64.StdEncoding.DecodeString(a.CABundle)
	if err != nil {
		return kube.Objects{}, fmt.Errorf("decode certificate authority of cluster %s: %w", a.Name, err)
	}
	c, err := kube.New(kube.Config{Endpoint: a.Endpoint, CA: ca, UserAgent: version.UserAgent("joiner-setup"),
		Token: kube.EKSToken(sts.NewFromConfig(cfg), a.Name, time.Now), Now: time.Now})
	if err != nil {
		return kube.Objects{}, err
	}
	return c.Objects, nil
}

func textProperty(e cfn.Event, name string) string {
	text, _ := e.ResourceProperties[name].(string) // CloudFormation sends texts; what is missing is empty
	return text
}

// timeLeft is the time of the invocation without what the answer needs.
func timeLeft(ctx context.Context) time.Duration {
	end, ok := ctx.Deadline()
	if !ok {
		return setupPatience
	}
	return time.Until(end) - answerReserve
}
