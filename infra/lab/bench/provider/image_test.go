package provider

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
	ssmtypes "github.com/aws/aws-sdk-go-v2/service/ssm/types"
	peerv1 "github.com/aws/karpenter-provider-aws/pkg/apis/v1"
	"github.com/aws/karpenter-provider-aws/pkg/providers/amifamily"
	peerssm "github.com/aws/karpenter-provider-aws/pkg/providers/ssm"
	"github.com/aws/smithy-go/middleware"
	"github.com/patrickmn/go-cache"
	clock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/yaml"

	awsv1 "joiner.sh/pkg/api/aws/v1"
	"joiner.sh/pkg/nodeclass"
	"joiner.sh/pkg/providers/discovery"
)

const imageWorlds = 5_000

// imageWorld is a region with images and parameters, and a class that selects some of them.
type imageWorld struct {
	*rand.Rand
	images     []types.Image
	owners     map[string]string // by image
	parameters map[string]string // values by name; names of aliases that were not asked for yet are missing
	version    string            // of Kubernetes
	class      string
}

func imageNow() time.Time { return time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC) }

func newImageWorld(seed uint64) *imageWorld {
	w := &imageWorld{Rand: rand.New(rand.NewPCG(seed, 0)), owners: map[string]string{}, parameters: map[string]string{"/mine": "ami-0", "/odd": "none", "/gone": ""}, version: fmt.Sprintf("1.%d", 29+seed%8)}
	for i := range 1 + w.IntN(12) {
		w.addImage(fmt.Sprintf("ami-%d", i))
	}
	w.class = "metadata: {name: default}\nspec:\n  instanceProfile: p\n"
	if w.IntN(2) == 0 {
		w.class += fmt.Sprintf("  amiSelectorTerms: [{alias: %s}]\n", w.one("al2@latest", "al2@v20260101", "al2023@latest", "al2023@v20260101", "bottlerocket@latest", "bottlerocket@v1.40.0", "bottlerocket@1.40.0", "windows2019@latest", "windows2022@latest", "windows2025@latest"))
		return w
	}
	var terms []string
	for range 1 + w.IntN(3) {
		terms = append(terms, w.one("{id: ami-1}", "{id: ami-2}", "{id: ami-none}", "{name: n-1}", "{name: n-2, owner: self}", "{name: n-3, owner: '111122223333'}", "{tags: {team: a}}", "{tags: {team: '*'}}",
			"{tags: {team: b}, owner: '111122223333'}", "{tags: {team: a, cost: '7'}}", "{ssmParameter: /mine}", "{ssmParameter: /odd}", "{ssmParameter: /gone}"))
	}
	w.class += "  amiFamily: AL2023\n  amiSelectorTerms: [" + strings.Join(terms, ", ") + "]\n"
	return w
}

func (w *imageWorld) one(of ...string) string { return of[w.IntN(len(of))] }

// addImage gives every image another name, and some the same date.
func (w *imageWorld) addImage(id string) {
	when := func(days int) *string {
		return aws.String(imageNow().AddDate(0, 0, w.IntN(days)-days/2).Format(time.RFC3339))
	}
	i := types.Image{ImageId: &id, Name: aws.String("n-" + strings.TrimPrefix(id, "ami-")), Architecture: types.ArchitectureValues(w.one("x86_64", "x86_64", "arm64", "i386")), State: types.ImageStateAvailable}
	if w.IntN(10) > 0 {
		i.CreationDate = when(8)
	}
	if w.IntN(2) == 0 {
		i.DeprecationTime = when(8)
	}
	if w.IntN(2) == 0 {
		i.Tags = append(i.Tags, types.Tag{Key: aws.String("team"), Value: aws.String(w.one("a", "b"))})
	}
	if w.IntN(3) == 0 {
		i.Tags = append(i.Tags, types.Tag{Key: aws.String("cost"), Value: aws.String(w.one("7", "8"))})
	}
	if w.IntN(10) == 0 {
		i.State = types.ImageStateDeregistered
	}
	w.images, w.owners[id] = append(w.images, i), w.one("self", "amazon", "111122223333")
}

