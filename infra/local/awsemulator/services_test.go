package awsemulator_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"io"
	"slices"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	eventtypes "github.com/aws/aws-sdk-go-v2/service/eventbridge/types"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	iamtypes "github.com/aws/aws-sdk-go-v2/service/iam/types"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	lambdatypes "github.com/aws/aws-sdk-go-v2/service/lambda/types"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/google/go-cmp/cmp"

	"joiner.sh/infra/local/awsemulator"
)

func TestInstanceProfiles(t *testing.T) {
	r := start(t, awsemulator.Options{})
	client, ctx, name := iam.NewFromConfig(r.cfg), t.Context(), aws.String("demo_1")
	_, err := client.GetInstanceProfile(ctx, &iam.GetInstanceProfileInput{InstanceProfileName: name})
	wantCode(t, err, "NoSuchEntity")
	create := &iam.CreateInstanceProfileInput{
		InstanceProfileName: name, Path: aws.String("/karpenter/us-west-2/demo/uid/"),
		Tags: []iamtypes.Tag{{Key: aws.String("eks:eks-cluster-name"), Value: aws.String("demo")}},
	}
	must(client.CreateInstanceProfile(ctx, create))(t)
	_, err = client.CreateInstanceProfile(ctx, create)
	wantCode(t, err, "EntityAlreadyExists")
	add := &iam.AddRoleToInstanceProfileInput{InstanceProfileName: name, RoleName: aws.String("KarpenterNodeRole-demo")}
	must(client.AddRoleToInstanceProfile(ctx, add))(t)
	_, err = client.AddRoleToInstanceProfile(ctx, add)
	wantCode(t, err, "LimitExceeded")
	_, err = client.AddRoleToInstanceProfile(ctx, &iam.AddRoleToInstanceProfileInput{InstanceProfileName: name, RoleName: aws.String("none")})
	wantCode(t, err, "NoSuchEntity")
	must(client.TagInstanceProfile(ctx, &iam.TagInstanceProfileInput{
		InstanceProfileName: name, Tags: []iamtypes.Tag{{Key: aws.String("team"), Value: aws.String("a")}},
	}))(t)
	p := must(client.GetInstanceProfile(ctx, &iam.GetInstanceProfileInput{InstanceProfileName: name}))(t).InstanceProfile
	if *p.Roles[0].RoleName != "KarpenterNodeRole-demo" || *p.Arn != "arn:aws:iam::111122223333:instance-profile/karpenter/us-west-2/demo/uid/demo_1" || len(p.Tags) != 2 {
		t.Errorf("profile %+v", p)
	}
	listed := must(client.ListInstanceProfiles(ctx, &iam.ListInstanceProfilesInput{PathPrefix: aws.String("/karpenter/us-west-2/demo/")}))(t)
	if len(listed.InstanceProfiles) != 1 || listed.IsTruncated {
		t.Errorf("listed %v", listed.InstanceProfiles)
	}
	remove := &iam.DeleteInstanceProfileInput{InstanceProfileName: name}
	_, err = client.DeleteInstanceProfile(ctx, remove)
	wantCode(t, err, "DeleteConflict")
	must(client.RemoveRoleFromInstanceProfile(ctx, &iam.RemoveRoleFromInstanceProfileInput{InstanceProfileName: name, RoleName: add.RoleName}))(t)
	must(client.DeleteInstanceProfile(ctx, remove))(t)
	_, err = client.DeleteInstanceProfile(ctx, remove)
	wantCode(t, err, "NoSuchEntity")
}

