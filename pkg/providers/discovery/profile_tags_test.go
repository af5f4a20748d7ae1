package discovery

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/google/go-cmp/cmp"

	awsv1 "joiner.sh/pkg/api/aws/v1"
)

// newProfiles keeps the tags with which instance profiles are made, and their paths.
type newProfiles struct{ made map[string]string }

func (p *newProfiles) Do(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	form, err := url.ParseQuery(string(body))
	if err != nil {
		return nil, err
	}
	p.made = map[string]string{"path": form.Get("Path")}
	for n := 1; form.Has(fmt.Sprintf("Tags.member.%d.Key", n)); n++ {
		p.made[form.Get(fmt.Sprintf("Tags.member.%d.Key", n))] = form.Get(fmt.Sprintf("Tags.member.%d.Value", n))
	}
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(strings.NewReader("<R><CreateInstanceProfileResult></CreateInstanceProfileResult></R>")), Request: r}, nil
}

// An instance profile carries the tags that the policy of refresh asks for, beside those of the class, which replace none
// of them.
func TestTagsOfAnInstanceProfile(t *testing.T) {
	p := &newProfiles{}
	r := &ClassResolver{Cluster: "demo", Region: "us-west-2",
		IAM: iam.New(iam.Options{Region: "us-west-2", HTTPClient: p, Retryer: aws.NopRetryer{}, Credentials: aws.AnonymousCredentials{}})}
	class := &awsv1.EC2NodeClass{}
	class.Name, class.UID = "web", "uid-1"
	class.Spec.Tags = map[string]string{"team": "a", "eks:eks-cluster-name": "other"}
	if err := r.createProfile(t.Context(), class, "demo_1"); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"path": "/karpenter/us-west-2/demo/uid-1/", "team": "a", "eks:eks-cluster-name": "demo",
		"kubernetes.io/cluster/demo": "owned", "karpenter.k8s.aws/ec2nodeclass": "web", "topology.kubernetes.io/region": "us-west-2"}
	if d := cmp.Diff(want, p.made); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if len(class.Spec.Tags) != 2 || class.Spec.Tags["eks:eks-cluster-name"] != "other" {
		t.Errorf("the class has the tags %v", class.Spec.Tags)
	}
}
