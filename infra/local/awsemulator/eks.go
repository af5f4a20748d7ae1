package awsemulator

import (
	"cmp"
	"encoding/base64"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"joiner.sh/infra/local/awsemulator/wire"
)

// eks is EKS: the one cluster and its access entries.
type eks struct {
	*account
	cluster clusterFacts
	entries map[string]AccessEntry
}

// clusterFacts are what DescribeCluster tells and the emulator cannot know by itself.
type clusterFacts struct {
	endpoint string
	ca       []byte
	cidr     string
	mode     string // of authentication; empty: API
	private  bool   // no public endpoint
	autoMode bool   // EKS Auto Mode
	status   string // empty: ACTIVE
	ipv6     bool   // addresses of services
}

// clusterAdmin is the access policy that gives every right.
const clusterAdmin = "arn:aws:eks::aws:cluster-access-policy/AmazonEKSClusterAdminPolicy"

// AccessEntry says who a principal is to the cluster.
type AccessEntry struct {
	PrincipalARN     string            `json:"principalArn"`
	ClusterName      string            `json:"clusterName"`
	AccessEntryARN   string            `json:"accessEntryArn"`
	KubernetesGroups []string          `json:"kubernetesGroups"`
	Username         string            `json:"username"` // {{SessionName}} stands for the session; empty: EKS' default
	Type             string            `json:"type"`     // STANDARD or EC2_LINUX
	Tags             map[string]string `json:"tags"`
	Policies         []string          `json:"-"` // ARNs of associated access policies, on the whole cluster
	CreatedAt        float64           `json:"createdAt"`
	ModifiedAt       float64           `json:"modifiedAt"`
}

// SetCluster tells where the API server listens, by what CA (PEM) its certificate is known, and the CIDR of services.
func (c *eks) SetCluster(endpoint string, caPEM []byte, serviceCIDR string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cluster.endpoint, c.cluster.ca, c.cluster.cidr = endpoint, caPEM, serviceCIDR
}

// SetClusterAccess changes the authentication mode (API, API_AND_CONFIG_MAP, CONFIG_MAP) and whether DescribeCluster
// shows a public endpoint. The API server goes on listening.
func (c *eks) SetClusterAccess(mode string, public bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cluster.mode, c.cluster.private = mode, !public
}

// SetClusterStatus is what DescribeCluster says the cluster is, such as DELETING.
func SetClusterStatus(c *Cloud, status string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cluster.status = status
}

// SetAutoMode turns EKS Auto Mode on or off, as far as DescribeCluster tells.
func SetAutoMode(c *Cloud, on bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cluster.autoMode = on
}

// SetIPv6 has DescribeCluster tell of a cluster whose services have addresses of IPv6, or of IPv4.
func SetIPv6(c *Cloud, on bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cluster.ipv6 = on
}

// rbacGroups are who the principal of an entry is to RBAC. EKS has an authorizer of its own for access policies; here
// the one that gives every right is the group that may do everything.
func (e AccessEntry) rbacGroups() []string {
	if slices.Contains(e.Policies, clusterAdmin) {
		return append(slices.Clone(e.KubernetesGroups), "system:masters")
	}
	return e.KubernetesGroups
}

// PutAccessEntry makes an access entry exist, filling in what EKS would.
func (c *eks) PutAccessEntry(e AccessEntry) AccessEntry {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.putEntry(e)
}

func (c *eks) putEntry(e AccessEntry) AccessEntry {
	now := unixSeconds(time.Now())
	e.ClusterName, e.CreatedAt, e.ModifiedAt = c.opt.ClusterName, now, now
	if e.Type == "" {
		e.Type = "STANDARD"
	}
	if e.KubernetesGroups == nil {
		e.KubernetesGroups = []string{}
	}
	if e.Username == "" {
		e.Username = defaultUsername(e)
	}
	e.AccessEntryARN = "arn:aws:eks:" + c.opt.Region + ":" + c.opt.Account + ":access-entry/" +
		c.opt.ClusterName + "/role/" + c.opt.Account + "/" + roleName(e.PrincipalARN) + "/" + hash16(e.PrincipalARN)
	c.entries[e.PrincipalARN] = e
	return e
}

