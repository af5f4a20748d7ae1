package awsemulator

import (
	"maps"
	"slices"
	"strings"
)

// taggedThing is something of EC2 of which the account knows nothing but its tags.
type taggedThing struct {
	kind, id string
	tags     map[string]string
}

// PutTagged lets something with tags exist, such as a volume that was left behind.
func (c *instances) PutTagged(kind, id string, tags map[string]string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tagged = append(c.tagged, taggedThing{kind, id, maps.Clone(tags)})
}

type describeTagsInput struct {
	page
	Filter []filter
}

type xmlTagDescription struct {
	ID    string `xml:"resourceId"`
	Kind  string `xml:"resourceType"`
	Key   string `xml:"key"`
	Value string `xml:"value"`
}

// describeTags lists the tags of launch templates and of instances, with those of a volume and of a network interface
// for each that has not ended: Joiner gives all three the same.
func (c *instances) describeTags(_ *call, in *describeTagsInput) (any, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := slices.Clone(c.tagged)
	for _, m := range c.machines {
		all = append(all, taggedThing{"instance", m.ID, m.Tags})
		if m.State != "terminated" {
			all = append(all, taggedThing{"volume", "vol-0" + hash16(m.ID), m.Tags},
				taggedThing{"network-interface", "eni-0" + hash16(m.ID), m.Tags})
		}
	}
	for _, t := range c.templates.lts {
		all = append(all, taggedThing{"launch-template", t.id, t.tags})
	}
	var found []xmlTagDescription
	for _, thing := range all {
		for key, value := range thing.tags {
			ok, err := matchesFilters(in.Filter, func(name string) ([]string, bool) {
				v, known := map[string]string{"key": key, "value": value, "resource-id": thing.id, "resource-type": thing.kind}[name]
				return []string{v}, known
			})
			if err != nil {
				return nil, err
			}
			if ok {
				found = append(found, xmlTagDescription{thing.id, thing.kind, key, value})
			}
		}
	}
	name := func(t xmlTagDescription) string { return t.Kind + " " + t.ID + " " + t.Key }
	slices.SortFunc(found, func(a, b xmlTagDescription) int { return strings.Compare(name(a), name(b)) })
	var out struct {
		Tags []xmlTagDescription `xml:"tagSet>item"`
		Next string              `xml:"nextToken,omitempty"`
	}
	var err error
	out.Tags, out.Next, err = cutPage(found, in.page, 1000, name)
	return out, err
}
