package awsemulator

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"log"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/google/uuid"

	"joiner.sh/pkg/cli/recording"
	"joiner.sh/pkg/testing/requestlimits"
)

// Options say what account this is and who hears of what happens in it.
type Options struct {
	Region, Account, ClusterName string // defaults us-west-2, 111122223333, demo
	KubernetesVersion            string // major.minor, default 1.36

	PendingFor    time.Duration // from launch to running
	ShutdownFor   time.Duration // from TerminateInstances to terminated
	StopFor       time.Duration // from StopInstances to stopped, default ShutdownFor
	StartFor      time.Duration // from StartInstances to running, default PendingFor
	SpotNotice    time.Duration // from the interruption warning to the reclaim, default 2 minutes
	TerminatedFor time.Duration // how long a terminated instance is still described, default 1 hour

	// Events gets each event of the default bus, one at a time and in order, as a JSON envelope.
	Events func(envelope []byte)
	// OnInstance gets a copy of an instance at each change of its state, one at a time and in order.
	OnInstance func(Instance)
	// Invoke runs a Lambda function. Nil: no function exists.
	Invoke func(ctx context.Context, r InvokeRequest) InvokeResponse
	// Authorize refuses what a caller may not do, with the reason as IAM words it ("because no identity-based policy
	// allows …"). It must not call the account. Nil: everybody may do everything.
	Authorize func(Access) error
	// Selecting says whose Describe calls of subnets, security groups and images have to select something; see
	// refuseUnselective. Nil: nobody's, as in EC2.
	Selecting func(who Caller) bool
	// Recorded are answers of another account. A question that is among them is answered so, in their order and with
	// the last one from then on; others the account answers itself.
	Recorded []recording.Call
	// Reach says whether the caller's network has a way to the service (such as eks). Without one the connection is
	// closed. It must not call the account. Nil: everybody reaches everything.
	Reach func(who Caller, service string) bool
	// Limits are buckets of tokens that refuse calls beyond them. None: everybody may call as often as he likes.
	Limits []requestlimits.Limit
	// Exchanges sees each request with its answer, from several goroutines. Nil: nobody does.
	Exchanges func(Exchange)
	// Log gets one line for each fault that was played. Nil: nobody.
	Log *log.Logger
}

func (o Options) withDefaults() Options {
	set := func(s *string, fallback string) {
		if *s == "" {
			*s = fallback
		}
	}
	set(&o.Region, "us-west-2")
	set(&o.Account, "111122223333")
	set(&o.ClusterName, "demo")
	set(&o.KubernetesVersion, "1.36")
	if o.SpotNotice == 0 {
		o.SpotNotice = 2 * time.Minute
	}
	if o.StopFor == 0 {
		o.StopFor = o.ShutdownFor
	}
	if o.StartFor == 0 {
		o.StartFor = o.PendingFor
	}
	if o.TerminatedFor == 0 {
		o.TerminatedFor = time.Hour
	}
	return o
}

// account is what all services of an account share: one lock, the clock of what is under way, who hears of it, and the
// way to the other services.
type account struct {
	opt       Options
	offerings *offerings
	news      *news
	url       string
	host      string

	mu       sync.Mutex // guards the state of all services
	closed   bool
	sequence int

	services
}

// services are the parts of AWS that there are, each with its own state. A part that needs another one's finds it here.
type services struct {
	iam        *iam
	sts        *sts
	ssm        *ssm
	eks        *eks
	sqs        *sqs
	bus        *bus
	stacks     *stacks
	lambda     *lambda
	cloudwatch *cloudwatch
	objects    *objects
	billing    *billing
	arc        *arc
	instances  *instances
	power      *power
	fleets     *fleets
	templates  *templates
	amis       *amis
	networks   *networks
	capacity   *capacity
	market     *market
	volumes    *volumes
	ec2Access  *ec2Access
}

// Cloud is the account and what answers for it. What the services let a test do are methods of it. All methods may be
// called from any goroutine.
type Cloud struct {
	*account
	*iam
	*sts
	*ssm
	*eks
	*sqs
	*bus
	*stacks
	*lambda
	*objects
	*cloudwatch
	*billing
	*arc
	*instances
	*power
	*templates
	*amis
	*networks
	*capacity
	*market
	*volumes

	table    map[string]service
	faults   faultBook
	limits   faultBook
	calls    callBook
	replayed replayBook
	server   *http.Server
}

