package stack_test

import (
	"slices"
	"strings"
	"testing"
)

// asked is a request to a bucket or a queue: who asks for what, and on whose behalf.
type asked struct {
	action            string
	principal, source string // ARN of the role that asks, and of the rule that has a service ask; empty for none
}

// denies reports whether a policy of a resource has a Deny that covers the request, which is over TLS. As IAM weighs
// it: a negated test of a key that the request lacks is met.
func denies(t *testing.T, policy map[string]any, r asked) bool {
	t.Helper()
	for _, raw := range policy["PolicyDocument"].(map[string]any)["Statement"].([]any) {
		s := raw.(map[string]any)
		covers := slices.ContainsFunc(list(s["Action"]), func(a any) bool {
			prefix, several := strings.CutSuffix(a.(string), "*")
			return a == r.action || several && strings.HasPrefix(r.action, prefix)
		})
		if s["Effect"] != "Deny" || !covers {
			continue
		}
		met := true
		when, _ := s["Condition"].(map[string]any)
		for operator, tests := range when {
			for key, want := range tests.(map[string]any) {
				switch {
				case operator == "Bool" && key == "aws:SecureTransport":
					met = met && want != "false"
				case operator == "ArnNotEquals" && (key == "aws:PrincipalArn" || key == "aws:SourceArn"):
					have := map[string]string{"aws:PrincipalArn": r.principal, "aws:SourceArn": r.source}[key]
					met = met && (have == "" || !slices.ContainsFunc(list(want), func(a any) bool { return text(a) == have }))
				default:
					t.Fatalf("nobody taught this test %s of %s", operator, key)
				}
			}
		}
		if met {
			return true
		}
	}
	return false
}

// arnOf is how the template writes the ARN of a resource.
func arnOf(id string) string { return text(map[string]any{"Fn::GetAtt": []any{id, "Arn"}}) }

// Who is none of the functions that write to the bucket writes nothing into it, whatever the account's policies allow,
// and everybody whom they let may read.
func TestOnlyFunctionsWriteToTheBucket(t *testing.T) {
	for form, context := range nameForms(t) {
		w := words(t, mustSynth(t, context))
		var policy map[string]any
		w.each("AWS::S3::BucketPolicy", func(_ string, p map[string]any) { policy = p })
		writers, strangers := 0, []string{"", "arn:aws:iam::123456789012:root", "arn:aws:iam::123456789012:role/backup"}
		for _, s := range statementsOf(w) {
			for _, action := range s.actions {
				put := asked{action: action, principal: arnOf(s.role)}
				switch {
				case s.effect != "Allow" || !strings.HasPrefix(action, "s3:"):
				case denies(t, policy, put):
					t.Errorf("%s: %s is allowed %s by %s and denied it by the bucket", form, s.role, action, s.sid)
				case action == "s3:PutObject":
					writers++
				}
			}
		}
		if writers == 0 {
			t.Errorf("%s: nobody writes to the bucket", form)
		}
		for _, role := range []string{"Preflight", "Wake", "NodeRole"} {
			w.each("AWS::IAM::Role", func(id string, _ map[string]any) {
				if strings.HasPrefix(id, role) {
					strangers = append(strangers, arnOf(id))
				}
			})
		}
		for _, who := range strangers {
			if !denies(t, policy, asked{action: "s3:PutObject", principal: who}) {
				t.Errorf("%s: %q may write to the bucket", form, who)
			}
			if denies(t, policy, asked{action: "s3:GetObject", principal: who}) {
				t.Errorf("%s: %q may not read the bucket", form, who)
			}
		}
	}
}

// Into the queue of a function go the events of its own rules and nothing else: of an instance whose end is told there
// the function lets go without asking EC2. The function itself takes from it.
func TestOnlyRulesSendToTheQueues(t *testing.T) {
	for form, context := range nameForms(t) {
		w := words(t, mustSynth(t, context))
		var rules []string
		w.each("AWS::Events::Rule", func(id string, _ map[string]any) { rules = append(rules, id) })
		queues := 0
		w.each("AWS::SQS::QueuePolicy", func(id string, p map[string]any) {
			function, ofEvents := strings.CutSuffix(strings.TrimRight(id, "0123456789ABCDEF"), "EventsPolicy")
			if !ofEvents {
				return
			}
			queues++
			sent := 0
			for _, rule := range rules {
				denied := denies(t, p, asked{action: "sqs:SendMessage", source: arnOf(rule)})
				if own := strings.HasPrefix(rule, function+"On"); denied == own {
					t.Errorf("%s: events of rule %s into the queue of %s: denied %t", form, rule, function, denied)
				} else if own {
					sent++
				}
			}
			if sent == 0 {
				t.Errorf("%s: no rule sends to the queue of %s", form, function)
			}
			for _, who := range []asked{{principal: "arn:aws:iam::123456789012:role/admin"}, {source: "arn:aws:events:us-west-2:123456789012:rule/other"}, {}} {
				who.action = "sqs:SendMessage"
				if !denies(t, p, who) {
					t.Errorf("%s: %+v may send to the queue of %s", form, who, function)
				}
			}
			for _, action := range []string{"sqs:ReceiveMessage", "sqs:DeleteMessage"} {
				if denies(t, p, asked{action: action, principal: "arn:aws:iam::123456789012:role/" + function}) {
					t.Errorf("%s: %s of its own queue is denied", form, action)
				}
			}
		})
		if queues == 0 {
			t.Errorf("%s: no function has a queue of events", form)
		}
	}
}
