package cloudformation_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/cfn"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ktypes "k8s.io/apimachinery/pkg/types"

	"joiner.sh/infra/local/awsemulator"
	"joiner.sh/infra/local/cloudformation"
	"joiner.sh/infra/local/cloudtest"
	policies "joiner.sh/infra/local/iam"
	"joiner.sh/infra/local/lambdahost/assembly"
	awsv1 "joiner.sh/pkg/api/aws/v1"
	"joiner.sh/pkg/app"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/nodeclaim/launch"
	"joiner.sh/pkg/providers/discovery"
	"joiner.sh/pkg/providers/fleet"
	"joiner.sh/pkg/providers/kube"
)

const (
	region  = "us-west-2"
	cluster = "sg-0123456789abcdef0" // the cluster's security group, as the forms name it
	claims  = "/apis/karpenter.sh/v1/nodeclaims/"
	classes = "/apis/karpenter.k8s.aws/v1/ec2nodeclasses/"
	nodes   = "/api/v1/nodes/"
)

// world is an account with a cluster, in which a player deploys a stack whose functions answer.
type world struct {
	t       *testing.T
	cloud   *awsemulator.Cloud
	api     *apiServer
	account *cloudformation.Emulated
	player  *cloudformation.Player
	stack   *cloudformation.Stack
	asked   []string        // requests for custom resources
	created map[string]bool // by an update, by logical id

	walled         bool            // the cluster's security group lets nobody in yet
	nat, s3Gateway bool            // of the functions' VPC
	within         time.Duration   // that a drain has
	stuck          map[string]bool // claims whose pods nobody may evict

	mu     sync.Mutex
	roles  map[string]assembly.Role
	joined map[string]string // instances, by the name of their node
	ended  map[string]bool   // pods on nodes by whether they ended in peace, by claim
}

func newWorld(t *testing.T, seed uint64) *world {
	t.Helper()
	w := &world{t: t, nat: true, within: 5 * time.Second, roles: map[string]assembly.Role{}, joined: map[string]string{},
		ended: map[string]bool{}, stuck: map[string]bool{}, stack: &cloudformation.Stack{Name: "joiner-demo"}}
	w.cloud, _ = cloudtest.Start(t, awsemulator.Options{Reach: w.reaches, Authorize: w.authorize, Invoke: w.invoke})
	awsemulator.NameNetwork(w.cloud, "vpc-0123456789abcdef0", "subnet-0123456789abcdef0", "subnet-0123456789abcdef1")
	w.api = newAPIServer(t, w.cloud.URL()+"/authenticate", w.reachesCluster)
	w.cloud.SetCluster(w.api.server.URL, w.api.ca, "10.100.0.0/16")
	w.account = &cloudformation.Emulated{Cloud: w.cloud, Ask: w.ask}
	w.player = &cloudformation.Player{Account: w, Seed: seed}
	return w
}

// Create, Update and Delete are those of the account, which also learn the policies of roles.
func (w *world) Create(ctx context.Context, s *cloudformation.Stack, r *cloudformation.Resource) error {
	err := w.account.Create(ctx, s, r)
	if err == nil {
		w.learn(*r)
	}
	if err == nil && strings.HasPrefix(r.ID, "RefreshSchedule") { // whose first tick comes at once
		w.storeCatalog(ctx)
	}
	return err
}

// storeCatalog is what refresh does.
func (w *world) storeCatalog(ctx context.Context) {
	for id, r := range w.stack.Resources() {
		if r.Type != "AWS::S3::Bucket" {
			continue
		}
		client := s3.NewFromConfig(w.config("arn:aws:iam::123456789012:role/refresh", "s"), func(o *s3.Options) { o.UsePathStyle = true })
		_, err := client.PutObject(ctx, &s3.PutObjectInput{Bucket: &r.Physical, Key: aws.String("catalog.json.gz"), Body: strings.NewReader("{}")})
		if err != nil {
			w.t.Errorf("%s: %v", id, err)
		}
	}
}

