package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/google/go-cmp/cmp"

	"joiner.sh/pkg/cli/accept"
)

// fakeAccount answers as CloudFormation does of one stack, and as EC2 does of its fleet; other calls it refuses.
type fakeAccount struct {
	status string // of the stack, empty: none
	calls  []string
	stopAt string
	stop   func()
	fleets int
	// versions that it was asked to publish, and what only the description of one was changed to
	published int
	about     string
	// the first type that a fleet was offered, and whether it was offered 250 for the price of one
	offered string
	full    bool
}

func (a *fakeAccount) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	form, _ := url.ParseQuery(string(body))
	action := form.Get("Action")
	if action == "" {
		action = r.Method + " " + r.URL.Path + " " + r.Header.Get("X-Amz-Target")
	}
	if a.calls = append(a.calls, action); action == a.stopAt {
		a.stop()
	}
	switch action {
	case "CreateStack":
		a.status = "CREATE_COMPLETE"
	case "UpdateStack":
		a.status, a.about = "UPDATE_COMPLETE", form.Get("Parameters.member.1.ParameterValue")+" "+form.Get("Parameters.member.3.ParameterValue")
		if form.Get("Parameters.member.2.ParameterValue") == "true" {
			a.status = "UPDATE_ROLLBACK_COMPLETE"
		}
	case "DeleteStack":
		a.status = ""
	case "DescribeStacks":
		if a.status == "" {
			w.WriteHeader(http.StatusBadRequest)
			fmt.Fprint(w, `<ErrorResponse><Error><Code>ValidationError</Code><Message>Stack with id x does not exist</Message></Error></ErrorResponse>`)
			return
		}
		fmt.Fprintf(w, `<DescribeStacksResponse><DescribeStacksResult><Stacks><member><StackStatus>%s</StackStatus><Outputs><member><OutputKey>Function</OutputKey><OutputValue>f</OutputValue></member>
			<member><OutputKey>Template</OutputKey><OutputValue>lt-1</OutputValue></member></Outputs></member></Stacks></DescribeStacksResult></DescribeStacksResponse>`, a.status)
	case "DescribeStackEvents":
		fmt.Fprintf(w, `<R><DescribeStackEventsResult><StackEvents><member><LogicalResourceId>Asked</LogicalResourceId><ResourceStatus>UPDATE_FAILED</ResourceStatus>
			<ResourceStatusReason>refused on purpose</ResourceStatusReason><Timestamp>2999-01-01T00:00:00Z</Timestamp></member></StackEvents></DescribeStackEventsResult></R>`)
	case "CreateFleet":
		a.fleets++
		a.offered = form.Get("LaunchTemplateConfigs.1.Overrides.1.InstanceType")
		a.full = form.Has("LaunchTemplateConfigs.1.Overrides.250.InstanceType") && !form.Has("LaunchTemplateConfigs.1.Overrides.251.InstanceType") && form.Get("OnDemandOptions.MaxTotalPrice") == "0.008"
		fmt.Fprint(w, `<CreateFleetResponse><fleetInstanceSet><item><instanceIds><item>i-1</item></instanceIds></item></fleetInstanceSet></CreateFleetResponse>`)
	case "GET /2015-03-31/functions/f/versions ":
		fmt.Fprint(w, `{"Versions":[{"Version":"$LATEST"},{"Version":"1","Description":"first one"}]}`)
	case "POST /2015-03-31/functions/f/versions ":
		a.published++
		fmt.Fprintf(w, `{"Version":"%d","Description":"first one"}`, 1)
	default:
		w.WriteHeader(http.StatusForbidden)
		fmt.Fprint(w, `{"__type":"AccessDeniedException","message":"no"}`)
	}
}

// asked plays all questions.
func (a *fakeAccount) asked(ctx context.Context, t *testing.T) (*questioner, error) {
	t.Helper()
	server := httptest.NewServer(a)
	t.Cleanup(server.Close)
	load, err := ReadCatalog("")
	if err != nil {
		t.Fatal(err)
	}
	q := &questioner{types: accept.OfferedTypes(load), id: "id", stack: "joiner-questions-id", rest: func(ctx context.Context, _ time.Duration) error { return ctx.Err() },
		cfg: aws.Config{Region: "us-west-2", BaseEndpoint: &server.URL, HTTPClient: server.Client(), RetryMaxAttempts: 1,
			Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
				return aws.Credentials{AccessKeyID: "a", SecretAccessKey: "b"}, nil
			})}}
	err = q.askAll(ctx, func(string, ...any) {})
	_ = q.remove(context.WithoutCancel(ctx)) // what is refused is left, and told
	return q, err
}

