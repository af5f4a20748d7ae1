package settings

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestStatementsOfIAM(t *testing.T) {
	const key = `"arn:aws:kms:us-west-2:111122223333:key/1234abcd"`
	got, ok := parseStatements(`[{"Sid":"Grant","Effect":"Allow","Action":"kms:*Grant","Resource":` + key + `,"Condition":{"Bool":{"kms:GrantIsForAWSResource":"true"}}},
		{"Effect":"Allow","Action":["kms:Decrypt","kms:ReEncrypt*"],"Resource":["*"],"Condition":{"StringEquals":{"kms:ViaService":["ec2.us-west-2.amazonaws.com"]}}}]`)
	want := []Statement{
		{SID: "Grant", Actions: []string{"kms:*Grant"}, Resources: []string{"arn:aws:kms:us-west-2:111122223333:key/1234abcd"}, Conditions: map[string]map[string][]string{"Bool": {"kms:GrantIsForAWSResource": {"true"}}}},
		{Actions: []string{"kms:Decrypt", "kms:ReEncrypt*"}, Resources: []string{"*"}, Conditions: map[string]map[string][]string{"StringEquals": {"kms:ViaService": {"ec2.us-west-2.amazonaws.com"}}}},
	}
	if diff := cmp.Diff(want, got); diff != "" || !ok {
		t.Errorf("ok %t (-want +got):\n%s", ok, diff)
	}
	for name, text := range map[string]string{
		"no JSON":                   `kms:Decrypt`,
		"no list":                   `{"Effect":"Allow","Action":"kms:Decrypt","Resource":` + key + `}`,
		"nothing":                   `[]`,
		"a denial":                  `[{"Effect":"Deny","Action":"kms:Decrypt","Resource":` + key + `}]`,
		"everything":                `[{"Effect":"Allow","Action":"*","Resource":` + key + `}]`,
		"a service as a whole":      `[{"Effect":"Allow","Action":"kms:*","Resource":` + key + `}]`,
		"everything there is":       `[{"Effect":"Allow","Action":"kms:Decrypt","Resource":"*"}]`,
		"all but something":         `[{"Effect":"Allow","NotAction":"kms:Decrypt","Resource":` + key + `}]`,
		"somebody":                  `[{"Effect":"Allow","Principal":"*","Action":"kms:Decrypt","Resource":` + key + `}]`,
		"no resource":               `[{"Effect":"Allow","Action":"kms:Decrypt"}]`,
		"a resource that is no ARN": `[{"Effect":"Allow","Action":"kms:Decrypt","Resource":"key/1"}]`,
		"two lists":                 `[{"Effect":"Allow","Action":"kms:Decrypt","Resource":` + key + `}] []`,
	} {
		if got, ok := parseStatements(text); ok {
			t.Errorf("%s is taken for %+v", name, got)
		}
	}
}
