package awsemulator

// profileARN is the ARN of an instance profile; of one that does not exist IAM knows no path.
func (c *iam) profileARN(name, path string) string {
	if p := c.profiles[name]; p != nil {
		return p.ARN
	}
	if path == "" {
		path = "/"
	}
	return "arn:aws:iam::" + c.opt.Account + ":instance-profile" + path + name
}

func (c *iam) askProfile(r *call) ([]access, error) {
	var in profileInput
	err := r.decodeInput(&in)
	q := access{action: "iam:" + r.action, resource: c.profileARN(in.InstanceProfileName, "")}
	if p := c.profiles[in.InstanceProfileName]; p != nil {
		q.keys = resourceTagKeys("iam", p.Tags)
	}
	return []access{q}, err
}

// askAddRole: whoever puts a role into a profile hands it to EC2.
func (c *iam) askAddRole(r *call) ([]access, error) {
	var in profileInput
	if err := r.decodeInput(&in); err != nil {
		return nil, err
	}
	out, err := c.askProfile(r)
	return append(out, c.passRole(in.RoleName)), err
}

// askCreateProfile: giving tags at creation is tagging, of a thing that has those tags by then.
func (c *iam) askCreateProfile(r *call) ([]access, error) {
	var in profileInput
	err := r.decodeInput(&in)
	tags := tagMap(in.Tags)
	out := []access{{"iam:CreateInstanceProfile", c.profileARN(in.InstanceProfileName, in.Path), requestTagKeys(tags)}}
	if len(tags) > 0 {
		out = append(out, access{"iam:TagInstanceProfile", out[0].resource,
			mergeKeys(requestTagKeys(tags), resourceTagKeys("iam", tags))})
	}
	return out, err
}

func (c *iam) askTagProfile(r *call) ([]access, error) {
	var in profileInput
	if err := r.decodeInput(&in); err != nil {
		return nil, err
	}
	out, err := c.askProfile(r)
	out[0].keys = mergeKeys(out[0].keys, requestTagKeys(tagMap(in.Tags)))
	return out, err
}

func (c *iam) askRole(r *call) ([]access, error) {
	var in roleInput
	err := r.decodeInput(&in)
	arn := "arn:aws:iam::" + c.opt.Account + ":role/" + in.RoleName
	if known := c.roles[in.RoleName]; known != nil {
		arn = known.ARN
	}
	return []access{{"iam:GetRole", arn, nil}}, err
}

func (c *iam) askLinkedRole(r *call) ([]access, error) {
	var in roleInput
	err := r.decodeInput(&in)
	return []access{{
		"iam:CreateServiceLinkedRole", "arn:aws:iam::" + c.opt.Account + ":role/aws-service-role/" + in.AWSServiceName +
			"/*",
		map[string][]string{"iam:AWSServiceName": {in.AWSServiceName}},
	}}, err
}

func tagMap(tags []iamTag) map[string]string {
	out := map[string]string{}
	for _, t := range tags {
		out[t.Key] = t.Value
	}
	return out
}