// defaultUsername is what EKS gives an entry without one: the assumed-role ARN, without the role's path.
func defaultUsername(e AccessEntry) string {
	if e.Type != "STANDARD" {
		return "system:node:{{EC2PrivateDNSName}}"
	}
	return Caller{Role: e.PrincipalARN, Session: "{{SessionName}}"}.ARN()
}

// restAction names the call of a REST service by its method and path.
func restAction(service string, r *http.Request) string {
	parts := strings.Split(strings.Trim(r.URL.EscapedPath(), "/"), "/")
	if service == "lambda" {
		return lambdaAction(parts, r)
	}
	if service == "savingsplans" {
		return parts[0] // all of its actions are paths
	}
	if service == "arc-zonal-shift" && r.Method == http.MethodGet && parts[0] == "managedresources" && len(parts) == 2 {
		return "GetManagedResource"
	}
	entries := len(parts) > 2 && parts[0] == "clusters" && parts[2] == "access-entries"
	action, known := map[string]string{
		"GET 3": "ListAccessEntries", "POST 3": "CreateAccessEntry",
		"GET 4": "DescribeAccessEntry", "POST 4": "UpdateAccessEntry", "DELETE 4": "DeleteAccessEntry",
	}[r.Method+" "+string(rune('0'+len(parts)%10))]
	switch {
	case entries && known:
		return action
	case len(parts) == 2 && parts[0] == "clusters" && r.Method == http.MethodGet:
		return "DescribeCluster"
	}
	return r.Method + " " + r.URL.Path
}

// lambdaAction names the call of Lambda by its method and the parts of its path.
func lambdaAction(parts []string, r *http.Request) string {
	if len(parts) == 4 && parts[1] == "functions" && parts[3] == "invocations" {
		return "Invoke"
	}
	reads := ""
	if r.Method == http.MethodGet {
		switch {
		case len(parts) == 4 && parts[1] == "functions":
			reads = map[string]string{"configuration": "GetFunctionConfiguration",
				"concurrency": "GetFunctionConcurrency", "policy": "GetPolicy"}[parts[3]]
		case len(parts) == 2 && parts[1] == "account-settings":
			reads = "GetAccountSettings"
		}
	}
	return cmp.Or(reads, r.Method+" "+r.URL.Path)
}

// pathPart returns the n-th part of the path, decoded.
func (r *call) pathPart(n int) string {
	parts := strings.Split(strings.Trim(r.http.URL.EscapedPath(), "/"), "/")
	if n >= len(parts) {
		return ""
	}
	text, err := url.PathUnescape(parts[n])
	if err != nil {
		return parts[n]
	}
	return text
}

func (c *account) eksOperations() map[string]operation {
	ofCluster := func(do operation) operation {
		return func(r *call) (any, error) {
			if name := r.pathPart(1); name != c.opt.ClusterName {
				return nil, wire.Fail(404, "ResourceNotFoundException", "No cluster found for name: %s.", name)
			}
			return do(r)
		}
	}
	return map[string]operation{
		"DescribeCluster":     ofCluster(op(c.eks.describeCluster)),
		"ListAccessEntries":   ofCluster(op(c.eks.listAccessEntries)),
		"CreateAccessEntry":   ofCluster(op(c.eks.createAccessEntry)),
		"DescribeAccessEntry": ofCluster(op(c.eks.describeAccessEntry)),
		"UpdateAccessEntry":   ofCluster(op(c.eks.updateAccessEntry)),
		"DeleteAccessEntry":   ofCluster(op(c.eks.deleteAccessEntry)),
	}
}

func (c *eks) describeCluster(_ *call, _ *struct{}) (any, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	addresses := map[string]string{"serviceIpv4Cidr": c.cluster.cidr, "ipFamily": "ipv4"}
	if c.cluster.ipv6 {
		addresses = map[string]string{"serviceIpv6Cidr": "fd30:1c53:5f8a::/108", "ipFamily": "ipv6"}
	}
	return map[string]any{"cluster": map[string]any{
		"name": c.opt.ClusterName, "arn": "arn:aws:eks:" + c.opt.Region + ":" + c.opt.Account + ":cluster/" +
			c.opt.ClusterName,
		"version": c.opt.KubernetesVersion, "status": cmp.Or(c.cluster.status, "ACTIVE"), "platformVersion": "eks.1",
		"endpoint":                c.cluster.endpoint,
		"certificateAuthority":    map[string]string{"data": base64.StdEncoding.EncodeToString(c.cluster.ca)},
		"kubernetesNetworkConfig": addresses,
		"computeConfig":           map[string]any{"enabled": c.cluster.autoMode},
		"accessConfig":            map[string]any{"authenticationMode": cmp.Or(c.cluster.mode, "API")},
		"resourcesVpcConfig": map[string]any{
			"vpcId":                  c.networks.vpc.id,
			"clusterSecurityGroupId": c.networks.vpc.findGroup("eks-cluster-sg-" + c.opt.ClusterName).ID,
			"endpointPublicAccess":   !c.cluster.private, "publicAccessCidrs": []string{"0.0.0.0/0"},
			"endpointPrivateAccess": true,
		},
	}}, nil
}

