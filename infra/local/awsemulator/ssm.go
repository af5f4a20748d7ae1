package awsemulator

import (
	"time"

	"joiner.sh/infra/local/awsemulator/wire"
)

// ssm is the parameter store.
type ssm struct {
	*account
	params map[string]parameter
}

func (c *account) ssmOperations() map[string]operation {
	return map[string]operation{
		"GetParameter":  op(c.ssm.getParameter),
		"GetParameters": op(c.ssm.getParameters),
	}
}

type jsonParameter struct {
	Name, Type, Value, ARN, DataType string
	Version                          int
	LastModifiedDate                 float64
}

func (c *ssm) findParameter(name string) (jsonParameter, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	p, ok := c.params[name]
	return jsonParameter{
		Name: name, Type: "String", Value: p.Value, DataType: "text", Version: 1,
		ARN: "arn:aws:ssm:" + c.opt.Region + "::parameter" + name, LastModifiedDate: unixSeconds(p.Changed),
	}, ok
}

// unixSeconds is a time as AWS' JSON has it.
func unixSeconds(t time.Time) float64 { return float64(t.UnixMilli()) / 1000 }

// PutParameter sets an SSM parameter, also one of AWS' own, as when a new image is released.
func (c *ssm) PutParameter(name, value string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.params[name] = parameter{Value: value, Changed: time.Now()}
}

type getParameterInput struct {
	Name           string
	WithDecryption bool
}

func (c *ssm) getParameter(_ *call, in *getParameterInput) (any, error) {
	p, ok := c.findParameter(in.Name)
	if !ok {
		return nil, wire.Fail(400, "ParameterNotFound", "Parameter %s not found.", in.Name)
	}
	return map[string]any{"Parameter": p}, nil
}

type getParametersInput struct {
	Names          []string
	WithDecryption bool
}

func (c *ssm) getParameters(_ *call, in *getParametersInput) (any, error) {
	if len(in.Names) == 0 || len(in.Names) > 10 {
		return nil, wire.Fail(400, "ValidationException",
			"Value at 'names' failed to satisfy constraint: Member must have length between 1 and 10")
	}
	found, missing := []jsonParameter{}, []string{}
	for _, name := range in.Names {
		if p, ok := c.findParameter(name); ok {
			found = append(found, p)
		} else {
			missing = append(missing, name)
		}
	}
	return map[string]any{"Parameters": found, "InvalidParameters": missing}, nil
}
