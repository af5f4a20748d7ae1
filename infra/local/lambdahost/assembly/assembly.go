package assembly

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Place is where the assembly is taken to be deployed. Empty fields are taken from the manifest.
type Place struct {
	Account string
	Region  string
}

// Assembly is all that a cloud assembly would create, over all its stacks, in the order of stack and logical id.
type Assembly struct {
	Place            Place
	Stacks           []string
	Functions        []Function
	Rules            []Rule
	Schedules        []Schedule
	Permissions      []Permission
	Roles            []Role
	Queues           []Queue
	Mappings         []Mapping
	Buckets          []Bucket
	AccessEntries    []AccessEntry
	InstanceProfiles []InstanceProfile
	CustomResources  []CustomResource
	Inert            []Resource // known types that do nothing in a local run

	pending []func(*Assembly) error // what can only be done when every resource is read
}

// Resource names one resource of a template.
type Resource struct {
	Stack, LogicalID, Type string
}

// manifest is the part of manifest.json that is read.
type manifest struct {
	Artifacts map[string]struct {
		Type        string
		Environment string
		Properties  struct {
			TemplateFile  string `json:"templateFile"`
			StackName     string `json:"stackName"`
			File          string `json:"file"`
			DirectoryName string `json:"directoryName"`
		}
	}
}

// template is a CloudFormation template before anything in it is resolved.
type template struct {
	Parameters map[string]struct {
		Type    string
		Default any
	}
	Mappings   map[string]map[string]map[string]any
	Conditions map[string]any
	Resources  map[string]resource
}

type resource struct {
	Type       string
	Condition  string
	Properties map[string]any
}

// Load reads the assembly in dir. Its errors are all that the templates hold and this package does not understand.
func Load(dir string, place Place) (*Assembly, error) {
	a := &Assembly{Place: place}
	if err := a.loadStacks(dir); err != nil {
		return nil, fmt.Errorf("load assembly %s: %w", dir, err)
	}
	if len(a.Stacks) == 0 {
		return nil, fmt.Errorf("load assembly %s: it has no stack", dir)
	}
	if err := a.attachPending(); err != nil {
		return nil, fmt.Errorf("load assembly %s: %w", dir, err)
	}
	return a, nil
}

func (a *Assembly) loadStacks(dir string) error {
	var m manifest
	if err := readJSON(filepath.Join(dir, "manifest.json"), &m); err != nil {
		return err
	}
	assets, err := readAssets(dir)
	if err != nil {
		return err
	}
	var problems []error
	for _, id := range sortedKeys(m.Artifacts) {
		artifact := m.Artifacts[id]
		switch artifact.Type {
		case "cdk:cloud-assembly":
			problems = append(problems, a.loadStacks(filepath.Join(dir, artifact.Properties.DirectoryName)))
		case "aws:cloudformation:stack":
			name := artifact.Properties.StackName
			if name == "" {
				name = id
			}
			if err := a.fillPlace(artifact.Environment); err != nil {
				return err
			}
			file := filepath.Join(dir, artifact.Properties.TemplateFile)
			problems = append(problems, a.addStack(name, file, assets))
		}
	}
	return errors.Join(problems...)
}

// fillPlace fills the place from a stack's environment, "aws://ACCOUNT/REGION", where the caller left it open.
func (a *Assembly) fillPlace(environment string) error {
	account, region, ok := strings.Cut(strings.TrimPrefix(environment, "aws://"), "/")
	if !ok {
		return fmt.Errorf("read environment %q: want aws://ACCOUNT/REGION", environment)
	}
	if a.Place.Account == "" && account != "unknown-account" {
		a.Place.Account = account
	}
	if a.Place.Region == "" && region != "unknown-region" {
		a.Place.Region = region
	}
	if a.Place.Account == "" || a.Place.Region == "" {
		return fmt.Errorf("environment %s: account or region is not known; synthesize for one, or name them",
			environment)
	}
	return nil
}

func (a *Assembly) addStack(name, file string, assets assets) error {
	s := &stack{name: name, place: a.Place, assets: assets}
	if err := readJSON(file, &s.template); err != nil {
		return err
	}
	a.Stacks = append(a.Stacks, name)
	var problems []error
	for _, id := range sortedKeys(s.template.Resources) {
		r := s.template.Resources[id]
		wanted, err := s.namedCondition(r.Condition)
		if err != nil {
			problems = append(problems, err)
			continue
		}
		if !wanted {
			continue
		}
		if err := a.addResource(s, id, r); err != nil {
			problems = append(problems, fmt.Errorf("stack %s resource %s (%s): %w", name, id, r.Type, err))
		}
	}
	return errors.Join(problems...)
}

// addResource resolves one resource's properties and files it by its type.
func (a *Assembly) addResource(s *stack, id string, r resource) error {
	known := Resource{Stack: s.name, LogicalID: id, Type: r.Type}
	if slices.Contains(inertTypes(), r.Type) {
		a.Inert = append(a.Inert, known)
		return nil
	}
	read, ok := resourceReaders()[r.Type]
	if !ok && isCustom(r.Type) {
		read, ok = readCustomResource, true
	}
	if !ok {
		return errors.New("unknown resource type")
	}
	properties, err := s.resolveValue(r.Properties)
	if err != nil {
		return err
	}
	text, err := json.Marshal(properties)
	if err != nil {
		return fmt.Errorf("encode properties: %w", err)
	}
	return read(a, s, item{Resource: known, properties: text})
}

func isCustom(resourceType string) bool {
	return strings.HasPrefix(resourceType, "Custom::") || resourceType == "AWS::CloudFormation::CustomResource"
}

// answerMark begins what stands for the answer of a custom resource.
const answerMark = "{{answer:"

// AnswerTo stands in what was loaded for an attribute of a custom resource, which only its function knows.
func AnswerTo(logicalID, attribute string) string {
	return answerMark + logicalID + "." + attribute + "}}"
}

// item is one resource with its properties resolved.
type item struct {
	Resource
	properties json.RawMessage
}

// decodeProperties reads the properties, keeping to JSON's types: CloudFormation also takes "3" for 3, CDK does not
// write it.
func (i item) decodeProperties(into any) error {
	if err := json.Unmarshal(i.properties, into); err != nil {
		return fmt.Errorf("read properties: %w", err)
	}
	return nil
}

// inertTypes are known and make nothing happen in a local run.
func inertTypes() []string {
	return []string{
		"AWS::CDK::Metadata",
		"AWS::CloudWatch::Alarm", "AWS::CloudWatch::CompositeAlarm", "AWS::CloudWatch::Dashboard",
		"AWS::Logs::LogGroup", "AWS::Logs::MetricFilter", "AWS::Logs::QueryDefinition",
		"AWS::SNS::Topic", "AWS::SNS::TopicPolicy", "AWS::SNS::Subscription",
		"AWS::S3::BucketPolicy",
		"AWS::SecretsManager::Secret", // its value is made when something asks for it
		"AWS::Scheduler::ScheduleGroup",
		"AWS::Lambda::Version", // there is one, the one that was built
	}
}

func readJSON(file string, into any) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, into); err != nil {
		return fmt.Errorf("parse %s: %w", file, err)
	}
	return nil
}
