package awsemulator

import (
	"maps"
	"slices"
	"strings"

	"joiner.sh/infra/local/awsemulator/wire"
)

// ec2Access finds what IAM is asked about calls of EC2.
type ec2Access struct{ *account }

// ec2ARN is the ARN of a resource by kind and id. Images and snapshots name no account.
func (c *ec2Access) ec2ARN(kind, id string) string {
	if kind == "image" || kind == "snapshot" {
		return "arn:aws:ec2:" + c.opt.Region + "::" + kind + "/" + id
	}
	return c.resourceARN("ec2", kind+"/"+id)
}

// questionOn is a question about something that exists, with its tags.
func (c *ec2Access) questionOn(action, kind, id string) access {
	q := access{action: "ec2:" + action, resource: c.ec2ARN(kind, id)}
	if tags, err := c.instances.tagsOf(id); err == nil {
		q.keys = resourceTagKeys("ec2", tags)
	}
	return q
}

// askInterface asks about the network interface that a call names, or about one that is yet to be made.
func (c *ec2Access) askInterface(r *call) ([]access, error) {
	id := r.form.Get("NetworkInterfaceId")
	if id == "" {
		id = "*"
	}
	return []access{{action: "ec2:" + r.action, resource: c.ec2ARN("network-interface", id)}}, nil
}

// askTerminate asks about each instance that a call terminates, stops or starts.
func (c *ec2Access) askTerminate(r *call) ([]access, error) {
	var in terminateInput
	err := r.decodeInput(&in)
	var out []access
	for _, id := range in.InstanceID {
		if c.instances.machines[id] != nil {
			out = append(out, c.questionOn(r.action, "instance", id))
		}
	}
	return out, err
}

func (c *ec2Access) askCreateTags(r *call) ([]access, error) {
	var in createTagsInput
	err := r.decodeInput(&in)
	given := map[string]string{}
	for _, t := range in.Tag {
		given[t.Key] = t.Value
	}
	kinds := map[string]string{"i": "instance", "lt": "launch-template", "subnet": "subnet", "sg": "security-group"}
	var out []access
	for _, id := range in.ResourceID {
		prefix, _, _ := strings.Cut(id, "-")
		if _, err := c.instances.tagsOf(id); err != nil {
			continue
		}
		q := c.questionOn("CreateTags", kinds[prefix], id)
		q.keys = mergeKeys(q.keys, requestTagKeys(given))
		out = append(out, q)
	}
	return out, err
}

// createQuestions is the questions for one kind of thing that a call makes: the making itself and, with tags, the
// tagging.
func (c *ec2Access) createQuestions(action, kind string, tags map[string]string) []access {
	arn := c.ec2ARN(kind, "*")
	out := []access{{"ec2:" + action, arn, requestTagKeys(tags)}}
	if len(tags) > 0 {
		keys := requestTagKeys(tags)
		keys["ec2:CreateAction"] = []string{action}
		out = append(out, access{"ec2:CreateTags", arn, keys})
	}
	return out
}

func (c *ec2Access) askCreateTemplate(r *call) ([]access, error) {
	var in createTemplateInput
	err := r.decodeInput(&in)
	return c.createQuestions("CreateLaunchTemplate", "launch-template",
		tagsFor("launch-template", in.TagSpecification)), err
}

func (c *ec2Access) askDeleteTemplate(r *call) ([]access, error) {
	var in templateRef
	if err := r.decodeInput(&in); err != nil {
		return nil, err
	}
	t, err := c.templates.findTemplate(in.LaunchTemplateID, in.LaunchTemplateName)
	if err != nil {
		return nil, err
	}
	return []access{c.questionOn("DeleteLaunchTemplate", "launch-template", t.id)}, nil
}

