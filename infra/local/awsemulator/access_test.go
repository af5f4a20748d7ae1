package awsemulator_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	smithyhttp "github.com/aws/smithy-go/transport/http"
	"github.com/google/go-cmp/cmp"
	authentication "k8s.io/api/authentication/v1"

	"joiner.sh/infra/local/awsemulator"
)

func TestTheCallerIsWhoSigned(t *testing.T) {
	r := start(t, awsemulator.Options{})
	client := sts.NewFromConfig(r.as("arn:aws:iam::111122223333:role/path/refresh", "joiner-demo-refresh"))
	me := must(client.GetCallerIdentity(t.Context(), &sts.GetCallerIdentityInput{}))(t)
	if want := "arn:aws:sts::111122223333:assumed-role/refresh/joiner-demo-refresh"; *me.Arn != want || *me.Account != account {
		t.Errorf("caller %s, want %s", *me.Arn, want)
	}
	arn := r.PutRole("deploy")
	out := must(client.AssumeRole(t.Context(), &sts.AssumeRoleInput{RoleArn: aws.String(arn), RoleSessionName: aws.String("ci")}))(t)
	assumed := sts.NewFromConfig(r.with(aws.Credentials{
		AccessKeyID: *out.Credentials.AccessKeyId, SecretAccessKey: *out.Credentials.SecretAccessKey, SessionToken: *out.Credentials.SessionToken,
	}))
	me = must(assumed.GetCallerIdentity(t.Context(), &sts.GetCallerIdentityInput{}))(t)
	if want := "arn:aws:sts::111122223333:assumed-role/deploy/ci"; *me.Arn != want {
		t.Errorf("caller %s, want %s", *me.Arn, want)
	}
	_, err := client.AssumeRole(t.Context(), &sts.AssumeRoleInput{RoleArn: aws.String(arn + "x"), RoleSessionName: aws.String("ci")})
	wantCode(t, err, "AccessDenied")
}

// probes makes one harmless call of each protocol with a configuration.
func probes(t *testing.T, cfg aws.Config) map[string]error {
	t.Helper()
	ctx, out := t.Context(), map[string]error{}
	_, out["ec2"] = ec2.NewFromConfig(cfg).DescribeInstances(ctx, &ec2.DescribeInstancesInput{})
	_, out["sts"] = sts.NewFromConfig(cfg).GetCallerIdentity(ctx, &sts.GetCallerIdentityInput{})
	_, out["iam"] = iam.NewFromConfig(cfg).ListInstanceProfiles(ctx, &iam.ListInstanceProfilesInput{})
	_, out["ssm"] = ssm.NewFromConfig(cfg).GetParameters(ctx, &ssm.GetParametersInput{Names: []string{"/a"}})
	_, out["eks"] = eks.NewFromConfig(cfg).DescribeCluster(ctx, &eks.DescribeClusterInput{Name: aws.String("demo")})
	_, out["s3"] = s3.NewFromConfig(cfg).ListObjectsV2(ctx, &s3.ListObjectsV2Input{Bucket: aws.String("catalog")})
	return out
}

func TestBadCredentialsAreRefusedInTheWordsOfEachProtocol(t *testing.T) {
	r := start(t, awsemulator.Options{})
	if err := r.PutBucket("catalog"); err != nil {
		t.Fatal(err)
	}
	for service, err := range probes(t, r.cfg) {
		if err != nil {
			t.Errorf("%s with good credentials: %v", service, err)
		}
	}
	good := r.IssueCredentials("provision", "s", 0)
	wrongSecret, unknown, noToken := good, good, good
	wrongSecret.SecretAccessKey = "wrong"
	unknown.AccessKeyID = "ASIAUNKNOWN"
	noToken.SessionToken = "another"
	for name, c := range map[string]struct {
		with aws.Credentials
		want map[string]string
	}{
		"wrong secret": {wrongSecret, map[string]string{
			"ec2": "AuthFailure", "sts": "SignatureDoesNotMatch", "iam": "SignatureDoesNotMatch",
			"ssm": "InvalidSignatureException", "eks": "InvalidSignatureException", "s3": "SignatureDoesNotMatch",
		}},
		"unknown key": {unknown, map[string]string{
			"ec2": "AuthFailure", "sts": "InvalidClientTokenId", "iam": "InvalidClientTokenId",
			"ssm": "UnrecognizedClientException", "eks": "UnrecognizedClientException", "s3": "InvalidAccessKeyId",
		}},
		"another token": {noToken, map[string]string{
			"ec2": "AuthFailure", "sts": "InvalidClientTokenId", "iam": "InvalidClientTokenId",
			"ssm": "UnrecognizedClientException", "eks": "UnrecognizedClientException", "s3": "InvalidAccessKeyId",
		}},
		"expired": {r.IssueCredentials("provision", "s", -time.Minute), map[string]string{
			"ec2": "RequestExpired", "sts": "ExpiredToken", "iam": "ExpiredToken",
			"ssm": "ExpiredTokenException", "eks": "ExpiredTokenException", "s3": "ExpiredToken",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			for service, err := range probes(t, r.with(c.with)) {
				wantCode(t, err, c.want[service])
			}
		})
	}
	if n := r.ExpireCredentials("provision"); n == 0 {
		t.Error("no credentials were expired")
	}
	_, err := r.ec2.DescribeInstances(t.Context(), &ec2.DescribeInstancesInput{})
	wantCode(t, err, "RequestExpired")
}

