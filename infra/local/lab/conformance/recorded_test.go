package conformance

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"encoding/xml"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	gocmp "github.com/google/go-cmp/cmp"

	"joiner.sh/infra/local/awsemulator"
	"joiner.sh/infra/local/cloudtest"
	"joiner.sh/pkg/cli/recording"
)

var recorded = flag.String("recorded", "", "a folder of joiner accept or of joiner doctor --record: list where the emulator answers otherwise")

// What a real account answered is asked of the emulator again. Ids and values differ by nature; status, codes of errors
// and the elements of answers are compared, call by call.
func TestRecordedAnswers(t *testing.T) {
	if *recorded == "" {
		t.Skip("no folder is given: make conformance RECORDED=folder")
	}
	calls, err := recording.Read(*recorded)
	if err != nil || len(calls) == 0 {
		t.Fatalf("%d calls in %s, %v", len(calls), *recorded, err)
	}
	list := deviations(t, calls)
	t.Logf("%d calls, %d differences\n%s", len(calls), len(list), strings.Join(list, "\n"))
}

// deviations lists where the emulator answers otherwise than it was recorded, each difference of an action once.
func deviations(t *testing.T, calls []recording.Call) (out []string) {
	t.Helper()
	cluster := "demo"
	for _, c := range calls {
		if name, ok := strings.CutPrefix(c.Path, "/clusters/"); c.Service == "eks" && ok {
			cluster, _, _ = strings.Cut(name, "/")
			break
		}
	}
	emulated, address := cloudtest.Start(t, awsemulator.Options{Region: region, ClusterName: cluster})
	emulated.SetCluster("https://127.0.0.1:1", []byte("certificate"), "10.100.0.0/16")
	furnishFrom(emulated, calls)
	keys := emulated.IssueCredentials("admin", "test", 0)
	seen := map[string]bool{}
	for _, c := range calls {
		for _, d := range deviation(c, replay(t, c, address, keys)) {
			if line := nameCall(c) + ": " + d; !seen[line] {
				seen[line] = true
				out = append(out, line)
			}
		}
	}
	slices.Sort(out)
	return out
}

// furnishFrom lets exist by name what the recorded calls were about: stacks, rules, functions and their policies.
func furnishFrom(emulated *awsemulator.Cloud, calls []recording.Call) {
	for _, c := range calls {
		form, _ := url.ParseQuery(c.Body)
		parts := strings.Split(strings.Trim(c.Path, "/"), "/")
		switch {
		case c.Status/100 != 2:
		case c.Service == "cloudformation":
			emulated.SetStackStatus(form.Get("StackName"), "CREATE_COMPLETE")
		case strings.HasSuffix(c.Target, ".ListRuleNamesByTarget"):
			var ask struct{ TargetArn string }
			var said struct{ RuleNames []string }
			_, _ = json.Unmarshal([]byte(c.Body), &ask), json.Unmarshal([]byte(c.Answer), &said) // what is no JSON names nothing
			for _, name := range said.RuleNames {
				emulated.PutRule(awsemulator.DescribedRule{Name: name, ARN: "arn:aws:events:" + region + ":111122223333:rule/" + name, Enabled: true,
					Pattern: `{"source":["aws.ec2"]}`, Targets: []string{ask.TargetArn}})
			}
		case c.Service == "lambda" && len(parts) == 4:
			emulated.PutFunction(awsemulator.DescribedFunction{Name: parts[2], State: "Active", MemoryMB: 512, Environment: map[string]string{"MODE": "act"}})
			if strings.HasPrefix(parts[3], "policy") {
				emulated.SetPolicy(parts[2]+":live", "{}")
			}
		}
	}
}

// replay asks the recorded question.
func replay(t *testing.T, c recording.Call, address string, keys aws.Credentials) recording.Call {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), c.Method, address+c.Path, strings.NewReader(c.Body))
	if err != nil {
		t.Fatal(err)
	}
	form := slices.Contains([]string{"ec2", "iam", "sts", "cloudformation"}, c.Service)
	switch {
	case c.Target != "":
		r.Header.Set("X-Amz-Target", c.Target)
		r.Header.Set("Content-Type", "application/x-amz-json-1.1")
	case form:
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	default:
		r.Header.Set("Content-Type", "application/json")
	}
	sum := sha256.Sum256([]byte(c.Body))
	if err := v4.NewSigner().SignHTTP(t.Context(), keys, r, hex.EncodeToString(sum[:]), c.Service, region, time.Now()); err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return recording.Call{Service: c.Service, Status: answer.StatusCode, ErrorType: answer.Header.Get("X-Amzn-Errortype"), Answer: string(text)}
}

// nameCall is the service with the action.
func nameCall(c recording.Call) string {
	form, _ := url.ParseQuery(c.Body)
	at, _, _ := strings.Cut(c.Path, "?")
	action := cmp.Or(strings.TrimPrefix(path.Ext(c.Target), "."), form.Get("Action"), c.Method+" "+at)
	return c.Service + " " + action
}

// deviation compares two answers to one question.
func deviation(was, is recording.Call) []string {
	if was.Status != is.Status || errorCode(was) != errorCode(is) {
		return []string{fmt.Sprintf("AWS answers %d %s, the emulator %d %s", was.Status, errorCode(was), is.Status, errorCode(is))}
	}
	if was.Status/100 != 2 {
		return nil
	}
	var out []string
	theirs, ours := elements(was.Answer), elements(is.Answer)
	for _, e := range ours {
		if !slices.Contains(theirs, e) {
			out = append(out, "only the emulator has "+e)
		}
	}
	for _, e := range theirs {
		list := listOf(e)
		switch {
		case slices.Contains(ours, e):
		case list != "" && !slices.ContainsFunc(ours, func(o string) bool { return listOf(o) == list }):
			out = append(out, "nothing to compare, the emulator has none of "+list)
		default:
			out = append(out, "only AWS has "+e)
		}
	}
	return slices.Compact(out)
}

