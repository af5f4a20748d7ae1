package pattern

import (
	"strings"
	"testing"
)

const spotNotice = `{
  "version": "0", "id": "x", "detail-type": "EC2 Spot Instance Interruption Warning", "source": "aws.ec2",
  "account": "111122223333", "region": "us-west-2",
  "resources": ["arn:aws:ec2:us-west-2a:instance/i-1", "arn:aws:ec2:us-west-2a:volume/v-1"],
  "detail": {"instance-id": "i-1", "instance-action": "terminate", "count": 300, "ratio": 3.5, "ip": "10.1.2.3",
    "path": "a/lib/b.go", "flag": true, "nothing": null, "empty": [],
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
		{"prefix", `{"resources":[{"prefix":"arn:aws:ec2:us-west-2a:vol"}]}`, true},
		{"prefix mismatch", `{"resources":[{"prefix":"arn:aws:s3"}]}`, false},
		{"prefix ignoring case", `{"source":[{"prefix":{"equals-ignore-case":"AWS."}}]}`, true},
		{"suffix", `{"detail":{"path":[{"suffix":".go"}]}}`, true},
		{"suffix longer than the value", `{"detail":{"instance-id":[{"suffix":"xxxxi-1"}]}}`, false},
		{"suffix ignoring case", `{"detail":{"path":[{"suffix":{"equals-ignore-case":".GO"}}]}}`, true},
		{"equals-ignore-case", `{"detail":{"instance-action":[{"equals-ignore-case":"Terminate"}]}}`, true},
		{"anything-but value", `{"detail":{"instance-action":[{"anything-but":"stop"}]}}`, true},
		{"anything-but the value", `{"detail":{"instance-action":[{"anything-but":["stop","terminate"]}]}}`, false},
		{"anything-but number", `{"detail":{"count":[{"anything-but":[300]}]}}`, false},
		{"anything-but of a missing field", `{"detail":{"state":[{"anything-but":"stop"}]}}`, false},
		{"anything-but prefix", `{"detail":{"instance-action":[{"anything-but":{"prefix":"term"}}]}}`, false},
		{"anything-but prefixes", `{"detail":{"instance-action":[{"anything-but":{"prefix":["a","b"]}}]}}`, true},
		{"anything-but suffix", `{"detail":{"instance-action":[{"anything-but":{"suffix":"ate"}}]}}`, false},
		{"anything-but wildcard", `{"detail":{"path":[{"anything-but":{"wildcard":"*/lib/*"}}]}}`, false},
		{"anything-but ignoring case", `{"source":[{"anything-but":{"equals-ignore-case":"AWS.EC2"}}]}`, false},
		{"exists", `{"detail":{"instance-id":[{"exists":true}]}}`, true},
		{"exists, null counts", `{"detail":{"nothing":[{"exists":true}]}}`, true},
		{"exists, absent", `{"detail":{"state":[{"exists":true}]}}`, false},
		{"exists false, absent", `{"detail":{"state":[{"exists":false}]}}`, true},
		{"exists false, parent absent", `{"data":{"state":[{"exists":false}]}}`, true},
		{"exists false, present", `{"detail":{"instance-id":[{"exists":false}]}}`, false},
		{"exists of an object is of no leaf", `{"detail":[{"exists":true}]}`, false},
		{"absent or a value", `{"detail":{"state":[{"exists":false},"running"]}}`, true},
		{"numeric equal", `{"detail":{"count":[{"numeric":["=",300.0]}]}}`, true},
		{"numeric range", `{"detail":{"count":[{"numeric":[">",0,"<=",300]}]}}`, true},
		{"numeric outside", `{"detail":{"count":[{"numeric":[">=",0,"<",300]}]}}`, false},
		{"numeric of a string", `{"detail":{"instance-id":[{"numeric":[">",0]}]}}`, false},
		{"number by its text", `{"detail":{"count":[300]}}`, true},
		{"number in another form", `{"detail":{"count":[300.0]}}`, false},
		{"number is not its string", `{"detail":{"count":["300"]}}`, false},
		{"true", `{"detail":{"flag":[true]}}`, true},
		{"null", `{"detail":{"nothing":[null]}}`, true},
		{"null is not absent", `{"detail":{"state":[null]}}`, false},
		{"empty array has no value", `{"detail":{"empty":[{"exists":true}]}}`, false},
		{"wildcard", `{"detail":{"path":[{"wildcard":"a/*/*.go"}]}}`, true},
		{"wildcard mismatch", `{"detail":{"path":[{"wildcard":"*/bin/*"}]}}`, false},
		{"wildcard needs both ends", `{"detail":{"instance-id":[{"wildcard":"i-1*1"}]}}`, false},
		{"wildcard escape", `{"detail":{"path":[{"wildcard":"a\\*b*"}]}}`, false},
		{"cidr", `{"detail":{"ip":[{"cidr":"10.1.0.0/16"}]}}`, true},
		{"cidr mismatch", `{"detail":{"ip":[{"cidr":"10.2.0.0/16"}]}}`, false},
		{"or, second branch", `{"$or":[{"source":["aws.health"]},{"detail":{"count":[300]}}]}`, true},
		{"or, none", `{"$or":[{"source":["aws.health"]},{"detail":{"count":[1]}}]}`, false},
		{"or and field", `{"region":["eu-west-1"],"$or":[{"source":["aws.ec2"]},{"source":["b"]}]}`, false},
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
		{"unknown operator in anything-but", `{"a":[{"anything-but":{"numeric":["=",1]}}]}`, `$.a[0].anything-but.numeric: unknown operator "numeric"`},
		{"bare value", `{"source":"aws.ec2"}`, "$.source: wants an object or an array"},
		{"empty array", `{"source":[]}`, "$.source: an empty array"},
		{"empty pattern", `{}`, "$: an empty object"},
		{"two operators", `{"a":[{"prefix":"a","suffix":"b"}]}`, "$.a[0]: wants exactly one operator"},
		{"nested array", `{"a":[["b"]]}`, "$.a[0]: wants a value"},
		{"or of one", `{"$or":[{"a":["b"]}]}`, "$.$or: wants an array of at least two"},
		{"operator in a branch", `{"$or":[{"a":["b"]},{"a":[{"near":1}]}]}`, "$.$or[1].a[0].near: unknown operator"},
		{"numeric sign", `{"a":[{"numeric":["~",1]}]}`, "$.a[0].numeric: cannot use ~ 1"},
		{"numeric text", `{"a":[{"numeric":["=","1"]}]}`, "$.a[0].numeric: cannot use"},
		{"exists text", `{"a":[{"exists":"yes"}]}`, "$.a[0].exists: wants true or false"},
		{"double star", `{"a":[{"wildcard":"a**b"}]}`, "consecutive wildcard"},
		{"bad escape", `{"a":[{"wildcard":"a\\n"}]}`, "a backslash must be followed"},
		{"bad cidr", `{"a":[{"cidr":"10.0.0.0"}]}`, "$.a[0].cidr"},
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