func (w *world) Update(ctx context.Context, s *cloudformation.Stack, before cloudformation.Resource, r *cloudformation.Resource) error {
	err := w.account.Update(ctx, s, before, r)
	if err == nil {
		w.learn(*r)
	}
	return err
}

func (w *world) Delete(ctx context.Context, s *cloudformation.Stack, r cloudformation.Resource) error {
	return w.account.Delete(ctx, s, r)
}

func (w *world) learn(r cloudformation.Resource) {
	if r.Type != "AWS::IAM::Role" {
		return
	}
	text, err := json.Marshal(r.Properties)
	var p struct {
		Policies []struct {
			PolicyName     string
			PolicyDocument json.RawMessage
		}
	}
	if err == nil {
		err = json.Unmarshal(text, &p)
	}
	if err != nil {
		w.t.Errorf("role %s: %v", r.ID, err)
	}
	role := assembly.Role{Name: r.Physical, ARN: fmt.Sprint(r.Attributes["Arn"])}
	for _, policy := range p.Policies {
		role.Policies = append(role.Policies, assembly.Policy{Name: policy.PolicyName, Document: policy.PolicyDocument})
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.roles[role.ARN] = role
}

// authorize weighs calls of the stack's functions by their policies. Others may do everything.
func (w *world) authorize(a awsemulator.Access) error {
	w.mu.Lock()
	role, ours := w.roles[a.Caller.Role]
	w.mu.Unlock()
	if !ours || a.Caller.IsInstance() && a.Action == "ec2:DescribeInstances" { // which AmazonEKSWorkerNodePolicy allows
		return nil
	}
	p, err := policies.Of([]assembly.Role{role})
	if err == nil {
		_, err = p.Decide(policies.Request{Role: a.Caller.Role, Action: a.Action, Resource: a.Resource, Keys: a.Keys})
	}
	return err
}

// reachesCluster reports whether the caller comes to the API server: from outside by its public endpoint, from the VPC
// by the private one, whose security group must let it in.
func (w *world) reachesCluster(principal string) bool {
	f := w.account.FunctionsByRole()[principal]
	return len(f.Subnets) == 0 || !w.walled || w.network().Admits(f.Groups, []string{cluster})
}

// config signs as a role does.
func (w *world) config(roleARN, session string) aws.Config {
	return aws.Config{Region: region, BaseEndpoint: aws.String(w.cloud.URL()),
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return w.cloud.IssueCredentials(roleARN, session, 0), nil
		}),
		Retryer: func() aws.Retryer {
			return retry.NewStandard(func(o *retry.StandardOptions) { o.MaxAttempts, o.MaxBackoff = 2, time.Millisecond })
		}}
}

// ask runs the handler of the function, which answers to a URL of S3 as it does in Lambda.
func (w *world) ask(ctx context.Context, f cloudformation.Function, ask cloudformation.Request) (cloudformation.Answer, error) {
	w.asked = append(w.asked, ask.RequestType+" "+ask.LogicalResourceID)
	answers := make(chan cloudformation.Answer, 1)
	bucket := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if len(f.Subnets) > 0 && !w.nat && !w.s3Gateway {
			hangUp(rw)
			return
		}
		var a cloudformation.Answer
		if json.NewDecoder(r.Body).Decode(&a) == nil {
			answers <- a
		}
	}))
	defer bucket.Close()
	ask.ResponseURL = bucket.URL
	text, err := json.Marshal(ask)
	if err != nil {
		return cloudformation.Answer{}, err
	}
	var event cfn.Event
	if err := json.Unmarshal(text, &event); err != nil {
		return cloudformation.Answer{}, err
	}
	const forTheAnswer = 20 * time.Second // that the function keeps
	ctx, cancel := context.WithTimeout(ctx, forTheAnswer+w.within)
	defer cancel()
	custom := app.CustomResources{Patience: 20 * time.Millisecond, Around: w.around(f), Getenv: func(name string) string {
		if name == "LOG_LEVEL" {
			return "error"
		}
		return f.Environment[name]
	},
		AWS: func(context.Context) (aws.Config, error) { return w.config(f.RoleARN, f.Name), nil }}
	_, _ = cfn.LambdaWrap(custom.Answer)(ctx, event) // an answer that does not arrive is the matter of CloudFormation
	select {
	case a := <-answers:
		if f.Code == commitBefore+".zip" {
			delete(a.Data, "Reach") // of which it knew nothing yet
		}
		return a, nil
	default:
		return cloudformation.Answer{}, cloudformation.ErrNoAnswer
	}
}

