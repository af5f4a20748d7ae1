package convert

import (
	"cmp"
	"maps"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	awsv1 "joiner.sh/pkg/api/aws/v1"
	"joiner.sh/pkg/model/lists"
	"joiner.sh/pkg/model/naming"
	"joiner.sh/pkg/workload/manifest"
)

// nodeTemplate holds the fields that an AWSNodeTemplate v1alpha1 and an inline provider have in common.
type nodeTemplate struct {
	// of an inline provider, together with kind; without meaning
	APIVersion            string                      `json:"apiVersion"`
	Kind                  string                      `json:"kind"`
	AMIFamily             *string                     `json:"amiFamily"`
	AMISelector           map[string]string           `json:"amiSelector"`
	UserData              *string                     `json:"userData"`
	SubnetSelector        map[string]string           `json:"subnetSelector"`
	SecurityGroupSelector map[string]string           `json:"securityGroupSelector"`
	InstanceProfile       *string                     `json:"instanceProfile"`
	LaunchTemplateName    *string                     `json:"launchTemplate"`
	Tags                  map[string]string           `json:"tags"`
	Context               *string                     `json:"context"`
	MetadataOptions       *awsv1.MetadataOptions      `json:"metadataOptions"`
	BlockDeviceMappings   []*awsv1.BlockDeviceMapping `json:"blockDeviceMappings"`
	DetailedMonitoring    *bool                       `json:"detailedMonitoring"`
}

// convertTemplate converts an AWSNodeTemplate.
func (c *converter) convertTemplate(d manifest.Document) error {
	var old struct {
		metav1.TypeMeta   `json:",inline"`
		metav1.ObjectMeta `json:"metadata"`
		Spec              nodeTemplate `json:"spec"`
		Status            any          `json:"status"`
	}
	if err := c.decodeOld(d, &old); err != nil {
		return err
	}
	class, err := c.makeClass(d, "spec", old.Spec, old.ObjectMeta)
	if err == nil {
		c.objects = append(c.objects, Object{Class: class, from: d})
	}
	return err
}

// decodeClass reads an EC2NodeClass whose fields are today's.
func (c *converter) decodeClass(d manifest.Document) (*awsv1.EC2NodeClass, error) {
	var read struct {
		metav1.TypeMeta   `json:",inline"`
		metav1.ObjectMeta `json:"metadata"`
		Spec              awsv1.EC2NodeClassSpec `json:"spec"`
		Status            any                    `json:"status"`
	}
	if err := c.decodeOld(d, &read); err != nil {
		return nil, err
	}
	class := newClass(read.ObjectMeta)
	class.Spec = read.Spec
	return class, nil
}

// convertClass converts an EC2NodeClass v1beta1: its fields are today's, but for the AMI family.
func (c *converter) convertClass(d manifest.Document) error {
	class, err := c.decodeClass(d)
	if err != nil {
		return err
	}
	if err := c.convertImages(d, "spec", class, true); err != nil {
		return err
	}
	c.nodeRole(d, "spec", class)
	c.convertTags(d, "spec", class)
	c.objects = append(c.objects, Object{Class: class, from: d})
	return nil
}

func newClass(old metav1.ObjectMeta) *awsv1.EC2NodeClass {
	return &awsv1.EC2NodeClass{TypeMeta: metav1.TypeMeta{APIVersion: awsv1.Group + "/v1", Kind: classKind},
		ObjectMeta: keepMetadata(old)}
}

