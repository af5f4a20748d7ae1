package conformance

import (
	"bytes"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	ekstypes "github.com/aws/aws-sdk-go-v2/service/eks/types"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	iamtypes "github.com/aws/aws-sdk-go-v2/service/iam/types"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/pricing"
	pricingtypes "github.com/aws/aws-sdk-go-v2/service/pricing/types"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	s3types "github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
	"github.com/aws/aws-sdk-go-v2/service/sts"
)

func bucketIn(region string) *s3types.CreateBucketConfiguration {
	return &s3types.CreateBucketConfiguration{LocationConstraint: s3types.BucketLocationConstraint(region)}
}

func vpcConfig() *ekstypes.VpcConfigRequest { return &ekstypes.VpcConfigRequest{} }

// question is one call, or a few that belong together, with the answer as text. Questions are put in their order.
type question struct {
	name string
	ask  func(a *account) string
}

func iamQuestions() []question {
	name := aws.String("demo_1")
	get := func(a *account) (any, error) {
		out, err := a.iam.GetInstanceProfile(a.t.Context(), &iam.GetInstanceProfileInput{InstanceProfileName: name})
		if err != nil {
			return nil, err
		}
		p := out.InstanceProfile
		tags := sorted(p.Tags, func(t iamtypes.Tag) string { return *t.Key + "=" + *t.Value })
		return []any{*p.InstanceProfileName, *p.Path, sorted(p.Roles, func(r iamtypes.Role) string { return *r.RoleName }), tags, p.CreateDate != nil}, nil
	}
	create := func(a *account) string {
		out, err := a.iam.CreateInstanceProfile(a.t.Context(), &iam.CreateInstanceProfileInput{InstanceProfileName: name, Path: aws.String("/karpenter/us-west-2/demo/uid/"),
			Tags: []iamtypes.Tag{{Key: aws.String("eks:eks-cluster-name"), Value: aws.String("demo")}}})
		if err != nil {
			return a.say(nil, err)
		}
		return a.say(*out.InstanceProfile.InstanceProfileName, nil)
	}
	add := func(role string) func(a *account) string {
		return func(a *account) string {
			_, err := a.iam.AddRoleToInstanceProfile(a.t.Context(), &iam.AddRoleToInstanceProfileInput{InstanceProfileName: name, RoleName: &role})
			return a.say("done", err)
		}
	}
	remove := func(a *account) string {
		_, err := a.iam.RemoveRoleFromInstanceProfile(a.t.Context(), &iam.RemoveRoleFromInstanceProfileInput{InstanceProfileName: name, RoleName: aws.String(role)})
		return a.say("done", err)
	}
	drop := func(a *account) string {
		_, err := a.iam.DeleteInstanceProfile(a.t.Context(), &iam.DeleteInstanceProfileInput{InstanceProfileName: name})
		return a.say("done", err)
	}
	list := func(prefix string) func(a *account) string {
		return func(a *account) string {
			out, err := a.iam.ListInstanceProfiles(a.t.Context(), &iam.ListInstanceProfilesInput{PathPrefix: &prefix})
			if err != nil {
				return a.say(nil, err)
			}
			return a.say(sorted(out.InstanceProfiles, func(p iamtypes.InstanceProfile) string { return *p.InstanceProfileName }), nil)
		}
	}
	read := func(a *account) string { return a.say(get(a)) }
	return []question{
		{"iam GetInstanceProfile: unknown", read},
		{"iam CreateInstanceProfile", create},
		{"iam CreateInstanceProfile: again", create},
		{"iam AddRoleToInstanceProfile: unknown role", add("nobody")},
		{"iam AddRoleToInstanceProfile", add(role)},
		{"iam AddRoleToInstanceProfile: again", add(role)},
		{"iam GetInstanceProfile", read},
		{"iam ListInstanceProfiles: by path", list("/karpenter/us-west-2/demo/")},
		{"iam ListInstanceProfiles: by another path", list("/karpenter/eu-west-1/")},
		{"iam DeleteInstanceProfile: with a role", drop},
		{"iam RemoveRoleFromInstanceProfile", remove},
		{"iam RemoveRoleFromInstanceProfile: again", remove},
		{"iam DeleteInstanceProfile", drop},
		{"iam DeleteInstanceProfile: again", drop},
		{"iam AddRoleToInstanceProfile: unknown profile", add(role)},
	}
}

