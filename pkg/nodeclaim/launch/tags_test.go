package launch

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	awsv1 "joiner.sh/pkg/api/aws/v1"
	"joiner.sh/pkg/model/cluster"
)

// What leaks are told by is ours, whatever tags a class has that nobody refused yet.
func TestOurTagsBeatTheUsers(t *testing.T) {
	in := Input{Cluster: Cluster{Name: "demo"}, Class: &awsv1.EC2NodeClass{}, Claim: cluster.Claim{Name: "c", UID: "u", Pool: "p"}}
	in.Class.Name = "default"
	in.Class.Spec.Tags = map[string]string{TagClusterName: "other", TagNodePool: "x", TagNodeClass: "x", TagClaim: "x", TagClaimUID: "x", awsv1.TagClusterPrefix + "demo": "shared", "team": "a"}
	want := map[string]string{TagClusterName: "demo", TagNodePool: "p", TagNodeClass: "default", TagClaim: "c", TagClaimUID: "u", awsv1.TagClusterPrefix + "demo": "owned", "team": "a"}
	if d := cmp.Diff(want, claimTags(in, staticTags(in))); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
	if in.Class.Spec.Tags[TagClusterName] != "other" {
		t.Error("the tags of the class were changed")
	}
}