func TestAuthorizeDecidesByRoleAndAction(t *testing.T) {
	r := start(t, awsemulator.Options{Authorize: func(a awsemulator.Access) error {
		if strings.HasSuffix(a.Caller.Role, "/provision") && a.Action == "ec2:DescribeInstances" {
			return nil
		}
		return errors.New("because of the test")
	}})
	for service, err := range probes(t, r.cfg) {
		if service == "ec2" || service == "sts" { // who one is may always be asked
			if err != nil {
				t.Errorf("the one action allowed: %v", err)
			}
			continue
		}
		wantCode(t, err, map[string]string{
			"iam": "AccessDenied", "ssm": "AccessDeniedException", "eks": "AccessDeniedException", "s3": "AccessDenied",
		}[service])
	}
	_, err := r.ec2.DescribeSubnets(t.Context(), &ec2.DescribeSubnetsInput{})
	wantCode(t, err, "UnauthorizedOperation")
}

// token makes a bearer token as an EKS client does, for the cluster named.
func token(t *testing.T, cfg aws.Config, cluster string, headers ...string) string {
	t.Helper()
	client := sts.NewPresignClient(sts.NewFromConfig(cfg))
	out := must(client.PresignGetCallerIdentity(t.Context(), &sts.GetCallerIdentityInput{}, func(o *sts.PresignOptions) {
		o.ClientOptions = append(o.ClientOptions, func(o *sts.Options) {
			o.APIOptions = append(o.APIOptions, smithyhttp.AddHeaderValue("X-Amz-Expires", "60"))
			if cluster != "" {
				o.APIOptions = append(o.APIOptions, smithyhttp.AddHeaderValue("x-k8s-aws-id", cluster))
			}
			for _, h := range headers {
				o.APIOptions = append(o.APIOptions, smithyhttp.AddHeaderValue(h, "1"))
			}
		})
	}))(t)
	return "k8s-aws-v1." + base64.RawURLEncoding.EncodeToString([]byte(out.URL))
}

// rewrite changes the URL inside a token.
func rewrite(t *testing.T, token, from, to string) string {
	t.Helper()
	text := must(base64.RawURLEncoding.DecodeString(strings.TrimPrefix(token, "k8s-aws-v1.")))(t)
	changed := strings.Replace(string(text), from, to, 1)
	if changed == string(text) {
		t.Fatalf("%s is not in %s", from, text)
	}
	return "k8s-aws-v1." + base64.RawURLEncoding.EncodeToString([]byte(changed))
}

// review asks the webhook as the API server does.
func (r *rig) review(t *testing.T, token string) authentication.TokenReviewStatus {
	t.Helper()
	body := must(json.Marshal(authentication.TokenReview{Spec: authentication.TokenReviewSpec{Token: token}}))(t)
	res := must(http.Post(r.url+"/authenticate", "application/json", bytes.NewReader(body)))(t)
	defer func() { _ = res.Body.Close() }()
	var out authentication.TokenReview
	if err := json.NewDecoder(res.Body).Decode(&out); err != nil || out.APIVersion != "authentication.k8s.io/v1" || out.Kind != "TokenReview" {
		t.Fatalf("answer %+v, error %v", out, err)
	}
	return out.Status
}

