package e2e_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/google/go-cmp/cmp"
	clientv3 "go.etcd.io/etcd/client/v3"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/client-go/kubernetes/scheme"

	"joiner.sh/events"
	"joiner.sh/infra/lab/alarms"
	"joiner.sh/infra/local/awsemulator"
	"joiner.sh/infra/local/env"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/testing/shortrun"
)

// recordings is the folder of what alarms are tested with.
var recordings = flag.String("recordings", "", "folder into which runs with faults are recorded, for the test of the alarms in infra/stack")

// healthy is how many minutes pass before the first fault: no alarm looks further back.
const healthy = 30

// TestRecordFaults has each fault happen that an alarm is for, to the deployed binaries, and records what CloudWatch
// would be told. `make alarms` runs it.
func TestRecordFaults(t *testing.T) {
	if *recordings == "" {
		t.Skip("no folder is given: make alarms records")
	}
	for name, run := range map[string]func(t *testing.T){"passes": recordPasses, "silence": recordSilence, "notices": recordNotices,
		"cluster": recordCluster, "push": recordPush, "memory": recordMemory} {
		t.Run(name, run)
	}
}

// TestAFaultIsRecorded in the minutes in which it lasts.
func TestAFaultIsRecorded(t *testing.T) {
	shortrun.Skip(t)
	r := record(t)
	r.ready()
	r.begin()
	r.pass(2)
	r.fault("the rights of provision in the cluster are gone", 3, 2, func() func() { return r.unbind("provision") }, "ProvisionErrors")
	for series, want := range map[string]string{"AWS/Lambda Errors{Name=FunctionName, Value=Provision}": "0 0 1 1 1 0 0",
		"AWS/Lambda Errors{Name=FunctionName, Value=Lifecycle}": "0 0 0 0 0 0 0", "Joiner karpenter_cluster_state_node_count{Name=cluster, Value=demo}": "0 0"} {
		var got []string
		for _, n := range r.out.Numbers[series] {
			got = append(got, fmt.Sprint(n.Value))
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s is %v, want %s", series, got, want)
		}
	}
	if want := []alarms.Fault{{From: 2, Until: 5, Name: "the rights of provision in the cluster are gone", Alarms: []string{"ProvisionErrors"}}}; !cmp.Equal(want, r.out.Faults) {
		t.Errorf("recorded %v, want %v", r.out.Faults, want)
	}
}

// tickers are the functions that a schedule invokes, with the minutes between two ticks.
func tickers() []struct {
	id    string
	every int
} {
	return []struct {
		id    string
		every int
	}{{"Provision", 1}, {"Lifecycle", 1}, {"Disrupt", 1}, {"Refresh", 5}}
}

// unbind takes a function's rights in the cluster away, as somebody does who removes its binding.
func (r *recorder) unbind(function string) (restore func()) {
	r.t.Helper()
	bindings := r.Kube.RbacV1().ClusterRoleBindings()
	b, err := bindings.Get(r.ctx, "joiner-"+function, metav1.GetOptions{})
	if err == nil {
		err = bindings.Delete(r.ctx, b.Name, metav1.DeleteOptions{})
	}
	if err != nil {
		r.t.Fatal(err)
	}
	r.rest() // until the API server knows
	return func() {
		b.ResourceVersion, b.UID = "", ""
		if _, err := bindings.Create(r.ctx, b, metav1.CreateOptions{}); err != nil {
			r.t.Fatal(err)
		}
		r.rest()
	}
}

func recordPasses(t *testing.T) {
	r := record(t)
	r.ready()
	r.run(deployment{name: "web", replicas: 1})
	r.begin()
	r.pass(healthy)
	for _, f := range tickers() {
		minutes := max(5, 3*f.every)
		r.fault("the rights of "+strings.ToLower(f.id)+" in the cluster are gone", minutes, minutes+5, func() func() {
			return r.unbind(strings.ToLower(f.id))
		}, f.id+"Errors")
	}
	r.save("passes")
}

func recordSilence(t *testing.T) {
	r := record(t)
	r.ready()
	r.begin()
	r.pass(healthy)
	for _, f := range tickers() {
		r.fault("the concurrency of "+strings.ToLower(f.id)+" is 0", 5*f.every, 4*f.every, func() func() {
			return r.reserve(strings.ToLower(f.id), 0)
		}, f.id+"Silent")
	}
	r.save("silence")
}

// reserve changes the concurrency that is reserved for a function.
func (r *recorder) reserve(function string, n int) (restore func()) {
	reserved := r.Assembly.FindFunction(r.FunctionName(function)).Reserved
	before := *reserved
	*reserved = n
	return func() { *reserved = before }
}

