package iam_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"joiner.sh/infra/local/iam"
	"joiner.sh/infra/local/lambdahost/assembly"
)

const me = "arn:aws:iam::111122223333:role/me"

func policies(t *testing.T, statements string) (*iam.Policies, error) {
	t.Helper()
	doc := json.RawMessage(`{"Version":"2012-10-17","Statement":` + statements + `}`)
	return iam.Of([]assembly.Role{{Name: "me", ARN: me, Policies: []assembly.Policy{{Name: "p", Document: doc}}}})
}

func TestDecide(t *testing.T) {
	instance := "arn:aws:ec2:us-west-2:111122223333:instance/i-1"
	with := func(kv ...string) map[string][]string {
		out := map[string][]string{}
		for i := 0; i < len(kv); i += 2 {
			out[kv[i]] = append(out[kv[i]], kv[i+1])
		}
		return out
	}
	when := func(condition string) string {
		return `[{"Sid":"s","Effect":"Allow","Action":"ec2:TerminateInstances","Resource":"*","Condition":` + condition + `}]`
	}
	const action = "ec2:TerminateInstances"
	for name, c := range map[string]struct {
		statements string
		ask        iam.Request
		allowed    bool
	}{
		"action and resource": {`[{"Effect":"Allow","Action":"ec2:Terminate*","Resource":"arn:aws:ec2:us-west-2:111122223333:instance/*"}]`,
			iam.Request{Action: action, Resource: instance}, true},
		"a statement alone, capitals of the action": {`{"Effect":"Allow","Action":["EC2:terminateinstances"],"Resource":["*"]}`,
			iam.Request{Action: action, Resource: instance}, true},
		"another action":           {`[{"Effect":"Allow","Action":"ec2:Describe*","Resource":"*"}]`, iam.Request{Action: action, Resource: instance}, false},
		"another region":           {`[{"Effect":"Allow","Action":"*","Resource":"arn:aws:ec2:us-east-1:*:instance/*"}]`, iam.Request{Action: action, Resource: instance}, false},
		"no wildcard over a colon": {`[{"Effect":"Allow","Action":"*","Resource":"arn:aws:ec2:us*:instance/*:x:y:z"}]`, iam.Request{Action: action, Resource: instance}, false},
		"the star over slashes":    {`[{"Effect":"Allow","Action":"*","Resource":"arn:aws:s3:::b/*"}]`, iam.Request{Action: "s3:GetObject", Resource: "arn:aws:s3:::b/a/b"}, true},
		"deny beats allow": {`[{"Effect":"Allow","Action":"*","Resource":"*"},{"Effect":"Deny","Action":"ec2:*","Resource":"*"}]`,
			iam.Request{Action: action, Resource: instance}, false},
		"string equals":           {when(`{"StringEquals":{"aws:ResourceTag/a":["x","y"]}}`), iam.Request{Action: action, Keys: with("aws:ResourceTag/a", "y")}, true},
		"string differs":          {when(`{"StringEquals":{"aws:ResourceTag/a":"x"}}`), iam.Request{Action: action, Keys: with("aws:ResourceTag/a", "X")}, false},
		"capitals of a key":       {when(`{"StringEquals":{"aws:resourcetag/A":"x"}}`), iam.Request{Action: action, Keys: with("aws:ResourceTag/a", "x")}, true},
		"key absent":              {when(`{"StringEquals":{"aws:ResourceTag/a":"x"}}`), iam.Request{Action: action}, false},
		"like, present but empty": {when(`{"StringLike":{"aws:ResourceTag/a":"*"}}`), iam.Request{Action: action, Keys: with("aws:ResourceTag/a", "")}, true},
		"like, absent":            {when(`{"StringLike":{"aws:ResourceTag/a":"*"}}`), iam.Request{Action: action}, false},
		"if exists, absent":       {when(`{"StringEqualsIfExists":{"aws:ResourceTag/a":"x"}}`), iam.Request{Action: action}, true},
		"if exists, wrong":        {when(`{"StringEqualsIfExists":{"aws:ResourceTag/a":"x"}}`), iam.Request{Action: action, Keys: with("aws:ResourceTag/a", "y")}, false},
		"not equals, absent":      {when(`{"StringNotEquals":{"aws:ResourceTag/a":"x"}}`), iam.Request{Action: action}, true},
		"not equals, equal":       {when(`{"StringNotEquals":{"aws:ResourceTag/a":["x","y"]}}`), iam.Request{Action: action, Keys: with("aws:ResourceTag/a", "y")}, false},
		"two operators, one fails": {when(`{"StringEquals":{"aws:ResourceTag/a":"x"},"StringLike":{"aws:ResourceTag/b":"*"}}`),
			iam.Request{Action: action, Keys: with("aws:ResourceTag/a", "x")}, false},
		"all values, a part":  {when(`{"ForAllValues:StringEquals":{"aws:TagKeys":["a","b"]}}`), iam.Request{Action: action, Keys: with("aws:TagKeys", "a")}, true},
		"all values, one too": {when(`{"ForAllValues:StringEquals":{"aws:TagKeys":["a","b"]}}`), iam.Request{Action: action, Keys: with("aws:TagKeys", "a", "aws:TagKeys", "c")}, false},
		"all values, none":    {when(`{"ForAllValues:StringEquals":{"aws:TagKeys":["a"]}}`), iam.Request{Action: action}, true},
		"any value":           {when(`{"ForAnyValue:StringLike":{"aws:TagKeys":["c*"]}}`), iam.Request{Action: action, Keys: with("aws:TagKeys", "a", "aws:TagKeys", "cc")}, true},
		"any value, none":     {when(`{"ForAnyValue:StringLike":{"aws:TagKeys":["*"]}}`), iam.Request{Action: action}, false},
		"null, absent":        {when(`{"Null":{"aws:ResourceTag/a":"true"}}`), iam.Request{Action: action}, true},
		"null, present":       {when(`{"Null":{"aws:ResourceTag/a":true}}`), iam.Request{Action: action, Keys: with("aws:ResourceTag/a", "")}, false},
		"bool":                {when(`{"Bool":{"aws:SecureTransport":true}}`), iam.Request{Action: action, Keys: with("aws:SecureTransport", "true")}, true},
		"arn like":            {when(`{"ArnLike":{"aws:PrincipalArn":"arn:aws:iam::*:role/m?"}}`), iam.Request{Action: action, Keys: with("aws:PrincipalArn", me)}, true},
		"another role":        {`[{"Effect":"Allow","Action":"*","Resource":"*"}]`, iam.Request{Role: me + "2", Action: action}, false},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := policies(t, c.statements)
			if err != nil {
				t.Fatal(err)
			}
			if c.ask.Role == "" {
				c.ask.Role = me
			}
			_, err = p.Decide(c.ask)
			if _, denied := errors.AsType[*iam.Denied](err); (err == nil) != c.allowed || denied == c.allowed {
				t.Errorf("decision: %v, want allowed=%t", err, c.allowed)
			}
		})
	}
}