// makeClass makes a class of a template that stands at a field of the document.
func (c *converter) makeClass(d manifest.Document, at string, t nodeTemplate, m metav1.ObjectMeta) (*awsv1.EC2NodeClass,
	error) {
	if t.LaunchTemplateName != nil {
		return nil, d.Errorf(at+".launchTemplate",
			"launch templates of one's own have no equivalent; write what it says into the class (userData, blockDeviceMappings, metadataOptions and so on) and remove this")
	}
	class := newClass(m)
	class.Spec = awsv1.EC2NodeClassSpec{UserData: t.UserData, AMIFamily: t.AMIFamily, Tags: t.Tags, Context: t.Context,
		MetadataOptions:     t.MetadataOptions,
		BlockDeviceMappings: t.BlockDeviceMappings, DetailedMonitoring: t.DetailedMonitoring,
		InstanceProfile: t.InstanceProfile}
	if len(t.SubnetSelector) == 0 {
		return nil, d.Errorf(at+".subnetSelector", "it is missing; an EC2NodeClass needs its subnets")
	}
	if len(t.SecurityGroupSelector) == 0 {
		return nil, d.Errorf(at+".securityGroupSelector", "it is missing; an EC2NodeClass needs its security groups")
	}
	for _, s := range c.convertTerms(d, at+".subnetSelector", t.SubnetSelector) {
		class.Spec.SubnetSelectorTerms = append(class.Spec.SubnetSelectorTerms,
			awsv1.SubnetSelectorTerm{ID: s.id, Tags: s.tags})
	}
	for _, s := range c.convertTerms(d, at+".securityGroupSelector", t.SecurityGroupSelector) {
		class.Spec.SecurityGroupSelectorTerms = append(class.Spec.SecurityGroupSelectorTerms,
			awsv1.SecurityGroupSelectorTerm{ID: s.id, Tags: s.tags})
	}
	for _, s := range c.convertTerms(d, at+".amiSelector", t.AMISelector) {
		class.Spec.AMISelectorTerms = append(class.Spec.AMISelectorTerms,
			awsv1.AMISelectorTerm{ID: s.id, Name: s.name, Owner: s.owner, Tags: s.tags})
	}
	if err := c.convertImages(d, at, class, t.AMIFamily != nil); err != nil {
		return nil, err
	}
	c.nodeRole(d, at, class)
	c.convertTags(d, at, class)
	return class, nil
}

// convertImages says which images the class uses. Older versions took those of the family where nothing was selected,
// and AL2 where no family was given.
func (c *converter) convertImages(d manifest.Document, at string, class *awsv1.EC2NodeClass, said bool) error {
	s := &class.Spec
	family := awsv1.AMIFamilyAL2
	if s.AMIFamily != nil {
		family = *s.AMIFamily
	}
	at = at + ".amiFamily"
	if family == "Ubuntu" {
		if len(s.AMISelectorTerms) == 0 {
			return d.Errorf(at, "Ubuntu images are not found by themselves any more; select them by id, name or tags (amiSelectorTerms, amiSelector)")
		}
		family = awsv1.AMIFamilyAL2
		c.addWarning(d, at, "AL2 is written in place of Ubuntu: the family is gone, and its user data is that of AL2")
	}
	if len(s.AMISelectorTerms) > 0 {
		s.AMIFamily = &family
		return nil
	}
	alias := strings.ToLower(family) + "@" + awsv1.AliasVersionLatest
	if _, ok := awsv1.ParseAlias(alias); !ok {
		return d.Errorf(at, "%s has no images of its own; select them by id, name or tags (amiSelectorTerms, amiSelector)", family)
	}
	if family == awsv1.AMIFamilyAL2 && !c.options.KeepAL2 {
		alias = "al2023@" + awsv1.AliasVersionLatest
		why := ""
		if !said {
			why = " (which was the default)"
		}
		c.addWarning(d, at, "al2023@latest is written in place of AL2%s: there are no images of AL2 from Kubernetes 1.33 on; its nodes are replaced by drift, and scripts in userData meet another system. --keep-al2 leaves it", why)
	}
	s.AMIFamily, s.AMISelectorTerms = nil, []awsv1.AMISelectorTerm{{Alias: alias}}
	return nil
}

// nodeRole names the role where neither role nor instance profile is given, which was a global setting before.
func (c *converter) nodeRole(d manifest.Document, at string, class *awsv1.EC2NodeClass) {
	if class.Spec.Role != "" || class.Spec.InstanceProfile != nil {
		return
	}
	if c.options.Role == "" && c.profile != "" {
		class.Spec.InstanceProfile = &c.profile
		return
	}
	name := cmp.Or(c.options.Cluster, discoveryTag(class))
	class.Spec.Role = cmp.Or(c.options.Role, naming.Names{Cluster: cmp.Or(name, "CLUSTER")}.NodeRole())
	switch {
	case c.options.Role != "" || c.options.Cluster != "":
	case name != "":
		c.addWarning(d, at+".instanceProfile", "role %s is a guess: it was a global setting before; give --role or --cluster to be sure", class.Spec.Role)
	default:
		c.addWarning(d, at+".instanceProfile", "role %s must be replaced: it was a global setting before; give --role or --cluster", class.Spec.Role)
	}
}

