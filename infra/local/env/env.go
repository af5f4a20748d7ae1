package env

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"joiner.sh/infra/local/awsemulator"
	"joiner.sh/infra/local/controlplane/client"
	"joiner.sh/infra/local/iam"
	"joiner.sh/infra/local/kubelet"
	"joiner.sh/infra/local/lambdahost"
	"joiner.sh/infra/local/lambdahost/assembly"
	"joiner.sh/infra/local/vpc"
	"joiner.sh/infra/local/wirelog"
	"joiner.sh/pkg/model/naming"
	"joiner.sh/pkg/settings"
	"joiner.sh/pkg/testing/requestlimits"
)

// Names of the environment. The stack is synthesized for this cluster.
const (
	Region      = "us-west-2"
	Account     = "111122223333"
	ClusterName = "demo"
	serviceCIDR = "10.100.0.0/16"
	// Administrator is the role of a person who may ask the account for everything, as at a terminal.
	Administrator = "administrator"
)

// Options say what is started. Root is needed; the rest has defaults.
type Options struct {
	Root       string        // repository root, under which .local holds the built parts
	Stack      string        // folder with the synthesized stack, below .local or absolute; default cdk.out
	Dir        string        // for what the control plane writes; default .local/run/plane under Root
	Plane      *client.Plane // a running plane to use instead of a new one; it is not stopped by Close
	Addr       string        // of the emulated AWS; default 127.0.0.1:0
	Minute     time.Duration // how long a minute of the schedules lasts; default 10 s
	PendingFor time.Duration // from launch to running; default 1 s
	StartFor   time.Duration // from the start of a stopped instance to running; default PendingFor
	BootDelay  time.Duration // from running to a kubelet that registers; default 2 s
	ServingFor time.Duration // how long serving certificates of kubelets last; 0: they have none
	SpotNotice time.Duration // default 2 minutes, as EC2 has it
	// for which a terminated instance is still described; default an hour, as EC2 has it
	EndedFor time.Duration
	Paused   bool                    // start with the schedules paused
	Lose     func(event []byte) bool // events that EC2 or EventBridge loses, which they may; nil for none
	// have the cluster announce pods and deletions; the stack must have been synthesized with push
	Push bool
	// pods of a Node that is gone end at once, not by the controller-manager a minute later
	CollectPods bool
	// Env goes over the template's environment of every function: a setting as another deployment would have it.
	Env map[string]string
	// Limits are the account's, in place of those that AWS publishes or is taken to have.
	Limits    []requestlimits.Limit
	Audit     bool // the control plane writes planectl.AuditFile into Dir
	GCPercent int  // of the control plane, see planectl.Options
	// of the control plane as well; the zero values are a whole one
	Controllers string
	NodeGrace   time.Duration
	// Interpose puts something between the functions and the API server, and gives the URL and the certificate
	// authority that they get to see. The caller ends it; nil for nothing.
	Interpose func(*client.Plane) (server string, ca []byte, err error)
	// FunctionMemory is in MiB, as if the stack had been synthesized with it; 0 leaves the template's.
	FunctionMemory int64
	Confine        bool                    // see lambdahost.Options
	OnReport       func(lambdahost.Report) // likewise
	// Network is the VPC that instances are in; nil: they reach everything.
	Network *vpc.Network
	// what is allowed beside the stack's policies, as a deployment with other settings would; nil for nothing
	Grant       func(awsemulator.Access) bool
	Progress    io.Writer // one line for each part that came up
	FunctionLog io.Writer // log lines of the functions
}

// Env is a running environment.
type Env struct {
	Cloud    *awsemulator.Cloud
	Host     *lambdahost.Host
	Plane    *client.Plane
	Kube     *Kube
	Kubelets *kubelet.Bridge
	Assembly *assembly.Assembly

	wire     *wirelog.Log
	ownPlane bool
	push     bool
	server   string // of the cluster, as EKS describes it
	ca       []byte
	policies atomic.Pointer[iam.Policies] // of the stack's roles, once it is deployed
	groups   sync.Map                     // security groups of instances, by their id
	physical map[string]string            // ids of custom resources, by logical id
}