func TestATokenNamesItsAccessEntry(t *testing.T) {
	r := start(t, awsemulator.Options{})
	role := r.PutRole("provision")
	r.PutAccessEntry(awsemulator.AccessEntry{PrincipalARN: role, KubernetesGroups: []string{"joiner-provision"}})
	got := r.review(t, token(t, r.cfg, "demo"))
	id := must(r.cfg.Credentials.Retrieve(t.Context()))(t).AccessKeyID
	const arn = "arn:aws:sts::111122223333:assumed-role/provision/joiner-demo-provision"
	want := authentication.TokenReviewStatus{Authenticated: true, User: authentication.UserInfo{
		Username: arn, UID: got.User.UID, Groups: []string{"joiner-provision"},
		Extra: map[string]authentication.ExtraValue{
			"arn": {arn}, "canonicalArn": {role}, "sessionName": {"joiner-demo-provision"}, "accessKeyId": {id},
		},
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("status (-want +got):\n%s", diff)
	}
	// The same from a client that presigns for the real STS host.
	good := r.cfg
	good.BaseEndpoint = nil
	if got := r.review(t, token(t, good, "demo")); !got.Authenticated {
		t.Errorf("a token for the regional STS host: %s", got.Error)
	}
}

func TestTokensThatAreRefused(t *testing.T) {
	r := start(t, awsemulator.Options{})
	r.PutAccessEntry(awsemulator.AccessEntry{PrincipalARN: r.PutRole("provision"), KubernetesGroups: []string{"g"}})
	good := token(t, r.cfg, "demo")
	wrong := must(r.cfg.Credentials.Retrieve(t.Context()))(t)
	wrong.SecretAccessKey = "wrong"
	now := time.Now().UTC()
	for name, c := range map[string]struct{ token, why string }{
		"no prefix":         {strings.TrimPrefix(good, "k8s-aws-v1."), "does not start with"},
		"padded base64":     {good + "==", "decode token"},
		"another cluster":   {token(t, r.cfg, "other"), "signature does not match"},
		"cluster unsigned":  {token(t, r.cfg, ""), "not signed"},
		"wrong secret":      {token(t, r.with(wrong), "demo"), "signature does not match"},
		"no entry":          {token(t, r.as("stranger", "s"), "demo"), "no access entry"},
		"another action":    {rewrite(t, good, "GetCallerIdentity", "GetSessionToken"), "action"},
		"one more key":      {rewrite(t, good, "Version=", "x-id=1&Version="), "not allowed"},
		"a key twice":       {rewrite(t, good, "Version=", "Version=1&Version="), "twice"},
		"another host":      {rewrite(t, good, "http://127.0.0.1", "https://evil.example"), "is not STS"},
		"another path":      {rewrite(t, good, "/?", "/x?"), "path"},
		"expires too late":  {rewrite(t, good, "X-Amz-Expires=60", "X-Amz-Expires=901"), "x-amz-expires"},
		"expires changed":   {rewrite(t, good, "X-Amz-Expires=60", "X-Amz-Expires=61"), "signature does not match"},
		"twenty minutes":    {rewrite(t, good, "X-Amz-Date="+now.Format("20060102T15"), "X-Amz-Date="+now.Add(-2*time.Hour).Format("20060102T15")), "old"},
		"dead credentials":  {token(t, r.with(r.IssueCredentials("provision", "s", -time.Second)), "demo"), "expired"},
		"longer than 4 KiB": {"k8s-aws-v1." + strings.Repeat("a", 4096), "4096"},
	} {
		t.Run(name, func(t *testing.T) {
			got := r.review(t, c.token)
			if got.Authenticated || !strings.Contains(got.Error, c.why) {
				t.Errorf("status %+v, want a refusal that says %q", got, c.why)
			}
		})
	}
	if got := r.review(t, good); !got.Authenticated {
		t.Errorf("the good token: %s", got.Error)
	}
}

func TestFaults(t *testing.T) {
	r := start(t, awsemulator.Options{})
	if err := r.PutBucket("catalog"); err != nil {
		t.Fatal(err)
	}
	r.AddFault(awsemulator.Fault{Kind: awsemulator.Throttle, Times: 6})
	for service, err := range probes(t, r.cfg) {
		wantCode(t, err, map[string]string{
			"ec2": "RequestLimitExceeded", "sts": "Throttling", "iam": "Throttling", "ssm": "ThrottlingException",
			"eks": "ThrottlingException", "s3": "SlowDown",
		}[service])
	}
	for service, err := range probes(t, r.cfg) {
		if err != nil {
			t.Errorf("%s after the faults are used up: %v", service, err)
		}
	}
	r.template(t, "nodes-v1")
	r.AddFault(awsemulator.Fault{Service: "ec2", Action: "CreateFleet", Kind: awsemulator.FailBefore, Code: "UnauthorizedOperation", Times: 1})
	_, err := r.ec2.CreateFleet(t.Context(), r.fleet(t, "spot", "m5.large"))
	wantCode(t, err, "UnauthorizedOperation")
	if n := len(r.DescribedInstances()); n != 0 {
		t.Errorf("%d instances after a failure before the deed", n)
	}
	r.AddFault(awsemulator.Fault{Service: "ec2", Action: "Describe*", Kind: awsemulator.Throttle, PerSecond: 0.001, Burst: 2})
	for i := range 3 {
		_, err := r.ec2.DescribeInstances(t.Context(), &ec2.DescribeInstancesInput{})
		if (err != nil) != (i == 2) {
			t.Errorf("call %d beyond a bucket of two: %v", i, err)
		}
	}
	last := r.LoggedCalls()[len(r.LoggedCalls())-1]
	if last.Service != "ec2" || last.Action != "DescribeInstances" || last.Status != 503 || last.Code != "RequestLimitExceeded" ||
		last.Fault != awsemulator.Throttle || last.Caller != "arn:aws:iam::111122223333:role/provision" {
		t.Errorf("the log says %+v", last)
	}
}

func TestTheSideDoor(t *testing.T) {
	o := awsemulator.Options{SpotNotice: time.Hour}
	events := listen(t, &o)
	r := start(t, o)
	r.template(t, "nodes-v1")
	do := func(method, path, body string) int {
		req := must(http.NewRequestWithContext(t.Context(), method, r.url+"/_local/"+path, strings.NewReader(body)))(t)
		res := must(http.DefaultClient.Do(req))(t)
		_ = res.Body.Close()
		return res.StatusCode
	}
	if s := do("POST", "capacity", `{"instanceType":"c5.large","limit":0}`); s != 200 {
		t.Fatalf("capacity: %d", s)
	}
	out := must(r.ec2.CreateFleet(t.Context(), r.fleet(t, "spot", "c5.large", "m5.large")))(t)
	if len(out.Errors) != 2 || len(out.Instances) != 1 {
		t.Fatalf("errors %v, instances %v", out.Errors, out.Instances)
	}
	if s := do("POST", "instances/"+out.Instances[0].InstanceIds[0]+"/interrupt", ""); s != 200 {
		t.Fatalf("interrupt: %d", s)
	}
	for next(t, events).Type != "EC2 Spot Instance Interruption Warning" {
	}
	for _, c := range []struct {
		method, path, body string
		status             int
	}{
		{"POST", "instances/i-0/interrupt", "", 400},
		{"POST", "instances/i-0/dance", "", 404},
		{"POST", "faults", `{"kind":"throttle","action":"DescribeSubnets","times":1,"delay":"1ms"}`, 200},
		{"POST", "faults", `{"kind":"sabotage"}`, 400},
		{"POST", "faults", `{"kin":"throttle"}`, 400},
		{"GET", "faults", "", 200},
		{"GET", "calls?service=ec2", "", 200},
		{"GET", "counts", "", 200},
		{"GET", "instances", "", 200},
		{"POST", "prices", `{"instanceType":"m5.large","zone":"us-west-2a","usd":0.5}`, 200},
	} {
		if s := do(c.method, c.path, c.body); s != c.status {
			t.Errorf("%s %s: %d, want %d", c.method, c.path, s, c.status)
		}
	}
	_, err := r.ec2.DescribeSubnets(t.Context(), &ec2.DescribeSubnetsInput{})
	wantCode(t, err, "RequestLimitExceeded")
	if s := do("POST", "expire?role=provision", ""); s != 200 {
		t.Errorf("expire: %d", s)
	}
	_, err = r.ec2.DescribeSubnets(t.Context(), &ec2.DescribeSubnetsInput{})
	wantCode(t, err, "RequestExpired")
}

func TestWhatIsNotModelledIsRefused(t *testing.T) {
	r := start(t, awsemulator.Options{})
	_, err := r.ec2.DescribeVpcs(t.Context(), &ec2.DescribeVpcsInput{})
	wantCode(t, err, "InvalidAction")
	_, err = r.ec2.DescribeSpotPriceHistory(t.Context(), &ec2.DescribeSpotPriceHistoryInput{AvailabilityZoneId: aws.String("usw2-az1")})
	wantCode(t, err, "UnknownParameter")
	res := must(http.Get(fmt.Sprintf("%s/?Action=DescribeInstances", r.url)))(t)
	_ = res.Body.Close()
	if res.StatusCode != 403 {
		t.Errorf("without a signature: %d, want 403", res.StatusCode)
	}
}
