package app

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/aws/aws-lambda-go/cfn"
	"github.com/aws/aws-lambda-go/lambdacontext"
)

const (
	ownStack    = "arn:aws:cloudformation:us-west-2:111122223333:stack/joiner-demo/1"
	ownFunction = "arn:aws:lambda:us-west-2:111122223333:function:joiner-demo-setup"
	ownAnswers  = "https://cloudformation-custom-resource-response-uswest2.s3.us-west-2.amazonaws.com/x?y=z"
)

// Whoever may invoke the function can say that it is CloudFormation.
func TestOnlyTheOwnStackIsAnswered(t *testing.T) {
	for name, c := range map[string]struct {
		stack, token, answer, own string
		refused                   string // empty: it is answered
	}{
		"the own stack":                {ownStack, ownFunction, ownAnswers, ownStack, ""},
		"in China":                     {ownStack, ownFunction, "https://cloudformation-custom-resource-response-cnnorth1.s3.cn-north-1.amazonaws.com.cn/x", ownStack, ""},
		"in Europe's own cloud":        {ownStack, ownFunction, "https://cloudformation-custom-resource-response-euscdeeast1.s3.eusc-de-east-1.amazonaws.eu/x", ownStack, ""},
		"in an isolated region":        {ownStack, ownFunction, "https://cloudformation-custom-resource-response-usisoeast1.s3.us-iso-east-1.c2s.ic.gov/x", ownStack, ""},
		"in another isolated region":   {ownStack, ownFunction, "https://cloudformation-custom-resource-response-euisoewest1.s3.eu-isoe-west-1.cloud.adc-e.uk/x", ownStack, ""},
		"on this machine":              {ownStack, ownFunction, "http://127.0.0.1:4711/x", ownStack, ""},
		"another stack":                {ownStack + "2", ownFunction, ownAnswers, ownStack, "its StackId is"},
		"no stack":                     {"", ownFunction, ownAnswers, ownStack, "its StackId is"},
		"a function without a stack":   {"", ownFunction, ownAnswers, "", "its StackId is"},
		"another function":             {ownStack, ownFunction + "2", ownAnswers, ownStack, "its ServiceToken is"},
		"no function":                  {ownStack, "", ownAnswers, ownStack, "its ServiceToken is"},
		"an answer to anybody":         {ownStack, ownFunction, "https://example.com/cloudformation-custom-resource-response-", ownStack, `the answer would go to "example.com"`},
		"an answer to another bucket":  {ownStack, ownFunction, "https://mine.s3.amazonaws.com/x", ownStack, "the answer would go to"},
		"a host that looks like one":   {ownStack, ownFunction, "https://cloudformation-custom-resource-response-x.example.com/", ownStack, "the answer would go to"},
		"a host of nobody's cloud":     {ownStack, ownFunction, "https://cloudformation-custom-resource-response-x.s3.notamazonaws.eu/", ownStack, "the answer would go to"},
		"an answer without encryption": {ownStack, ownFunction, strings.Replace(ownAnswers, "https", "http", 1), ownStack, "the answer would go to"},
		"no answer":                    {ownStack, ownFunction, "", ownStack, "the answer would go to"},
	} {
		err := checkSender(cfn.Event{StackID: c.stack, ResponseURL: c.answer, ResourceProperties: map[string]any{"ServiceToken": c.token}}, c.own, ownFunction)
		if (err == nil) != (c.refused == "") || err != nil && !strings.Contains(err.Error(), c.refused) {
			t.Errorf("%s: %v, want %q", name, err, c.refused)
		}
	}
}

// A forged request is neither done nor answered; one of the stack is both.
func TestAForgedRequestIsNotAnswered(t *testing.T) {
	t.Setenv("CLUSTER_NAME", "demo")
	t.Setenv("STACK_ID", ownStack)
	answers := 0
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { answers++ }))
	defer s.Close()
	ctx := lambdacontext.NewContext(t.Context(), &lambdacontext.LambdaContext{InvokedFunctionArn: ownFunction})
	e := cfn.Event{RequestType: cfn.RequestDelete, ResourceType: preflightType, PhysicalResourceID: "p", StackID: "arn:another", ResponseURL: s.URL,
		ResourceProperties: map[string]any{"ServiceToken": ownFunction}}
	if _, err := AnswerCloudFormation(ctx, e); err == nil || answers != 0 {
		t.Errorf("a request of another stack: %v, %d answers; want an error and none", err, answers)
	}
	e.StackID = ownStack
	if _, err := AnswerCloudFormation(ctx, e); err != nil || answers != 1 {
		t.Errorf("a request of the own stack: %v, %d answers; want one", err, answers)
	}
}

// The schedule that keeps setup awake asks for nothing, and is told nothing.
func TestTheScheduleAsksSetupForNothing(t *testing.T) {
	var e cfn.Event
	if err := json.Unmarshal([]byte(`{"source":"aws.scheduler","detail-type":"Scheduled Event"}`), &e); err != nil {
		t.Fatal(err)
	}
	if _, err := AnswerCloudFormation(t.Context(), e); err != nil {
		t.Error(err)
	}
}
