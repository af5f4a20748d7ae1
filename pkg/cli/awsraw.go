package cli

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/google/uuid"

	"joiner.sh/pkg/cli/accept"
)

// rawCall is a request to a service of AWS of which only some calls are needed, and no SDK.
type rawCall struct {
	service, method, path string
	header                map[string]string
	body                  []byte
}

// rawError is an answer that says no.
type rawError struct {
	status int
	body   string
}

func (e *rawError) Error() string { return fmt.Sprintf("AWS answers %d: %s", e.status, e.body) }

// mostAnswer bounds an answer, in bytes.
const mostAnswer = 4 << 20

// ask signs the request, sends it and returns the answer.
func (c rawCall) ask(ctx context.Context, cfg aws.Config) ([]byte, error) {
	base := aws.ToString(cfg.BaseEndpoint)
	if base == "" {
		suffix := "amazonaws.com"
		if strings.HasPrefix(cfg.Region, "cn-") {
			suffix += ".cn"
		}
		base = "https://" + c.service + "." + cfg.Region + "." + suffix
	}
	request, err := http.NewRequestWithContext(ctx, c.method, strings.TrimSuffix(base, "/")+c.path, bytes.NewReader(c.body))
	if err != nil {
		return nil, err
	}
	for k, v := range c.header {
		request.Header.Set(k, v)
	}
	keys, err := cfg.Credentials.Retrieve(ctx)
	if err != nil {
		return nil, fmt.Errorf("find credentials of AWS: %w", err)
	}
	sum := sha256.Sum256(c.body)
	if err := v4.NewSigner().SignHTTP(ctx, keys, request, hex.EncodeToString(sum[:]), c.service, cfg.Region, time.Now()); err != nil {
		return nil, fmt.Errorf("sign request: %w", err)
	}
	answer, err := cfg.HTTPClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(io.LimitReader(answer.Body, mostAnswer))
	if err == nil && answer.StatusCode/100 != 2 {
		err = &rawError{answer.StatusCode, string(text)}
	}
	return text, err
}

// askInto reads the answer, which is JSON, into out, unless that is nil.
func (c rawCall) askInto(ctx context.Context, cfg aws.Config, out any) error {
	text, err := c.ask(ctx, cfg)
	if err == nil && out != nil {
		err = json.Unmarshal(text, out)
	}
	return err
}

// jsonAction is an action of a service that takes JSON, such as EventBridge.
type jsonAction struct{ service, target string }

// ask asks the service and reads its answer into out, unless that is nil.
func (a jsonAction) ask(ctx context.Context, cfg aws.Config, in, out any) error {
	body, err := json.Marshal(in)
	if err != nil {
		return err
	}
	err = rawCall{service: a.service, method: http.MethodPost, path: "/", body: body, header: map[string]string{
		"Content-Type": "application/x-amz-json-1.1", "X-Amz-Target": a.target}}.askInto(ctx, cfg, out)
	if err != nil {
		return fmt.Errorf("ask AWS, %s: %w", a.target, err)
	}
	return nil
}

// askStacks asks CloudFormation.
func askStacks(ctx context.Context, cfg aws.Config, action string, in map[string]string) ([]byte, error) {
	form := url.Values{"Action": {action}, "Version": {"2010-05-15"}}
	for k, v := range in {
		form.Set(k, v)
	}
	return rawCall{service: "cloudformation", method: http.MethodPost, path: "/", body: []byte(form.Encode()),
		header: map[string]string{"Content-Type": "application/x-www-form-urlencoded"}}.ask(ctx, cfg)
}

// describedStack is a stack as CloudFormation describes it; without a status there is none.
type describedStack struct {
	Status    string                                    `xml:"DescribeStacksResult>Stacks>member>StackStatus"`
	Protected bool                                      `xml:"DescribeStacksResult>Stacks>member>EnableTerminationProtection"` // from deletion
	Outputs   []struct{ OutputKey, OutputValue string } `xml:"DescribeStacksResult>Stacks>member>Outputs>member"`
}