// deploy wants the stack to be deployed.
func (w *world) deploy(name string) {
	w.t.Helper()
	if err := w.player.DeployStack(w.t.Context(), w.stack, template(w.t, name, nil)); err != nil {
		w.t.Fatalf("seed %d: %v", w.player.Seed, err)
	}
}

// launch has a class with a role and a node of it, as refresh, provision and the node's kubelet make them. The class
// and the claim are called by the name.
func (w *world) launch(name, role string) {
	w.t.Helper()
	if err := w.boot(w.launchInstance(name, role)); err != nil {
		w.t.Fatalf("a new instance does not boot: %v", err)
	}
	if why := w.beat(); len(why) > 0 {
		w.t.Fatalf("a new node does not become ready: %v", why)
	}
}

// launchInstance is launch without what the instance does itself.
func (w *world) launchInstance(name, role string) string {
	w.t.Helper()
	admin := w.config("arn:aws:iam::111122223333:role/administrator", "test")
	calls := ec2.NewFromConfig(admin)
	class := &awsv1.EC2NodeClass{ObjectMeta: metav1.ObjectMeta{Name: name, UID: ktypes.UID("uid-" + name)}, Spec: awsv1.EC2NodeClassSpec{Role: role}}
	made := (&discovery.ClassResolver{EC2: calls, IAM: iam.NewFromConfig(admin), Region: region, Cluster: "demo", Now: time.Now}).FindAll(w.t.Context(), class)
	if made.ProfileErr != nil {
		w.t.Fatal(made.ProfileErr)
	}
	images, err := calls.DescribeImages(w.t.Context(), &ec2.DescribeImagesInput{Owners: []string{"amazon"},
		Filters: []types.Filter{{Name: aws.String("name"), Values: []string{"amazon-eks-node-al2023-x86_64-standard-1.36-*"}}}})
	if err != nil || len(images.Images) == 0 {
		w.t.Fatal("no image: ", err)
	}
	subnets, err := calls.DescribeSubnets(w.t.Context(), &ec2.DescribeSubnetsInput{})
	if err != nil {
		w.t.Fatal(err)
	}
	s, image := subnets.Subnets[0], *images.Images[0].ImageId
	tags := []launch.Tag{{Key: launch.TagNodeClass, Value: name}, {Key: launch.TagNodePool, Value: "default"},
		{Key: launch.TagClusterName, Value: "demo"}, {Key: "kubernetes.io/cluster/demo", Value: "owned"}}
	order := launch.Order{ClaimName: name, ClaimUID: name, CapacityType: instancetypes.OnDemand, Strategy: "lowest-price", Tags: tags, InstanceTags: tags,
		Templates: []launch.Template{{Name: "karpenter.k8s.aws/" + name, ImageID: image, InstanceProfile: made.Profile, Tenancy: "default", Tags: tags,
			UserData: base64.StdEncoding.EncodeToString([]byte("node")), Metadata: launch.Metadata{HTTPEndpoint: "enabled", HTTPProtocol: "disabled", HopLimit: 1, HTTPTokens: "required"},
			Reservation: launch.ReservationSelection{Preference: "none"},
			Overrides: []launch.Override{{SubnetID: *s.SubnetId, ImageID: image, Price: 0.1,
				OfferingKey: instancetypes.OfferingKey{CapacityType: instancetypes.OnDemand, Type: "m5.large", Zone: *s.AvailabilityZone}}}}}}
	f := &fleet.Fleet{EC2: calls, Cluster: "demo", Now: time.Now}
	i, _, err := f.LaunchInstances(w.t.Context(), order, name)
	if err != nil {
		w.t.Fatal(err)
	}
	w.api.mu.Lock()
	w.api.put(classes+name, map[string]any{"kind": "EC2NodeClass", "apiVersion": "karpenter.k8s.aws/v1",
		"metadata": map[string]any{"name": name, "uid": "uid-" + name, "finalizers": []any{"karpenter.k8s.aws/termination"}}, "spec": map[string]any{"role": role}})
	w.api.put(claims+name, map[string]any{"kind": "NodeClaim", "apiVersion": "karpenter.sh/v1",
		"metadata": map[string]any{"name": name, "finalizers": []any{"karpenter.sh/termination"}, "annotations": map[string]any{"karpenter.k8s.aws/instance-profile-name": made.Profile}},
		"spec":     map[string]any{"nodeClassRef": map[string]any{"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": name}},
		"status":   map[string]any{"nodeName": "n-" + name}})
	w.api.put(nodes+"n-"+name, map[string]any{"kind": "Node", "apiVersion": "v1", "metadata": map[string]any{"name": "n-" + name, "finalizers": []any{"karpenter.sh/termination"}}})
	w.api.mu.Unlock()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.joined["n-"+name] = i.ID
	return i.ID
}

