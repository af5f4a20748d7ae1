package accept

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	awsv1 "joiner.sh/pkg/api/aws/v1"
)

// Place is the partition, region and account that an account's events come from.
type Place struct{ Partition, Region, Account string }

// NoticeEvent is the event that EC2 writes two minutes before it takes a spot instance back, like a sample of it.
func NoticeEvent(sample []byte, at Place, zone, instance string, now time.Time) ([]byte, error) {
	var e map[string]any
	if err := json.Unmarshal(sample, &e); err != nil {
		return nil, fmt.Errorf("read the sample of a spot notice: %w", err)
	}
	e["account"], e["region"], e["time"] = at.Account, at.Region, now.UTC().Format(time.RFC3339)
	e["resources"] = []string{fmt.Sprintf("arn:%s:ec2:%s:instance/%s", at.Partition, zone, instance)}
	e["detail"] = map[string]any{"instance-id": instance, "instance-action": "terminate"}
	return json.Marshal(e)
}

// Target is an instance that a notice is meant for, as the cluster and EC2 have it at this moment.
type Target struct {
	Instance string
	Mark     string // label of the NodePool that the NodeClaim names
	Claims   []string
	State    string            // in EC2
	Tags     map[string]string // in EC2
	Spot     bool
}

// TargetProblems are the reasons not to send the notice: the instance is one of the run's own only if both the cluster
// and EC2 say so.
func TargetProblems(t Target, r Run, victim Claim) []string {
	var out []string
	refuse := func(wrong bool, format string, args ...any) {
		if wrong {
			out = append(out, fmt.Sprintf(format, args...))
		}
	}
	refuse(victim.Instance == "" || t.Instance != victim.Instance, "instance %q is not the one that was chosen", t.Instance)
	refuse(!slices.Contains(t.Claims, victim.Name), "NodeClaim %s is not among those of the run", victim.Name)
	refuse(t.Mark != r.ID, "NodePool %s carries %s=%q, and the run is %s", Name, Mark, t.Mark, r.ID)
	refuse(t.Tags[Mark] != r.ID, "the instance carries the tag %s=%q", Mark, t.Tags[Mark])
	refuse(t.Tags[awsv1.TagNodePool] != Name, "the instance is of NodePool %q", t.Tags[awsv1.TagNodePool])
	refuse(t.Tags[awsv1.TagClusterName] != r.Cluster, "the instance is of cluster %q", t.Tags[awsv1.TagClusterName])
	refuse(t.State != "running", "the instance is %s", t.State)
	refuse(!t.Spot, "it is no spot instance")
	return out
}

// Rule is a rule of EventBridge with the alias among its targets.
type Rule struct {
	Name, ARN string
	Enabled   bool
	Matches   bool // TestEventPattern says so of the notice
	Targets   []string
}

// RouteProblems say why a notice of EC2 would not get to the function, though the run's own did: no rule, none that
// matches, a rule that is off, or a function that does not let it in.
func RouteProblems(alias string, rules []Rule, policy string) []string {
	if len(rules) == 0 {
		return []string{"no rule of EventBridge has the target " + alias}
	}
	var why []string
	for _, r := range rules {
		switch {
		case !r.Enabled:
			why = append(why, "rule "+r.Name+" is disabled")
		case !r.Matches:
			why = append(why, "the pattern of rule "+r.Name+" does not match a spot notice")
		case !slices.Contains(r.Targets, alias):
			why = append(why, "rule "+r.Name+" has no target "+alias)
		case !letsIn(policy, r.ARN):
			why = append(why, "the policy of "+alias+" does not let rule "+r.Name+" in")
		default:
			return nil // one way is enough
		}
	}
	return why
}

// letsIn reports whether a function's policy allows EventBridge to invoke it for the rule.
func letsIn(policy, rule string) bool {
	var p struct {
		Statement []struct {
			Effect            string
			Action, Principal any
			Condition         map[string]map[string]any
		}
	}
	if json.Unmarshal([]byte(policy), &p) != nil {
		return false
	}
	for _, s := range p.Statement {
		bound := false // to another rule
		for operator, keys := range s.Condition {
			for key, value := range keys {
				bound = bound || strings.HasPrefix(operator, "Arn") && strings.EqualFold(key, "aws:SourceArn") && value != rule
			}
		}
		who, _ := s.Principal.(map[string]any)
		if s.Effect == "Allow" && s.Action == "lambda:InvokeFunction" && who["Service"] == "events.amazonaws.com" && !bound {
			return true
		}
	}
	return false
}
