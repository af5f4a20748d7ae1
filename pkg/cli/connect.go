package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/version"
	"joiner.sh/pkg/providers/discovery"
	"joiner.sh/pkg/providers/kube"
	"joiner.sh/pkg/providers/store"
	"joiner.sh/pkg/rollout"
	"joiner.sh/pkg/settings"
)

// clusterTarget says which cluster is meant and where prices come from.
type clusterTarget struct {
	kubeconfig, context string
	types, bucket       string
}

// addFlags adds those of the cluster.
func (t *clusterTarget) addFlags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&t.kubeconfig, "kubeconfig", "",
		"how to reach the cluster; without it KUBECONFIG, then ~/.kube/config")
	cmd.Flags().StringVar(&t.context, "context", "", "context of the kubeconfig, instead of its current one")
	t.priceFlags(cmd)
}

// priceFlags adds those of the catalog.
func (t *clusterTarget) priceFlags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&t.types, "types", "", "instance types and prices, instead of those built in")
	cmd.Flags().StringVar(&t.bucket, "catalog-bucket", "",
		"take instance types and prices from the stack's bucket (its output CatalogBucket)")
}

// clusterLink is a cluster that answers.
type clusterLink struct {
	kube *kube.Client
	rest *rest.Config
	name string // of the context
}

// connectCluster makes the client. It makes no request.
func (t clusterTarget) connectCluster() (clusterLink, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = t.kubeconfig
	loader := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules,
		&clientcmd.ConfigOverrides{CurrentContext: t.context})
	cfg, err := loader.ClientConfig()
	if clientcmd.IsEmptyConfig(err) {
		return clusterLink{}, &inputError{errors.New(
			"no cluster given: there is no kubeconfig; name one with --kubeconfig or in KUBECONFIG, or make it: aws eks update-kubeconfig --name CLUSTER")}
	}
	if err != nil {
		return clusterLink{}, &inputError{fmt.Errorf("read kubeconfig: %w%s", err, kubeconfigHint(rules))}
	}
	name := t.context
	if raw, err := loader.RawConfig(); err == nil && name == "" {
		name = raw.CurrentContext
	}
	transport, err := rest.TransportFor(cfg)
	if err != nil {
		return clusterLink{}, &inputError{fmt.Errorf("read kubeconfig: %w", err)}
	}
	client, err := kube.New(kube.Config{Endpoint: cfg.Host, Transport: transport, UserAgent: version.UserAgent("joiner-cli")})
	return clusterLink{kube: client, rest: cfg, name: name}, err
}

// kubeconfigHint says which file is written in a way that no client of Kubernetes reads.
func kubeconfigHint(rules *clientcmd.ClientConfigLoadingRules) string {
	for _, path := range rules.GetLoadingPrecedence() {
		text, err := os.ReadFile(path)
		if err == nil && (bytes.HasPrefix(text, []byte{0xff, 0xfe}) || bytes.HasPrefix(text, []byte{0xfe, 0xff})) {
			return ": " + path + " is in UTF-16, as PowerShell writes it; save it as UTF-8"
		}
	}
	return ""
}

// unreachableHint says what to do about an error of a cluster.
func unreachableHint(l clusterLink, err error) error {
	_, noAnswer := errors.AsType[*url.Error](err)
	switch {
	case err == nil:
		return nil
	case apierrors.IsForbidden(err):
		return fmt.Errorf("%w: this identity has no right to read that; bind it to a ClusterRole that may, such as joiner-admin or view with karpenter.sh", err)
	case apierrors.IsUnauthorized(err):
		return fmt.Errorf("%w: the cluster does not know this identity; renew the credentials of context %s, or give it an access entry", err, l.name)
	case isNotFound(err):
		return fmt.Errorf("%w: the cluster does not have Joiner's or Karpenter's CRDs; deploy the stack, or install them", err)
	case noAnswer:
		return fmt.Errorf("%w: %s does not answer; is the endpoint reachable from here, and the context %q the right one", err, l.rest.Host, l.name)
	}
	return err
}

