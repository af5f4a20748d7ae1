package discovery

import (
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"joiner.sh/pkg/model/instancetypes"
)

// Of a catalog that somebody else wrote, figures that cannot be true are told, and those of the built-in one hold.
func TestAPoisonedCatalog(t *testing.T) {
	gz, err := instancetypes.Catalog{Schema: instancetypes.Schema, Region: "us-west-2", Time: time.Now(), Types: []instancetypes.Facts{
		{Name: "m5.large", VCPU: 2, MemoryMiB: 8192, OnDemandUSD: 0.096}, {Name: "m7i.48xlarge", VCPU: 192, MemoryMiB: 786432, OnDemandUSD: 0.00001}}}.Encode()
	if err != nil {
		t.Fatal(err)
	}
	s := NewStore(s3.New(s3.Options{Region: "us-west-2", HTTPClient: &silentServer{body: string(gz)}, Credentials: aws.AnonymousCredentials{}}), "bucket", time.Hour, time.Now)
	c, why, err := s.ReadCatalog(t.Context())
	if err != nil || len(c.Types) != 2 || c.Types[0].OnDemandUSD != 0.096 || c.Types[1].OnDemandUSD != 9.6768 {
		t.Errorf("catalog %+v, error %v, want m5.large at 0.096 and m7i.48xlarge at 9.6768", c.Types, err)
	}
	if !strings.HasPrefix(why, "1 types of the stored catalog have figures that cannot be true, who may write to the bucket? m7i.48xlarge: an on-demand price of 1e-05 USD/h") {
		t.Errorf("said %q", why)
	}
}