// StartEnvironment brings everything up. On an error what was started is ended again.
func StartEnvironment(ctx context.Context, o Options) (e *Env, err error) {
	o = o.withDefaults()
	e = &Env{push: o.Push}
	defer func() {
		if err != nil {
			err = errors.Join(err, e.Close())
		}
	}()
	say := newStopwatch(o.Progress)
	if err := e.startCloud(o); err != nil {
		return e, err
	}
	say("AWS (emulated) answers at " + e.Cloud.URL())
	if err := e.startPlane(ctx, o); err != nil {
		return e, err
	}
	say("Kubernetes control plane answers at " + e.Plane.ServerURL())
	if e.Kube, err = NewKube(e.Plane.RESTConfig()); err != nil {
		return e, err
	}
	if e.Kubelets, err = e.newKubelets(o); err != nil {
		return e, err
	}
	if err := e.deployStack(ctx, o); err != nil {
		return e, err
	}
	say(fmt.Sprintf("stack deployed: %d functions, %d rules, %d roles, %d access entries",
		len(e.Assembly.Functions), len(e.Assembly.Rules), len(e.Assembly.Roles), len(e.Assembly.AccessEntries)))
	data, err := e.createResources(ctx)
	if err != nil {
		return e, err
	}
	say(fmt.Sprintf("setup answered CloudFormation: CRDs and RBAC applied, %v objects", data["Objects"]))
	if !o.Paused {
		e.Host.ResumeSchedules()
	}
	return e, nil
}

func (o Options) withDefaults() Options {
	set := func(d *time.Duration, v time.Duration) {
		if *d == 0 {
			*d = v
		}
	}
	set(&o.Minute, 10*time.Second)
	set(&o.PendingFor, time.Second)
	set(&o.BootDelay, 2*time.Second)
	set(&o.SpotNotice, 2*time.Minute)
	if o.Dir == "" {
		o.Dir = filepath.Join(o.Root, ".local", "run", "plane")
	}
	if o.Addr == "" {
		o.Addr = "127.0.0.1:0"
	}
	if o.Progress == nil {
		o.Progress = io.Discard
	}
	if o.Limits == nil {
		o.Limits = requestlimits.Default()
	}
	if o.FunctionLog == nil {
		o.FunctionLog = io.Discard
	}
	return o
}

func (e *Env) startCloud(o Options) (err error) {
	if e.wire, err = wirelog.FromEnvironment(); err != nil {
		return err
	}
	e.Cloud, err = awsemulator.NewCloud(awsemulator.Options{Region: Region, Account: Account, ClusterName: ClusterName,
		KubernetesVersion: client.Minor(),
		PendingFor:        o.PendingFor, StartFor: o.StartFor, ShutdownFor: time.Second, SpotNotice: o.SpotNotice,
		TerminatedFor: o.EndedFor,
		Events: func(envelope []byte) {
			if e.Host == nil || o.Lose != nil && o.Lose(envelope) {
				return
			}
			if _, err := e.Host.DeliverEvent(envelope); err != nil {
				fmt.Fprintf(o.FunctionLog, "event not delivered: %v\n", err)
			}
		},
		OnInstance: func(i awsemulator.Instance) {
			if e.Kubelets != nil {
				e.Kubelets.AnnounceInstance(instanceOf(i))
			}
		},
		Invoke: e.invokeFunction, Limits: o.Limits, Exchanges: e.wire.Observe(),
		Selecting: func(who awsemulator.Caller) bool { return who.Function != "" },
		Reach: func(who awsemulator.Caller, service string) bool {
			return o.Network == nil || !who.IsInstance() || o.Network.Reaches(e.groupsOf(who.Session), service)
		},
		Authorize: func(a awsemulator.Access) error {
			if o.Grant != nil && o.Grant(a) {
				return nil
			}
			err := e.authorizeCall(a)
			if err != nil {
				fmt.Fprintf(o.FunctionLog, "IAM refuses %s %s on %s %v\n", a.Caller.ARN(), a.Action, a.Resource, err)
			}
			return err
		},
	})
	if err != nil {
		return err
	}
	_, err = e.Cloud.StartServer(o.Addr)
	return err
}

