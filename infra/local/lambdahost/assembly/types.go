package assembly

import (
	"encoding/json"
	"time"
)

// Function is an AWS::Lambda::Function with all that other resources of its stack say about it.
type Function struct {
	Resource
	Name          string
	Short         string // for log lines: the last word of the template's own name, else the logical id
	ARN           string
	RoleARN       string
	Handler       string
	Runtime       string
	Architecture  string // x86_64 or arm64
	Environment   map[string]string
	Timeout       time.Duration
	MemoryMB      int64
	MemoryLike    string // the answer that MemoryMB is like, see AnswerTo; empty: the template says how much
	Code          string // absolute path of the folder, or zip file, in the assembly
	Reserved      *int   // reserved concurrency; nil: none
	DeadLetterARN string
	Async         Async
	Aliases       []string // all of them are the version that was built
	URL           *URL     // nil: none
	MayLoop       bool     // RecursiveLoop is Allow: no chain of invocations is too long for it
}

// URL is what AWS::Lambda::Url says: who may call the function over HTTPS.
type URL struct {
	AuthType string // NONE or AWS_IAM
	Address  string // in AWS, with a slash at the end
}

// Async is what AWS::Lambda::EventInvokeConfig says, or Lambda's defaults.
type Async struct {
	Retries      int
	MaxAge       time.Duration
	OnFailureARN string
	Qualifier    string // what it was written for; empty: nobody wrote any
}

// Rule is an AWS::Events::Rule on the default bus. It has a schedule, a pattern, or both.
type Rule struct {
	Resource
	Name     string
	ARN      string
	Enabled  bool
	Schedule string
	Pattern  json.RawMessage
	Targets  []Target
}

// Target is where a rule or schedule delivers.
type Target struct {
	ID            string
	ARN           string
	RoleARN       string // only a scheduler target has one
	Input         string // constant text; empty: the event itself
	MaxRetries    *int   // of delivery, not of the function
	MaxAge        time.Duration
	DeadLetterARN string
}

// Schedule is an AWS::Scheduler::Schedule.
type Schedule struct {
	Resource
	Name       string
	ARN        string
	Enabled    bool
	Expression string
	Timezone   string
	Target     Target
}

// Permission is an AWS::Lambda::Permission: who may invoke which function.
type Permission struct {
	Resource
	Action        string
	FunctionARN   string
	Principal     string
	SourceARN     string
	SourceAccount string
	URLAuthType   string // lambda:FunctionUrlAuthType, for calls by URL
	ViaURL        bool   // lambda:InvokedViaFunctionUrl: for calls by URL only
}

// Role is an AWS::IAM::Role with its inline policies, including those of AWS::IAM::Policy and ManagedPolicy resources.
type Role struct {
	Resource
	Name          string
	ARN           string
	Path          string
	Trust         json.RawMessage // the assume-role policy document
	Policies      []Policy
	ManagedPolicy []string // ARNs
}

// Policy is one policy document under its name.
type Policy struct {
	Name     string
	Document json.RawMessage
}

// Queue is an AWS::SQS::Queue. Retention and Visibility are SQS' defaults when the template has none.
type Queue struct {
	Resource
	Name       string
	ARN        string
	URL        string
	Retention  time.Duration
	Visibility time.Duration
	Policies   []json.RawMessage
	// DeadLetterARN is where a message goes that was received MaxReceives times; empty: nowhere.
	DeadLetterARN string
	MaxReceives   int
}

// Mapping is an AWS::Lambda::EventSourceMapping from a queue.
type Mapping struct {
	Resource
	QueueARN       string
	FunctionARN    string
	BatchSize      int
	Window         time.Duration // that a batch waits for more
	MaxConcurrency int           // 0: no bound of its own
	Partial        bool          // the function names the messages that failed
}

// Bucket is an AWS::S3::Bucket.
type Bucket struct {
	Resource
	Name string
	ARN  string
}

// AccessEntry is an AWS::EKS::AccessEntry: how a cluster sees a principal.
type AccessEntry struct {
	Resource
	Cluster      string
	PrincipalARN string
	Type         string // STANDARD, EC2_LINUX, ...
	Username     string
	Groups       []string
	Policies     []string // ARNs of associated access policies
}

// InstanceProfile is an AWS::IAM::InstanceProfile.
type InstanceProfile struct {
	Resource
	Name  string
	ARN   string
	Path  string
	Roles []string // role names
}

// CustomResource is a resource backed by a function; the function's answer makes its attributes.
type CustomResource struct {
	Resource
	ServiceToken string
	Properties   json.RawMessage
}