func TestRoles(t *testing.T) {
	r := start(t, awsemulator.Options{})
	client, ctx := iam.NewFromConfig(r.cfg), t.Context()
	_, err := client.GetRole(ctx, &iam.GetRoleInput{RoleName: aws.String("none")})
	wantCode(t, err, "NoSuchEntity")
	link := &iam.CreateServiceLinkedRoleInput{AWSServiceName: aws.String("spot.amazonaws.com")}
	_, err = client.CreateServiceLinkedRole(ctx, link)
	wantCode(t, err, "InvalidInput") // "has been taken"
	r.RemoveRole("AWSServiceRoleForEC2Spot")
	made := must(client.CreateServiceLinkedRole(ctx, link))(t)
	got := must(client.GetRole(ctx, &iam.GetRoleInput{RoleName: made.Role.RoleName}))(t)
	if want := "arn:aws:iam::111122223333:role/aws-service-role/spot.amazonaws.com/AWSServiceRoleForEC2Spot"; *got.Role.Arn != want {
		t.Errorf("role is %s, want %s", *got.Role.Arn, want)
	}
}

func TestTheClusterAndItsAccessEntries(t *testing.T) {
	r := start(t, awsemulator.Options{})
	r.SetCluster("https://127.0.0.1:6443", []byte("PEM"), "10.96.0.0/16")
	client, ctx, demo := eks.NewFromConfig(r.cfg), t.Context(), aws.String("demo")
	c := must(client.DescribeCluster(ctx, &eks.DescribeClusterInput{Name: demo}))(t).Cluster
	got := []string{*c.Endpoint, *c.CertificateAuthority.Data, *c.Version, *c.KubernetesNetworkConfig.ServiceIpv4Cidr, string(c.Status)}
	want := []string{"https://127.0.0.1:6443", base64.StdEncoding.EncodeToString([]byte("PEM")), "1.36", "10.96.0.0/16", "ACTIVE"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("cluster (-want +got):\n%s", diff)
	}
	_, err := client.DescribeCluster(ctx, &eks.DescribeClusterInput{Name: aws.String("other")})
	wantCode(t, err, "ResourceNotFoundException")
	role := aws.String("arn:aws:iam::111122223333:role/path/provision")
	create := &eks.CreateAccessEntryInput{ClusterName: demo, PrincipalArn: role, KubernetesGroups: []string{"joiner-provision"}}
	must(client.CreateAccessEntry(ctx, create))(t)
	_, err = client.CreateAccessEntry(ctx, create)
	wantCode(t, err, "ResourceInUseException")
	_, err = client.CreateAccessEntry(ctx, &eks.CreateAccessEntryInput{ClusterName: demo, PrincipalArn: aws.String("x"), KubernetesGroups: []string{"system:masters"}})
	wantCode(t, err, "InvalidParameterException")
	e := must(client.DescribeAccessEntry(ctx, &eks.DescribeAccessEntryInput{ClusterName: demo, PrincipalArn: role}))(t).AccessEntry
	if *e.Username != "arn:aws:sts::111122223333:assumed-role/provision/{{SessionName}}" || !slices.Equal(e.KubernetesGroups, []string{"joiner-provision"}) {
		t.Errorf("entry %+v", e)
	}
	if l := must(client.ListAccessEntries(ctx, &eks.ListAccessEntriesInput{ClusterName: demo}))(t); !slices.Equal(l.AccessEntries, []string{*role}) {
		t.Errorf("entries %v", l.AccessEntries)
	}
	must(client.DeleteAccessEntry(ctx, &eks.DeleteAccessEntryInput{ClusterName: demo, PrincipalArn: role}))(t)
	_, err = client.DescribeAccessEntry(ctx, &eks.DescribeAccessEntryInput{ClusterName: demo, PrincipalArn: role})
	wantCode(t, err, "ResourceNotFoundException")
}

