package provision

import (
	"context"
	"testing"

	awsv1 "joiner.sh/pkg/api/aws/v1"
	v1 "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/controllers"
	"joiner.sh/pkg/model/cluster"
)

// revisedClasses reads a class as it is, and as a revision keeps it: the user data says which.
type revisedClasses struct {
	controllers.Reader
	controllers.Rollouts
}

func (revisedClasses) ReadClass(context.Context, string) (*awsv1.EC2NodeClass, error) {
	return classWithUserData("newest"), nil
}

func (revisedClasses) ReadRevision(_ context.Context, _, revision string) (*awsv1.EC2NodeClass, error) {
	return classWithUserData(revision), nil
}

func classWithUserData(text string) *awsv1.EC2NodeClass {
	return &awsv1.EC2NodeClass{Spec: awsv1.EC2NodeClassSpec{UserData: &text}}
}

// Claims of one class with several revisions are launched in one pass, each with its own: what a NodeRollout holds back
// does not get out by a pool beside it.
func TestClaimsOfOneClassAreLaunchedWithTheirRevisions(t *testing.T) {
	for _, order := range [][]string{{"", "r1", "r2"}, {"r2", "r1", ""}, {"r1", "", "r2"}} {
		o := newOrderChooser(&Controller{Rollouts: revisedClasses{}}, cluster.Snapshot{})
		o.p.Read = revisedClasses{}
		for _, revision := range append(order, order...) {
			c := cluster.Claim{Name: "c" + revision, Class: "default"}
			if revision != "" {
				c.Annotations = map[string]string{v1.AnnotationNodeRevision: revision}
			}
			class, err := o.readClass(t.Context(), c)
			if err != nil {
				t.Fatal(err)
			}
			want := map[string]string{"": "newest", "r1": "r1", "r2": "r2"}[revision]
			if got := *class.Spec.UserData; got != want {
				t.Errorf("order %q: claim of revision %q gets the class of %q", order, revision, got)
			}
		}
	}
}
