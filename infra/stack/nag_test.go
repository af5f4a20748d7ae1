package stack_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/assertions"
	"github.com/aws/jsii-runtime-go"
	"github.com/cdklabs/cdk-nag-go/cdknag/v2"

	"joiner.sh/infra/stack"
)

// accepted are the findings of cdk-nag's AWS Solutions rules that stay, each with the reason.
func accepted() map[string]string {
	return map[string]string{
		"AwsSolutions-S1":   "the bucket holds one object that can be made again, with public instance types and prices; who reads it is not worth a second bucket",
		"AwsSolutions-EC23": "an endpoint with private DNS answers for its service to the whole VPC and has private addresses only: who is kept out there loses the service",
		"AwsSolutions-IAM4": "EKS asks for exactly these managed policies on node roles and widens them when nodes need more; the functions' roles have none",
		"AwsSolutions-IAM5": "a wildcard stands where IAM knows no resource (Describe calls, X-Ray, the price list) or the resource does not exist yet, and then conditions " +
			"on region or tags narrow it; testdata/permissions.txt shows every statement, and infra/local/contract/iam that each is needed and what it refuses",
		"AwsSolutions-SMG4": "the secret is the path of a hint that anybody may give: another one is made by switching push off and on, and a rotation behind the " +
			"back of the cluster's webhook would only silence it",
		"AwsSolutions-SQS3": "these queues are the dead-letter queues",
	}
}

// TestNag applies the AWS Solutions rules of cdk-nag to the whole stack, with every part that a setting can add.
func TestNag(t *testing.T) {
	context := map[string]any{"clusterName": "demo", "windowsNodes": true, "alarmEmail": "ops@example.com",
		"priceAlarmUSD": 10, "trigger": "push", "vpcID": vpc, "subnetIDs": []any{subnetA, subnetB}, "clusterSecurityGroupID": cluster, "vpcEndpoints": true}
	app := awscdk.NewApp(&awscdk.AppProps{Context: &context, AnalyticsReporting: jsii.Bool(false)})
	props, err := stack.FromContext(app.Node())
	if err != nil {
		t.Fatal(err)
	}
	props[0].DistFolder = placeholders(t)
	s, err := stack.New(app, props[0])
	if err != nil {
		t.Fatal(err)
	}
	awscdk.Aspects_Of(app).Add(cdknag.NewAwsSolutionsChecks(&cdknag.NagPackProps{Reports: jsii.Bool(false)}), nil)
	notes := assertions.Annotations_FromStack(s)
	found := map[string][]string{}
	every := assertions.Match_StringLikeRegexp(jsii.String("AwsSolutions-.*"))
	for _, m := range slices.Concat(*notes.FindError(jsii.String("*"), every), *notes.FindWarning(jsii.String("*"), every)) {
		rule := regexp.MustCompile(`^AwsSolutions-[A-Z]+[0-9]+`).FindString(fmt.Sprint(m.Entry.Data)) //nolint:staticcheck // the package that it moves to has no Go module yet
		found[rule] = append(found[rule], *m.Id)                                                      //nolint:staticcheck // as above
	}
	for rule, where := range found {
		if accepted()[rule] == "" {
			slices.Sort(where)
			t.Errorf("%s: mend it, or give the reason why not, at\n  %s", rule, strings.Join(where, "\n  "))
		}
	}
	for rule := range accepted() {
		if found[rule] == nil {
			t.Errorf("%s is found nowhere: remove it from the accepted ones", rule)
		}
	}
}
