package assembly

import (
	"crypto/sha256"
	"encoding/base32"
	"fmt"
	"strconv"
	"strings"
)

// resolveAttribute answers Ref and Fn::GetAtt of a resource. The names that CloudFormation would make up are made from
// the stack and the logical id, so that they are the same in every run.
func (s *stack) resolveAttribute(id string, r resource, attribute string) (any, error) {
	if s.made != nil {
		value, ok := s.made(id, attribute)
		if !ok {
			return nil, fmt.Errorf("%s (%s) does not exist, or has no attribute %s", id, r.Type, attribute)
		}
		return value, nil
	}
	answers, err := s.knownAttributes(id, r)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", id, err)
	}
	value, ok := answers[attribute]
	if !ok && isCustom(r.Type) {
		return AnswerTo(id, attribute), nil
	}
	if !ok {
		return nil, fmt.Errorf("%s (%s): unknown attribute %s", id, r.Type, attribute)
	}
	return value, nil
}

// knownAttributes lists what is known of one resource under the names that templates ask by.
func (s *stack) knownAttributes(id string, r resource) (map[string]any, error) {
	name, err := s.physicalName(id, r)
	if err != nil {
		return nil, err
	}
	arn := func(service, rest string) string {
		return fmt.Sprintf("arn:aws:%s:%s:%s:%s", service, s.place.Region, s.place.Account, rest)
	}
	switch r.Type {
	case "AWS::Lambda::Function":
		return map[string]any{"Ref": name, "Arn": arn("lambda", "function:"+name)}, nil
	case "AWS::Lambda::Version":
		function, err := s.textProperty(r, "FunctionName", "")
		return map[string]any{"Ref": arn("lambda", "function:"+function+":1"), "Version": "1",
			"FunctionArn": arn("lambda", "function:"+function)}, err
	case "AWS::Lambda::Alias":
		function, err := s.textProperty(r, "FunctionName", "")
		alias := arn("lambda", "function:"+function+":"+name)
		return map[string]any{"Ref": alias, "AliasArn": alias}, err
	case "AWS::Lambda::Url":
		target, err := s.textProperty(r, "TargetFunctionArn", "")
		host := strings.ToLower(nameStamp(s.name, id, "url")) + ".lambda-url." + s.place.Region + ".on.aws"
		return map[string]any{"Ref": target, "FunctionArn": target, "FunctionUrl": "https://" + host + "/"}, err
	case "AWS::SecretsManager::Secret":
		secret := arn("secretsmanager", "secret:"+name)
		return map[string]any{"Ref": secret, "Id": secret}, nil
	case "AWS::IAM::Role", "AWS::IAM::InstanceProfile":
		path, err := s.textProperty(r, "Path", "/")
		if err != nil {
			return nil, err
		}
		kind := "role"
		if r.Type == "AWS::IAM::InstanceProfile" {
			kind = "instance-profile"
		}
		return map[string]any{
			"Ref": name, "RoleId": "AROA" + nameStamp(s.name, id),
			"Arn": fmt.Sprintf("arn:aws:iam::%s:%s%s%s", s.place.Account, kind, path, name),
		}, nil
	case "AWS::Events::Rule":
		return map[string]any{"Ref": name, "Arn": arn("events", "rule/"+name)}, nil
	case "AWS::Scheduler::Schedule":
		group, err := s.textProperty(r, "GroupName", "default")
		return map[string]any{"Ref": name, "Arn": arn("scheduler", "schedule/"+group+"/"+name)}, err
	case "AWS::SQS::Queue":
		url := fmt.Sprintf("https://sqs.%s.amazonaws.com/%s/%s", s.place.Region, s.place.Account, name)
		return map[string]any{"Ref": url, "QueueUrl": url, "QueueName": name, "Arn": arn("sqs", name)}, nil
	case "AWS::S3::Bucket":
		return map[string]any{
			"Ref": name, "Arn": "arn:aws:s3:::" + name,
			"DomainName":         name + ".s3.amazonaws.com",
			"RegionalDomainName": fmt.Sprintf("%s.s3.%s.amazonaws.com", name, s.place.Region),
		}, nil
	case "AWS::Logs::LogGroup":
		return map[string]any{"Ref": name, "Arn": arn("logs", "log-group:"+name+":*")}, nil
	case "AWS::SNS::Topic":
		return map[string]any{"Ref": arn("sns", name), "TopicArn": arn("sns", name), "TopicName": name}, nil
	default:
		return map[string]any{"Ref": name}, nil
	}
}

// physicalName is the resource's own name if the template gives one, else stack, logical id and a stamp of both.
func (s *stack) physicalName(id string, r resource) (string, error) {
	property, limit := "", 64
	switch r.Type {
	case "AWS::Lambda::Function":
		property = "FunctionName"
	case "AWS::IAM::Role":
		property = "RoleName"
	case "AWS::IAM::InstanceProfile":
		property, limit = "InstanceProfileName", 128
	case "AWS::Events::Rule", "AWS::Scheduler::Schedule", "AWS::Scheduler::ScheduleGroup", "AWS::Lambda::Alias":
		property = "Name"
	case "AWS::SecretsManager::Secret":
		property, limit = "Name", 512
	case "AWS::SQS::Queue":
		property, limit = "QueueName", 80
	case "AWS::S3::Bucket":
		property, limit = "BucketName", 63
	case "AWS::Logs::LogGroup":
		property, limit = "LogGroupName", 512
	case "AWS::SNS::Topic":
		property, limit = "TopicName", 256
	}
	made := s.name + "-" + id
	if room := limit - 13; len(made) > room {
		made = made[:room]
	}
	parts := []string{s.name, id}
	if s.generation > 0 {
		parts = append(parts, strconv.Itoa(s.generation))
	}
	made += "-" + nameStamp(parts...)
	if r.Type == "AWS::S3::Bucket" {
		made = strings.ToLower(made)
	}
	return s.textProperty(r, property, made)
}

// textProperty resolves a text property, or gives the default when the template has none.
func (s *stack) textProperty(r resource, name, otherwise string) (string, error) {
	raw, ok := r.Properties[name]
	if name == "" || !ok {
		return otherwise, nil
	}
	return s.resolveText(raw)
}

// stackID is the ARN of a stack.
func (p Place) stackID(name string) string {
	return fmt.Sprintf("arn:aws:cloudformation:%s:%s:stack/%s/%s", p.Region, p.Account, name, nameStamp(name))
}

// StackIDs lists the ARNs of the stacks, as AWS::StackId gives them.
func (a *Assembly) StackIDs() []string {
	var out []string
	for _, name := range a.Stacks {
		out = append(out, a.Place.stackID(name))
	}
	return out
}

// nameStamp is 12 letters and digits that stand for CloudFormation's random ones.
func nameStamp(parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return base32.StdEncoding.EncodeToString(sum[:])[:12]
}