// listOf is the list that an element is in, such as reservationSet; empty for one that is in none.
func listOf(element string) string {
	for _, mark := range []string{"[]", ".item", ".member"} {
		if list, _, found := strings.Cut(element, mark); found {
			return list
		}
	}
	return ""
}

// errorCode is the code of a refusal, in whatever form the protocol has it.
func errorCode(c recording.Call) string {
	if c.Status/100 == 2 {
		return ""
	}
	var inXML struct {
		One string `xml:"Errors>Error>Code"`
		Two string `xml:"Error>Code"`
	}
	var inJSON struct {
		Type string `json:"__type"`
	}
	_ = xml.Unmarshal([]byte(c.Answer), &inXML)
	_ = json.Unmarshal([]byte(c.Answer), &inJSON)
	code, _, _ := strings.Cut(cmp.Or(inXML.One, inXML.Two, c.ErrorType, inJSON.Type), ":")
	return code[strings.LastIndex(code, "#")+1:]
}

// elements are the places of an answer that hold something, such as Reservations[].Instances[].State.
func elements(text string) []string {
	found := map[string]bool{}
	var value any
	if json.Unmarshal([]byte(text), &value) == nil {
		placesOfJSON("", value, found)
	} else {
		placesOfXML(text, found)
	}
	var out []string
	for e := range found {
		out = append(out, e)
	}
	slices.Sort(out)
	return out
}

func placesOfJSON(at string, v any, found map[string]bool) {
	switch v := v.(type) {
	case map[string]any:
		if strings.HasSuffix(at, ".Variables") || strings.HasSuffix(at, "tags") { // whose keys are their owner's
			found[at] = true
			return
		}
		for key, one := range v {
			placesOfJSON(strings.TrimPrefix(at+"."+key, "."), one, found)
		}
	case []any:
		for _, one := range v {
			placesOfJSON(at+"[]", one, found)
		}
	case nil:
	default:
		found[at] = true
	}
}

func placesOfXML(text string, found map[string]bool) {
	d := xml.NewDecoder(bytes.NewReader([]byte(text)))
	var open []string
	for {
		token, err := d.Token()
		if err != nil {
			return
		}
		switch e := token.(type) {
		case xml.StartElement:
			open = append(open, e.Name.Local)
		case xml.CharData:
			if len(bytes.TrimSpace(e)) > 0 && len(open) > 1 {
				found[strings.Join(open[1:], ".")] = true
			}
		case xml.EndElement:
			open = open[:len(open)-1]
		}
	}
}

// Each kind of difference is listed, and agreement is not.
func TestDeviationsAreListed(t *testing.T) {
	form := func(action, more string) string { return "Action=" + action + "&Version=2016-11-15" + more }
	list := deviations(t, []recording.Call{
		{Service: "eks", Method: "GET", Path: "/clusters/shop", Status: 200, Answer: `{"cluster":{"name":"shop","novelty":{"on":true}}}`},
		{Service: "ec2", Method: "POST", Path: "/", Body: form("DescribeTags", "&Filter.1.Name=key&Filter.1.Value.1=none"), Status: 200,
			Answer: `<DescribeTagsResponse><requestId>r</requestId><tagSet/></DescribeTagsResponse>`},
		{Service: "ec2", Method: "POST", Path: "/", Body: form("DescribeInstances", "&InstanceId.1=i-0123456789abcdef0"), Status: 400,
			Answer: `<Response><Errors><Error><Code>InvalidInstanceID.Malformed</Code></Error></Errors></Response>`},
		{Service: "ec2", Method: "POST", Path: "/", Body: form("DescribeTags", "&Filter.1.Name=key&Filter.1.Value.1=some"), Status: 200,
			Answer: `<DescribeTagsResponse><requestId>r</requestId><tagSet><item><key>some</key><value>v</value></item></tagSet></DescribeTagsResponse>`},
		{Service: "cloudformation", Method: "POST", Path: "/", Body: "Action=DescribeStacks&StackName=joiner-shop", Status: 200,
			Answer: `<R><DescribeStacksResult><Stacks><member><StackName>a</StackName><StackId>b</StackId><StackStatus>c</StackStatus></member></Stacks></DescribeStacksResult><ResponseMetadata><RequestId>r</RequestId></ResponseMetadata></R>`},
		{Service: "events", Method: "POST", Path: "/", Target: "AWSEvents.DescribeRule", Body: `{"Name":"none"}`, Status: 400,
			Answer: `{"__type":"com.amazonaws.events#ResourceNotFoundException","message":"m"}`},
		{Service: "lambda", Method: "GET", Path: "/2015-03-31/functions/none/policy?Qualifier=live", Status: 404, ErrorType: "ResourceNotFoundException:http://x", Answer: `{}`},
	})
	var kept []string
	for _, line := range list {
		if !strings.HasPrefix(line, "eks GET /clusters/shop: only the emulator has ") {
			kept = append(kept, line)
		}
	}
	want := []string{"ec2 DescribeInstances: AWS answers 400 InvalidInstanceID.Malformed, the emulator 400 InvalidInstanceID.NotFound",
		"ec2 DescribeTags: nothing to compare, the emulator has none of tagSet",
		"eks GET /clusters/shop: only AWS has cluster.novelty.on"}
	if d := gocmp.Diff(want, kept); d != "" || len(kept) == len(list) {
		t.Errorf("listed (-want +got):\n%s\nall: %s", d, strings.Join(list, "\n"))
	}
}