// Every question has an answer, a refusal among them, and the stack and the instance are removed.
func TestEachQuestionHasAnAnswer(t *testing.T) {
	a := &fakeAccount{stop: func() {}}
	q, err := a.asked(t.Context(), t)
	if err != nil || a.status != "" {
		t.Fatalf("%v, the stack is %q", err, a.status)
	}
	answers := map[string]string{}
	for _, one := range q.answers {
		answers[one.Question] = one.Answer
	}
	for question, want := range map[string]string{
		"Is a custom resource whose update failed asked again, and where does the stack end?":    "UPDATE_ROLLBACK_COMPLETE; Asked UPDATE_FAILED refused on purpose",
		"Does the same update, refused by nobody, pass after the rollback?":                      "UPDATE_COMPLETE; Asked",
		"Does PutQueryDefinition take a log group that does not exist?":                          "AccessDeniedException",
		"CreateFleet instant with one token: how long with 250 overrides?":                       "1 instances, 0 errors",
		"TerminateInstances of a protected instance?":                                            "protect it: error",
		"Does PublishVersion publish again when only the description differs?":                   "one: version 1, one: version 1, another: version 1",
		"Which versions are there after the rollback, and does PublishVersion give another one?": "$LATEST (), 1 (first one); PublishVersion gives 1 (first one)",
	} {
		if !strings.Contains(answers[question], want) {
			t.Errorf("%s %q, want %q", question, answers[question], want)
		}
	}
	if a.offered != "t4g.nano" || !a.full {
		t.Errorf("the fleet was offered %s first, 250 types %t", a.offered, a.full)
	}
	if a.published != 4 || a.about != "second two" {
		t.Errorf("%d versions were published, and the last change was to %q", a.published, a.about)
	}
	if len(q.answers) != 12 || a.fleets != 2 || !slices.Contains(a.calls, "TerminateInstances") {
		t.Errorf("%d answers, %d fleets, calls %q", len(q.answers), a.fleets, a.calls)
	}
}

// An interruption at any call leaves no stack.
func TestQuestionsInterruptedAtEachCall(t *testing.T) {
	whole := &fakeAccount{stop: func() {}}
	if _, err := whole.asked(t.Context(), t); err != nil {
		t.Fatal(err)
	}
	calls := slices.Clone(whole.calls)
	slices.Sort(calls)
	for _, at := range slices.Compact(calls) {
		if at == "DeleteStack" || at == "TerminateInstances" {
			continue // of the removal itself
		}
		ctx, cancel := context.WithCancel(t.Context())
		a := &fakeAccount{stopAt: at, stop: cancel}
		_, err := a.asked(ctx, t)
		cancel()
		if a.status != "" || err == nil && ctx.Err() == nil {
			t.Errorf("at %s: %v, the stack is %q", at, err, a.status)
		}
	}
}

// FIS is told of one spot instance by its ARN, and its template goes with the run.
func TestFISInterruptsTheOneInstance(t *testing.T) {
	var got []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got = append(got, r.Method+" "+r.URL.Path)
		if r.Method == http.MethodPost && r.URL.Path == "/experimentTemplates" && (!strings.Contains(string(body), `"resourceArns":["arn:aws:ec2:us-west-2:123456789012:instance/i-1"]`) ||
			!strings.Contains(string(body), `"actionId":"aws:ec2:send-spot-instance-interruptions"`) || !strings.Contains(string(body), `"tags":{"joiner.sh/accept":"id"}`)) {
			t.Errorf("template %s", body)
		}
		if r.Method == http.MethodGet {
			fmt.Fprint(w, `{"experimentTemplates":[{"id":"EXT1","tags":{"joiner.sh/accept":"2a97516c-1"}},{"id":"EXT2","tags":{"joiner.sh/accept":"00000000-1"}},{"id":"EXT3","tags":{}}]}`)
			return
		}
		fmt.Fprint(w, `{"experimentTemplate":{"id":"EXT1"}}`)
	}))
	defer server.Close()
	w := &liveWorld{cfg: aws.Config{Region: "us-west-2", BaseEndpoint: &server.URL, HTTPClient: server.Client(),
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "a", SecretAccessKey: "b"}, nil
		})}}
	w.at.Partition, w.at.Region, w.at.Account, w.run.ID, w.run.FIS = "aws", "us-west-2", "123456789012", "id", "arn:role"
	if err := w.startExperiment(t.Context(), "i-1"); err != nil {
		t.Fatal(err)
	}
	w.run.Cluster = "demo"
	if err := w.deleteTemplates(t.Context()); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]string{"POST /experimentTemplates", "POST /experiments", "GET /experimentTemplates", "DELETE /experimentTemplates/EXT1"}, got); d != "" {
		t.Errorf("calls (-want +got):\n%s", d)
	}
	server.Config.Handler = http.NotFoundHandler()
	if _, said := errors.AsType[*rawError](w.startExperiment(t.Context(), "i-1")); !said {
		t.Error("a refusal of FIS is not told")
	}
}
