package fleet

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	gocmp "github.com/google/go-cmp/cmp"

	"joiner.sh/pkg/nodeclaim/launch"
)

// A launch whose reply was lost has the instances of its claim, or of its batch, that have not ended. Those of another
// cluster are not looked at. EC2 may show them late; without any the token is used up. It is the same whether EC2 says
// that the token came with another request, or answers a repeated one with neither instances nor errors.
func TestALostLaunchAdoptsWhatStillRuns(t *testing.T) {
	mine := func(more ...string) map[string]string {
		return ours(append([]string{launch.TagClaimUID, "uid-1"}, more...)...)
	}
	batch := func(more ...string) map[string]string {
		return ours(append([]string{launch.TagBatch, "b"}, more...)...)
	}
	for _, c := range []struct {
		what      string
		instances []running
		batch     int
		shown     int
		want      string
	}{
		{"it", []running{{"i-1", "pending", mine()}}, 0, 0, "i-1 pending"},
		{"one beside others that ended", []running{{"i-1", "terminated", mine()}, {"i-2", "shutting-down", mine()}, {"i-3", "running", mine()}}, 0, 0, "i-3 running"},
		{"those that ended alone", []running{{"i-1", "terminated", mine()}, {"i-2", "shutting-down", mine()}}, 0, 0, ""},
		{"one that is stopped", []running{{"i-1", "stopped", mine()}}, 0, 0, "i-1 stopped"},
		{"another claim's", []running{{"i-1", "running", ours(launch.TagClaimUID, "uid-2")}}, 0, 0, ""},
		{"another cluster's", []running{{"i-1", "running", mine(launch.TagClusterName, "other")}}, 0, 0, ""},
		{"one that shows late", []running{{"i-1", "running", mine()}}, 0, 3, "i-1 running"},
		{"one that shows too late", []running{{"i-1", "running", mine()}}, 0, 4, ""},
		{"a batch", []running{{"i-1", "running", batch()}, {"i-2", "running", batch()}, {"i-3", "running", mine()}}, 2, 0, "i-1 running, i-2 running"},
		{"a part of a batch", []running{{"i-1", "running", batch()}, {"i-2", "terminated", batch()}}, 2, 0, "i-1 running"},
		{"another batch", []running{{"i-1", "running", ours(launch.TagBatch, "c")}}, 2, 0, ""},
	} {
		for _, nothing := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				a := &account{instances: c.instances, shown: c.shown, templates: []string{"demo:joiner/demo/1"}, answersNothing: nothing}
				o := order()
				if o.Batch.Size = c.batch; c.batch > 0 {
					o.Batch.ID = "b"
				}
				got, _, err := a.fleet().LaunchBatch(t.Context(), o, "t1")
				_, spent := errors.AsType[*launch.TokenUsedError](err)
				if few, ok := errors.AsType[*LaunchError](err); ok && nothing {
					spent = few.Code == "TooFewInstances" && few.TokenSpent()
				}
				if d := gocmp.Diff(c.want, idsOf(got)); d != "" || spent != (c.want == "") || err != nil && !spent {
					t.Errorf("%s, answer without anything %t: error %v (-want +got):\n%s", c.what, nothing, err, d)
				}
			})
		}
	}
}

// CreateFleet has 50 seconds, whatever other calls have: EC2 starts up to 250 instances before it answers.
func TestCreateFleetHasMoreTime(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte("<Response><fleetInstanceSet><item><instanceIds><item>i-1</item></instanceIds></item></fleetInstanceSet></Response>"))
	}))
	t.Cleanup(server.Close)
	f := &Fleet{Cluster: "demo", Now: time.Now, templates: map[string]bool{"joiner/demo/1": true}, EC2: ec2.New(ec2.Options{
		Region: "us-west-2", BaseEndpoint: aws.String(server.URL), Retryer: aws.NopRetryer{},
		HTTPClient: awshttp.NewBuildableClient().WithTimeout(time.Nanosecond),
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "id", SecretAccessKey: "secret"}, nil
		})})}
	for range 2 {
		if got, _, err := f.LaunchInstances(t.Context(), order(), "t1"); err != nil || got.ID != "i-1" {
			t.Errorf("launched %q, error %v", got.ID, err)
		}
	}
	if c, ok := f.createsFleets().Options().HTTPClient.(*awshttp.BuildableClient); !ok || c.GetTimeout() != 50*time.Second {
		t.Errorf("CreateFleet's client is %T", f.createsFleets().Options().HTTPClient)
	}
	if _, err := f.EC2.DescribeInstances(t.Context(), &ec2.DescribeInstancesInput{}); err == nil {
		t.Error("another call has more time too")
	}
}
