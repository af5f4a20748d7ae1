package awsemulator

import (
	"maps"
	"slices"
	"strings"
	"time"

	"joiner.sh/infra/local/awsemulator/wire"
)

// iam is IAM: roles and instance profiles.
type iam struct {
	*account
	roles    map[string]*role
	profiles map[string]*profile
}

func (c *account) iamOperations() map[string]operation {
	return map[string]operation{
		"GetInstanceProfile":            op(c.iam.getInstanceProfile),
		"ListInstanceProfiles":          op(c.iam.listInstanceProfiles),
		"CreateInstanceProfile":         op(c.iam.createInstanceProfile),
		"DeleteInstanceProfile":         op(c.iam.deleteInstanceProfile),
		"AddRoleToInstanceProfile":      op(c.iam.addRoleToInstanceProfile),
		"RemoveRoleFromInstanceProfile": op(c.iam.removeRoleFromInstanceProfile),
		"TagInstanceProfile":            op(c.iam.tagInstanceProfile),
		"GetRole":                       op(c.iam.getRole),
		"CreateServiceLinkedRole":       op(c.iam.createServiceLinkedRole),
	}
}

type iamTag struct{ Key, Value string }

type role struct {
	ARN, ID, Name, Path string
	Made                time.Time
}

type profile struct {
	ARN, ID, Name, Path string
	Made                time.Time
	Role                string // name; empty: none
	Tags                map[string]string
}

// PutRole makes a role exist, by name or path and name, and returns its ARN.
func (c *iam) PutRole(pathAndName string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.putRole(pathAndName).ARN
}

func (c *iam) putRole(pathAndName string) *role {
	name := roleName(pathAndName)
	r := &role{
		ARN: "arn:aws:iam::" + c.opt.Account + ":role/" + pathAndName, ID: "AROA" + strings.ToUpper(hash16(name)),
		Name: name, Path: "/" + strings.TrimSuffix(pathAndName, name), Made: time.Now(),
	}
	c.roles[name] = r
	return r
}

// RemoveRole takes a role away.
func (c *iam) RemoveRole(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.roles, name)
}

type xmlRole struct {
	Path     string
	RoleName string
	RoleID   string `xml:"RoleId"`
	Arn      string
	Made     wire.Time `xml:"CreateDate"`
	Trust    string    `xml:"AssumeRolePolicyDocument"`
}

func (r *role) toXML() xmlRole {
	const trust = "%7B%22Version%22%3A%222012-10-17%22%2C%22Statement%22%3A%5B%5D%7D"
	return xmlRole{r.Path, r.Name, r.ID, r.ARN, wire.Time{Time: r.Made}, trust}
}

type xmlInstanceProfile struct {
	Path                string
	InstanceProfileName string
	InstanceProfileID   string `xml:"InstanceProfileId"`
	Arn                 string
	Made                wire.Time `xml:"CreateDate"`
	Roles               []xmlRole `xml:"Roles>member"`
	Tags                []iamTag  `xml:"Tags>member"`
}

func (c *iam) xmlProfile(p *profile) xmlInstanceProfile {
	out := xmlInstanceProfile{p.Path, p.Name, p.ID, p.ARN, wire.Time{Time: p.Made}, nil, nil}
	if r := c.roles[p.Role]; r != nil {
		out.Roles = []xmlRole{r.toXML()}
	}
	for _, k := range slices.Sorted(maps.Keys(p.Tags)) {
		out.Tags = append(out.Tags, iamTag{k, p.Tags[k]})
	}
	return out
}

type oneProfile struct {
	Profile xmlInstanceProfile `xml:"InstanceProfile"`
}

// findProfile finds an instance profile. The account is locked.
func (c *iam) findProfile(name string) (*profile, error) {
	if p := c.profiles[name]; p != nil {
		return p, nil
	}
	return nil, wire.Fail(404, "NoSuchEntity", "Instance Profile %s cannot be found.", name)
}

func (c *iam) findRole(name string) (*role, error) {
	if r := c.roles[name]; r != nil {
		return r, nil
	}
	return nil, wire.Fail(404, "NoSuchEntity", "The role with name %s cannot be found.", name)
}

type profileInput struct {
	InstanceProfileName, RoleName, Path string
	Tags                                []iamTag `query:"Tags,member"`
}

func (c *iam) getInstanceProfile(_ *call, in *profileInput) (any, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	p, err := c.findProfile(in.InstanceProfileName)
	if err != nil {
		return nil, err
	}
	return oneProfile{c.xmlProfile(p)}, nil
}

// PutInstanceProfile makes a profile that holds a role, as a stack would; both come to exist. It returns the ARN.
func (c *iam) PutInstanceProfile(name, roleName string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.roles[roleName] == nil {
		c.putRole(roleName)
	}
	p := c.newProfile(name, "/", nil)
	p.Role = roleName
	return p.ARN
}

// InstanceProfiles are the names of all instance profiles, sorted.
func (c *iam) InstanceProfiles() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Sorted(maps.Keys(c.profiles))
}

