package discovery

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/pricing"
	"github.com/google/go-cmp/cmp"

	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/nodeclass"
)

// answers gives every call the same body, and keeps what was asked last.
type answers struct{ body, asked string }

func (a *answers) Do(r *http.Request) (*http.Response, error) {
	if r.Body != nil {
		b, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		a.asked = string(b)
	}
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(a.body)), Request: r}, nil
}

// The CIDR of IPv4 goes before that of IPv6, which clusters of IPv6 have alone. A cluster without an endpoint is none
// yet.
func TestTheServiceCIDROfACluster(t *testing.T) {
	const ready = `{"cluster":{"name":"demo","endpoint":"https://api","certificateAuthority":{"data":"Q0E="},"version":"1.36","kubernetesNetworkConfig":`
	for body, want := range map[string]string{
		ready + `{"serviceIpv4Cidr":"172.20.0.0/16","serviceIpv6Cidr":"fd00::/108"}}}`: "172.20.0.0/16",
		ready + `{"serviceIpv6Cidr":"fd00::/108","ipFamily":"ipv6"}}}`:                 "fd00::/108",
		ready + `{}}}`: "",
		`{"cluster":{"name":"demo","status":"CREATING"}}`: "none",
	} {
		client := eks.New(eks.Options{Region: "us-west-2", HTTPClient: &answers{body: body}, Credentials: aws.AnonymousCredentials{}})
		got, err := DescribeCluster(t.Context(), client, "demo")
		if err != nil {
			got.ServiceCIDR = "none"
		}
		if got.ServiceCIDR != want {
			t.Errorf("%s: %s, want %s; error %v", body, got.ServiceCIDR, want, err)
		}
	}
}

// A cluster that EKS does not tell about is an error, not one without an address.
func TestAClusterThatEKSDoesNotTellAbout(t *testing.T) {
	refuses := eks.New(eks.Options{Region: "us-west-2", HTTPClient: refusal{}, Credentials: aws.AnonymousCredentials{},
		Retryer: aws.NopRetryer{}})
	silent := eks.New(eks.Options{Region: "us-west-2", HTTPClient: &answers{body: `{}`}, Credentials: aws.AnonymousCredentials{}})
	for want, c := range map[string]*eks.Client{"AccessDeniedException": refuses, "the answer is empty": silent} {
		got, err := DescribeCluster(t.Context(), c, "demo")
		if err == nil || !strings.Contains(err.Error(), want) || got != (Cluster{}) {
			t.Errorf("%+v, error %v, want %s", got, err, want)
		}
	}
}

// refusal is EKS that denies every request.
type refusal struct{}

func (refusal) Do(r *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusForbidden, Header: http.Header{"X-Amzn-Errortype": {"AccessDeniedException"}},
		Body: io.NopCloser(strings.NewReader(`{"message": "no"}`)), Request: r}, nil
}

// In China prices are in yuan.
func TestCurrencyOfARegion(t *testing.T) {
	for region, want := range map[string]float64{"us-west-2": 0.096, "cn-north-1": 0.7} {
		http := &answers{body: `{"PriceList":["{\"product\":{\"attributes\":{\"instanceType\":\"m5.large\"}},\"terms\":{\"OnDemand\":{\"b\":{\"priceDimensions\":{\"1\":{\"pricePerUnit\":{\"USD\":\"0.096\",\"CNY\":\"0.7\"}}}}}}}"]}`}
		r := &CatalogRefresher{region: region, pricing: pricing.New(pricing.Options{Region: "us-east-1", HTTPClient: http, Credentials: aws.AnonymousCredentials{}})}
		out := map[string]float64{}
		if n, err := r.readPriceList(t.Context(), "Shared", "Compute Instance", out); n != 1 || err != nil || out["m5.large"] != want || !strings.Contains(http.asked, region) {
			t.Errorf("%s: %d products, error %v, prices %v, asked for %s", region, n, err, out, http.asked)
		}
	}
}

