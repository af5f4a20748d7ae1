package awsemulator

import "joiner.sh/infra/local/awsemulator/wire"

// stacks are those of CloudFormation, as far as somebody asks for their status.
type stacks struct {
	*account
	status map[string]string // by name
}

// SetStackStatus lets a stack exist with a status such as UPDATE_COMPLETE; an empty one takes it away.
func (c *stacks) SetStackStatus(name, status string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.status[name] = status
}

func (c *account) stackOperations() map[string]operation {
	return map[string]operation{"DescribeStacks": op(c.stacks.describeStacks)}
}

type stackInput struct{ StackName string }

type xmlStack struct {
	Name   string `xml:"StackName"`
	ID     string `xml:"StackId"`
	Status string `xml:"StackStatus"`
}

func (c *stacks) describeStacks(_ *call, in *stackInput) (any, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	status := c.status[in.StackName]
	if status == "" {
		return nil, wire.Fail(400, "ValidationError", "Stack with id %s does not exist", in.StackName)
	}
	return struct {
		Stacks []xmlStack `xml:"Stacks>member"`
	}{[]xmlStack{{in.StackName, "arn:aws:cloudformation:" + c.opt.Region + ":" + c.opt.Account + ":stack/" + in.StackName + "/" + hash16(in.StackName), status}}}, nil
}