// answer is what AWS says to a call of either side.
func (w *imageWorld) answer(in any) (any, error) {
	switch in := in.(type) {
	case *ssm.GetParameterInput:
		return w.parameter(*in.Name)
	case *ec2.DescribeImagesInput:
		out := &ec2.DescribeImagesOutput{}
		for _, i := range w.images {
			if w.selects(in, i) {
				out.Images = append(out.Images, i)
			}
		}
		return out, nil
	}
	return nil, fmt.Errorf("no answer to %T", in)
}

// parameter makes an image of its own for every alias that is asked for, or none, depending on its name alone.
func (w *imageWorld) parameter(name string) (any, error) {
	value, known := w.parameters[name]
	if !known {
		sum := 0
		for _, b := range []byte(name + w.class) {
			sum = (sum*31 + int(b)) % 1_000_003
		}
		if sum%5 > 0 {
			value = fmt.Sprintf("ami-p%d", sum)
			rest := w.Rand
			w.Rand = rand.New(rand.NewPCG(uint64(sum), 1)) // whoever asks first
			w.addImage(value)
			w.images[len(w.images)-1].State = types.ImageStateAvailable
			w.Rand = rest
		}
		w.parameters[name] = value
	}
	if value == "" {
		return nil, &ssmtypes.ParameterNotFound{}
	}
	return &ssm.GetParameterOutput{Parameter: &ssmtypes.Parameter{Name: &name, Value: &value}}, nil
}

func (w *imageWorld) selects(in *ec2.DescribeImagesInput, i types.Image) bool {
	if len(in.Owners) > 0 && !slices.Contains(in.Owners, w.owners[*i.ImageId]) {
		return false
	}
	tag := func(key string) string {
		for _, t := range i.Tags {
			if *t.Key == key {
				return *t.Value
			}
		}
		return ""
	}
	for _, f := range in.Filters {
		key, isTag := strings.CutPrefix(*f.Name, "tag:")
		switch {
		case isTag && slices.Contains(f.Values, tag(key)):
		case *f.Name == "tag-key" && tag(f.Values[0]) != "":
		case *f.Name == "image-id" && slices.Contains(f.Values, *i.ImageId):
		case *f.Name == "name" && slices.Contains(f.Values, *i.Name):
		case *f.Name == "state" && slices.Contains(f.Values, string(i.State)):
		default:
			return false
		}
	}
	return true
}

// answered lets the world answer a client's calls instead of AWS.
func (w *imageWorld) answered(stack *middleware.Stack) error {
	return stack.Initialize.Add(middleware.InitializeMiddlewareFunc("answer", func(_ context.Context, in middleware.InitializeInput, _ middleware.InitializeHandler) (
		out middleware.InitializeOutput, m middleware.Metadata, err error) {
		out.Result, err = w.answer(in.Parameters)
		return out, m, err
	}), middleware.Before)
}

func (w *imageWorld) clients() (*ec2.Client, *ssm.Client) {
	options := []func(*middleware.Stack) error{w.answered}
	return ec2.New(ec2.Options{Region: "us-west-2", APIOptions: options}), ssm.New(ssm.Options{Region: "us-west-2", APIOptions: options})
}

// ours are the images that the class's status names, newest first, or why there are none.
func (w *imageWorld) ours(t *testing.T) []string {
	class := &awsv1.EC2NodeClass{}
	if err := yaml.UnmarshalStrict([]byte(w.class), class); err != nil {
		t.Fatal(err)
	}
	f := &discovery.ClassResolver{Region: "us-west-2", Cluster: "demo", Version: w.version, Now: imageNow}
	f.EC2, f.SSM = w.clients()
	nodeclass.UpdateStatus(class, f.FindAll(context.Background(), class), imageNow())
	if c, _ := class.StatusConditions().Get(awsv1.ConditionAMIsReady); c.Reason == awsv1.ReasonUnsupportedAlias {
		return []string{c.Reason}
	}
	var out []string
	for _, i := range class.Status.AMIs {
		out = append(out, describeImage(i.ID, i.Name, i.Deprecated, i.Requirements))
	}
	return sortedRuns(out)
}

