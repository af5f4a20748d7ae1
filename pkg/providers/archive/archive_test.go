package archive_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"joiner.sh/pkg/decisionlog"
	"joiner.sh/pkg/decisionlog/replay"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/plan"
	"joiner.sh/pkg/providers/archive"
)

// bucket is S3 in memory, with pages of two keys.
type bucket map[string][]byte

func (b bucket) PutObject(_ context.Context, in *s3.PutObjectInput, _ ...func(*s3.Options)) (*s3.PutObjectOutput, error) {
	if *in.Bucket != "b" {
		return nil, errors.New("access denied")
	}
	data, err := io.ReadAll(in.Body)
	b[*in.Key] = data
	return &s3.PutObjectOutput{}, err
}

func (b bucket) GetObject(_ context.Context, in *s3.GetObjectInput, _ ...func(*s3.Options)) (*s3.GetObjectOutput, error) {
	data, ok := b[*in.Key]
	if !ok {
		return nil, errors.New("no such key")
	}
	if in.Range != nil {
		var from, to int
		if _, err := fmt.Sscanf(*in.Range, "bytes=%d-%d", &from, &to); err != nil {
			return nil, err
		}
		data = data[from:min(to+1, len(data))]
	}
	return &s3.GetObjectOutput{Body: io.NopCloser(bytes.NewReader(data))}, nil
}

func (b bucket) ListObjectsV2(_ context.Context, in *s3.ListObjectsV2Input, _ ...func(*s3.Options)) (*s3.ListObjectsV2Output, error) {
	out := &s3.ListObjectsV2Output{}
	for _, k := range slices.Sorted(maps.Keys(b)) {
		if !strings.HasPrefix(k, *in.Prefix) || k <= aws.ToString(in.ContinuationToken) {
			continue
		}
		if len(out.Contents) == 2 {
			out.IsTruncated, out.NextContinuationToken = aws.Bool(true), out.Contents[1].Key
			break
		}
		out.Contents = append(out.Contents, types.Object{Key: aws.String(k)})
	}
	return out, nil
}

func of(t *testing.T, at time.Time) decisionlog.Pass {
	t.Helper()
	made, err := replay.ProvisionPass(decisionlog.PassStamp{Cluster: "demo"}, cluster.Snapshot{Now: at}, plan.Plan{Launches: []plan.Launch{{Pool: "p"}}})
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func TestPassesAreFoundByTheirTime(t *testing.T) {
	b, log := bucket{"catalog.json.gz": nil, "passes/2026/11/22/01/notes.txt": nil}, &bytes.Buffer{}
	w := archive.PassWriter{Log: slog.New(slog.NewJSONHandler(log, nil)), S3: b, Bucket: "b"}
	start := time.Date(2026, 11, 22, 1, 30, 0, 0, time.UTC)
	for i := range 8 {
		for range 2 { // repeated calls store one
			if err := w.WritePass(t.Context(), of(t, start.Add(time.Duration(i)*10*time.Minute))); err != nil {
				t.Fatal(err)
			}
		}
	}
	r := archive.PassReader{S3: b, Bucket: "b"}
	keys, err := r.ListKeys(t.Context(), start.Add(10*time.Minute), start.Add(60*time.Minute))
	if err != nil || len(keys) != 5 || !slices.IsSorted(keys) {
		t.Fatalf("%v, %v", keys, err)
	}
	whole, err := r.ReadPass(t.Context(), keys[0])
	if err != nil || !whole.Time.Equal(start.Add(10*time.Minute)) || whole.Snapshot != keys[0] || len(whole.Plan) == 0 {
		t.Errorf("%+v, %v", whole, err)
	}
	rec, err := r.ReadRecord(t.Context(), keys[4])
	if err != nil || !rec.Time.Equal(start.Add(50*time.Minute)) || len(rec.Launches) != 1 {
		t.Errorf("%+v, %v", rec, err)
	}
	if !strings.Contains(log.String(), `"msg":"decision","decision":{"schema":2,"time":"2026-11-22T01:30:00Z","cluster":"demo","function":"provision","snapshot":"passes/2026/11/22/01/`) {
		t.Error(log.String())
	}
	if _, err := r.ListKeys(t.Context(), start.Add(-500*24*time.Hour), start); err == nil {
		t.Error("500 days are listed")
	}
}

// What cannot be stored is still in the log, without a reference to what is not there.
func TestAPassThatCannotBeStored(t *testing.T) {
	b, log := bucket{}, &bytes.Buffer{}
	w := archive.PassWriter{Log: slog.New(slog.NewJSONHandler(log, nil)), S3: b, Bucket: "other"}
	large := of(t, time.Unix(0, 0))
	large.Saw.Pods = make([]cluster.Pod, 30_001)
	for _, c := range []struct {
		pass decisionlog.Pass
		want string
	}{{of(t, time.Unix(0, 0)), "put pass into bucket other: access denied"}, {large, "more than 30000 pods"}} {
		log.Reset()
		err := w.WritePass(t.Context(), c.pass)
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(log.String(), `"msg":"decision"`) || strings.Contains(log.String(), "snapshot") {
			t.Errorf("%v, %s", err, log)
		}
	}
}

// A pass in which something failed is stored whatever the settings say, and the log says where; one in which nothing
// failed is as they say.
func TestAPassThatFailedIsStored(t *testing.T) {
	for _, of := range []archive.Kept{archive.Whole, archive.InLog, archive.Nothing} {
		for _, failed := range []bool{true, false} {
			made, err := replay.ProvisionPass(decisionlog.PassStamp{Cluster: "demo"}, cluster.Snapshot{Now: time.Unix(0, 0)}, plan.Plan{Launches: []plan.Launch{{Pool: "p"}}})
			if err != nil {
				t.Fatal(err)
			}
			if failed {
				made.AddFaults(plan.Fault{Kind: cluster.WaitingPods, Name: "team-b/1234", Pods: []string{"team-b/evil-1"}, Why: "index out of range", Stack: []string{"f f.go:7"}})
			}
			b, log := bucket{}, &bytes.Buffer{}
			w := archive.PassWriter{Log: slog.New(slog.NewJSONHandler(log, nil)), S3: b, Bucket: "b", Of: of}
			if err := w.WritePass(t.Context(), made); err != nil {
				t.Fatal(err)
			}
			stored, line := len(b) == 1, strings.Contains(log.String(), `"msg":"decision"`)
			if stored != (failed || of == archive.Whole) || line != (failed || of != archive.Nothing) {
				t.Errorf("keeping %d, failed %t: stored %t, logged %t", of, failed, stored, line)
			}
			told := strings.Contains(log.String(), `"level":"ERROR","msg":"Joiner itself failed about a part of the pass: replay it and report it","faults":1,"snapshot":"s3://b/`+made.Key()+`"`)
			if told != failed || strings.Contains(log.String(), `"stack":["f f.go:7"]`) != failed {
				t.Errorf("keeping %d, failed %t: the log says\n%s", of, failed, log)
			}
		}
	}
	log := &bytes.Buffer{}
	var made decisionlog.Pass
	made.AddFaults(plan.Fault{Why: "index out of range"})
	if err := (archive.PassWriter{Log: slog.New(slog.NewJSONHandler(log, nil))}).WritePass(t.Context(), made); err != nil || !strings.Contains(log.String(), "which is stored nowhere") {
		t.Errorf("without a bucket: %v, %s", err, log)
	}
}