func (e *Env) startPlane(ctx context.Context, o Options) (err error) {
	if o.Plane != nil {
		e.Plane = o.Plane
	} else {
		e.ownPlane = true
		e.Plane, err = client.StartPlane(ctx, client.Options{
			Binary:       filepath.Join(o.Root, client.Program("joiner-plane", client.Minor())),
			Dir:          o.Dir,
			TokenWebhook: e.Cloud.URL() + "/authenticate", Audit: o.Audit, GCPercent: o.GCPercent,
			Controllers: o.Controllers, NodeGrace: o.NodeGrace,
			Log: indentLines(o.Progress)})
		if err != nil {
			return err
		}
	}
	e.server, e.ca = e.Plane.ServerURL(), e.Plane.CA()
	if o.Interpose != nil {
		if e.server, e.ca, err = o.Interpose(e.Plane); err != nil {
			return fmt.Errorf("interpose before the API server: %w", err)
		}
	}
	e.Cloud.SetCluster(e.server, e.ca, serviceCIDR)
	return nil
}

// deployStack makes what the synthesized template says and starts the functions.
func (e *Env) deployStack(ctx context.Context, o Options) (err error) {
	dir := o.Stack
	if !filepath.IsAbs(dir) {
		dir = filepath.Join(o.Root, ".local", cmp.Or(o.Stack, "cdk.out"))
	}
	if _, err := os.Stat(filepath.Join(dir, "manifest.json")); err != nil {
		return fmt.Errorf("find the synthesized stack: %w (make synthesizes it: make run, make up or make local)", err)
	}
	if e.Assembly, err = assembly.Load(dir, assembly.Place{Account: Account, Region: Region}); err != nil {
		return err
	}
	for i := range e.Assembly.Functions {
		if f := e.Assembly.Functions[i].Environment; f["TRIGGER"] != "" && !o.Push {
			f["TRIGGER"] = settings.TriggerSchedule
		}
		maps.Copy(e.Assembly.Functions[i].Environment, o.Env)
		resizeFunction(&e.Assembly.Functions[i], o.FunctionMemory)
	}
	policies, err := iam.Of(e.Assembly.Roles)
	if err != nil {
		return fmt.Errorf("read the stack's policies: %w", err)
	}
	e.policies.Store(policies)
	queues := map[string]string{} // ARN to name
	for _, r := range e.Assembly.Roles {
		if !e.isNodeRole(r) {
			e.Cloud.PutRole(strings.TrimPrefix(r.Path, "/") + r.Name)
		}
	}
	for _, f := range e.Assembly.Functions {
		e.Cloud.PutFunction(e.describeFunction(f, f.Environment))
	}
	e.describeRoutes()
	for _, q := range e.Assembly.Queues {
		e.Cloud.PutQueue(q.Name)
		queues[q.ARN] = q.Name
	}
	for _, b := range e.Assembly.Buckets {
		if err := e.Cloud.PutBucket(b.Name); err != nil {
			return err
		}
	}
	for _, a := range e.Assembly.AccessEntries {
		e.Cloud.PutAccessEntry(awsemulator.AccessEntry{PrincipalARN: a.PrincipalARN, KubernetesGroups: a.Groups,
			Username: a.Username, Type: a.Type, Policies: a.Policies})
	}
	e.Host, err = lambdahost.StartHost(ctx, lambdahost.Options{Assembly: e.Assembly, CloudURL: e.Cloud.URL(),
		Minute: o.Minute, Paused: true, Log: o.FunctionLog, Confine: o.Confine, OnReport: o.OnReport,
		Credentials: func(_ context.Context, role, session string) (string, string, string, error) {
			c := e.Cloud.FunctionCredentials(role, session)
			return c.AccessKeyID, c.SecretAccessKey, c.SessionToken, nil
		},
		SendToQueue: func(arn string, body []byte) error {
			if !e.Cloud.SendMessage(queues[arn], string(body)) {
				return fmt.Errorf("send to queue %s: there is no such queue", arn)
			}
			return nil
		}})
	return err
}