func isNotFound(err error) bool {
	_, ok := errors.AsType[*kube.NotFoundError](err)
	return ok
}

const (
	awsTimeout  = 20 * time.Second
	awsAttempts = 10 // a person waits rather than reads "unknown": Amazon EKS lets few reads a second through
)

// loadAWSConfig reads the credentials and the region of whoever types the command.
func loadAWSConfig(ctx context.Context) (aws.Config, error) {
	return config.LoadDefaultConfig(ctx,
		config.WithHTTPClient(awshttp.NewBuildableClient().WithTimeout(awsTimeout)),
		config.WithRetryMaxAttempts(awsAttempts))
}

// readCatalog reads instance types and prices: a file, the stack's bucket, or what is built in.
func (t clusterTarget) readCatalog(ctx context.Context) (c instancetypes.Catalog, err error) {
	if t.bucket == "" {
		c, err = ReadCatalog(t.types)
		if err != nil {
			return c, &inputError{err}
		}
		return c, nil
	}
	if t.types != "" {
		return c, &inputError{errors.New("--types and --catalog-bucket are both given; leave one")}
	}
	cfg, err := loadAWSConfig(ctx)
	if err != nil {
		return c, fmt.Errorf("load aws configuration: %w", err)
	}
	store := discovery.NewStore(s3.NewFromConfig(cfg, pathStyle), t.bucket, discovery.CatalogMaxAge, time.Now)
	c, err = store.ReadStored(ctx)
	if err == nil && len(c.Types) == 0 {
		err = fmt.Errorf("bucket %s holds no catalog yet; refresh stores one within five minutes of a deployment",
			t.bucket)
	}
	return c, err
}

// pathStyle lets buckets be reached at endpoints that are no names, such as a local one.
func pathStyle(o *s3.Options) { o.UsePathStyle = o.BaseEndpoint != nil }

// defaultSettings are the settings that functions have unless somebody changes them.
func defaultSettings() settings.Values {
	v, _ := settings.ParseSettings(func(env string) string { // defaults are right, which their own test sees to
		if env == "CLUSTER_NAME" {
			return "cluster"
		}
		return ""
	})
	return v
}

// readCatalogLoudly reads instance types and prices, and tells of it when it takes long.
func (t clusterTarget) readCatalogLoudly(ctx context.Context, term terminalOutput) (load instancetypes.Catalog,
	err error) {
	err = term.withProgress("reading instance types and prices", func() (err error) {
		load, err = t.readCatalog(ctx)
		return err
	})
	return load, err
}

// readSnapshot reads the cluster and what EC2 sells, as a pass of provision does.
func (t clusterTarget) readSnapshot(ctx context.Context, term terminalOutput, l clusterLink) (s cluster.Snapshot,
	err error) {
	load, err := t.readCatalogLoudly(ctx, term)
	if err != nil {
		return s, err
	}
	err = term.withProgress("reading cluster "+l.name, func() (err error) {
		if s, err = l.kube.ReadSnapshot(ctx); err == nil {
			s, err = l.kube.WithVolumes(ctx, s)
		}
		if err == nil {
			s.Rollouts, err = l.kube.Rollouts.ListRollouts(ctx)
			if apierrors.IsForbidden(err) {
				term.writeMessage("not looked at: NodeRollouts (%v)", err)
				err = nil
			}
			s = rollout.Gate(s)
		}
		return err
	})
	if err != nil {
		return s, unreachableHint(l, err)
	}
	s.Catalog = load
	if s.Unavailable, err = store.NewUnavailableOfferings(l.kube, time.Now).ListUnavailable(ctx); err != nil {
		term.writeMessage("not looked at: which offerings EC2 refused lately (%v)", err)
	}
	d := defaultSettings()
	for i := range s.Classes {
		s.Classes[i].ApplySettings(d.VMMemoryOverheadPercent, int64(d.ReservedENIs), !d.ReservedCapacity, s.Rules.IPv6)
	}
	return s, nil
}