// listAccessEntries pages by the query parameters maxResults and nextToken.
func (c *eks) listAccessEntries(r *call, _ *struct{}) (any, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	q := r.http.URL.Query()
	size := 100
	if v, ok := parsePrice(q.Get("maxResults")); ok {
		size = int(v)
	}
	names, next, err := cutPage(slices.Sorted(maps.Keys(c.entries)), page{size, q.Get("nextToken")}, 100,
		func(s string) string { return s })
	if err != nil {
		return nil, wire.Fail(400, "InvalidParameterException", "invalid nextToken or maxResults")
	}
	if names == nil {
		names = []string{}
	}
	out := map[string]any{"accessEntries": names}
	if next != "" {
		out["nextToken"] = next
	}
	return out, nil
}

type accessEntryInput struct {
	PrincipalArn, Username, Type, ClientRequestToken string
	KubernetesGroups                                 []string
	Tags                                             map[string]string
}

func (in *accessEntryInput) validateInput() error {
	for _, g := range in.KubernetesGroups {
		if strings.HasPrefix(g, "system:") {
			return wire.Fail(400, "InvalidParameterException",
				"The kubernetes group name %s is invalid, it cannot start with system:", g)
		}
	}
	for _, prefix := range []string{"system:", "eks:", "aws:", "amazon:", "iam:"} {
		if strings.HasPrefix(in.Username, prefix) {
			return wire.Fail(400, "InvalidParameterException", "The username %s is invalid, it cannot start with %s",
				in.Username, prefix)
		}
	}
	return nil
}

func (c *eks) createAccessEntry(_ *call, in *accessEntryInput) (any, error) {
	if err := in.validateInput(); err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.entries[in.PrincipalArn]; ok {
		return nil, wire.Fail(409, "ResourceInUseException",
			"The specified access entry resource is already in use on this cluster.")
	}
	e := c.putEntry(AccessEntry{
		PrincipalARN: in.PrincipalArn, Username: in.Username, Type: in.Type,
		KubernetesGroups: in.KubernetesGroups, Tags: in.Tags,
	})
	return map[string]any{"accessEntry": e}, nil
}

// findEntry finds the access entry that the path names. The account is locked.
func (c *eks) findEntry(r *call) (AccessEntry, error) {
	e, ok := c.entries[r.pathPart(3)]
	if !ok {
		return e, wire.Fail(404, "ResourceNotFoundException",
			"The specified principalArn could not be found. You must specify a principalArn: %s", r.pathPart(3))
	}
	return e, nil
}

func (c *eks) describeAccessEntry(r *call, _ *struct{}) (any, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, err := c.findEntry(r)
	return map[string]any{"accessEntry": e}, err
}

func (c *eks) updateAccessEntry(r *call, in *accessEntryInput) (any, error) {
	if err := in.validateInput(); err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	e, err := c.findEntry(r)
	if err != nil {
		return nil, err
	}
	if in.KubernetesGroups != nil {
		e.KubernetesGroups = in.KubernetesGroups
	}
	if in.Username != "" {
		e.Username = in.Username
	}
	e.ModifiedAt = unixSeconds(time.Now())
	c.entries[e.PrincipalARN] = e
	return map[string]any{"accessEntry": e}, nil
}

func (c *eks) deleteAccessEntry(r *call, _ *struct{}) (any, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, err := c.findEntry(r)
	if err != nil {
		return nil, err
	}
	delete(c.entries, e.PrincipalARN)
	return nil, nil
}
