package recording

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

type answers map[string]string // by path

func (a answers) Do(r *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"text/plain"}}, Body: io.NopCloser(strings.NewReader(a[r.URL.Path]))}, nil
}

// What says who somebody is does not leave the machine; one thing is replaced by the same word everywhere, so that the
// recording can be played.
func TestWhatIsRecordedIsNobodysBusiness(t *testing.T) {
	folder := t.TempDir()
	says := answers{
		"/clusters/prod": `{"cluster":{"arn":"arn:aws:eks:us-west-2:998877665544:cluster/prod","endpoint":"https://0123456789ABCDEF0123456789ABCDEF.gr7.us-west-2.eks.amazonaws.com",` +
			`"certificateAuthority":{"data":"c2VjcmV0"},"tags":{"owner":"alice@corp.example","karpenter.sh/discovery":"prod"},"resourcesVpcConfig":{"publicAccessCidrs":["203.0.113.9/32","10.0.0.0/8","0.0.0.0/0"]}}}`,
		"/entries":  `{"accessEntries":["arn:aws:iam::998877665544:user/alice","arn:aws:iam::123412341234:role/KarpenterNodeRole-prod"]}`,
		"/function": `{"Description":"of the payments team","Environment":{"Variables":{"MODE":"act","PUSH_PATH":"hunter2"}}}`,
		"/refused":  `{"message":"User: arn:aws:sts::998877665544:assumed-role/Admin/bob is not authorized to perform: eks:ListAccessEntries"}`,
		"/network":  `{"cidrs":["2600:1f14:abc::/48","fd00::/8"],"at":"2026-01-01T10:20:30Z"}`,
		"/subnets":  `<item><key>Name</key><value>payments</value></item><item><key>kubernetes.io/role/elb</key><value>1</value></item><keyName>alices-key</keyName>`,
		"/assumed":  `<Credentials><AccessKeyId>ASIAALICE</AccessKeyId><SecretAccessKey>wJalr</SecretAccessKey><SessionToken>IQoJ</SessionToken></Credentials>`,
	}
	r := &Recorder{Next: says, Folder: folder}
	for _, path := range []string{"/clusters/prod", "/entries", "/function", "/subnets", "/assumed", "/refused", "/network", "/entries/arn%3Aaws%3Aiam%3A%3A998877665544%3Auser%2Falice"} {
		request, err := http.NewRequest(http.MethodGet, "https://eks.us-west-2.amazonaws.com"+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential=AKIA/20260101/us-west-2/eks/aws4_request, SignedHeaders=host, Signature=x")
		got, err := r.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		if body, err := io.ReadAll(got.Body); err != nil || string(body) != says[request.URL.Path] {
			t.Errorf("%s: the program itself is told %s, %v", path, body, err)
		}
	}
	calls, err := Read(folder)
	if err != nil || len(calls) != 8 {
		t.Fatalf("%d calls, %v", len(calls), err)
	}
	want := []string{
		`{"cluster":{"arn":"arn:aws:eks:us-west-2:111122223300:cluster/prod","certificateAuthority":{"data":""},"endpoint":"https://00000000000000000000000000000000.gr7.us-west-2.eks.amazonaws.com",` +
			`"resourcesVpcConfig":{"publicAccessCidrs":["198.51.100.1/32","10.0.0.0/8","0.0.0.0/0"]},"tags":{"karpenter.sh/discovery":"prod","owner":"redacted"}}}`,
		`{"accessEntries":["arn:aws:iam::111122223300:user/user-3","arn:aws:iam::111122223302:role/KarpenterNodeRole-prod"]}`,
		`{"Description":"redacted","Environment":{"Variables":{"MODE":"act","PUSH_PATH":"redacted"}}}`,
		`<item><key>Name</key><value>redacted</value></item><item><key>kubernetes.io/role/elb</key><value>1</value></item><keyName>redacted</keyName>`,
		`<Credentials><AccessKeyId>redacted</AccessKeyId><SecretAccessKey>redacted</SecretAccessKey><SessionToken>redacted</SessionToken></Credentials>`,
		`{"message":"User: arn:aws:sts::111122223300:assumed-role/Admin/session-4 is not authorized to perform: eks:ListAccessEntries"}`,
		`{"at":"2026-01-01T10:20:30Z","cidrs":["2001:db8::5/48","fd00::/8"]}`,
		"",
	}
	for i, c := range calls {
		if diff := cmp.Diff(want[i], c.Answer); diff != "" || c.Service != "eks" {
			t.Errorf("%s of %s (-want +got):\n%s", c.Path, c.Service, diff)
		}
	}
	if path := calls[7].Path; path != "/entries/arn%3Aaws%3Aiam%3A%3A111122223300%3Auser%2Fuser-3" {
		t.Errorf("the path is %s", path)
	}
	if !calls[7].Answers(Call{Service: "eks", Method: "GET", Path: "/entries/arn:aws:iam::111122223300:user%2Fuser-3"}) || calls[7].Answers(calls[3]) {
		t.Error("questions are told apart wrongly")
	}
}
