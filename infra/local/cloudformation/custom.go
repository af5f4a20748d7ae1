package cloudformation

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/google/uuid"
)

// Request is what CloudFormation asks the function behind a custom resource, in its own form.
type Request struct {
	RequestType           string
	RequestID             string `json:"RequestId"`
	ResponseURL           string
	ResourceType          string
	PhysicalResourceID    string `json:"PhysicalResourceId,omitempty"`
	LogicalResourceID     string `json:"LogicalResourceId"`
	StackID               string `json:"StackId"`
	ResourceProperties    map[string]any
	OldResourceProperties map[string]any `json:",omitempty"`
}

// Answer is what the function put to the URL of the request.
type Answer struct {
	Status             string // SUCCESS or FAILED
	Reason             string
	PhysicalResourceID string `json:"PhysicalResourceId"`
	RequestID          string `json:"RequestId"`
	Data               map[string]any
}

// ErrNoAnswer is what an Ask fails with when no answer came in the time that the resource has.
var ErrNoAnswer = errors.New("CloudFormation did not receive a response from your Custom Resource")

// invokeCustom asks the function of a custom resource. What it is called and whether it exists follows from the answer;
// one that was asked to be created and never answered exists, under an id that CloudFormation makes up.
func (a *Emulated) invokeCustom(ctx context.Context, s *Stack, verb string, before map[string]any, r *Resource) error {
	token, _ := r.Properties["ServiceToken"].(string)
	var function Function
	a.mu.Lock()
	for _, f := range a.functions {
		if f.ARN == token {
			function = f
		}
	}
	a.mu.Unlock()
	if function.Name == "" {
		return fmt.Errorf("invalid ServiceToken: there is no function %s", token)
	}
	ask := Request{RequestType: verb, RequestID: uuid.NewString(), ResourceType: r.Type, LogicalResourceID: r.ID,
		StackID: s.ID, PhysicalResourceID: r.Physical, ResourceProperties: propertyTexts(r.Properties)}
	if before != nil {
		ask.OldResourceProperties = propertyTexts(before)
	}
	answer, err := a.Ask(ctx, function, ask)
	if err != nil {
		if r.Physical == "" {
			r.Physical = s.Name + "-" + r.ID + "-" + strings.ToUpper(ask.RequestID[:8])
		}
		return err
	}
	r.Physical = answer.PhysicalResourceID
	r.Attributes = map[string]any{"Ref": r.Physical}
	for name, value := range answer.Data {
		r.Attributes[name] = value
	}
	if answer.Status != "SUCCESS" {
		return errors.New(answer.Reason)
	}
	return nil
}

// propertyTexts are the properties as CloudFormation hands them over: what is no list or object is text.
func propertyTexts(properties map[string]any) map[string]any {
	out := map[string]any{}
	for name, value := range properties {
		switch value.(type) {
		case []any, map[string]any:
			out[name] = value
		default:
			out[name] = fmt.Sprint(value)
		}
	}
	return out
}
