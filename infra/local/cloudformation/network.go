package cloudformation

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"joiner.sh/infra/local/vpc"
)

// networkProperties are what decides in a VPC who reaches whom.
type networkProperties struct {
	ServiceName           string
	VpcEndpointType       string
	PrivateDNSEnabled     bool     `json:"PrivateDnsEnabled"`
	SecurityGroupIDs      []string `json:"SecurityGroupIds"`
	GroupID               string   `json:"GroupId"`
	SourceSecurityGroupID string   `json:"SourceSecurityGroupId"`
	SecurityGroupIngress  []struct {
		SourceSecurityGroupID string `json:"SourceSecurityGroupId"`
		FromPort, ToPort      int
	}
}

// Network is the VPC as stacks have made it, with a way out of it or without.
func (a *Emulated) Network(wayOut bool) (vpc.Network, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	n := vpc.Network{WayOut: wayOut}
	for _, name := range slices.Sorted(maps.Keys(a.kept)) {
		kind, physical, _ := strings.Cut(name, " ")
		if !strings.HasPrefix(kind, "AWS::EC2::") {
			continue
		}
		text, err := json.Marshal(a.kept[name])
		var p networkProperties
		if err == nil {
			err = json.Unmarshal(text, &p)
		}
		if err != nil {
			return n, fmt.Errorf("read properties of %s: %w", name, err)
		}
		switch kind {
		case "AWS::EC2::VPCEndpoint":
			service := p.ServiceName[strings.LastIndex(p.ServiceName, ".")+1:]
			n.Endpoints = append(n.Endpoints, vpc.Endpoint{Service: service, Gateway: p.VpcEndpointType == "Gateway",
				PrivateDNS: p.PrivateDNSEnabled, Groups: p.SecurityGroupIDs})
		case "AWS::EC2::SecurityGroup":
			id, _ := (&made{Resource: Resource{Physical: physical}}).attribute("GroupId")
			for _, in := range p.SecurityGroupIngress {
				if in.FromPort <= https && https <= in.ToPort {
					n.Rules = append(n.Rules, vpc.Rule{Into: fmt.Sprint(id), From: in.SourceSecurityGroupID})
				}
			}
		case "AWS::EC2::SecurityGroupIngress":
			n.Rules = append(n.Rules, vpc.Rule{Into: p.GroupID, From: p.SourceSecurityGroupID})
		}
	}
	return n, nil
}

// https is the port of AWS' services and of the API server.
const https = 443
