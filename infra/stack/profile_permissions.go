package stack

// profileARNs are the instance profiles that refresh makes. Their path is known, so nothing else can be touched.
func (p permissions) profileARNs() []string {
	return []string{p.arn("iam", "", *p.Account(), "instance-profile/karpenter/"+*p.Region()+"/"+p.cluster+"/*")}
}

// taggedProfile holds for profiles with the tags of ours, on the request or on the resource.
func (p permissions) taggedProfile(kind string) conditions {
	return conditions{
		"StringEquals": {"aws:" + kind + "Tag/" + p.tagCluster(): {"owned"}, "aws:" + kind + "Tag/" +
			tagRegion: {*p.Region()}},
		"StringLike": {"aws:" + kind + "Tag/" + tagNodeClass: {"*"}},
	}
}

// listProfiles cannot be limited to a path.
func (p permissions) listProfiles() statement {
	return statement{sid: "ListInstanceProfiles", actions: []string{"iam:ListInstanceProfiles"}, resources: []string{"*"}}
}

// instanceProfiles lets refresh keep one instance profile for each role of a class, below a path of its own.
func (p permissions) instanceProfiles() []statement {
	own := p.profileARNs()
	asked := p.taggedProfile("Request").withTest("StringEquals", "aws:RequestTag/"+tagClusterName, p.cluster)
	both := p.taggedProfile("Resource").
		withTest("StringEquals", "aws:RequestTag/"+p.tagCluster(), "owned").
		withTest("StringEquals", "aws:RequestTag/"+tagRegion, *p.Region()).
		withTest("StringEquals", "aws:RequestTag/"+tagClusterName, p.cluster).
		withTest("StringLike", "aws:RequestTag/"+tagNodeClass, "*")
	return []statement{
		{sid: "ReadInstanceProfiles", actions: []string{"iam:GetInstanceProfile"},
			resources: []string{p.arn("iam", "", *p.Account(), "instance-profile/*")}},
		p.listProfiles(),
		{sid: "CreateInstanceProfile", changes: true, actions: []string{"iam:CreateInstanceProfile"},
			resources: own, when: asked},
		{sid: "TagInstanceProfile", changes: true, actions: []string{"iam:TagInstanceProfile"}, resources: own,
			when: both},
		{sid: "ChangeInstanceProfile", changes: true, resources: own, when: p.taggedProfile("Resource"),
			actions: []string{"iam:AddRoleToInstanceProfile", "iam:RemoveRoleFromInstanceProfile",
				"iam:DeleteInstanceProfile"}},
	}
}
