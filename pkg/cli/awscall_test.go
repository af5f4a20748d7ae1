package cli

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	"github.com/aws/aws-sdk-go-v2/service/servicequotas"
	"github.com/aws/aws-sdk-go-v2/service/sts"
)

// awsCall holds a command line of the AWS CLI, without its first word, against the SDK: the CLI is made from the same
// models, so its commands are the calls and its options the parameters, in small letters with dashes.
func awsCall(words []string) error {
	clients := map[string]any{"ec2": &ec2.Client{}, "eks": &eks.Client{}, "iam": &iam.Client{}, "lambda": &lambda.Client{},
		"secretsmanager": &secretsmanager.Client{}, "service-quotas": &servicequotas.Client{}, "sts": &sts.Client{}}
	if len(words) < 2 {
		return errors.New("it names no call")
	}
	if slices.Contains([]string{"eks wait", "eks update-kubeconfig", "logs tail"}, words[0]+" "+words[1]) {
		return nil // the CLI's own
	}
	if options, known := otherCalls()[words[0]+" "+words[1]]; known {
		for _, w := range words[2:] {
			if strings.HasPrefix(w, "--") && !slices.Contains(options, w) {
				return fmt.Errorf("%s %s has no option %s", words[0], words[1], w)
			}
		}
		return nil
	}
	client, known := clients[words[0]]
	if !known {
		return fmt.Errorf("service %s is not among those looked at", words[0])
	}
	method, found := reflect.TypeOf(client).MethodByName(camel(words[1]))
	if !found {
		return fmt.Errorf("%s has no call %s", words[0], words[1])
	}
	input := method.Type.In(2).Elem()
	given := map[string]bool{}
	for _, w := range words[2:] {
		name, option := strings.CutPrefix(w, "--")
		if !option || name == "region" {
			continue
		}
		given[name] = true
		if _, found := input.FieldByNameFunc(func(f string) bool { return dashed(f) == name }); !found {
			return fmt.Errorf("%s %s has no option --%s", words[0], words[1], name)
		}
	}
	for f := range input.Fields() {
		if name := dashed(f.Name); needs(words[1], name) && !given[name] {
			return fmt.Errorf("%s %s needs --%s", words[0], words[1], name)
		}
	}
	return nil
}

// otherCalls are calls of services whose SDK nothing needs, with the options of our texts.
func otherCalls() map[string][]string {
	return map[string][]string{
		"cloudformation create-stack-instances":        {"--stack-set-name", "--accounts", "--regions"},
		"cloudformation create-stack-set":              {"--stack-set-name", "--template-url", "--capabilities"},
		"cloudformation deploy":                        {"--template-file", "--s3-bucket", "--stack-name", "--capabilities"},
		"cloudformation continue-update-rollback":      {"--stack-name", "--resources-to-skip"},
		"cloudformation delete-stack":                  {"--stack-name", "--retain-resources"},
		"cloudformation update-termination-protection": {"--stack-name", "--no-enable-termination-protection"},
		"cloudformation describe-stack-resources":      {"--stack-name"},
		"scheduler get-schedule":                       {"--name", "--group-name"},
		"scheduler update-schedule":                    {"--name", "--group-name", "--state"},
	}
}

// needs tells the options that the calls of our texts cannot do without.
func needs(call, option string) bool {
	return slices.Contains([]string{"update-alias function-name", "update-alias name", "list-versions-by-function function-name", "create-access-entry cluster-name",
		"create-service-linked-role aws-service-name", "associate-access-policy cluster-name", "update-cluster-config name", "get-console-output instance-id"}, call+" "+option)
}

// dashed is a parameter as the CLI calls it: AWSServiceName is aws-service-name.
func dashed(parameter string) string {
	parted := regexp.MustCompile(`([a-z0-9])([A-Z])|([A-Z]+)([A-Z][a-z])`).ReplaceAllString(parameter, "$1$3-$2$4")
	return strings.ToLower(parted)
}

func camel(dashed string) string {
	var b strings.Builder
	for part := range strings.SplitSeq(dashed, "-") {
		if part != "" {
			b.WriteString(strings.ToUpper(part[:1]) + part[1:])
		}
	}
	return b.String()
}

// What doctor, migrate and setup tell people to do with the AWS CLI has calls and options that exist.
func TestCallsOfAWSInMessages(t *testing.T) {
	n := 0
	for _, pattern := range []string{"doctor/*.go", "migrate/*.go", "../../install/setup/*.go"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			if strings.HasSuffix(f, "_test.go") {
				continue
			}
			text, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			// Variables stand between pieces of text: what matters here is the words.
			joined := regexp.MustCompile(`"\s*\+[^"\n]*\+\s*"`).ReplaceAllString(string(text), "X")
			for _, c := range regexp.MustCompile(`aws [a-z0-9-]+ [a-z]+-[a-z-]+( [^"(;:,\n]*)?`).FindAllString(joined, -1) {
				n++
				if err := awsCall(strings.Fields(c)[1:]); err != nil {
					t.Errorf("%s: %s: %v", f, c, err)
				}
			}
		}
	}
	if n < 8 {
		t.Errorf("only %d calls were found", n)
	}
}

// The check of calls sees what is wrong with them.
func TestWrongCallsOfAWSAreSeen(t *testing.T) {
	for c, want := range map[string]string{
		"ec2 get-console-output --instance-id ID":                              "",
		"ec2 get-console-output --instance ID":                                 "has no option --instance",
		"ec2 get-console-output":                                               "needs --instance-id",
		"ec2 console-output":                                                   "has no call console-output",
		"sqs send-message":                                                     "service sqs is not among those looked at",
		"lambda update-alias --name live --function-version 7":                 "needs --function-name",
		"eks create-access-entry --cluster-name a --principal-arn b --type c":  "",
		"iam create-service-linked-role --aws-service-name spot.amazonaws.com": "",
		"iam create-service-linked-role --aws-servicename spot.amazonaws.com":  "has no option --aws-servicename",
	} {
		if err := awsCall(strings.Fields(c)); fmt.Sprint(err) != "<nil>" && (want == "" || !strings.Contains(err.Error(), want)) || err == nil && want != "" {
			t.Errorf("%s: %v, want %q", c, err, want)
		}
	}
}