func describeStack(ctx context.Context, cfg aws.Config, name string) (out describedStack, err error) {
	text, err := askStacks(ctx, cfg, "DescribeStacks", map[string]string{"StackName": name})
	if err != nil && strings.Contains(err.Error(), "does not exist") {
		return out, nil
	}
	if err == nil {
		err = xml.Unmarshal(text, &out)
	}
	if err != nil {
		return out, fmt.Errorf("look at stack %s: %w", name, err)
	}
	return out, nil
}

// askFIS asks the AWS Fault Injection Service.
func (w *liveWorld) askFIS(ctx context.Context, method, path string, in, out any) error {
	var body []byte
	if in != nil {
		var err error
		if body, err = json.Marshal(in); err != nil {
			return err
		}
	}
	err := rawCall{service: "fis", method: method, path: path, body: body,
		header: map[string]string{"Content-Type": "application/json"}}.askInto(ctx, w.cfg, out)
	if err != nil {
		return fmt.Errorf("ask FIS: %w", err)
	}
	return nil
}

// startExperiment has FIS interrupt the one instance: EC2 writes the notice, and takes the instance two minutes later.
func (w *liveWorld) startExperiment(ctx context.Context, instance string) error {
	var made struct {
		ExperimentTemplate struct{ ID string }
	}
	err := w.askFIS(ctx, http.MethodPost, "/experimentTemplates", map[string]any{
		"clientToken": uuid.NewString(), "description": "joiner accept " + w.run.ID, "roleArn": w.run.FIS, "tags": w.markTags(),
		"stopConditions": []any{map[string]any{"source": "none"}},
		"targets": map[string]any{"one": map[string]any{"resourceType": "aws:ec2:spot-instance", "selectionMode": "ALL",
			"resourceArns": []string{fmt.Sprintf("arn:%s:ec2:%s:%s:instance/%s", w.at.Partition, w.at.Region, w.at.Account, instance)}}},
		"actions": map[string]any{"interrupt": map[string]any{"actionId": "aws:ec2:send-spot-instance-interruptions",
			"parameters": map[string]any{"durationBeforeInterruption": "PT2M"}, "targets": map[string]any{"SpotInstances": "one"}}},
	}, &made)
	if err != nil {
		return err
	}
	return w.askFIS(ctx, http.MethodPost, "/experiments", map[string]any{"clientToken": uuid.NewString(),
		"experimentTemplateId": made.ExperimentTemplate.ID, "tags": w.markTags()}, nil)
}

func (w *liveWorld) markTags() map[string]string { return map[string]string{accept.Mark: w.run.ID} }

// removeExperiments removes the templates of FIS that runs in this cluster made, if one did.
func (w *liveWorld) removeExperiments(ctx context.Context) error {
	if record, found, err := w.l.kube.Objects.Get(ctx, accept.AtRecord); err != nil {
		return err
	} else if !found || !usedFIS(record.Object) {
		return nil
	}
	return w.deleteTemplates(ctx)
}

// deleteTemplates deletes the templates of FIS that carry the mark of a run in this cluster.
func (w *liveWorld) deleteTemplates(ctx context.Context) error {
	var all struct {
		ExperimentTemplates []struct {
			ID   string
			Tags map[string]string
		}
	}
	if err := w.askFIS(ctx, http.MethodGet, "/experimentTemplates?maxResults=100", nil, &all); err != nil {
		return err
	}
	for _, t := range all.ExperimentTemplates {
		if strings.HasPrefix(t.Tags[accept.Mark], accept.Owner(w.run.Cluster)) {
			if err := w.askFIS(ctx, http.MethodDelete, "/experimentTemplates/"+t.ID, nil, nil); err != nil {
				return err
			}
		}
	}
	return nil
}

// usedFIS reports whether the record of a run says that it was to use FIS.
func usedFIS(record map[string]any) bool {
	data, _ := record["data"].(map[string]any)
	return data["fis"] == "true"
}