func TestObjects(t *testing.T) {
	r := start(t, awsemulator.Options{})
	if err := r.PutBucket("catalog"); err != nil {
		t.Fatal(err)
	}
	client, ctx := s3.NewFromConfig(r.cfg), t.Context()
	bucket, object := aws.String("catalog"), aws.String("a folder/catalog.json.gz")
	_, err := client.GetObject(ctx, &s3.GetObjectInput{Bucket: bucket, Key: object})
	wantCode(t, err, "NoSuchKey")
	body := bytes.Repeat([]byte("0123456789"), 100_000)
	must(client.PutObject(ctx, &s3.PutObjectInput{Bucket: bucket, Key: object, Body: bytes.NewReader(body)}))(t)
	out := must(client.GetObject(ctx, &s3.GetObjectInput{Bucket: bucket, Key: object}))(t)
	got := must(io.ReadAll(out.Body))(t)
	if !bytes.Equal(got, body) {
		t.Errorf("%d bytes came back, want %d", len(got), len(body))
	}
	list := must(client.ListObjectsV2(ctx, &s3.ListObjectsV2Input{Bucket: bucket}))(t)
	if len(list.Contents) != 1 || *list.Contents[0].Key != *object {
		t.Errorf("listed %v", list.Contents)
	}
	_, err = client.GetObject(ctx, &s3.GetObjectInput{Bucket: aws.String("none"), Key: object})
	wantCode(t, err, "NoSuchBucket")
	if n := r.CallCounts()["s3:GetObject"]; n != 3 {
		t.Errorf("%d GetObject in the log, want 3", n)
	}
}

func TestQueues(t *testing.T) {
	r := start(t, awsemulator.Options{})
	client, ctx := sqs.NewFromConfig(r.cfg), t.Context()
	_, err := client.GetQueueUrl(ctx, &sqs.GetQueueUrlInput{QueueName: aws.String("dead")})
	wantCode(t, err, "AWS.SimpleQueueService.NonExistentQueue") // the old code wins, as with AWS
	if _, ok := errors.AsType[*sqstypes.QueueDoesNotExist](err); !ok {
		t.Errorf("error is %T, want QueueDoesNotExist", err)
	}
	url := must(client.CreateQueue(ctx, &sqs.CreateQueueInput{QueueName: aws.String("dead")}))(t).QueueUrl
	must(client.SendMessage(ctx, &sqs.SendMessageInput{QueueUrl: url, MessageBody: aws.String("one")}))(t)
	receive := &sqs.ReceiveMessageInput{QueueUrl: url, MaxNumberOfMessages: 10}
	first := must(client.ReceiveMessage(ctx, receive))(t).Messages
	if len(first) != 1 || *first[0].Body != "one" {
		t.Fatalf("received %v", first)
	}
	if again := must(client.ReceiveMessage(ctx, receive))(t).Messages; len(again) != 0 {
		t.Errorf("a message in flight was received again")
	}
	attributes := must(client.GetQueueAttributes(ctx, &sqs.GetQueueAttributesInput{
		QueueUrl: url, AttributeNames: []sqstypes.QueueAttributeName{"All"},
	}))(t).Attributes
	if attributes["ApproximateNumberOfMessagesNotVisible"] != "1" || attributes["QueueArn"] != "arn:aws:sqs:us-west-2:111122223333:dead" {
		t.Errorf("attributes %v", attributes)
	}
	must(client.DeleteMessage(ctx, &sqs.DeleteMessageInput{QueueUrl: url, ReceiptHandle: first[0].ReceiptHandle}))(t)
	if left := r.QueuedMessages("dead"); len(left) != 0 {
		t.Errorf("left on the queue: %v", left)
	}
}

func TestALongPollEndsWhenAMessageComes(t *testing.T) {
	r := start(t, awsemulator.Options{})
	client := sqs.NewFromConfig(r.cfg)
	url := r.PutQueue("events")
	got := make(chan string, 1)
	go func() {
		out, err := client.ReceiveMessage(context.WithoutCancel(t.Context()), &sqs.ReceiveMessageInput{QueueUrl: aws.String(url), WaitTimeSeconds: 20})
		if err != nil || len(out.Messages) != 1 {
			got <- "nothing"
			return
		}
		got <- *out.Messages[0].Body
	}()
	r.SendMessage("events", "hello")
	if body := next(t, got); body != "hello" {
		t.Errorf("received %s", body)
	}
}