func recordNotices(t *testing.T) {
	r := record(t)
	r.ready()
	r.run(deployment{name: "web", replicas: 1})
	r.begin()
	r.pass(healthy)
	ours := r.living()[0].ID
	for _, id := range slices.Sorted(maps.Keys(noticeKinds())) {
		kind, short := noticeKinds()[id], strings.ToLower(id)
		event := about(t, kind, ours, nil)
		rings := []string{id + "DeadLetters", id + "EventsDropped"} // Lambda counts as dropped what a dead-letter queue gets
		if kind == events.KindStateChange {                         // which comes from a queue
			rings = rings[:1]
		}
		r.fault("the rights of "+short+" in the cluster are gone when an event comes", 2, 3, func() func() {
			restore := r.unbind(short)
			r.deliver(event)
			return func() { restore(); r.purge() }
		}, rings...)
		r.fault("the rule of "+short+" may reach neither its target nor the dead-letter queue", 1, 3, func() func() {
			return r.deliverInVain(event)
		}, id+"RuleFailed")
	}
	for _, id := range []string{"SpotInterruption", "ReservationInterruption"} {
		r.fault("more notices at once than "+strings.ToLower(id)+" may handle", 1, 3, func() func() {
			restore := r.reserve(strings.ToLower(id), 3)
			for n := range 8 {
				if _, err := r.Host.DeliverEvent(about(t, noticeKinds()[id], fmt.Sprintf("i-0f%015x", n), nil)); err != nil {
					t.Fatal(err)
				}
			}
			return func() { restore(); r.purge() }
		}, id+"Throttles")
	}
	r.fault("a notice comes late", 1, 3, func() func() {
		r.deliver(before(t, about(t, events.KindSpotInterruption, ours, nil), 90*time.Second))
		return nil
	}, "NoticesLate")
	r.save("notices")
}

// noticeKinds are the kinds of events by the function that handles them.
func noticeKinds() map[string]events.Kind {
	return map[string]events.Kind{"SpotInterruption": events.KindSpotInterruption, "ReservationInterruption": events.KindReservationInterruption,
		"Rebalance": events.KindRebalance, "ScheduledChange": events.KindScheduledChange, "StateChange": events.KindStateChange}
}

// before is an event with a time that is so long ago.
func before(t *testing.T, event []byte, ago time.Duration) []byte {
	t.Helper()
	var e map[string]any
	err := json.Unmarshal(event, &e)
	e["time"] = time.Now().Add(-ago).UTC().Format(time.RFC3339)
	late, encodeErr := json.Marshal(e)
	if err != nil || encodeErr != nil {
		t.Fatal(err, encodeErr)
	}
	return late
}

// deliverInVain delivers an event while nobody permits EventBridge anything.
func (r *recorder) deliverInVain(event []byte) (restore func()) {
	r.t.Helper()
	permissions, policies := r.Assembly.Permissions, make([][]json.RawMessage, len(r.Assembly.Queues))
	r.Assembly.Permissions = nil
	for i := range r.Assembly.Queues {
		policies[i], r.Assembly.Queues[i].Policies = r.Assembly.Queues[i].Policies, nil
	}
	if got, err := r.Host.DeliverEvent(event); err != nil || len(got) != 1 || got[0].Failed == "" {
		r.t.Errorf("delivered %v, %v; want one delivery that fails", got, err)
	}
	return func() {
		r.Assembly.Permissions = permissions
		for i := range r.Assembly.Queues {
			r.Assembly.Queues[i].Policies = policies[i]
		}
	}
}

// purge empties the dead-letter queues, as their alarms say.
func (r *recorder) purge() {
	for _, q := range r.Assembly.Queues {
		r.Cloud.PurgeQueue(q.Name)
	}
}

