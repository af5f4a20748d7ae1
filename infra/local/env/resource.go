package env

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"time"

	"github.com/google/uuid"

	"joiner.sh/infra/local/awsemulator"
	"joiner.sh/infra/local/cloudformation"
	"joiner.sh/infra/local/lambdahost"
	"joiner.sh/infra/local/lambdahost/assembly"
	"joiner.sh/pkg/model/naming"
)

// preflightType is the custom resource that refuses a deployment before anything else of the stack is made.
const preflightType = "Custom::JoinerPreflight"

// createResources asks for all custom resources of the stack to be created, in the order of their logical ids, which is
// that of their dependencies. It returns what they answered, together. What a preflight answers for is made after it.
func (e *Env) createResources(ctx context.Context) (map[string]any, error) {
	e.physical = map[string]string{}
	data := map[string]any{}
	for _, r := range e.Assembly.CustomResources {
		a, err := e.RequestResource(ctx, "Create", r.Type, nil)
		if err != nil {
			return nil, err
		}
		if a.Status != "SUCCESS" {
			return nil, fmt.Errorf("create %s: %s", r.LogicalID, a.Reason)
		}
		if r.Type == preflightType {
			e.createNodeIdentity()
		}
		maps.Copy(data, a.Data)
	}
	return data, nil
}

// RequestResource sends a request (Create, Update or Delete) for the custom resource of a type to its function, as
// CloudFormation does, and returns the answer. The properties given go over those of the template.
func (e *Env) RequestResource(
	ctx context.Context, request, resourceType string, properties map[string]any,
) (cloudformation.Answer, error) {
	r, err := e.customResource(resourceType)
	if err != nil {
		return cloudformation.Answer{}, err
	}
	all := map[string]any{}
	if err := json.Unmarshal(r.Properties, &all); err != nil {
		return cloudformation.Answer{}, fmt.Errorf("read properties of %s: %w", r.LogicalID, err)
	}
	ask := cloudformation.Request{RequestType: request, RequestID: uuid.NewString(), ResourceType: r.Type,
		LogicalResourceID:  r.LogicalID,
		StackID:            e.StackID(),
		PhysicalResourceID: e.physical[r.LogicalID], ResourceProperties: all}
	if request == "Update" {
		ask.OldResourceProperties = maps.Clone(all)
	}
	e.redirectPush(all)
	maps.Copy(all, properties)
	answer, err := e.awaitAnswer(ctx, ask, *r)
	if err != nil || answer.Status != "SUCCESS" {
		return answer, err
	}
	e.physical[r.LogicalID] = answer.PhysicalResourceID
	return answer, e.setAttributes(r.LogicalID, answer.Data)
}

// setAttributes gives the functions the attributes that a custom resource has now.
func (e *Env) setAttributes(logicalID string, data map[string]any) error {
	attributes := map[string]string{}
	for name, value := range data {
		attributes[name] = fmt.Sprint(value)
	}
	if err := e.Host.SetAttributes(logicalID, attributes); err != nil {
		return fmt.Errorf("deploy what %s answered: %w", logicalID, err)
	}
	for i := range e.Assembly.Functions {
		f := &e.Assembly.Functions[i]
		f.MemoryMB = e.Host.FunctionMemory(f.Name)
		e.Cloud.PutFunction(e.describeFunction(*f, e.Host.FunctionEnvironment(f.Name)))
	}
	return nil
}

// describeFunction is how Lambda describes a function.
func (e *Env) describeFunction(f assembly.Function, environment map[string]string) awsemulator.DescribedFunction {
	out := awsemulator.DescribedFunction{Name: f.Name, Role: f.RoleARN, State: "Active", Environment: environment,
		MemoryMB: f.MemoryMB}
	if f.Reserved != nil {
		out.Reserved = *f.Reserved
	}
	return out
}

