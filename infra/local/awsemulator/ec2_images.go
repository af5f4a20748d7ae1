package awsemulator

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"

	"joiner.sh/infra/local/awsemulator/wire"
)

// amis are EC2's images.
type amis struct {
	*account
	images []image
}

// hash16 is 16 hexadecimal digits that depend on the text alone.
func hash16(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:8])
}

type image struct {
	ID, Name, Arch, Owner, About, Root string
	Created, Deprecated                time.Time
	State                              string // empty: available
	Tags                               map[string]string
}

// parameter is an SSM parameter of AWS' own.
type parameter struct {
	Value   string
	Changed time.Time
}

// eksOwner and bottlerocketOwner are the accounts that publish the images in us-west-2.
const (
	eksOwner          = "602401143452"
	bottlerocketOwner = "092701018921"
)

// publishedImages makes the EKS images of two releases and the parameters that name them.
func publishedImages(o Options) ([]image, map[string]parameter) {
	p := publisher{version: o.KubernetesVersion, params: map[string]parameter{}}
	older, newer := time.Date(2026, 10, 12, 9, 30, 0, 0, time.UTC), time.Date(2026, 11, 9, 9, 30, 0, 0, time.UTC)
	for _, at := range []time.Time{older, newer} {
		for _, v := range []string{"x86_64/standard", "x86_64/nvidia", "x86_64/neuron", "arm64/standard",
			"arm64/nvidia"} {
			arch, variant, _ := strings.Cut(v, "/")
			p.publishAL2023(arch, variant, at)
		}
	}
	for release, at := range map[string]time.Time{"1.45.0": older, "1.46.0": newer} {
		for _, arch := range []string{"x86_64", "arm64"} {
			for _, variant := range []string{"", "-nvidia"} {
				p.publishBottlerocket(arch, variant, release, at)
			}
		}
	}
	slices.SortFunc(p.images, func(a, b image) int { return strings.Compare(a.ID, b.ID) })
	return p.images, p.params
}

type publisher struct {
	version string
	images  []image
	params  map[string]parameter
}

func (p *publisher) addImage(i image, paths ...string) {
	i.ID = "ami-0" + hash16(i.Name)
	i.Deprecated = i.Created.AddDate(2, 0, 0)
	i.Tags = map[string]string{}
	p.images = append(p.images, i)
	for _, path := range paths {
		if i.Created.Before(p.params[path].Changed) {
			continue // the path of the newest keeps naming the newest
		}
		p.params[path] = parameter{Value: i.ID, Changed: i.Created}
	}
}

func (p *publisher) publishAL2023(arch, variant string, at time.Time) {
	name := fmt.Sprintf("amazon-eks-node-al2023-%s-%s-%s-v%s", arch, variant, p.version, at.Format("20060102"))
	base := fmt.Sprintf("/aws/service/eks/optimized-ami/%s/amazon-linux-2023/%s/%s/", p.version, arch, variant)
	p.addImage(image{
		Name: name, Arch: arch, Owner: eksOwner, Created: at, Root: "/dev/xvda",
		About: "EKS-optimized Kubernetes node based on Amazon Linux 2023, (k8s: " + p.version + ")",
	}, base+"recommended/image_id", base+name+"/image_id")
}

func (p *publisher) publishBottlerocket(arch, variant, release string, at time.Time) {
	flavour := "aws-k8s-" + p.version + variant
	base := fmt.Sprintf("/aws/service/bottlerocket/%s/%s/", flavour, arch)
	p.addImage(image{
		Name: fmt.Sprintf("bottlerocket-%s-%s-v%s-%s", flavour, arch, release, hash16(flavour + arch + release)[:8]),
		Arch: arch, Owner: bottlerocketOwner, Created: at, Root: "/dev/xvda", About: "Bottlerocket",
	}, base+"latest/image_id", base+release+"/image_id")
}

// PutImage adds an image of this account (or replaces the one of that name) and returns its id.
// The architecture is x86_64 or arm64.
func (c *amis) PutImage(name, arch string, tags map[string]string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	id := "ami-0" + hash16(name)
	c.images = slices.DeleteFunc(c.images, func(i image) bool { return i.ID == id })
	now := time.Now()
	c.images = append(c.images, image{
		ID: id, Name: name, Arch: arch, Owner: c.opt.Account, Root: "/dev/xvda",
		Created: now, Deprecated: now.AddDate(2, 0, 0), Tags: tags,
	})
	slices.SortFunc(c.images, func(a, b image) int { return strings.Compare(a.ID, b.ID) })
	return id
}

