package discovery

import (
	"context"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/iam"

	"joiner.sh/pkg/install/preflight"
)

// Limits of a look for a service.
const (
	lookTries   = 2
	lookTimeout = 3 * time.Second // of each try
)

// Surroundings tell where the process runs: where services are, its DNS, and its network.
type Surroundings struct {
	// Hosts are hosts and ports by short names of services.
	Hosts   func(ctx context.Context, cfg aws.Config) (map[string]string, error)
	Resolve func(ctx context.Context, host string) ([]netip.Addr, error)
	Dial    func(ctx context.Context, network, address string) (net.Conn, error)
}

// OwnSurroundings returns the surroundings of the process.
func OwnSurroundings() Surroundings {
	return Surroundings{
		Hosts: serviceHosts,
		Resolve: func(ctx context.Context, host string) ([]netip.Addr, error) {
			return net.DefaultResolver.LookupNetIP(ctx, "ip", host)
		},
		Dial: (&net.Dialer{}).DialContext,
	}
}

// FindSilent names the services that functions call and that take no connection, all looked for at once. An isolated
// VPC is not asked for those that have no private endpoint.
func (s Surroundings) FindSilent(ctx context.Context, cfg aws.Config, isolated bool) ([]preflight.Silence, error) {
	hosts, err := s.Hosts(ctx, cfg)
	if err != nil {
		return nil, err
	}
	names := slices.DeleteFunc(slices.Sorted(maps.Keys(hosts)), func(n string) bool {
		return isolated && (n == "iam" || n == "pricing")
	})
	found := make([]*preflight.Silence, len(names))
	var looks sync.WaitGroup
	for i, name := range names {
		looks.Go(func() { found[i] = s.look(ctx, name, hosts[name]) })
	}
	looks.Wait()
	var out []preflight.Silence
	for _, f := range found {
		if f != nil {
			out = append(out, *f)
		}
	}
	return out, nil
}

// look returns the service if it takes no connection.
func (s Surroundings) look(ctx context.Context, name, address string) *preflight.Silence {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		host = address
	}
	out := preflight.Silence{Service: name, Host: host}
	for range lookTries {
		within, end := context.WithTimeout(ctx, lookTimeout)
		conn, err := s.Dial(within, "tcp", address)
		if err == nil {
			end()
			_ = conn.Close() // it was only asked for
			return nil
		}
		if addresses, err := s.Resolve(within, host); err == nil {
			out.Addresses, out.Private = nil, len(addresses) > 0
			for _, a := range addresses {
				out.Addresses, out.Private = append(out.Addresses, a.String()), out.Private && a.IsPrivate()
			}
		}
		end()
	}
	return &out
}

// serviceHosts are hosts and ports of the services by their short names, those that nobody calls in the region left
// out. A base endpoint of the configuration stands for each of them.
func serviceHosts(ctx context.Context, cfg aws.Config) (map[string]string, error) {
	base := aws.ToString(cfg.BaseEndpoint)
	if base == "" {
		where, err := ec2.NewDefaultEndpointResolverV2().ResolveEndpoint(ctx,
			ec2.EndpointParameters{Region: &cfg.Region})
		if err != nil {
			return nil, fmt.Errorf("find the endpoint of EC2: %w", err)
		}
		domain := strings.TrimPrefix(where.URI.Hostname(), "ec2."+cfg.Region+".")
		at := func(service, region string) string { return service + "." + region + "." + domain + ":443" }
		// IAM has one place in a partition, or one in a region of it.
		global, err := iam.NewDefaultEndpointResolverV2().ResolveEndpoint(ctx,
			iam.EndpointParameters{Region: &cfg.Region})
		if err != nil {
			return nil, fmt.Errorf("find the endpoint of IAM: %w", err)
		}
		out := map[string]string{"iam": global.URI.Hostname() + ":443"}
		if hasPriceList(cfg.Region) {
			out["pricing"] = "api." + at("pricing", priceListRegion(cfg.Region))
		}
		for _, service := range []string{"ec2", "eks", "lambda", "s3", "ssm"} {
			out[service] = at(service, cfg.Region)
		}
		return out, nil
	}
	u, err := url.Parse(base)
	if err != nil {
		return nil, fmt.Errorf("read the endpoint of the configuration: %w", err)
	}
	host := u.Host
	if u.Port() == "" {
		host += ":" + map[bool]string{true: "80", false: "443"}[u.Scheme == "http"]
	}
	out := map[string]string{}
	for _, service := range []string{"ec2", "eks", "iam", "lambda", "pricing", "s3", "ssm"} {
		out[service] = host
	}
	return out, nil
}
