package discovery

import (
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/google/go-cmp/cmp"

	"joiner.sh/pkg/model/instancetypes"
)

// Reserved Instances of Linux and default tenancy are counted: zonal ones by zone, regional ones of a known type in
// quarters of the normalized unit of their family, others by type. Those of one kind are one commitment.
func TestReservedInstancesAreCounted(t *testing.T) {
	item := func(kind, count, more string) string {
		return "<item><instanceType>" + kind + "</instanceType><instanceCount>" + count + "</instanceCount>" +
			"<instanceTenancy>default</instanceTenancy><productDescription>Linux/UNIX</productDescription>" + more + "</item>"
	}
	const regional, zonal = "<scope>Region</scope>", "<scope>Availability Zone</scope><availabilityZone>us-west-2a</availabilityZone>"
	body := "<DescribeReservedInstancesResponse><reservedInstancesSet>" + item("m5.large", "3", zonal) +
		item("m5.large", "2", zonal) + item("m5.large", "2", regional) + item("m5.nano", "1", regional) +
		item("p3.2xlarge", "4", regional) +
		strings.Replace(item("c5.large", "9", regional), "Linux/UNIX", "Windows", 1) +
		strings.Replace(item("c5.large", "9", regional), ">default<", ">dedicated<", 1) +
		"</reservedInstancesSet></DescribeReservedInstancesResponse>"
	r := &CatalogRefresher{ec2: ec2.New(ec2.Options{Region: "us-west-2", HTTPClient: &answers{body: body},
		Credentials: aws.AnonymousCredentials{}})}
	got, err := r.reservedInstances(t.Context(), instancetypes.Catalog{Types: []instancetypes.Facts{
		{Name: "m5.large"}, {Name: "m5.nano"}, {Name: "p3.2xlarge", GPUs: []instancetypes.Accelerator{{Count: 1}}}}})
	want := []instancetypes.Commitment{
		{ID: "ri/m5", Type: "m5.large", Flexible: true, Room: 2*16 + 1},
		{ID: "ri/m5.large/us-west-2a", Type: "m5.large", Zone: "us-west-2a", Room: 5},
		{ID: "ri/p3.2xlarge", Type: "p3.2xlarge", Room: 4},
	}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("error %v, (-want +got):\n%s", err, diff)
	}
}
