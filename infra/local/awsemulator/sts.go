package awsemulator

import (
	"strings"
	"time"

	"joiner.sh/infra/local/awsemulator/wire"
)

// sts is STS: keys, sessions, and the tokens by which a principal enters the cluster.
type sts struct {
	*account
	keys keyBook
}

func (c *account) stsOperations() map[string]operation {
	return map[string]operation{
		"GetCallerIdentity": op(c.sts.getCallerIdentity),
		"AssumeRole":        op(c.sts.assumeRole),
	}
}

func (c *sts) getCallerIdentity(r *call, _ *struct{}) (any, error) {
	return struct {
		Account string
		Arn     string
		UserID  string `xml:"UserId"`
	}{c.opt.Account, r.caller.ARN(), r.caller.UserID}, nil
}

type assumeRoleInput struct {
	RoleArn, RoleSessionName, ExternalID, Policy string
	DurationSeconds                              int
}

type assumedRole struct {
	User struct {
		Arn string
		ID  string `xml:"AssumedRoleId"`
	} `xml:"AssumedRoleUser"`
	Credentials struct {
		AccessKeyID     string `xml:"AccessKeyId"`
		SecretAccessKey string
		SessionToken    string
		Expiration      wire.Time
	}
}

// assumeRole gives credentials for any role of the account that exists; trust policies are not modelled.
func (c *sts) assumeRole(_ *call, in *assumeRoleInput) (any, error) {
	c.mu.Lock()
	_, known := c.iam.roles[roleName(in.RoleArn)]
	c.mu.Unlock()
	if !known {
		return nil, wire.Fail(403, "AccessDenied", "User is not authorized to perform: sts:AssumeRole on resource: %s",
			in.RoleArn)
	}
	ttl := time.Duration(in.DurationSeconds) * time.Second
	made := c.IssueCredentials(in.RoleArn, in.RoleSessionName, ttl)
	k, _ := c.keys.findKey(made.AccessKeyID) // made a line above
	var out assumedRole
	out.User.Arn, out.User.ID = k.caller.ARN(), k.caller.UserID
	out.Credentials.AccessKeyID, out.Credentials.SecretAccessKey = made.AccessKeyID, made.SecretAccessKey
	out.Credentials.SessionToken, out.Credentials.Expiration = made.SessionToken, wire.Time{Time: made.Expires}
	return out, nil
}

// roleName is the last part of a role's ARN or path.
func roleName(arn string) string { return arn[strings.LastIndex(arn, "/")+1:] }