// askCreateFleet are the questions about the fleet as a whole: what it is, and what its request names. Whether
// instances may be launched is asked for each place they may come from, and refused there: see mayLaunch.
func (c *ec2Access) askCreateFleet(r *call) ([]access, error) {
	var in createFleetInput
	if err := r.decodeInput(&in); err != nil {
		return nil, err
	}
	out := c.createQuestions("CreateFleet", "fleet", tagsFor("fleet", in.Specifications))
	for _, config := range in.LaunchTemplateConfigs {
		t, err := c.templates.findTemplate(config.Template.ID, config.Template.Name)
		if err != nil {
			return nil, err
		}
		out = append(out, c.questionOn("CreateFleet", "launch-template", t.id))
		for _, o := range config.Overrides {
			if o.ImageID != "" {
				out = append(out, c.questionOn("CreateFleet", "image", o.ImageID))
			}
			if o.SubnetID != "" {
				out = append(out, c.questionOn("CreateFleet", "subnet", o.SubnetID))
			}
		}
	}
	return dropRepeated(out), nil
}

// launchAccess are the questions of launching from a pool, whose parts are resolved (W1 to W4 and M1).
func (c *ec2Access) launchAccess(p pool, capacityType string, specifications ...[]tagSpecification) []access {
	const run = "RunInstances"
	out := []access{c.questionOn(run, "image", p.image), c.questionOn(run, "subnet", p.subnet)}
	for _, g := range p.groups {
		out = append(out, c.questionOn(run, "security-group", g))
	}
	for _, d := range p.data.Devices {
		if d.EBS != nil && d.EBS.SnapshotID != "" {
			out = append(out, c.questionOn(run, "snapshot", d.EBS.SnapshotID))
		}
	}
	if r := p.data.Reservation; r != nil && r.Target != nil && r.Target.ID != "" {
		out = append(out, c.questionOn(run, "capacity-reservation", r.Target.ID))
	}
	if g := p.data.Placement; g != nil && g.GroupName+g.GroupID != "" {
		out = append(out, c.questionOn(run, "placement-group", g.GroupName+g.GroupID))
	}
	if t := c.templates.templateByName(p.templateName); t != nil {
		out = append(out, c.questionOn(run, "launch-template", t.id))
	}
	kinds := []string{"instance", "volume", "network-interface"}
	if capacityType == spot {
		kinds = append(kinds, "spot-instances-request")
	}
	for _, kind := range kinds {
		questions := c.createQuestions(run, kind, tagsFor(kind,
			append(slices.Clone(specifications), p.data.Specifications)...))
		if kind == "instance" {
			questions[0].keys = mergeKeys(questions[0].keys, p.instanceKeys())
		}
		out = append(out, questions...)
	}
	if profile := c.iam.profiles[p.profile]; profile != nil && profile.Role != "" {
		out = append(out, c.iam.passRole(profile.Role))
	}
	return out
}

// instanceKeys are the condition keys of RunInstances for the resource instance ("Actions, resources, and condition
// keys for Amazon EC2"), those of them that policies of users are about: ec2:InstanceType, and ec2:MetadataHttpTokens,
// which is there when the request says whether the instance demands IMDSv2.
func (p pool) instanceKeys() map[string][]string {
	keys := map[string][]string{"ec2:InstanceType": {p.kind}}
	if p.metadata != nil && p.metadata.HTTPTokens != "" {
		keys["ec2:MetadataHttpTokens"] = []string{p.metadata.HTTPTokens}
	}
	return keys
}

// mayLaunch asks whether the caller may launch from a pool. What was asked before in the same call is remembered.
func (c *ec2Access) mayLaunch(r *call, questions []access, asked map[string]*wire.Failure) *wire.Failure {
	for _, q := range questions {
		id := q.action + " " + q.resource + " " + fingerprintKeys(q.keys)
		f, known := asked[id]
		if !known {
			f, _ = c.checkAccess(r, q).(*wire.Failure) //nolint:errorlint // may returns it as it is
			asked[id] = f
		}
		if f != nil {
			return f
		}
	}
	return nil
}

// dropRepeated drops questions that are asked twice.
func dropRepeated(questions []access) []access {
	seen := map[string]bool{}
	return slices.DeleteFunc(questions, func(q access) bool {
		id := q.action + " " + q.resource
		again := seen[id]
		seen[id] = true
		return again
	})
}

func fingerprintKeys(keys map[string][]string) string {
	var b strings.Builder
	for _, k := range slices.Sorted(maps.Keys(keys)) {
		b.WriteString(k + "=" + strings.Join(keys[k], ",") + ";")
	}
	return b.String()
}
