package discovery

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	v1 "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/controllers"
	learning "joiner.sh/pkg/controllers/spotpools"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/resources"
	"joiner.sh/pkg/model/spotpools"
	"joiner.sh/pkg/providers/discovery"
	"joiner.sh/pkg/providers/store"
)

// memory is a store of shared data.
type memory struct {
	data    map[string]string
	version int
}

func (m *memory) ReadData(context.Context, string) (map[string]string, string, error) {
	return m.data, fmt.Sprint(m.version), nil
}

func (m *memory) WriteData(_ context.Context, _ string, data map[string]string, _ string) error {
	m.data, m.version = data, m.version+1
	return nil
}

// oneClaim is a NodeClaim of a spot pool that was launched.
type oneClaim struct {
	pool     spotpools.Pool
	launched time.Time
}

func (c oneClaim) ListClaims(context.Context) ([]cluster.Claim, error) {
	return []cluster.Claim{{Name: "one", Labels: map[string]string{instancetypes.LabelType: c.pool.Type, instancetypes.LabelZone: c.pool.Zone,
		instancetypes.LabelCapacityType: instancetypes.Spot}, Conditions: []cluster.Condition{{Type: v1.ConditionLaunched, Status: "True", Since: c.launched}}}}, nil
}

func (r *rig) records(name string) discovery.SpotRecords {
	place := spotpools.Place{Account: "111122223333", Region: "us-west-2"}
	return discovery.SpotRecords{S3: s3.NewFromConfig(r.cfg, func(o *s3.Options) { o.UsePathStyle = true }), Bucket: bucket,
		Prefix: place.Prefix(), Key: place.KeyOf(name), Now: r.clock}
}

func TestInterruptionsAreInTheRecordAndInTheNextChoice(t *testing.T) {
	r := start(t)
	cheapest := func() spotpools.Pool {
		t.Helper()
		c, _ := read(t, r.store())
		class := instancetypes.DefaultClass(c)
		cost := instancetypes.InterruptionCost{PodUSD: 0.06, Pod: resources.List{CPU: 250, Memory: 512 << 20}}
		for _, typ := range c.AddInterruptionCosts(instancetypes.ResolveTypes(c, class, nil, r.clock()), cost) {
			if typ.Name != "m5.large" {
				continue
			}
			for _, o := range typ.Offerings {
				if o.CapacityType == instancetypes.Spot && o.Available {
					return spotpools.Pool{Type: o.Type, Zone: o.Zone}
				}
			}
		}
		t.Fatal("no m5.large is sold as spot")
		return spotpools.Pool{}
	}
	events := store.NewSpotEvents(&memory{}, r.clock)
	if _, err := isolated(r).Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	before := cheapest()
	var noted []spotpools.Event
	for k := range 40 {
		noted = append(noted, spotpools.Event{ID: fmt.Sprintf("i-%d", k), Kind: spotpools.Interruption, Pool: before, At: r.clock()})
	}
	if err := events.NoteSpotEvents(t.Context(), noted); err != nil {
		t.Fatal(err)
	}
	l := &learning.Learner{Claims: oneClaim{before, r.clock()}, Events: events, Records: r.records("demo"), Now: r.clock, Log: slog.New(slog.DiscardHandler)}
	if err := l.Learn(controllers.BeginPass(t.Context(), func(context.Context) (bool, error) { return true, nil })); err != nil {
		t.Fatal(err)
	}
	if _, err := isolated(r).WithSpotPools(l.Latest).Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	own, etag, err := r.records("demo").ReadOwn(t.Context())
	if err != nil || etag == "" || len(own.Pools) != 1 || own.Pools[0].Interruptions != 40 {
		t.Errorf("the record in S3 is %+v (%v)", own, err)
	}
	if after := cheapest(); after == before {
		t.Errorf("the cheapest pool is still %v, which was interrupted 40 times", after)
	}
	if _, err := isolated(r).Refresh(t.Context()); err != nil { // turned off
		t.Fatal(err)
	}
	if after := cheapest(); after != before {
		t.Errorf("turned off the cheapest pool is %v, want %v as before", after, before)
	}
}

func TestRecordsOfClustersStandBesideEachOther(t *testing.T) {
	r := start(t)
	a, b := r.records("a"), r.records("b")
	one := spotpools.Record{Version: spotpools.Version, At: r.clock()}.CountHours(map[spotpools.Pool]float64{{Type: "m5.large", Zone: "us-west-2a"}: 5})
	if got, etag, err := a.ReadOwn(t.Context()); err != nil || etag != "" || len(got.Pools) != 0 {
		t.Errorf("before the first write: %+v, %q, %v", got, etag, err)
	}
	if err := a.WriteOwn(t.Context(), one, ""); err != nil {
		t.Fatal(err)
	}
	if err := a.WriteOwn(t.Context(), one, ""); !controllers.IsConflict(err) {
		t.Errorf("a second first record is %v, want a conflict", err)
	}
	_, etag, err := a.ReadOwn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := a.WriteOwn(t.Context(), one.FadeTo(r.clock().Add(time.Hour)), etag); err != nil {
		t.Error(err)
	}
	if err := a.WriteOwn(t.Context(), one, etag); !controllers.IsConflict(err) {
		t.Errorf("a write over what changed is %v, want a conflict", err)
	}
	_, err = a.S3.PutObject(t.Context(), &s3.PutObjectInput{Bucket: aws.String(bucket), Key: aws.String(a.Prefix + "c.json"), Body: strings.NewReader("no record")})
	if err != nil {
		t.Fatal(err)
	}
	others, err := b.ReadOthers(t.Context())
	if err != nil || len(others) != 2 || len(others[0].Pools) != 1 || len(others[1].Pools) != 0 {
		t.Errorf("b reads %+v (%v), want the record of a and an empty one", others, err)
	}
	if own, err := a.ReadOthers(t.Context()); err != nil || len(own) != 1 {
		t.Errorf("a reads %+v (%v), want that of c alone", own, err)
	}
}