// What an image of EC2 is to us; one is deprecated from its date on, and an architecture without nodes is none.
func TestAnImageOfEC2(t *testing.T) {
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	r := &ClassResolver{Now: func() time.Time { return now }}
	for _, test := range []struct {
		arch             types.ArchitectureValues
		made, deprecated string
		want             nodeclass.Image
		none             bool
	}{
		{"x86_64", "2026-10-01T01:02:03.000Z", "2026-11-20T12:00:00.000Z", nodeclass.Image{ID: "ami-1", Name: "n", Arch: "amd64", Created: time.Date(2026, 10, 1, 1, 2, 3, 0, time.UTC), Deprecated: true}, false},
		{"arm64", "2026-10-01T01:02:03.000Z", "2026-11-20T12:00:00.001Z", nodeclass.Image{ID: "ami-1", Name: "n", Arch: "arm64", Created: time.Date(2026, 10, 1, 1, 2, 3, 0, time.UTC)}, false},
		{"arm64", "", "", nodeclass.Image{ID: "ami-1", Name: "n", Arch: "arm64"}, false},
		{"i386", "2026-10-01T01:02:03.000Z", "", nodeclass.Image{}, true},
	} {
		in := types.Image{ImageId: aws.String("ami-1"), Name: aws.String("n"), Architecture: test.arch, CreationDate: aws.String(test.made)}
		if test.deprecated != "" {
			in.DeprecationTime = aws.String(test.deprecated)
		}
		got, ok := r.nodeImages(in)
		if d := cmp.Diff(test.want, got); d != "" || ok == test.none {
			t.Errorf("%s of %s: found %t (-want +got):\n%s", test.arch, test.made, ok, d)
		}
	}
}

// Of several prices of one type in one zone the newest holds, in whatever order they come. One that cannot be read is
// left out.
func TestTheNewestSpotPriceHolds(t *testing.T) {
	item := func(price, at string) string {
		return `<item><instanceType>m5.large</instanceType><availabilityZone>us-west-2a</availabilityZone><availabilityZoneId>usw2-az2</availabilityZoneId><spotPrice>` +
			price + `</spotPrice><timestamp>` + at + `</timestamp></item>`
	}
	older, newer := item("0.05", "2026-11-20T10:00:00.000Z"), item("0.04", "2026-11-20T11:00:00.000Z")
	unread := strings.ReplaceAll(item("n/a", "2026-11-20T11:30:00.000Z"), "us-west-2a", "us-west-2b")
	for _, items := range []string{older + newer, newer + older, unread + older + newer, newer + unread + older} {
		body := `<DescribeSpotPriceHistoryResponse xmlns="http://ec2.amazonaws.com/doc/2016-11-15/"><spotPriceHistorySet>` + items + `</spotPriceHistorySet></DescribeSpotPriceHistoryResponse>`
		r := &CatalogRefresher{ec2: ec2.New(ec2.Options{Region: "us-west-2", HTTPClient: &answers{body: body}, Credentials: aws.AnonymousCredentials{}})}
		got, err := r.readSpotPrices(t.Context(), time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC))
		if price := got.prices[spotPlace{"m5.large", "us-west-2a"}]; err != nil || price != 0.04 || got.zoneIDs["us-west-2a"] != "usw2-az2" {
			t.Errorf("price %g, zones %v, error %v", price, got.zoneIDs, err)
		}
	}
}

// What was read before stays as it was for those who still hold it.
func TestNewPricesLeaveTheOldCatalogAlone(t *testing.T) {
	old := instancetypes.Catalog{Types: []instancetypes.Facts{{Name: "m5.large", OnDemandUSD: 1}}}
	if next := withOnDemand(old, map[string]float64{"m5.large": 2}); next.Types[0].OnDemandUSD != 2 || old.Types[0].OnDemandUSD != 1 {
		t.Errorf("%g after %g", next.Types[0].OnDemandUSD, old.Types[0].OnDemandUSD)
	}
}