// resizeFunction gives a function of which one runs at a time another memory, as the setting functionMemory does.
func resizeFunction(f *assembly.Function, memoryMB int64) {
	if memoryMB == 0 || f.Reserved == nil || *f.Reserved != 1 {
		return
	}
	f.MemoryMB, f.MemoryLike = memoryMB, ""
	f.Environment["GOMEMLIMIT"] = settings.FunctionMemoryLimit(int(memoryMB))
}

// FunctionMemory is that of one of the stack's functions, such as provision, in MiB.
func (e *Env) FunctionMemory(short string) int64 {
	if f := e.Assembly.FindFunction(e.FunctionName(short)); f != nil {
		return f.MemoryMB
	}
	return 0
}

// isNodeRole reports whether the stack makes an instance profile for the role.
func (e *Env) isNodeRole(r assembly.Role) bool {
	return slices.ContainsFunc(e.Assembly.InstanceProfiles, func(p assembly.InstanceProfile) bool {
		return slices.Contains(p.Roles, r.Name)
	})
}

// createNodeIdentity makes what instances of the stack run with: roles that the preflight wants not to be there, and
// their profiles.
func (e *Env) createNodeIdentity() {
	for _, r := range e.Assembly.Roles {
		if e.isNodeRole(r) {
			e.Cloud.PutRole(strings.TrimPrefix(r.Path, "/") + r.Name)
		}
	}
	for _, p := range e.Assembly.InstanceProfiles {
		for _, r := range p.Roles {
			e.Cloud.PutInstanceProfile(p.Name, r)
		}
	}
}

// authorizeCall weighs every call by the policies of the synthesized stack, as IAM does.
func (e *Env) authorizeCall(a awsemulator.Access) error {
	if a.Caller.Role == "arn:aws:iam::"+Account+":role/"+Administrator {
		return nil
	}
	policies := e.policies.Load()
	if policies == nil {
		return errors.New("because no stack is deployed yet")
	}
	if e.isWorker(a) {
		return nil
	}
	_, err := policies.Decide(iam.Request{Role: a.Caller.Role, Action: a.Action, Resource: a.Resource, Keys: a.Keys})
	return err
}

func (e *Env) invokeFunction(ctx context.Context, r awsemulator.InvokeRequest) awsemulator.InvokeResponse {
	if e.Host == nil {
		return awsemulator.InvokeResponse{Unknown: true}
	}
	res, err := e.Host.InvokeFunction(lambdahost.WithTrace(ctx, r.Trace), r.Function, r.Type, r.Payload)
	if h, ok := errors.AsType[*lambdahost.Error](err); ok {
		return awsemulator.InvokeResponse{Unknown: h.Status == 404, Throttled: h.Status == 429,
			Recursive: h.Status == 400}
	}
	if err != nil {
		return awsemulator.InvokeResponse{Throttled: true}
	}
	return awsemulator.InvokeResponse{FunctionError: res.FunctionError, Payload: res.Payload}
}

// FunctionName is the physical name of one of the stack's functions, such as provision.
func (e *Env) FunctionName(short string) string {
	return naming.Names{Cluster: ClusterName}.Function(short)
}

// Close ends everything: functions first, so that none acts on what is going away.
func (e *Env) Close() error {
	var errs []error
	if e.Host != nil {
		errs = append(errs, e.Host.Close())
	}
	if e.Kubelets != nil {
		e.Kubelets.Close()
	}
	if e.Cloud != nil {
		errs = append(errs, e.Cloud.Close(), e.wire.Close())
	}
	if e.Plane != nil && e.ownPlane {
		errs = append(errs, e.Plane.StopPlane())
	}
	return errors.Join(errs...)
}