func (w *imageWorld) theirs(t *testing.T) []string {
	class := &peerv1.EC2NodeClass{}
	if err := yaml.UnmarshalStrict([]byte(w.class), class); err != nil {
		t.Fatal(err)
	}
	calls, parameters := w.clients()
	p := amifamily.NewDefaultProvider(clock.NewFakeClock(imageNow()), kubernetes(w.version), peerssm.NewDefaultProvider(parameters, cache.New(time.Hour, 0)), calls, cache.New(time.Hour, 0))
	all, err := p.List(context.Background(), class)
	if amifamily.IsAl2DeprecationError(err) || amifamily.IsWS2025UnsupportedVersionError(err) {
		return []string{awsv1.ReasonUnsupportedAlias}
	}
	if err != nil && !strings.Contains(err.Error(), "failed to discover any AMIs for alias") && !strings.Contains(err.Error(), "ParameterNotFound") {
		t.Fatal(err)
	}
	var out []string
	for _, i := range all {
		out = append(out, describeImage(i.AmiID, i.Name, i.Deprecated, i.Requirements.NodeSelectorRequirements()))
	}
	return sortedRuns(out)
}

// kubernetes is a cluster's version.
type kubernetes string

func (k kubernetes) Get(context.Context) string { return string(k) }

// describeImage prints an image with its requirements, whose order means nothing.
func describeImage[R any](id, name string, deprecated bool, requirements []R) string {
	var needs []string
	for _, r := range requirements {
		text, err := json.Marshal(r)
		if err != nil {
			text = []byte(err.Error())
		}
		needs = append(needs, string(text))
	}
	slices.Sort(needs)
	return fmt.Sprintf("%s %s, deprecated %t: %s", id, name, deprecated, strings.Join(needs, " "))
}

// sortedRuns sorts what stands there of one image for several kinds of types, whose order means nothing.
func sortedRuns(images []string) []string {
	id := func(i int) string { return strings.Fields(images[i])[0] }
	for from, to := 0, 0; from < len(images); from = to {
		for to = from; to < len(images) && id(to) == id(from); to++ {
		}
		slices.Sort(images[from:to])
	}
	return images
}

// A class has the images that Karpenter finds for it, in that order: of every alias and version, of every selector,
// where images are deprecated, of another owner or gone, and where parameters are missing.
func TestClassesHaveTheImagesThatKarpentersHave(t *testing.T) {
	found, several, refused := 0, 0, 0
	for seed := range uint64(imageWorlds) {
		w := newImageWorld(seed)
		want := w.theirs(t)
		got := w.ours(t)
		if !slices.Equal(want, got) {
			t.Fatalf("seed %d, Kubernetes %s:\n%s\nKarpenter finds\n%s\nfor\n%s", seed, w.version, strings.Join(got, "\n"), strings.Join(want, "\n"), w.class)
		}
		switch {
		case slices.Equal(got, []string{awsv1.ReasonUnsupportedAlias}):
			refused++
		case len(got) > 1:
			several++
			found++
		case len(got) > 0:
			found++
		}
	}
	t.Logf("of %d classes %d find images, %d of them several, and %d have an alias that does not go with the version", imageWorlds, found, several, refused)
	if found < imageWorlds/2 || several < imageWorlds/4 || refused < imageWorlds/50 {
		t.Errorf("too little is compared: %d, %d, %d of %d", found, several, refused, imageWorlds)
	}
}
