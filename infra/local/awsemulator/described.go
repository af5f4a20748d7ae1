package awsemulator

import (
	"cmp"
	"maps"
	"time"

	"joiner.sh/infra/local/awsemulator/wire"
)

// DescribedFunction is what GetFunctionConfiguration and GetFunctionConcurrency tell of a Lambda function. Who invokes
// it is Options.Invoke's business.
type DescribedFunction struct {
	Name, Role  string // Role is an ARN
	State       string // Active, Pending, Inactive or Failed; Active where none is given
	Reason      string // of another state than Active
	Description string
	Changed     time.Time // when code or settings came; zero: Lambda does not say
	VPC         string    // id, empty for a function outside of any
	Environment map[string]string
	MemoryMB    int64
	Reserved    int // of the account's concurrency; 0 for none, which Lambda tells from a reservation of 0
}

// PutFunction lets the account describe a function, or describe it otherwise.
func (c *lambda) PutFunction(f DescribedFunction) {
	f.Environment = maps.Clone(f.Environment)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.functions[f.Name] = f
}

type jsonVariables struct {
	Variables map[string]string
}

type jsonVPC struct {
	VPCID string `json:"VpcId"`
}

type jsonFunction struct {
	Name        string `json:"FunctionName"`
	ARN         string `json:"FunctionArn"`
	Role        string
	Runtime     string
	State       string
	StateReason string   `json:",omitempty"`
	Description string   `json:",omitempty"`
	Changed     string   `json:"LastModified,omitempty"`
	VPC         *jsonVPC `json:"VpcConfig,omitempty"`
	MemorySize  int64    `json:",omitempty"`
	Environment jsonVariables
}

func (c *lambda) getFunctionConfiguration(r *call) (any, error) {
	name := qualifiedName(r.pathPart(2))
	c.mu.Lock()
	defer c.mu.Unlock()
	arn := "arn:aws:lambda:" + c.opt.Region + ":" + c.opt.Account + ":function:" + name
	f, found := c.functions[name]
	if !found {
		return nil, wire.Fail(404, "ResourceNotFoundException", "Function not found: %s", arn)
	}
	out := jsonFunction{Name: name, ARN: arn, Role: f.Role, Runtime: "provided.al2023", State: cmp.Or(f.State, "Active"),
		StateReason: f.Reason, Description: f.Description, MemorySize: f.MemoryMB,
		Environment: jsonVariables{f.Environment}}
	if !f.Changed.IsZero() {
		out.Changed = f.Changed.UTC().Format("2006-01-02T15:04:05.000-0700")
	}
	if f.VPC != "" {
		out.VPC = &jsonVPC{f.VPC}
	}
	return out, nil
}

// SetConcurrency changes how many invocations the account may run at once; 1,000 without it. Invocations do not look at
// it.
func (c *lambda) SetConcurrency(most int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.concurrency = most
}

func (c *lambda) getFunctionConcurrency(r *call) (any, error) {
	name := qualifiedName(r.pathPart(2))
	c.mu.Lock()
	defer c.mu.Unlock()
	f, found := c.functions[name]
	if !found {
		return nil, wire.Fail(404, "ResourceNotFoundException", "Function not found: arn:aws:lambda:%s:%s:function:%s",
			c.opt.Region, c.opt.Account, name)
	}
	return struct {
		Reserved int `json:"ReservedConcurrentExecutions,omitempty"`
	}{f.Reserved}, nil
}

func (c *lambda) getAccountSettings(*call) (any, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	type jsonLimit struct {
		ConcurrentExecutions, UnreservedConcurrentExecutions int
		TotalCodeSize                                        int64
	}
	type jsonUsage struct{ TotalCodeSize, FunctionCount int64 }
	left := c.concurrency
	for _, f := range c.functions {
		left -= f.Reserved
	}
	const codeLimit = 75 << 30
	return struct {
		AccountLimit jsonLimit
		AccountUsage jsonUsage
	}{jsonLimit{c.concurrency, left, codeLimit}, jsonUsage{0, int64(len(c.functions))}}, nil
}

// quota is one of EC2's quotas of vCPUs.
type quota struct {
	name  string
	value float64
}

// standardQuotas are those of standard instances, as an account has them after some use.
func standardQuotas() map[string]quota {
	return map[string]quota{
		"L-1216C47A": {"Running On-Demand Standard (A, C, D, H, I, M, R, T, Z) instances", 1152},
		"L-34B43A08": {"All Standard (A, C, D, H, I, M, R, T, Z) Spot Instance Requests", 1152},
	}
}

// SetQuota changes a quota of EC2; false if there is none of that code. Launches do not look at it.
func (c *lambda) SetQuota(code string, vcpus float64) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	q, found := c.quotas[code]
	if q.value = vcpus; found {
		c.quotas[code] = q
	}
	return found
}

func (c *account) quotaOperations() map[string]operation {
	return map[string]operation{"GetServiceQuota": op(c.lambda.getServiceQuota)}
}

type quotaInput struct {
	ServiceCode, QuotaCode, ContextID string
}

func (c *lambda) getServiceQuota(_ *call, in *quotaInput) (any, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	q, found := c.quotas[in.QuotaCode]
	if in.ServiceCode != "ec2" || !found {
		return nil, wire.Fail(400, "NoSuchResourceException",
			"The request failed because the specified service quota or service does not exist")
	}
	type jsonQuota struct {
		ServiceCode, ServiceName, QuotaCode, QuotaName, Unit string
		Value                                                float64
		Adjustable, GlobalQuota                              bool
	}
	return struct{ Quota jsonQuota }{jsonQuota{ServiceCode: "ec2",
		ServiceName: "Amazon Elastic Compute Cloud (Amazon EC2)", QuotaCode: in.QuotaCode,
		QuotaName: q.name, Unit: "None", Value: q.value, Adjustable: true}}, nil
}