// NewCloud makes an account with a network of one subnet in each zone, the EKS images of two releases, the node role
// and the service-linked role of spot. Nothing listens until StartServer.
func NewCloud(o Options) (*Cloud, error) {
	o = o.withDefaults()
	offerings, err := readOfferings()
	if err != nil {
		return nil, fmt.Errorf("read instance types: %w", err)
	}
	a := &account{opt: o, offerings: offerings, news: newNews(o.Events, o.OnInstance)}
	a.services = a.newServices()
	c := &Cloud{account: a, iam: a.iam, sts: a.sts, ssm: a.ssm, eks: a.eks, sqs: a.sqs, bus: a.bus,
		stacks: a.stacks, lambda: a.lambda, objects: a.objects, cloudwatch: a.cloudwatch, billing: a.billing,
		arc:       a.arc,
		instances: a.instances, power: a.power, templates: a.templates,
		amis: a.amis, networks: a.networks, capacity: a.capacity, market: a.market, volumes: a.volumes,
		table: a.listOperations()}
	c.limits.set = throttleFaults(o.Limits) // which nobody can clear
	c.PutRole("aws-service-role/spot.amazonaws.com/AWSServiceRoleForEC2Spot")
	return c, nil
}

// newServices makes the services of an account in which nothing has been made yet.
func (c *account) newServices() services {
	images, params := publishedImages(c.opt)
	return services{
		iam: &iam{account: c, roles: map[string]*role{}, profiles: map[string]*profile{}},
		sts: &sts{account: c, keys: keyBook{keys: map[string]key{}}},
		ssm: &ssm{account: c, params: params},
		eks: &eks{account: c, entries: map[string]AccessEntry{}},
		sqs: &sqs{account: c, queues: map[string]*queue{}},
		bus: &bus{account: c},
		lambda: &lambda{account: c, functions: map[string]DescribedFunction{}, quotas: standardQuotas(),
			concurrency: 1000, policies: map[string]string{}},
		stacks:     &stacks{account: c, status: map[string]string{}},
		objects:    &objects{account: c, s3: newBuckets()},
		cloudwatch: &cloudwatch{account: c, alarms: map[string]Alarm{}},
		billing:    &billing{account: c},
		arc:        &arc{account: c},
		instances:  &instances{account: c, machines: map[string]*machine{}},
		power:      &power{c},
		fleets:     &fleets{account: c, tokens: map[string]fleetAnswer{}},
		templates:  &templates{account: c, lts: map[string]*template{}},
		amis:       &amis{account: c, images: images},
		networks:   &networks{account: c, vpc: newNetwork(c.opt, c.offerings.zoneIDs)},
		capacity:   &capacity{account: c, reservations: map[string]*reservation{}},
		market:     &market{c},
		volumes:    &volumes{account: c},
		ec2Access:  &ec2Access{c},
	}
}

// StartServer listens on addr ("127.0.0.1:0" picks a port) and returns the URL for AWS_ENDPOINT_URL.
func (c *Cloud) StartServer(addr string) (string, error) {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return "", fmt.Errorf("listen on %s: %w", addr, err)
	}
	c.host = l.Addr().String()
	c.url = "http://" + c.host
	c.server = &http.Server{Handler: c, ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = c.server.Serve(l) }() // ends with ErrServerClosed at Close
	return c.url, nil
}

// URL returns what StartServer returned.
func (c *Cloud) URL() string { return c.url }

// Close stops listening, ends all timers and waits for the callbacks that are running.
func (c *Cloud) Close() error {
	c.mu.Lock()
	c.closed = true
	for _, m := range c.instances.machines {
		m.stopTimers()
	}
	c.mu.Unlock()
	var err error
	if c.server != nil {
		err = c.server.Close()
	}
	c.news.stopDelivery()
	return err
}

// newID returns an id as EC2 makes them: prefix, dash, 17 hexadecimal digits of which the first is 0.
func newID(prefix string) string {
	b := make([]byte, 8)
	_, _ = rand.Read(b) // never fails, by its documentation
	return prefix + "-0" + hex.EncodeToString(b)
}

func newRequestID() string { return uuid.NewString() }
