package launch

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	awsv1 "joiner.sh/pkg/api/aws/v1"
)

// What metadata options leave unset is as the CRD would fill it in; without any the service of the instance is closed.
func TestMetadataThatIsNotSaid(t *testing.T) {
	in := Input{Class: &awsv1.EC2NodeClass{}, Cluster: Cluster{Region: "us-west-2"}}
	if d := cmp.Diff(Metadata{HTTPEndpoint: "disabled", HTTPProtocol: "disabled", HopLimit: 2, HTTPTokens: "required"}, metadataOptions(in)); d != "" {
		t.Errorf("without options (-want +got):\n%s", d)
	}
	in.Class.Spec.MetadataOptions = &awsv1.MetadataOptions{}
	if d := cmp.Diff(Metadata{HTTPEndpoint: "enabled", HTTPProtocol: "disabled", HopLimit: 1, HTTPTokens: "required"}, metadataOptions(in)); d != "" {
		t.Errorf("with empty options (-want +got):\n%s", d)
	}
}