// AgeImage has an image of the account in a state such as pending, deprecated from a time on; false if there is none.
func (c *amis) AgeImage(id, state string, deprecated time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for n := range c.images {
		if i := &c.images[n]; i.ID == id {
			i.State, i.Deprecated = state, deprecated
			return true
		}
	}
	return false
}

// RemoveImage takes an image away, as when its owner deregisters it; false if there is none.
func (c *amis) RemoveImage(id string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	before := len(c.images)
	c.images = slices.DeleteFunc(c.images, func(i image) bool { return i.ID == id })
	return len(c.images) < before
}

// findImage finds an image. The account is locked.
func (c *amis) findImage(id string) (image, bool) {
	i := slices.IndexFunc(c.images, func(i image) bool { return i.ID == id })
	if i < 0 {
		return image{}, false
	}
	return c.images[i], true
}

type xmlImage struct {
	ID          string   `xml:"imageId"`
	Location    string   `xml:"imageLocation"`
	State       string   `xml:"imageState"`
	Owner       string   `xml:"imageOwnerId"`
	OwnerAlias  string   `xml:"imageOwnerAlias,omitempty"`
	Public      bool     `xml:"isPublic"`
	Arch        string   `xml:"architecture"`
	Type        string   `xml:"imageType"`
	Name        string   `xml:"name"`
	About       string   `xml:"description"`
	Root        string   `xml:"rootDeviceName"`
	RootType    string   `xml:"rootDeviceType"`
	Virtual     string   `xml:"virtualizationType"`
	Hypervisor  string   `xml:"hypervisor"`
	ENA         bool     `xml:"enaSupport"`
	Platform    string   `xml:"platformDetails"`
	Created     string   `xml:"creationDate"`
	Deprecation string   `xml:"deprecationTime"`
	Tags        []xmlTag `xml:"tagSet>item"`
}

type describeImagesInput struct {
	page
	Filter            []filter
	ImageID           []string `query:"ImageId"`
	Owner             []string
	IncludeDeprecated bool
	IncludeDisabled   bool
}

func (c *amis) describeImages(_ *call, in *describeImagesInput) (any, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, id := range in.ImageID {
		if _, ok := c.findImage(id); !ok {
			return nil, wire.Fail(400, "InvalidAMIID.NotFound", "The image id '[%s]' does not exist", id)
		}
	}
	var found []xmlImage
	for _, i := range c.images {
		ok, err := matchesFilters(in.Filter, i.filterAttribute)
		if err != nil {
			return nil, err
		}
		current := in.IncludeDeprecated || time.Now().Before(i.Deprecated)
		if ok && current && oneOf(in.ImageID, i.ID) && i.ownedBy(in.Owner, c.opt.Account) {
			found = append(found, i.toXML(c.opt.Account))
		}
	}
	var out struct {
		Images []xmlImage `xml:"imagesSet>item"`
		Next   string     `xml:"nextToken,omitempty"`
	}
	var err error
	out.Images, out.Next, err = cutPage(found, in.page, 1000, func(i xmlImage) string { return i.ID })
	return out, err
}

func (i image) ownerAlias(account string) string {
	if i.Owner == account {
		return ""
	}
	return "amazon"
}

// ownedBy says whether one of the wanted owners owns the image.
func (i image) ownedBy(wanted []string, account string) bool {
	return len(wanted) == 0 || slices.ContainsFunc(wanted, func(o string) bool {
		return o == i.Owner || o == "self" && i.Owner == account || o == i.ownerAlias(account)
	})
}

func (i image) filterAttribute(name string) ([]string, bool) {
	v, known := map[string]string{
		"image-id": i.ID, "name": i.Name, "architecture": i.Arch, "state": cmp.Or(i.State, "available"),
		"owner-id":   i.Owner,
		"image-type": "machine", "virtualization-type": "hvm", "root-device-type": "ebs",
	}[name]
	if known {
		return []string{v}, true
	}
	return tagAttribute(i.Tags, name)
}

func (i image) toXML(account string) xmlImage {
	const form = "2006-01-02T15:04:05.000Z"
	return xmlImage{
		ID: i.ID, Location: i.Owner + "/" + i.Name, State: cmp.Or(i.State, "available"), Owner: i.Owner,
		OwnerAlias: i.ownerAlias(account),
		Public:     i.Owner != account, Arch: i.Arch, Type: "machine", Name: i.Name, About: i.About, Root: i.Root,
		RootType: "ebs", Virtual: "hvm", Hypervisor: "xen", ENA: true, Platform: "Linux/UNIX",
		Created: i.Created.Format(form), Deprecation: i.Deprecated.Format(form), Tags: xmlTags(i.Tags),
	}
}