// discoveryTag is the cluster's name as the usual tag of subnets has it.
func discoveryTag(class *awsv1.EC2NodeClass) string {
	for _, t := range class.Spec.SubnetSelectorTerms {
		if name := t.Tags["karpenter.sh/discovery"]; name != "" && name != "*" {
			return name
		}
		for k := range t.Tags { // at most one tag says it
			if name, ok := strings.CutPrefix(k, awsv1.TagClusterPrefix); ok && len(t.Tags) == 1 {
				return name
			}
		}
	}
	return ""
}

// convertTags takes care of tags that are ours now, and of a default that has changed.
func (c *converter) convertTags(d manifest.Document, at string, class *awsv1.EC2NodeClass) {
	class.Spec.Tags = maps.Clone(class.Spec.Tags)
	for {
		key, found := awsv1.RestrictedTag(class.Spec.Tags)
		if !found {
			break
		}
		delete(class.Spec.Tags, key)
		c.addWarning(d, at+".tags."+key, "left out: instances get this tag from the system")
	}
	yes, no, required, hops := "enabled", "disabled", "required", int64(2)
	before := awsv1.MetadataOptions{HTTPEndpoint: &yes, HTTPProtocolIPv6: &no, HTTPTokens: &required,
		HTTPPutResponseHopLimit: &hops}
	switch m := class.Spec.MetadataOptions; {
	case m == nil:
		class.Spec.MetadataOptions = &before
	case m.HTTPPutResponseHopLimit == nil:
		m.HTTPPutResponseHopLimit = before.HTTPPutResponseHopLimit
	default:
		return
	}
	c.addWarning(d, at+".metadataOptions", "httpPutResponseHopLimit 2 is written out, as it was; 1 is the default now, which keeps pods from the instance's role")
}

// selectorTerm is one way in which a selector of older versions finds something.
type selectorTerm struct {
	id, name, owner string
	tags            map[string]string
}

// convertTerms makes today's terms of a selector: ids and values with commas are alternatives, keys must all hold.
func (c *converter) convertTerms(d manifest.Document, at string, selector map[string]string) []selectorTerm {
	var ids, names, owners []string
	tagged := []selectorTerm{{}}
	tags := 0
	for _, k := range sortedKeys(selector) {
		values := splitValues(selector[k])
		switch k {
		case "aws-ids", "aws::ids":
			ids = values
			continue
		case "aws::name":
			names = values
			continue
		case "aws::owners":
			owners = values
			continue
		}
		tags++
		var next []selectorTerm
		for _, t := range tagged {
			for _, v := range values {
				with := maps.Clone(t.tags)
				if with == nil {
					with = map[string]string{}
				}
				with[k] = v
				next = append(next, selectorTerm{tags: with})
			}
		}
		tagged = next
	}
	if len(ids) > 0 {
		if tags+len(names)+len(owners) > 0 {
			c.addWarning(d, at, "only the ids are taken: a term has either an id or other conditions now")
		}
		return lists.Of(ids, func(id string) selectorTerm { return selectorTerm{id: id} })
	}
	if tags+len(names)+len(owners) == 0 {
		return nil
	}
	return crossProduct(crossProduct(tagged, names, func(t *selectorTerm, v string) { t.name = v }), owners,
		func(t *selectorTerm, v string) { t.owner = v })
}

// crossProduct gives each term each of the values; without values it stays.
func crossProduct(terms []selectorTerm, values []string, set func(*selectorTerm, string)) []selectorTerm {
	if len(values) == 0 {
		return terms
	}
	var out []selectorTerm
	for _, t := range terms {
		for _, v := range values {
			one := t
			set(&one, v)
			out = append(out, one)
		}
	}
	return out
}

func splitValues(list string) []string {
	var out []string
	for v := range strings.SplitSeq(list, ",") {
		if v = strings.TrimSpace(v); v != "" {
			out = append(out, v)
		}
	}
	return out
}
