package ec2_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"flag"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	awsv1 "joiner.sh/pkg/api/aws/v1"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/instancetypes/builtin"
	"joiner.sh/pkg/model/requirements"
	"joiner.sh/pkg/nodeclaim/launch"
	"joiner.sh/pkg/nodeclass"
)

var rewrite = flag.Bool("rewrite", false, "write the requests of testdata anew")

// recorded keeps the requests of some actions, as EC2 gets them.
type recorded struct {
	mu    sync.Mutex
	forms []url.Values
}

// Do is what the SDK sends requests with.
func (r *recorded) Do(req *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return nil, err
	}
	req.Body = io.NopCloser(bytes.NewReader(body))
	if form, err := url.ParseQuery(string(body)); err == nil && strings.HasPrefix(form.Get("Action"), "Create") {
		r.mu.Lock()
		r.forms = append(r.forms, form)
		r.mu.Unlock()
	}
	return http.DefaultClient.Do(req)
}

// TestRequestsOfClasses takes each EC2NodeClass of testdata, with what its claim wants in the head, all the way to the
// requests that EC2 gets for it. EC2 takes them: the emulator refuses parameters that it does not know.
func TestRequestsOfClasses(t *testing.T) {
	files, err := filepath.Glob("testdata/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no classes: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".yaml"), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			r := start(t, 1)
			got := r.requests(t, string(text))
			golden := strings.TrimSuffix(file, ".yaml") + ".txt"
			if *rewrite {
				if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(got, "\n")); diff != "" {
				t.Errorf("requests (-want +got):\n%s", diff)
			}
		})
	}
}

// requests launches a node of the class, and prints what EC2 was asked.
func (r *rig) requests(t *testing.T, text string) string {
	t.Helper()
	c := &awsv1.EC2NodeClass{}
	if err := yaml.UnmarshalStrict([]byte(text), &c.Spec); err != nil {
		t.Fatal(err)
	}
	c.Status.Subnets = []awsv1.Subnet{{ID: r.zones["us-west-2a"], Zone: "us-west-2a", ZoneID: "usw2-az2"}}
	o := r.choose(t, c, claimOf(t, text))
	seen := &recorded{}
	keys := r.IssueCredentials("provision", "test", 0)
	r.Fleet.EC2 = ec2.NewFromConfig(aws.Config{Region: "us-west-2", BaseEndpoint: aws.String(r.URL()), HTTPClient: seen,
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) { return keys, nil })})
	r.launch(t, o, token)
	var out strings.Builder
	for _, form := range seen.forms {
		out.WriteString(r.printed(t, form))
	}
	return out.String()
}

// choose makes the order for a claim of the class, which has what the account has, and where these are unavailable.
func (r *rig) choose(t *testing.T, c *awsv1.EC2NodeClass, claim cluster.Claim, unavailable ...instancetypes.UnavailableOffering) launch.Order {
	t.Helper()
	if c.Spec.MetadataOptions == nil { // the schema fills it in
		c.Spec.MetadataOptions = &awsv1.MetadataOptions{HTTPEndpoint: aws.String("enabled"), HTTPProtocolIPv6: aws.String("disabled"),
			HTTPPutResponseHopLimit: aws.Int64(1), HTTPTokens: aws.String("required")}
	}
	c.Name = "default"
	c.Status.InstanceProfile = "nodes"
	c.Status.AMIs = []awsv1.AMI{{ID: r.image}}
	c.Status.SecurityGroups = []awsv1.SecurityGroup{{ID: r.group}}
	all, err := instancetypes.DecodeCatalog(builtin.Data())
	if err != nil {
		t.Fatal(err)
	}
	in := launch.Input{Class: c, Resolved: nodeclass.DescribeClass(c), Claim: claim, Cluster: launch.Cluster{Name: "demo", Endpoint: "https://api", CABundle: "Q0E=",
		DNSAddress: "172.20.0.10", ServiceCIDR: "172.20.0.0/16", Version: "1.36", Region: "us-west-2"}}
	in.Resolved.Ready, in.Resolved.MemoryOverhead = true, 0.075
	in.Types = instancetypes.ResolveTypes(all, in.Resolved, unavailable, all.Time)
	o, err := launch.ChooseOrder(in)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// claimOf reads the head of the file: "# type m5.large" and "# request vpc.amazonaws.com/efa 1".
func claimOf(t *testing.T, text string) cluster.Claim {
	t.Helper()
	c := cluster.Claim{Name: claimName, UID: claimUID, Pool: "default", Class: "default", Labels: map[string]string{"karpenter.sh/nodepool": "default"}}
	c.Requirements = requirements.NewSet(requirements.Of(instancetypes.LabelCapacityType, instancetypes.OnDemand))
	for line := range strings.Lines(text) {
		switch f := strings.Fields(line); {
		case len(f) == 3 && f[1] == "type":
			c.Requirements = c.Requirements.And(requirements.Of(instancetypes.LabelType, f[2]))
		case len(f) == 4 && f[1] == "request":
			n, err := strconv.ParseInt(f[3], 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			c.Requests = c.Requests.With(f[2], n)
		}
	}
	return c
}

// printed is a request, a line for each parameter but those that differ from run to run.
func (r *rig) printed(t *testing.T, form url.Values) string {
	t.Helper()
	names := strings.NewReplacer(r.image, "IMAGE", r.group, "GROUP", r.zones["us-west-2a"], "SUBNET")
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n", form.Get("Action"))
	for _, k := range slices.Sorted(maps.Keys(form)) {
		v := names.Replace(form.Get(k))
		switch {
		case k == "Action", k == "Version", strings.HasPrefix(k, "TagSpecification"), strings.Contains(k, "LaunchTemplateData.TagSpecification"), strings.HasSuffix(k, "LaunchTemplateName"), k == "ClientToken":
			continue
		case k == "LaunchTemplateData.UserData":
			text, err := base64.StdEncoding.DecodeString(v)
			if err != nil {
				t.Fatal(err)
			}
			v = "\n    " + strings.ReplaceAll(strings.TrimSpace(string(text)), "\n", "\n    ")
		}
		fmt.Fprintf(&b, "  %s %s\n", k, v)
	}
	return b.String()
}
