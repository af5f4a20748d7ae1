package vpc

import "testing"

func TestWhoReachesWhat(t *testing.T) {
	functions, nodes := []string{"sg-functions"}, []string{"sg-node"}
	one := Network{WayOut: true, Endpoints: []Endpoint{{Service: "ec2", PrivateDNS: true, Groups: []string{"sg-endpoints"}}},
		Rules: []Rule{{Into: "sg-endpoints", From: "sg-functions"}}}
	all, public, gateway, closed := one, one, one, one
	all.Rules = []Rule{{Into: "sg-endpoints"}}
	public.Endpoints = []Endpoint{{Service: "ec2", Groups: []string{"sg-endpoints"}}}
	gateway.Endpoints, gateway.WayOut = []Endpoint{{Service: "s3", Gateway: true}}, false
	closed.Rules = []Rule{{Into: "sg-others"}}
	for _, c := range []struct {
		what    string
		network Network
		from    []string
		service string
		want    bool
	}{
		{"nothing but a way out", Network{WayOut: true}, nodes, "ec2", true},
		{"no way at all", Network{}, nodes, "ec2", false},
		{"an endpoint that admits the caller's group", one, functions, "ec2", true},
		{"an endpoint that admits another group, beside a way out", one, nodes, "ec2", false},
		{"another service", one, nodes, "ssm", true},
		{"an endpoint that admits everybody", all, nodes, "ec2", true},
		{"an endpoint without private DNS, beside a way out", public, nodes, "ec2", true},
		{"a gateway", gateway, nodes, "s3", true},
		{"another service than the gateway's", gateway, nodes, "ec2", false},
		{"a rule of another group", closed, functions, "ec2", false},
	} {
		if got := c.network.Reaches(c.from, c.service); got != c.want {
			t.Errorf("%s: %t", c.what, got)
		}
	}
}
