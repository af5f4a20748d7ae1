// Package preflight says what keeps a stack from being deployed to a cluster and an account, all of it in one answer,
// and what to know before.
//
// It knows what CloudFormation, EKS, EC2 and Lambda refuse in the middle of a deployment, and how each is mended. Start
// with Check. The preflight of the stack asks it before anything is made, and so does the command line from a laptop.
// It refuses to know how facts are found out: what nobody could look at is said to be unknown, never to be well.
package preflight

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"joiner.sh/pkg/model/findings"
)

// StackPlan describes what a deployment is about to make.
type StackPlan struct {
	Cluster, Region string
	Role            string // ARN of the role that setup runs with
	Observe         bool
	NodeRole        string   // an existing role for the nodes; empty: the stack makes its own
	WindowsNodeRole string   // the same for Windows nodes; empty: its own, if there are to be any
	MadeNodeRoles   []string // names of the node roles that the stack makes in mode act
	NodePolicies    []string // besides the usual four, of the node roles that the stack makes
	VPC             string   // that the functions run in; empty: outside of any
	Subnets         []string
	Endpoints       []string // services for which the stack makes interface endpoints
	Reserved        int      // concurrency, of all functions
	ForNotices      int      // of that, for the functions whose events leave two minutes
	ForReservations int      // of that, for interruptible capacity reservations
	GivenRegion     string   // that the settings name, so that the template is made for it; empty: they name none
	ZonalShift      bool     // zonal shifts of ARC are followed by functions that reach AWS by those endpoints
	Push            bool     // the cluster's webhook calls a function URL
	FunctionMemory  int      // MiB, of the functions that read the cluster; 0: not said; settings.Auto fits the nodes
	MemoryLike      string   // the function whose memory Auto does not go below
	Deployment      string   // which it is: the time in RFC 3339, unless the user names it otherwise
}

// Facts holds what was found out about the cluster and the account.
type Facts struct {
	Cluster   Cluster
	Roles     []string          // of the names that were asked for, those that exist
	Paths     map[string]string // of roles, by name; missing: /
	Entries   []Entry           // of the node roles that were named; none: they have no access entry
	Endpoints []Endpoint
	Zones     map[string][]string // in which a service of the plan's endpoints has them, by service
	Subnets   []Subnet
	Ways      []Way // of the subnets
	Limit     int   // of concurrency in the account; 0: unknown
	Free      int   // of that, not reserved by any function
	CodeLimit int64 // bytes of code that functions of the account may have; 0: unknown
	CodeUsed  int64 // of these
	Nodes     int   // instances of EC2 that run as nodes of the cluster
	Memory    int   // MiB that Plan.MemoryLike has; 0: there is no such function yet
	Unknown   []Unknown
}

// Topics of the parts of the facts.
const (
	TopicRoles     = "node role"
	TopicEntries   = "access entry of the node role"
	TopicEndpoints = "VPC endpoints"
	TopicZones     = "zones of VPC endpoints"
	TopicSubnets   = "subnets"
	TopicWays      = "way to S3"
	TopicPush      = "push"
	TopicLambda    = "Lambda"
	TopicNodes     = "nodes"
	TopicMemory    = "memory of the functions"
)

// Unknown is a part of the facts that could not be looked at.
type Unknown struct{ Topic, Why string }

// Entry is one access entry.
type Entry struct{ Principal, Type string }

// Endpoint is a VPC endpoint of the functions' VPC.
type Endpoint struct {
	ID, Service string // the service's short name, such as ec2
	Gateway     bool
	PrivateDNS  bool // it answers under the public name of the service
}

// Subnet is one of those that the functions are to run in.
type Subnet struct{ ID, VPC, Zone string }

// Check finds everything that is wrong with deploying the plan. Before is what the stack has made already, nil when it
// is deployed for the first time. Nothing keeps CloudFormation from going back to an older deployment: a refusal would
// leave the stack in UPDATE_ROLLBACK_FAILED, from which no deployment leads. Nor is what is deployed already refused.
func Check(p StackPlan, before *StackPlan, f Facts) findings.List {
	c := checker{plan: p, facts: f}
	if before != nil {
		c.before, c.update = *before, true
	}
	for _, u := range f.Unknown {
		c.Add(findings.Unknown, u.Topic, "could not be looked at: "+u.Why, "")
	}
	c.checkCluster()
	c.checkNodeRoles()
	c.checkEndpoints()
	c.checkSubnets()
	c.checkZones()
	c.checkWays()
	c.checkPush()
	c.checkZonalShift()
	c.checkRoom()
	c.checkCode()
	c.checkMemory()
	if c.refusesNothing() {
		for i := range c.List {
			if c.List[i].Level == findings.Broken {
				c.List[i].Level = findings.Warning
			}
		}
	}
	return c.List
}

