package pattern

import (
	"strings"
	"testing"
)

const spotNotice = `{
  "version": "0", "id": "x", "detail-type": "EC2 Spot Instance Interruption Warning", "source": "aws.ec2",
  "account": "111122223333", "region": "us-west-2",
  "resources": ["arn:aws:ec2:us-west-2a:instance/i-1", "arn:aws:ec2:us-west-2a:volume/v-1"],
  "detail": {"instance-id": "i-1", "instance-action": "terminate", "count": 300, "flag": true, "nothing": null, "empty": [],
    "entities": [{"kind": "host", "id": 1}, {"kind": "instance", "id": 2}]}
}`

func TestMatch(t *testing.T) {
	cases := []struct {
		name, pattern string
		want          bool
	}{
		{"source and type", `{"source":["aws.ec2"],"detail-type":["EC2 Spot Instance Interruption Warning"]}`, true},
		{"one of two values", `{"source":["aws.health","aws.ec2"]}`, true},
		{"other source", `{"source":["aws.health"]}`, false},
		{"case counts", `{"source":["AWS.ec2"]}`, false},
		{"all fields must fit", `{"source":["aws.ec2"],"region":["eu-west-1"]}`, false},
		{"nested", `{"detail":{"instance-action":["terminate"]}}`, true},
		{"nested mismatch", `{"detail":{"instance-action":["stop"]}}`, false},
		{"missing field", `{"detail":{"state":["running"]}}`, false},
		{"missing object", `{"data":{"state":["running"]}}`, false},
		{"any element of an array", `{"resources":["arn:aws:ec2:us-west-2a:volume/v-1"]}`, true},
		{"number by its text", `{"detail":{"count":[300]}}`, true},
		{"number in another form", `{"detail":{"count":[300.0]}}`, false},
		{"number is not its string", `{"detail":{"count":["300"]}}`, false},
		{"true", `{"detail":{"flag":[true]}}`, true},
		{"null", `{"detail":{"nothing":[null]}}`, true},
		{"null is not absent", `{"detail":{"state":[null]}}`, false},
		{"empty array has no value", `{"detail":{"empty":[null]}}`, false},
		{"an object is no value", `{"detail":["i-1"]}`, false},
		{"one element has both", `{"detail":{"entities":{"kind":["instance"],"id":[2]}}}`, true},
		{"no element has both", `{"detail":{"entities":{"kind":["instance"],"id":[1]}}}`, false},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			p, err := CompilePattern([]byte(c.pattern))
			if err != nil {
				t.Fatal(err)
			}
			got, err := p.MatchEvent([]byte(spotNotice))
			if err != nil {
				t.Fatal(err)
			}
			if got != c.want {
				t.Errorf("match = %v, want %v", got, c.want)
			}
		})
	}
}

func TestCompileRefuses(t *testing.T) {
	cases := []struct{ name, pattern, want string }{
		{"unknown operator", `{"detail":{"a":["x",{"contains":"y"}]}}`, `$.detail.a[1].contains: unknown operator "contains"`},
		{"first of two operators", `{"a":[{"suffix":"b","prefix":"a"}]}`, `$.a[0].prefix: unknown operator "prefix"`},
		{"exists", `{"a":[{"exists":false}]}`, `$.a[0].exists: unknown operator "exists"`},
		{"or", `{"detail":{"$or":[{"a":["b"]},{"c":["d"]}]}}`, `$.detail.$or: unknown operator "$or"`},
		{"empty operator", `{"a":[{}]}`, "$.a[0]: wants a value, not"},
		{"empty object in a field", `{"a":{}}`, "$.a: an empty object"},
		{"bare value", `{"source":"aws.ec2"}`, "$.source: wants an object or an array"},
		{"empty array", `{"source":[]}`, "$.source: an empty array"},
		{"empty pattern", `{}`, "$: an empty object"},
		{"nested array", `{"a":[["b"]]}`, "$.a[0]: wants a value"},
		{"no object", `["a"]`, "it is not a JSON object"},
		{"no JSON", `{`, "parse event pattern"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			_, err := CompilePattern([]byte(c.pattern))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error = %v, want it to contain %q", err, c.want)
			}
		})
	}
}

func TestMatchRefusesWhatIsNoEvent(t *testing.T) {
	p, err := CompilePattern([]byte(`{"source":["a"]}`))
	if err != nil {
		t.Fatal(err)
	}
	for _, event := range []string{"", "[]", `"a"`, `{"source":"a"} {}`} {
		if _, err := p.MatchEvent([]byte(event)); err == nil {
			t.Errorf("event %q was accepted", event)
		}
	}
}
