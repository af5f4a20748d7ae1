package fleet

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"

	"joiner.sh/pkg/model/instancetypes"
)

// wire answers for EC2, without a network: every template is there that was not deleted, and CreateFleet says what
// answers has next.
type wire struct {
	answers []string // of CreateFleet: an XML body, or "CODE" for a request that is refused
	refused string   // another action that says the same
	asked   []string // actions, with what CreateFleet and those about templates name
}

func (w *wire) Do(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	form, err := url.ParseQuery(string(body))
	if err != nil {
		return nil, err
	}
	action := form.Get("Action")
	w.asked = append(w.asked, strings.TrimSpace(action+" "+cmp.Or(form.Get("ClientToken"), form.Get("LaunchTemplateName.1"))))
	status, text := http.StatusOK, "<Response><launchTemplates><item><launchTemplateName>"+form.Get("LaunchTemplateName.1")+"</launchTemplateName></item></launchTemplates></Response>"
	if action == "CreateFleet" || action == w.refused {
		text, w.answers = w.answers[0], w.answers[1:]
		if !strings.HasPrefix(text, "<") {
			status, text = http.StatusBadRequest, "<Response><Errors><Error><Code>"+text+"</Code><Message>it does not exist</Message></Error></Errors></Response>"
		}
	}
	return &http.Response{StatusCode: status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(text)), Request: r}, nil
}

func (w *wire) fleet() *Fleet {
	return &Fleet{Cluster: "demo", Now: func() time.Time { return time.Unix(1_800_000_000, 0) }, EC2: ec2.New(ec2.Options{Region: "us-west-2", HTTPClient: w,
		Retryer: aws.NopRetryer{}, Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "id", SecretAccessKey: "secret"}, nil
		})})}
}

// fleetOf is the answer of CreateFleet with so many instances, and an error for each code.
func fleetOf(instances int, codes ...string) string {
	var b strings.Builder
	b.WriteString("<CreateFleetResponse><fleetId>fleet-1</fleetId><errorSet>")
	for _, c := range codes {
		fmt.Fprintf(&b, "<item><errorCode>%s</errorCode><errorMessage>it does not exist</errorMessage></item>", c)
	}
	b.WriteString("</errorSet><fleetInstanceSet>")
	for i := range instances {
		fmt.Fprintf(&b, "<item><instanceIds><item>i-%d</item></instanceIds><instanceType>m5.large</instanceType><availabilityZone>a</availabilityZone></item>", i+1)
	}
	b.WriteString("</fleetInstanceSet></CreateFleetResponse>")
	return b.String()
}

// A template that was deleted while a process took it for known is looked for, and made, before the next request. A
// request that was refused is repeated at once, and only once; one that was answered has spent its token.
func TestATemplateThatIsGone(t *testing.T) {
	const name, id = "InvalidLaunchTemplateName.NotFoundException", "InvalidLaunchTemplateId.NotFound"
	const look, full = "DescribeLaunchTemplates joiner/demo/1", "InsufficientInstanceCapacity"
	for _, c := range []struct {
		what    string
		answers []string
		batch   int
		started int
		err     string // of the first launch
		spent   bool   // its token
		asked   string // by it and by another one afterwards
	}{
		{"no", []string{fleetOf(1), fleetOf(1)}, 0, 1, "", false, look + ", CreateFleet t1, CreateFleet t2"},
		{"the request, by name", []string{name, fleetOf(1), fleetOf(1)}, 0, 1, "", false, look + ", CreateFleet t1, " + look + ", CreateFleet t1, CreateFleet t2"},
		{"the request, by id", []string{id, fleetOf(1), fleetOf(1)}, 0, 1, "", false, look + ", CreateFleet t1, " + look + ", CreateFleet t1, CreateFleet t2"},
		{"the request, twice", []string{name, name, fleetOf(1)}, 0, 0, "create fleet: " + name + ": it does not exist", false,
			look + ", CreateFleet t1, " + look + ", CreateFleet t1, " + look + ", CreateFleet t2"},
		{"the answer, by name", []string{fleetOf(0, name), fleetOf(1)}, 0, 0, name + ": it does not exist", true, look + ", CreateFleet t1, " + look + ", CreateFleet t2"},
		{"the answer, by id", []string{fleetOf(0, id), fleetOf(1)}, 0, 0, id + ": it does not exist", true, look + ", CreateFleet t1, " + look + ", CreateFleet t2"},
		{"the answer, where another template brought an instance", []string{fleetOf(1, id), fleetOf(1)}, 0, 1, "", false, look + ", CreateFleet t1, " + look + ", CreateFleet t2"},
		{"the answer, where another template brought a part", []string{fleetOf(1, full, name), fleetOf(2)}, 2, 1, name + ": it does not exist", true,
			look + ", CreateFleet t1, " + look + ", CreateFleet t2"},
	} {
		t.Run(c.what, func(t *testing.T) {
			w := &wire{answers: c.answers}
			f, o := w.fleet(), order()
			o.Batch.Size = c.batch
			got, _, err := f.LaunchBatch(t.Context(), o, "t1")
			if len(got) != c.started {
				t.Errorf("%d instances, want %d", len(got), c.started)
			}
			if said := fmt.Sprint(err); err == nil && c.err != "" || err != nil && (c.err == "" || !strings.Contains(brief(said), c.err)) {
				t.Errorf("error %q, want %q", said, c.err)
			}
			if spent, ok := errors.AsType[*LaunchError](err); ok != c.spent || ok && !spent.TokenSpent() {
				t.Errorf("the token is spent: %v, want %v", ok, c.spent)
			}
			if _, ok := errors.AsType[*instancetypes.NoCapacityError](err); ok {
				t.Error("a template that is gone counts as lack of capacity")
			}
			if _, _, err := f.LaunchBatch(t.Context(), o, "t2"); err != nil {
				t.Errorf("the next launch: %v", err)
			}
			if asked := strings.Join(w.asked, ", "); asked != c.asked {
				t.Errorf("asked  %s\nwanted %s", asked, c.asked)
			}
		})
	}
}

// brief is an error of the SDK without what it says about the request.
func brief(text string) string {
	before, after, found := strings.Cut(text, "operation error ")
	if i := strings.Index(after, "api error "); found && i >= 0 {
		return before + after[i+len("api error "):]
	}
	return text
}
