package setup

import (
	"context"
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"joiner.sh/pkg/install/preflight"
)

// Access holds what EKS says of a cluster, and who asks.
type Access struct {
	preflight.Cluster
	Role     string // ARN of the role that setup runs with
	External bool   // its rights come from manifests, not from an access policy
}

// reachCluster makes sure that the cluster answers and lets setup in. A new access entry needs a moment until it
// counts, so a refusal is believed only when it lasts.
func (s *Setup) reachCluster(ctx context.Context) error {
	if err := s.Access.CheckAccess(); err != nil {
		return err
	}
	return s.pollUntil(ctx, s.Patience, func(ctx context.Context) (error, bool, error) {
		_, _, err := s.Cluster.Get(ctx, definitions+"/nodepools.karpenter.sh")
		if err == nil {
			return nil, true, nil
		}
		return s.Access.explainUnreachable(err), false, nil
	})
}

// policyPartition returns the start of the ARNs of EKS' own policies in the partition of the role.
func policyPartition(role string) string {
	parts := strings.SplitN(role, ":", 3)
	if len(parts) < 3 {
		return "arn:aws:eks::aws"
	}
	return "arn:" + parts[1] + ":eks::aws"
}

// explainUnreachable says what is wrong and what to do when the API server cannot be asked.
func (a Access) explainUnreachable(err error) error {
	_, answered := errors.AsType[*apierrors.StatusError](err)
	switch {
	case apierrors.IsUnauthorized(err):
		return fmt.Errorf("cluster %s does not know the role %s: its access entry is missing, or belongs to a role of that name that was deleted. "+
			"The stack makes it as SetupAccess; look with: aws eks describe-access-entry --region %s --cluster-name %s --principal-arn %s: %w",
			a.Name, a.Role, a.Region, a.Name, a.Role, err)
	case apierrors.IsForbidden(err) && a.External:
		return fmt.Errorf("cluster %s knows the role %s and gives it no rights: ClusterRole joiner-setup or its binding is missing: %s: %w", a.Name, a.Role, mend, err)
	case apierrors.IsForbidden(err):
		return fmt.Errorf("cluster %s knows the role %s and gives it no rights: its access entry lacks the policy AmazonEKSClusterAdminPolicy; mend it with: "+
			"aws eks associate-access-policy --region %s --cluster-name %s --principal-arn %s --access-scope type=cluster "+
			"--policy-arn %s:cluster-access-policy/AmazonEKSClusterAdminPolicy: %w", a.Name, a.Role,
			a.Region, a.Name, a.Role, policyPartition(a.Role), err)
	case !answered && a.Inside:
		return fmt.Errorf("cannot reach the API server of cluster %s at %s from the subnets of the functions: its security group must admit TCP 443 from theirs, "+
			"the subnets must be in its VPC or routed to it, and the VPC needs DNS hostnames and DNS support: %w",
			a.Name, a.Endpoint, err)
	case !answered:
		from := "every address"
		if len(a.CIDRs) > 0 {
			from = strings.Join(a.CIDRs, ", ")
		}
		return fmt.Errorf("cannot reach the API server of cluster %s at %s; its public endpoint admits %s, and Lambda calls from any address: %w",
			a.Name, a.Endpoint, from, err)
	}
	return fmt.Errorf("ask the API server of cluster %s: %w", a.Name, err)
}
