package discover

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/pricing"
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

// The CIDR of IPv4 goes before that of IPv6, which clusters of IPv6 have alone (spec aws.md §1.7). A cluster without an endpoint is none yet.
func TestTheServiceCIDROfACluster(t *testing.T) {
	const ready = `{"cluster":{"name":"demo","endpoint":"https://api","certificateAuthority":{"data":"Q0E="},"version":"1.36","kubernetesNetworkConfig":`
	for body, want := range map[string]string{
		ready + `{"serviceIpv4Cidr":"172.20.0.0/16","serviceIpv6Cidr":"fd00::/108"}}}`: "172.20.0.0/16",
		ready + `{"serviceIpv6Cidr":"fd00::/108","ipFamily":"ipv6"}}}`:                 "fd00::/108",
		ready + `{}}}`: "",
		`{"cluster":{"name":"demo","status":"CREATING"}}`: "none",
	} {
		client := eks.New(eks.Options{Region: "us-west-2", HTTPClient: &answers{body: body}, Credentials: aws.AnonymousCredentials{}})
		got, err := Describe(t.Context(), client, "demo")
		if err != nil {
			got.ServiceCIDR = "none"
		}
		if got.ServiceCIDR != want {
			t.Errorf("%s: %s, want %s; error %v", body, got.ServiceCIDR, want, err)
		}
	}
}

// In China prices are in yuan (spec aws.md §4).
func TestCurrencyOfARegion(t *testing.T) {
	for region, want := range map[string]float64{"us-west-2": 0.096, "cn-north-1": 0.7} {
		http := &answers{body: `{"PriceList":["{\"product\":{\"attributes\":{\"instanceType\":\"m5.large\"}},\"terms\":{\"OnDemand\":{\"b\":{\"priceDimensions\":{\"1\":{\"pricePerUnit\":{\"USD\":\"0.096\",\"CNY\":\"0.7\"}}}}}}}"]}`}
		m := &Market{region: region, pricing: pricing.New(pricing.Options{Region: "us-east-1", HTTPClient: http, Credentials: aws.AnonymousCredentials{}})}
		out := map[string]float64{}
		if n, err := m.products(t.Context(), "Shared", "Compute Instance", out); n != 1 || err != nil || out["m5.large"] != want || !strings.Contains(http.asked, region) {
			t.Errorf("%s: %d products, error %v, prices %v, asked for %s", region, n, err, out, http.asked)
		}
	}
}