func otherQuestions() []question {
	return slices.Concat(bucketQuestions(), entryQuestions(), commitmentQuestions(), []question{
		{"ssm GetParameter: unknown", func(a *account) string {
			_, err := a.ssm.GetParameter(a.t.Context(), &ssm.GetParameterInput{Name: aws.String("/none")})
			return a.say("done", err)
		}},
		{"ssm GetParameter: the recommended EKS image", func(a *account) string {
			out, err := a.ssm.GetParameter(a.t.Context(), &ssm.GetParameterInput{Name: aws.String("/aws/service/eks/optimized-ami/1.36/amazon-linux-2023/x86_64/standard/recommended/image_id")})
			if err != nil {
				return a.say(nil, err)
			}
			return a.say(strings.HasPrefix(aws.ToString(out.Parameter.Value), "ami-"), nil)
		}},
		{"eks DescribeCluster: unknown", func(a *account) string {
			_, err := a.eks.DescribeCluster(a.t.Context(), &eks.DescribeClusterInput{Name: aws.String("none")})
			return a.say("done", err)
		}},
		{"eks DescribeCluster: what is known", func(a *account) string {
			out, err := a.eks.DescribeCluster(a.t.Context(), &eks.DescribeClusterInput{Name: aws.String("demo")})
			if err != nil {
				return a.say(nil, err)
			}
			k := out.Cluster
			return a.say(map[string]bool{"active": k.Status == "ACTIVE", "endpoint": strings.HasPrefix(aws.ToString(k.Endpoint), "http"),
				"certificate": k.CertificateAuthority != nil && aws.ToString(k.CertificateAuthority.Data) != "", "version": aws.ToString(k.Version) == "1.36",
				"service CIDR": k.KubernetesNetworkConfig != nil && aws.ToString(k.KubernetesNetworkConfig.ServiceIpv4Cidr) != ""}, nil)
		}},
		{"pricing GetProducts: m5.large", products},
		{"lambda Invoke: unknown function", func(a *account) string {
			_, err := a.lambda.Invoke(a.t.Context(), &lambda.InvokeInput{FunctionName: aws.String("joiner-none"), InvocationType: "Event"})
			return a.say("done", err)
		}},
		{"sts GetCallerIdentity", func(a *account) string {
			out, err := a.sts.GetCallerIdentity(a.t.Context(), &sts.GetCallerIdentityInput{})
			if err != nil {
				return a.say(nil, err)
			}
			return a.say([]bool{len(aws.ToString(out.Account)) == 12, strings.HasPrefix(aws.ToString(out.Arn), "arn:aws:")}, nil)
		}},
	})
}

func products(a *account) string {
	match := func(field, value string) pricingtypes.Filter {
		return pricingtypes.Filter{Type: pricingtypes.FilterTypeTermMatch, Field: aws.String(field), Value: aws.String(value)}
	}
	out, err := a.pricing.GetProducts(a.t.Context(), &pricing.GetProductsInput{ServiceCode: aws.String("AmazonEC2"), Filters: []pricingtypes.Filter{
		match("regionCode", region), match("instanceType", "m5.large"), match("operatingSystem", "Linux"), match("preInstalledSw", "NA"),
		match("capacitystatus", "Used"), match("marketoption", "OnDemand"), match("tenancy", "Shared")}})
	if err != nil {
		return a.say(nil, err)
	}
	return a.say(sorted(out.PriceList, func(s string) string {
		var p struct {
			Product struct{ Attributes map[string]string }
			Terms   map[string]any
		}
		a.must(json.Unmarshal([]byte(s), &p))
		return p.Product.Attributes["instanceType"] + " " + strings.Join(slices.Sorted(maps.Keys(p.Terms)), ",")
	}), nil)
}

func bucketQuestions() []question {
	key := aws.String("catalog.json.gz")
	get := func(match *string) func(a *account) (string, error) {
		return func(a *account) (string, error) {
			out, err := a.s3.GetObject(a.t.Context(), &s3.GetObjectInput{Bucket: aws.String(bucket), Key: key, IfNoneMatch: match})
			if err != nil {
				return "", err
			}
			b, err := io.ReadAll(out.Body)
			a.must(err)
			return string(b) + " " + aws.ToString(out.ContentType), nil
		}
	}
	return []question{
		{"s3 GetObject: unknown key", func(a *account) string { return a.say(get(nil)(a)) }},
		{"s3 PutObject", func(a *account) string {
			_, err := a.s3.PutObject(a.t.Context(), &s3.PutObjectInput{Bucket: aws.String(bucket), Key: key, Body: bytes.NewReader([]byte("hello")), ContentType: aws.String("application/gzip")})
			return a.say("done", err)
		}},
		{"s3 GetObject", func(a *account) string { return a.say(get(nil)(a)) }},
		{"s3 GetObject: unchanged", func(a *account) string {
			have, err := a.s3.GetObject(a.t.Context(), &s3.GetObjectInput{Bucket: aws.String(bucket), Key: key})
			a.must(err)
			_, err = get(have.ETag)(a)
			return a.say(statusOf(err) == http.StatusNotModified, nil)
		}},
		{"s3 GetObject: unknown bucket", func(a *account) string {
			_, err := a.s3.GetObject(a.t.Context(), &s3.GetObjectInput{Bucket: aws.String("nobodys-bucket"), Key: key})
			return a.say("done", err)
		}},
	}
}