func (c *iam) newProfile(name, path string, tags []iamTag) *profile {
	p := &profile{
		ARN: "arn:aws:iam::" + c.opt.Account + ":instance-profile" + path + name,
		ID:  "AIPA" + strings.ToUpper(hash16(name)), Name: name, Path: path, Made: time.Now(),
		Tags: map[string]string{},
	}
	for _, t := range tags {
		p.Tags[t.Key] = t.Value
	}
	c.profiles[name] = p
	return p
}

func (c *iam) createInstanceProfile(_ *call, in *profileInput) (any, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.profiles[in.InstanceProfileName] != nil {
		return nil, wire.Fail(409, "EntityAlreadyExists", "Instance Profile %s already exists.", in.InstanceProfileName)
	}
	if len(in.InstanceProfileName) < 1 || len(in.InstanceProfileName) > 128 {
		return nil, wire.Fail(400, "ValidationError", "instanceProfileName must have length between 1 and 128")
	}
	path := in.Path
	if path == "" {
		path = "/"
	}
	return oneProfile{c.xmlProfile(c.newProfile(in.InstanceProfileName, path, in.Tags))}, nil
}

func (c *iam) deleteInstanceProfile(_ *call, in *profileInput) (any, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	p, err := c.findProfile(in.InstanceProfileName)
	if err != nil {
		return nil, err
	}
	if p.Role != "" {
		return nil, wire.Fail(409, "DeleteConflict",
			"Cannot delete entity, must remove roles from instance profile first.")
	}
	delete(c.profiles, p.Name)
	return nil, nil
}

func (c *iam) addRoleToInstanceProfile(_ *call, in *profileInput) (any, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	p, err := c.findProfile(in.InstanceProfileName)
	if err != nil {
		return nil, err
	}
	if _, err := c.findRole(in.RoleName); err != nil {
		return nil, err
	}
	if p.Role != "" {
		return nil, wire.Fail(409, "LimitExceeded", "Cannot exceed quota for InstanceSessionsPerInstanceProfile: 1")
	}
	p.Role = in.RoleName
	return nil, nil
}

func (c *iam) removeRoleFromInstanceProfile(_ *call, in *profileInput) (any, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	p, err := c.findProfile(in.InstanceProfileName)
	if err != nil {
		return nil, err
	}
	if p.Role == "" || p.Role != in.RoleName {
		return nil, wire.Fail(404, "NoSuchEntity", "Role %s in instance profile %s cannot be found.", in.RoleName,
			p.Name)
	}
	p.Role = ""
	return nil, nil
}

func (c *iam) tagInstanceProfile(_ *call, in *profileInput) (any, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	p, err := c.findProfile(in.InstanceProfileName)
	if err != nil {
		return nil, err
	}
	for _, t := range in.Tags {
		p.Tags[t.Key] = t.Value
	}
	return nil, nil
}

type listProfilesInput struct {
	PathPrefix, Marker string
	MaxItems           int
}

func (c *iam) listInstanceProfiles(_ *call, in *listProfilesInput) (any, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var names []string
	for _, name := range slices.Sorted(maps.Keys(c.profiles)) {
		if strings.HasPrefix(c.profiles[name].Path, in.PathPrefix) {
			names = append(names, name)
		}
	}
	if in.MaxItems == 0 {
		in.MaxItems = 100
	}
	names, next, err := cutPage(names, page{in.MaxItems, in.Marker}, 1000, func(s string) string { return s })
	if err != nil {
		return nil, wire.Fail(400, "ValidationError", "Invalid marker or maxItems")
	}
	out := struct {
		Profiles  []xmlInstanceProfile `xml:"InstanceProfiles>member"`
		Truncated bool                 `xml:"IsTruncated"`
		Marker    string               `xml:"Marker,omitempty"`
	}{Truncated: next != "", Marker: next}
	for _, name := range names {
		out.Profiles = append(out.Profiles, c.xmlProfile(c.profiles[name]))
	}
	return out, nil
}

type roleInput struct {
	RoleName, AWSServiceName, Description, CustomSuffix string
}

type oneRole struct{ Role xmlRole }

func (c *iam) getRole(_ *call, in *roleInput) (any, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	r, err := c.findRole(in.RoleName)
	if err != nil {
		return nil, err
	}
	return oneRole{r.toXML()}, nil
}

func (c *iam) createServiceLinkedRole(_ *call, in *roleInput) (any, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	name, known := map[string]string{"spot.amazonaws.com": "AWSServiceRoleForEC2Spot"}[in.AWSServiceName]
	if !known {
		return nil, wire.Fail(400, "InvalidInput", "The emulator knows no service-linked role of %s", in.AWSServiceName)
	}
	if c.roles[name] != nil {
		return nil, wire.Fail(400, "InvalidInput",
			"Service role name %s has been taken in this account, please try a different suffix.", name)
	}
	return oneRole{c.putRole("aws-service-role/" + in.AWSServiceName + "/" + name).toXML()}, nil
}