// describeRoutes lets the account tell of the stack, of its rules, and of whom the aliases of its functions let in.
func (e *Env) describeRoutes() {
	e.Cloud.SetStackStatus(naming.Names{Cluster: ClusterName}.Stack(), "CREATE_COMPLETE")
	for _, r := range e.Assembly.Rules {
		described := awsemulator.DescribedRule{Name: r.Name, ARN: r.ARN, Enabled: r.Enabled, Pattern: string(r.Pattern)}
		for _, t := range r.Targets {
			described.Targets = append(described.Targets, t.ARN)
		}
		e.Cloud.PutRule(described)
	}
	for _, f := range e.Assembly.Functions {
		statements := []any{}
		for _, p := range e.Assembly.Permissions {
			if p.FunctionARN != f.ARN || p.ViaURL || p.URLAuthType != "" {
				continue
			}
			one := map[string]any{"Sid": p.LogicalID, "Effect": "Allow", "Principal": map[string]string{"Service": p.Principal},
				"Action": p.Action, "Resource": p.FunctionARN}
			if p.SourceARN != "" {
				one["Condition"] = map[string]any{"ArnLike": map[string]string{"AWS:SourceArn": p.SourceARN}}
			}
			statements = append(statements, one)
		}
		policy, err := json.Marshal(map[string]any{"Version": "2012-10-17", "Id": "default", "Statement": statements})
		if err != nil || len(statements) == 0 {
			continue // texts are always written
		}
		for _, alias := range f.Aliases {
			e.Cloud.SetPolicy(f.Name+":"+alias, string(policy))
		}
	}
}

// StackID is the ARN of the stack, as its template refers to it.
func (e *Env) StackID() string {
	for _, f := range e.Assembly.Functions {
		if id := f.Environment["STACK_ID"]; id != "" {
			return id
		}
	}
	return ""
}

// redirectPush has the cluster call the function's URL where it is here, and believe its certificate; or nobody,
// without push.
func (e *Env) redirectPush(properties map[string]any) {
	if properties["PushURL"] == nil {
		return
	}
	delete(properties, "PushURL")
	if e.push {
		url, ca := e.Host.URL(e.FunctionName("wake"))
		properties["PushURL"], properties["PushCABundle"] = url, base64.StdEncoding.EncodeToString(ca)
	}
}

func (e *Env) customResource(resourceType string) (*assembly.CustomResource, error) {
	for i := range e.Assembly.CustomResources {
		if e.Assembly.CustomResources[i].Type == resourceType {
			return &e.Assembly.CustomResources[i], nil
		}
	}
	return nil, fmt.Errorf("the stack has no resource of type %s", resourceType)
}

// awaitAnswer invokes the function and waits for what it puts to the response URL, or for the time-out of the resource.
func (e *Env) awaitAnswer(ctx context.Context, ask cloudformation.Request,
	r assembly.CustomResource) (cloudformation.Answer, error) {
	const (
		mostPatience = 5 * time.Minute // CloudFormation has an hour
		mostAnswer   = 4096            // bytes that CloudFormation takes
	)
	answers := make(chan cloudformation.Answer, 1)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return cloudformation.Answer{}, fmt.Errorf("listen for the answer of %s: %w", r.LogicalID, err)
	}
	server := &http.Server{ReadHeaderTimeout: 10 * time.Second,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
			var a cloudformation.Answer
			body := http.MaxBytesReader(w, req.Body, mostAnswer)
			if err := json.NewDecoder(body).Decode(&a); err != nil || req.Method != http.MethodPut ||
				a.RequestID != ask.RequestID {
				http.Error(w, "not the answer to the request", http.StatusBadRequest)
				return
			}
			select {
			case answers <- a:
			default: // the first answer counts
			}
		})}
	go func() { _ = server.Serve(l) }() // ends with ErrServerClosed
	defer func() { _ = server.Shutdown(context.WithoutCancel(ctx)) }()
	ask.ResponseURL = "http://" + l.Addr().String() + "/" + ask.RequestID
	event, err := json.Marshal(ask)
	if err != nil {
		return cloudformation.Answer{}, fmt.Errorf("encode request for %s: %w", r.LogicalID, err)
	}
	if _, err := e.Host.InvokeFunction(ctx, r.ServiceToken, lambdahost.Event, event); err != nil {
		return cloudformation.Answer{}, fmt.Errorf("invoke the function of %s: %w", r.LogicalID, err)
	}
	end := time.NewTimer(mostPatience)
	defer end.Stop()
	select {
	case a := <-answers:
		return a, nil
	case <-end.C:
		return cloudformation.Answer{}, errors.New("the function of " + r.LogicalID + " did not answer within " +
			mostPatience.String())
	case <-ctx.Done():
		return cloudformation.Answer{}, fmt.Errorf("wait for the answer of %s: %w", r.LogicalID, ctx.Err())
	}
}