// beat has every kubelet tell the API server that it is well, with the credentials that its instance has now, and says
// why those could not that are NotReady.
func (w *world) beat() map[string]string {
	w.mu.Lock()
	joined := maps.Clone(w.joined)
	w.mu.Unlock()
	failed := map[string]string{}
	for node, instance := range joined {
		if err := w.report(node, instance); err != nil {
			failed[node] = err.Error()
		}
	}
	return failed
}

func (w *world) report(node, instance string) error {
	cfg, err := w.instanceConfig(instance)
	if err != nil {
		return err
	}
	token, _, err := kube.EKSToken(sts.NewFromConfig(cfg), "demo", time.Now)(w.t.Context())
	if err != nil {
		return err
	}
	r, err := http.NewRequestWithContext(w.t.Context(), http.MethodPatch, w.api.server.URL+nodes+node+"/status",
		strings.NewReader(`{"status":{"conditions":[{"type":"Ready","status":"True"}]}}`))
	if err != nil {
		return err
	}
	r.Header.Set("Authorization", "Bearer "+token)
	r.Header.Set("Content-Type", "application/merge-patch+json")
	res, err := w.api.server.Client().Do(r)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return errors.New(res.Status)
	}
	return nil
}

// invoke stands for lifecycle, which setup wakes to drain: it ends every NodeClaim that is being deleted and that
// nothing holds up. Pods end in peace only where the kubelet is heard.
func (w *world) invoke(context.Context, awsemulator.InvokeRequest) awsemulator.InvokeResponse {
	lost := w.beat()
	w.api.mu.Lock()
	defer w.api.mu.Unlock()
	for _, at := range w.api.below(strings.TrimSuffix(claims, "/")) {
		name := strings.TrimPrefix(at, claims)
		if meta(w.api.objects[at])["deletionTimestamp"] == nil || w.stuck[name] {
			continue
		}
		node := "n-" + name
		w.mu.Lock()
		instance := w.joined[node]
		delete(w.joined, node)
		w.ended[name] = lost[node] == ""
		w.mu.Unlock()
		if instance != "" { // else it was never launched
			if err := w.cloud.KillInstance(instance); err != nil {
				w.t.Error(err)
			}
		}
		delete(w.api.objects, nodes+node)
		delete(w.api.objects, at)
	}
	return awsemulator.InvokeResponse{}
}

// held are the objects that carry a finalizer of ours.
func (w *world) held() (out []string) {
	w.api.mu.Lock()
	defer w.api.mu.Unlock()
	for path, o := range w.api.objects {
		if list, _ := meta(o)["finalizers"].([]any); len(list) > 0 {
			out = append(out, path)
		}
	}
	slices.Sort(out)
	return out
}