func TestWhatIsNotUnderstoodIsRefused(t *testing.T) {
	for statement, why := range map[string]string{
		`{"Effect":"Allow","NotAction":"a:b","Resource":"*"}`:                                                             `unknown field "NotAction"`,
		`{"Effect":"Allow","Action":"a:b","Resource":"*","Principal":"*"}`:                                                `unknown field "Principal"`,
		`{"Effect":"allow","Action":"a:b","Resource":"*"}`:                                                                `effect "allow"`,
		`{"Effect":"Allow","Action":"ab","Resource":"*"}`:                                                                 "service:action",
		`{"Effect":"Allow","Action":"a:b"}`:                                                                               "action and resource are needed",
		`{"Effect":"Allow","Action":"a:b","Resource":"bucket"}`:                                                           "is no ARN",
		`{"Effect":"Allow","Action":"a:b","Resource":"arn:aws:s3:::${aws:username}"}`:                                     "policy variables",
		`{"Effect":"Allow","Action":"a:b","Resource":"*","Condition":{"NumericLessThan":{"aws:RequestedRegion":"1"}}}`:    "operator NumericLessThan",
		`{"Effect":"Allow","Action":"a:b","Resource":"*","Condition":{"NotStringEquals":{"aws:RequestedRegion":"1"}}}`:    "operator NotStringEquals",
		`{"Effect":"Allow","Action":"a:b","Resource":"*","Condition":{"StringEquals":{"aws:ReqeustTag/a":"1"}}}`:          "condition key aws:ReqeustTag/a",
		`{"Effect":"Allow","Action":"a:b","Resource":"*","Condition":{"StringEquals":{"aws:TagKeys":"1"}}}`:               "keys of several values",
		`{"Effect":"Allow","Action":"a:b","Resource":"*","Condition":{"ForAllValues:StringLike":{"aws:RequestTag/a":1}}}`: "keys of several values",
		`{"Effect":"Allow","Action":"a:b","Resource":"*","Condition":{"Null":{"aws:RequestTag/a":"maybe"}}}`:              "true or false",
	} {
		if _, err := policies(t, statement); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%s: error %v, want %q", statement, err, why)
		}
	}
}