func recordCluster(t *testing.T) {
	r := record(t)
	r.ready()
	r.run(deployment{name: "web", replicas: 1})
	r.begin()
	r.pass(healthy)
	r.fault("a pod fits no NodePool", 12, 8, func() func() {
		r.giant(20 * time.Minute)
		return func() {
			if err := r.Kube.CoreV1().Pods("default").Delete(r.ctx, "giant", metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
		}
	}, "PodsUnplaced")
	r.fault("Karpenter leads the cluster too", 2, 3, func() func() {
		r.karpenterLeads(true)
		r.forget() // what functions believed about it
		return func() { r.karpenterLeads(false); r.forget() }
	}, "OtherLeader")
	r.pass((5 - r.minute%5) % 5)
	r.fault("nothing can be stored since seven hours", 30, 5, func() func() {
		r.ageCatalog(7 * time.Hour)
		r.Cloud.AddFault(awsemulator.Fault{Service: "s3", Action: "PutObject", Kind: awsemulator.FailBefore, Status: 403, Code: "AccessDenied"})
		return r.Cloud.ClearFaults
	}, "RefreshErrors", "CatalogOld")
	r.fault("a deployment grows without a limit", 12, 0, func() func() {
		r.run(deployment{name: "more", replicas: 4, alone: true})
		return nil
	}, "Price")
	r.save("cluster")
}

// giant makes a pod that no instance type can hold and that is so old. The API server lets nobody say how old
// something is, its store does.
func (r *recorder) giant(age time.Duration) {
	r.t.Helper()
	r.lone("giant", "4k")
	r.until("the scheduler judged the giant", func() (string, bool) {
		p, err := r.Kube.CoreV1().Pods("default").Get(r.ctx, "giant", metav1.GetOptions{})
		return fmt.Sprint(err), err == nil && len(p.Status.Conditions) > 0
	})
	c, err := clientv3.New(clientv3.Config{Endpoints: []string{r.Plane.State().Etcd}, DialTimeout: 10 * time.Second})
	if err != nil {
		r.t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	key, codec := "/registry/pods/default/giant", protobuf.NewSerializer(scheme.Scheme, scheme.Scheme)
	got, err := c.Get(r.ctx, key)
	if err != nil || len(got.Kvs) != 1 {
		r.t.Fatalf("%d objects at %s, %v", len(got.Kvs), key, err)
	}
	o, _, err := codec.Decode(got.Kvs[0].Value, nil, nil)
	if err != nil {
		r.t.Fatal(err)
	}
	o.(*corev1.Pod).CreationTimestamp = metav1.NewTime(time.Now().Add(-age))
	var b bytes.Buffer
	if err := codec.Encode(o, &b); err != nil {
		r.t.Fatal(err)
	}
	if _, err := c.Put(r.ctx, key, b.String()); err != nil {
		r.t.Fatal(err)
	}
}

// ageCatalog makes the stored catalog so old.
func (r *recorder) ageCatalog(age time.Duration) {
	r.t.Helper()
	k := r.Cloud.IssueCredentials(env.Administrator, "terminal", 0)
	c := s3.New(s3.Options{Region: env.Region, BaseEndpoint: aws.String(r.Cloud.URL()), UsePathStyle: true,
		RequestChecksumCalculation: aws.RequestChecksumCalculationWhenSupported,
		Credentials:                credentials.NewStaticCredentialsProvider(k.AccessKeyID, k.SecretAccessKey, k.SessionToken)})
	bucket, key := r.Assembly.Buckets[0].Name, aws.String("catalog.json.gz")
	got, err := c.GetObject(r.ctx, &s3.GetObjectInput{Bucket: &bucket, Key: key})
	if err != nil {
		r.t.Fatal(err)
	}
	var b bytes.Buffer
	if _, err := b.ReadFrom(got.Body); err != nil {
		r.t.Fatal(err)
	}
	catalog, err := instancetypes.DecodeCatalog(b.Bytes())
	if err != nil {
		r.t.Fatal(err)
	}
	catalog.Time = time.Now().Add(-age)
	old, err := catalog.Encode()
	if err != nil {
		r.t.Fatal(err)
	}
	if _, err := c.PutObject(r.ctx, &s3.PutObjectInput{Bucket: &bucket, Key: key, Body: bytes.NewReader(old)}); err != nil {
		r.t.Fatal(err)
	}
}

func recordPush(t *testing.T) {
	r := record(t, func(o *env.Options) { o.Push = true })
	r.ready()
	r.begin()
	r.pass(healthy)
	r.fault("wake has a setting that it does not understand", 5, 7, func() func() {
		restore := r.redeploy("wake", "WATCH_DURATION", "soon")
		for range 4 {
			r.knock()
		}
		return restore
	}, "WakeErrors")
	r.fault("the webhook is gone when pods want five nodes", 1, 0, func() func() {
		if a, err := r.RequestResource(r.ctx, "Update", setupType, map[string]any{"PushURL": ""}); err != nil || a.Status != "SUCCESS" {
			t.Fatalf("%+v, %v", a, err)
		}
		for n := range 5 {
			pod, began := fmt.Sprint("late-", n), time.Now()
			r.lone(pod, "1500m") // no node has room for a second one
			r.until("the webhook would have announced "+pod, func() (string, bool) {
				p, err := r.Kube.CoreV1().Pods("default").Get(r.ctx, pod, metav1.GetOptions{})
				return fmt.Sprint(err), err == nil && len(p.Status.Conditions) > 0 && time.Since(began) > 4*time.Second
			})
			r.pass(5)
		}
		return nil
	}, "Price", "PushMissed")
	r.save("push")
}

// redeploy gives a function another value of a variable.
func (r *recorder) redeploy(function, name, value string) (restore func()) {
	r.t.Helper()
	variables := r.Assembly.FindFunction(r.FunctionName(function)).Environment
	before := variables[name]
	set := func(value string) {
		variables[name] = value
		if err := r.Host.SetAttributes("", nil); err != nil {
			r.t.Fatal(err)
		}
	}
	set(value)
	return func() { set(before) }
}

func recordMemory(t *testing.T) {
	r := record(t, func(o *env.Options) { o.FunctionMemory = 32 })
	r.apply(text(pool("default")), class{name: "default"})
	r.begin()
	r.fault("the cluster has outgrown the functions' memory", healthy+5, 0, func() func() {
		r.apply(deployment{name: "web", replicas: 1})
		return nil
	}, "PassesCutShort")
	r.save("memory")
}