func TestPutEventsReachesTheBus(t *testing.T) {
	o := awsemulator.Options{}
	events := listen(t, &o)
	r := start(t, o)
	client := eventbridge.NewFromConfig(r.cfg)
	out := must(client.PutEvents(t.Context(), &eventbridge.PutEventsInput{Entries: []eventtypes.PutEventsRequestEntry{
		{
			Source: aws.String("aws.health"), DetailType: aws.String("AWS Health Event"), Detail: aws.String(`{"service":"EC2"}`),
			Resources: []string{"i-1"}, Time: aws.Time(time.Date(2026, 9, 14, 12, 0, 0, 0, time.UTC)),
		},
		{Source: aws.String("x"), DetailType: aws.String("y"), Detail: aws.String("not JSON")},
	}}))(t)
	if out.FailedEntryCount != 1 || *out.Entries[1].ErrorCode != "MalformedDetail" {
		t.Errorf("%d failed: %v", out.FailedEntryCount, out.Entries)
	}
	e := next(t, events)
	if e.ID != *out.Entries[0].EventId || e.Type != "AWS Health Event" || e.Time != "2026-09-14T12:00:00Z" || e.Detail["service"] != "EC2" {
		t.Errorf("event %+v", e)
	}
}

func TestInvoke(t *testing.T) {
	var asked []awsemulator.InvokeRequest
	r := start(t, awsemulator.Options{Invoke: func(_ context.Context, in awsemulator.InvokeRequest) awsemulator.InvokeResponse {
		asked = append(asked, in)
		switch in.Function {
		case "provision":
			return awsemulator.InvokeResponse{Payload: []byte(`{"launched":1}`)}
		case "broken":
			return awsemulator.InvokeResponse{Payload: []byte(`{"errorMessage":"no"}`), FunctionError: "Unhandled"}
		case "busy":
			return awsemulator.InvokeResponse{Throttled: true}
		case "loop":
			return awsemulator.InvokeResponse{Recursive: true}
		}
		return awsemulator.InvokeResponse{Unknown: true}
	}})
	// As in Lambda, where the SDK sends on what the invocation was told.
	const trace = "Root=1-00000000-abc;Sampled=0;Lineage=a:1"
	t.Setenv("AWS_LAMBDA_FUNCTION_NAME", "caller")
	t.Setenv("_X_AMZN_TRACE_ID", trace)
	client, ctx := lambda.NewFromConfig(r.cfg), t.Context()
	for _, c := range []struct {
		function string
		kind     lambdatypes.InvocationType
		status   int32
		payload  string
		failed   string
	}{
		{"provision", lambdatypes.InvocationTypeRequestResponse, 200, `{"launched":1}`, ""},
		{"arn:aws:lambda:us-west-2:111122223333:function:provision", lambdatypes.InvocationTypeEvent, 202, "", ""},
		{"provision", lambdatypes.InvocationTypeDryRun, 204, "", ""},
		{"broken", lambdatypes.InvocationTypeRequestResponse, 200, `{"errorMessage":"no"}`, "Unhandled"},
	} {
		out := must(client.Invoke(ctx, &lambda.InvokeInput{
			FunctionName: aws.String(c.function), InvocationType: c.kind, Payload: []byte(`{"why":"test"}`),
		}))(t)
		if out.StatusCode != c.status || string(out.Payload) != c.payload || aws.ToString(out.FunctionError) != c.failed {
			t.Errorf("%s %s: %d %s %s", c.function, c.kind, out.StatusCode, out.Payload, aws.ToString(out.FunctionError))
		}
	}
	if in := asked[1]; in.Function != "provision" || in.Type != "Event" || string(in.Payload) != `{"why":"test"}` || in.Trace != trace {
		t.Errorf("the callback got %+v", in)
	}
	_, err := client.Invoke(ctx, &lambda.InvokeInput{FunctionName: aws.String("none")})
	wantCode(t, err, "ResourceNotFoundException")
	_, err = client.Invoke(ctx, &lambda.InvokeInput{FunctionName: aws.String("busy")})
	wantCode(t, err, "TooManyRequestsException")
	_, err = client.Invoke(ctx, &lambda.InvokeInput{FunctionName: aws.String("loop")})
	wantCode(t, err, "RecursiveInvocationException")
}
