package awsemulator

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"joiner.sh/infra/local/awsemulator/wire"
)

// Access is one question that IAM answers before a call may act. One call may raise several: on each resource it
// touches, and for further actions that it stands for, such as iam:PassRole.
type Access struct {
	Caller   Caller
	Action   string              // such as ec2:RunInstances, as IAM names it
	Resource string              // ARN; type/* for what is yet to be made; * for actions that know no resource
	Keys     map[string][]string // condition keys, such as aws:RequestTag/team
}

// access is a question of a call; the caller and what is the same for all of a call's questions is added when it is
// asked.
type access struct {
	action, resource string
	keys             map[string][]string
}

// asker finds the questions of a call in its parameters and in what exists. What does not exist raises none: the call
// itself says so. The account is locked.
type asker func(r *call) ([]access, error)

// authorizeCall asks all questions of a call. The error is the refusal of the first one denied.
func (c *Cloud) authorizeCall(r *call) error {
	if c.opt.Authorize == nil {
		return nil
	}
	name := r.service + ":" + r.action
	ask := c.accessQuestions()[name]
	if ask == nil {
		return c.checkAccess(r, access{action: name, resource: "*"})
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	questions, err := ask(r)
	if err != nil {
		return err
	}
	for _, q := range questions {
		if err := c.checkAccess(r, q); err != nil {
			return err
		}
	}
	return nil
}

// checkAccess asks one question.
func (c *account) checkAccess(r *call, q access) error {
	if c.opt.Authorize == nil {
		return nil
	}
	keys := map[string][]string{
		"aws:RequestedRegion":  {r.region},
		"aws:PrincipalArn":     {r.caller.Role},
		"aws:PrincipalAccount": {c.opt.Account},
		"aws:SecureTransport":  {"true"}, // loopback stands for TLS
	}
	if r.caller.Function != "" {
		keys["lambda:SourceFunctionArn"] = []string{r.caller.Function}
	}
	maps.Copy(keys, q.keys)
	if err := c.opt.Authorize(Access{Caller: r.caller, Action: q.action, Resource: q.resource,
		Keys: keys}); err != nil {
		return accessDenied(r, q, err)
	}
	return nil
}

// accessDenied is the refusal of an action that the caller has no permission for, in the words of its protocol.
func accessDenied(r *call, q access, why error) *wire.Failure {
	who := "User: " + r.caller.ARN() + " is not authorized to perform: " + q.action + " on resource: " + q.resource +
		" " + why.Error()
	switch r.protocol {
	case wire.EC2Query:
		return wire.Fail(403, "UnauthorizedOperation", "You are not authorized to perform this operation. %s", who)
	case wire.JSON:
		return wire.Fail(400, "AccessDeniedException", "%s", who)
	case wire.RestJSON, wire.CBOR:
		return wire.Fail(403, "AccessDeniedException", "%s", who)
	}
	return wire.Fail(403, "AccessDenied", "%s", who)
}

// accessQuestions are the calls that touch resources. A call that is not here is asked about by its own name, on *.
func (c *account) accessQuestions() map[string]asker {
	return map[string]asker{
		"ec2:TerminateInstances":             c.ec2Access.askTerminate,
		"ec2:StopInstances":                  c.ec2Access.askTerminate,
		"ec2:StartInstances":                 c.ec2Access.askTerminate,
		"ec2:CreateTags":                     c.ec2Access.askCreateTags,
		"ec2:CreateLaunchTemplate":           c.ec2Access.askCreateTemplate,
		"ec2:DeleteLaunchTemplate":           c.ec2Access.askDeleteTemplate,
		"ec2:CreateFleet":                    c.ec2Access.askCreateFleet,
		"ec2:RunInstances":                   askInside,
		"ec2:CreateNetworkInterface":         c.ec2Access.askInterface,
		"ec2:DeleteNetworkInterface":         c.ec2Access.askInterface,
		"ec2:AssignPrivateIpAddresses":       c.ec2Access.askInterface,
		"ec2:UnassignPrivateIpAddresses":     c.ec2Access.askInterface,
		"sts:GetCallerIdentity":              askNothing,
		"sts:AssumeRole":                     c.sts.askAssumeRole,
		"iam:GetInstanceProfile":             c.iam.askProfile,
		"iam:DeleteInstanceProfile":          c.iam.askProfile,
		"iam:RemoveRoleFromInstanceProfile":  c.iam.askProfile,
		"iam:AddRoleToInstanceProfile":       c.iam.askAddRole,
		"iam:CreateInstanceProfile":          c.iam.askCreateProfile,
		"iam:TagInstanceProfile":             c.iam.askTagProfile,
		"iam:GetRole":                        c.iam.askRole,
		"iam:CreateServiceLinkedRole":        c.iam.askLinkedRole,
		"ssm:GetParameter":                   c.ssm.askParameters,
		"ssm:GetParameters":                  c.ssm.askParameters,
		"sqs:SendMessage":                    c.sqs.askQueue,
		"sqs:ReceiveMessage":                 c.sqs.askQueue,
		"sqs:DeleteMessage":                  c.sqs.askQueue,
		"sqs:PurgeQueue":                     c.sqs.askQueue,
		"sqs:GetQueueAttributes":             c.sqs.askQueue,
		"events:PutEvents":                   c.bus.askBus,
		"lambda:Invoke":                      c.lambda.askFunction,
		"lambda:GetFunctionConfiguration":    c.lambda.askFunction,
		"eks:DescribeCluster":                c.eks.askCluster,
		"eks:ListAccessEntries":              c.eks.askCluster,
		"eks:CreateAccessEntry":              c.eks.askCluster,
		"eks:DescribeAccessEntry":            c.eks.askEntry,
		"eks:UpdateAccessEntry":              c.eks.askEntry,
		"eks:DeleteAccessEntry":              c.eks.askEntry,
		"arc-zonal-shift:GetManagedResource": c.arc.askManaged,
		"monitoring:DescribeAlarms":          c.cloudwatch.askAlarms,
		"s3:GetObject":                       c.objects.askReadObject,
		"s3:HeadObject":                      c.objects.askReadObject,
		"s3:PutObject":                       c.objects.askObject,
		"s3:DeleteObject":                    c.objects.askObject,
		"s3:ListObjectsV2":                   c.objects.askBucket,
		"s3:HeadBucket":                      c.objects.askBucket,
		"s3:CreateBucket":                    c.objects.askBucket,
		"s3:DeleteBucket":                    c.objects.askBucket,
	}
}

// askNothing is for calls that everybody may make.
func askNothing(*call) ([]access, error) { return nil, nil }

// askInside is for a call that asks its questions itself, when it knows what it touches.
func askInside(*call) ([]access, error) { return nil, nil }

// requestTagKeys are the keys of the tags that a call gives to something.
func requestTagKeys(tags map[string]string) map[string][]string {
	keys := map[string][]string{}
	for k, v := range tags {
		keys["aws:RequestTag/"+k] = []string{v}
	}
	if len(tags) > 0 {
		keys["aws:TagKeys"] = slices.Sorted(maps.Keys(tags))
	}
	return keys
}

// resourceTagKeys are the keys of the tags that something has, in the two spellings that a service knows.
func resourceTagKeys(service string, tags map[string]string) map[string][]string {
	keys := map[string][]string{}
	for k, v := range tags {
		keys["aws:ResourceTag/"+k], keys[service+":ResourceTag/"+k] = []string{v}, []string{v}
	}
	return keys
}

func mergeKeys(all ...map[string][]string) map[string][]string {
	out := map[string][]string{}
	for _, keys := range all {
		maps.Copy(out, keys)
	}
	return out
}

func (c *account) resourceARN(service, resource string) string {
	return "arn:aws:" + service + ":" + c.opt.Region + ":" + c.opt.Account + ":" + resource
}

// passRole is the question whether the caller may hand a role to EC2.
func (c *iam) passRole(name string) access {
	arn := "arn:aws:iam::" + c.opt.Account + ":role/" + name
	if r := c.roles[name]; r != nil {
		arn = r.ARN
	}
	return access{"iam:PassRole", arn, map[string][]string{"iam:PassedToService": {"ec2.amazonaws.com"}}}
}

func (c *sts) askAssumeRole(r *call) ([]access, error) {
	var in assumeRoleInput
	err := r.decodeInput(&in)
	return []access{{"sts:AssumeRole", in.RoleArn, nil}}, err
}

func (c *ssm) askParameters(r *call) ([]access, error) {
	var in struct {
		Name           string
		Names          []string
		WithDecryption bool
	}
	err := r.decodeInput(&in)
	if in.Name != "" {
		in.Names = append(in.Names, in.Name)
	}
	var out []access
	for _, name := range in.Names {
		arn := c.resourceARN("ssm", "parameter/"+strings.TrimPrefix(name, "/"))
		if strings.HasPrefix(name, "/aws/service/") { // AWS' own, which belong to no account
			arn = "arn:aws:ssm:" + c.opt.Region + "::parameter" + name
		}
		out = append(out, access{"ssm:" + r.action, arn, nil})
	}
	return out, err
}

func (c *sqs) askQueue(r *call) ([]access, error) {
	var in struct {
		QueueURL string `json:"QueueUrl"`
	}
	if err := json.Unmarshal(r.body, &in); err != nil {
		return nil, wire.Fail(400, "SerializationException", "%v", err)
	}
	name := in.QueueURL[strings.LastIndex(in.QueueURL, "/")+1:]
	return []access{{"sqs:" + r.action, c.resourceARN("sqs", name), nil}}, nil
}

func (c *bus) askBus(*call) ([]access, error) {
	return []access{{"events:PutEvents", c.resourceARN("events", "event-bus/default"), nil}}, nil
}

func (c *lambda) askFunction(r *call) ([]access, error) {
	action := "lambda:" + r.action
	if r.action == "Invoke" {
		action = "lambda:InvokeFunction"
	}
	return []access{{action, c.resourceARN("lambda", "function:"+qualifiedName(r.pathPart(2))), nil}}, nil
}

func (c *eks) askCluster(r *call) ([]access, error) {
	return []access{{"eks:" + r.action, c.resourceARN("eks", "cluster/"+r.pathPart(1)), nil}}, nil
}

func (c *eks) askEntry(r *call) ([]access, error) {
	e, known := c.entries[r.pathPart(3)]
	if !known {
		return c.askCluster(r)
	}
	return []access{{"eks:" + r.action, e.AccessEntryARN, resourceTagKeys("eks", e.Tags)}}, nil
}

// s3Resource splits a path-style path.
func s3Resource(r *call) (bucket, key string) {
	bucket, key, _ = strings.Cut(strings.Trim(r.http.URL.Path, "/"), "/")
	return bucket, key
}

func (c *objects) askBucket(r *call) ([]access, error) {
	bucket, _ := s3Resource(r)
	action := map[string]string{"ListObjectsV2": "ListBucket", "HeadBucket": "ListBucket"}[r.action]
	if action == "" {
		action = r.action
	}
	return []access{{"s3:" + action, "arn:aws:s3:::" + bucket, nil}}, nil
}

func (c *objects) askObject(r *call) ([]access, error) {
	bucket, key := s3Resource(r)
	return []access{{"s3:" + r.action, "arn:aws:s3:::" + bucket + "/" + key, nil}}, nil
}

// askReadObject: whoever may not list a bucket does not learn either that an object is missing.
func (c *objects) askReadObject(r *call) ([]access, error) {
	bucket, key := s3Resource(r)
	out := []access{{"s3:GetObject", "arn:aws:s3:::" + bucket + "/" + key, nil}}
	if _, err := c.s3.backend.HeadObject(bucket, key); err != nil {
		out = append(out, access{"s3:ListBucket", "arn:aws:s3:::" + bucket, nil})
	}
	return out, nil
}