// longestRefusal caps the bytes of a refusal that are said: CloudFormation takes no answer of more than 4,096.
const longestRefusal = 3000

// Refusal is one error with every finding that keeps the stack from being deployed; nil when there is none. Of very
// many it names the first and counts the rest.
func Refusal(all findings.List) error {
	var lines []string
	for _, x := range all {
		if x.Level != findings.Broken {
			continue
		}
		line := x.What
		if x.Mend != "" {
			line += ": " + x.Mend
		}
		lines = append(lines, line)
	}
	switch len(lines) {
	case 0:
		return nil
	case 1:
		return errors.New(lines[0])
	}
	text := ""
	for i, line := range lines {
		next := fmt.Sprintf("; %d) %s", i+1, line)
		if len(text)+len(next) > longestRefusal {
			text += fmt.Sprintf("; and %d more: joiner doctor --before-deploy says them all", len(lines)-i)
			break
		}
		text += next
	}
	return fmt.Errorf("%d things are wrong: %s", len(lines), strings.TrimPrefix(text, "; "))
}

// checker gathers findings.
type checker struct {
	findings.List
	plan, before StackPlan
	update       bool // the stack is deployed
	facts        Facts
}

// whenThere returns the gravity of something that exists and that the stack is to make and has not made. A stack that
// goes back after an update that failed may find its own, which CloudFormation has not deleted yet; a refusal would
// leave it stuck.
func (c *checker) whenThere() findings.Level {
	now, last, known := c.deployments()
	if c.update && (!known || !now.After(last)) {
		return findings.Warning
	}
	return findings.Broken
}

// refusesNothing reports whether CloudFormation goes back to an older deployment after an update that failed, or may do
// so, or whether the stack is to make nothing that it has not made.
func (c *checker) refusesNothing() bool {
	if !c.update {
		return false
	}
	_, _, known := c.deployments()
	return !known || c.plan.RollsBack(c.before) || c.plan.makesNoMoreThan(c.before)
}

// RollsBack reports whether CloudFormation surely goes back to the plan, an older deployment, after an update to
// another failed.
func (p StackPlan) RollsBack(from StackPlan) bool { return IsRollback(p.Deployment, from.Deployment) }

// IsRollback reports whether a deployment is older than the one before. Only times in RFC 3339 can be compared.
func IsRollback(now, before string) bool {
	to, err := time.Parse(time.RFC3339, now)
	from, errFrom := time.Parse(time.RFC3339, before)
	return err == nil && errFrom == nil && to.Before(from)
}

// makesNoMoreThan reports whether two plans differ in which deployment they are alone.
func (p StackPlan) makesNoMoreThan(deployed StackPlan) bool {
	p.Deployment = deployed.Deployment
	return reflect.DeepEqual(p.Properties(), deployed.Properties())
}

// deployments are the times of the deployment that is to be and of the one that was; not known where the user names
// them otherwise.
func (c *checker) deployments() (now, last time.Time, known bool) {
	now, err := time.Parse(time.RFC3339, c.plan.Deployment)
	last, errLast := time.Parse(time.RFC3339, c.before.Deployment)
	return now, last, err == nil && errLast == nil
}

// knows reports whether a part of the facts was looked at.
func (c *checker) knows(topic string) bool {
	return !slices.ContainsFunc(c.facts.Unknown, func(u Unknown) bool { return u.Topic == topic })
}

func (c *checker) checkRoom() {
	if c.facts.Limit == 0 {
		return
	}
	err := ConcurrencyRoom{Limit: c.facts.Limit, Unreserved: c.facts.Free, Wanted: c.plan.Reserved,
		ForNotices: c.plan.ForNotices, ForReservations: c.plan.ForReservations, Had: c.before.Reserved}.CheckRoom()
	if err != nil {
		c.Add(findings.Broken, TopicLambda, err.Error(), "")
	}
}
