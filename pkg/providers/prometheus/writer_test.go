package prometheus_test

import (
	"context"
	"errors"
	"io"
	"maps"
	"math"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/exp/api/remote"
	writev2 "github.com/prometheus/client_golang/exp/api/remote/genproto/v2"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"joiner.sh/pkg/model/timeseries"
	"joiner.sh/pkg/providers/prometheus"
)

func noon() time.Time { return time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC) }

// receiver is an endpoint with the protocol's own handler.
type receiver struct {
	mu       sync.Mutex
	versions remote.MessageTypes
	status   []int // to answer with instead, one after the other
	requests int
	headers  []http.Header
	got      map[string]string // series: value, and time where it is not noon
	types    map[string]string
}

func (r *receiver) Store(req *http.Request, version remote.WriteMessageType) (*remote.WriteResponse, error) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.got == nil {
		r.got, r.types = map[string]string{}, map[string]string{}
	}
	out := remote.NewWriteResponse()
	if version == remote.WriteV1MessageType {
		return out, r.storeVersion1(body)
	}
	var m writev2.Request
	if err := proto.Unmarshal(body, &m); err != nil {
		return nil, err
	}
	for _, s := range m.Timeseries {
		labels := writev2.DesymbolizeLabels(s.LabelsRefs, m.Symbols, nil)
		r.keep(labels, s.Samples[0].Value, s.Samples[0].Timestamp)
		r.types[s.Metadata.Type.String()] = m.Symbols[s.Metadata.HelpRef]
		out.Samples++
	}
	return out, nil
}

func (r *receiver) keep(labels []string, value float64, at int64) {
	var key []string
	for i := 0; i < len(labels); i += 2 {
		key = append(key, labels[i]+"="+labels[i+1])
	}
	text := strconv.FormatFloat(value, 'g', -1, 64)
	if math.Float64bits(value) == 0x7ff0000000000002 {
		text = "stale"
	}
	if at != noon().UnixMilli() {
		text += " at " + strconv.FormatInt(at, 10)
	}
	r.got[strings.Join(key, " ")] = text
}

// storeVersion1 reads the message field by field.
func (r *receiver) storeVersion1(body []byte) error {
	return fields(body, func(_ protowire.Number, series []byte, _ uint64) error {
		var labels []string
		var value float64
		var at int64
		err := fields(series, func(n protowire.Number, part []byte, _ uint64) error {
			return fields(part, func(k protowire.Number, text []byte, number uint64) error {
				switch {
				case n == 1:
					labels = append(labels, string(text))
				case k == 1:
					value = math.Float64frombits(number)
				default:
					at = int64(number)
				}
				return nil
			})
		})
		r.keep(labels, value, at)
		return err
	})
}

func fields(b []byte, f func(n protowire.Number, part []byte, number uint64) error) error {
	for len(b) > 0 {
		n, kind, size := protowire.ConsumeTag(b)
		if size < 0 {
			return protowire.ParseError(size)
		}
		b = b[size:]
		var part []byte
		var number uint64
		switch kind {
		case protowire.BytesType:
			part, size = protowire.ConsumeBytes(b)
		case protowire.Fixed64Type:
			number, size = protowire.ConsumeFixed64(b)
		default:
			number, size = protowire.ConsumeVarint(b)
		}
		if size < 0 {
			return protowire.ParseError(size)
		}
		b = b[size:]
		if err := f(n, part, number); err != nil {
			return err
		}
	}
	return nil
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	r.mu.Lock()
	r.requests++
	r.headers = append(r.headers, req.Header.Clone())
	status := 0
	if len(r.status) > 0 {
		status, r.status = r.status[0], r.status[1:]
	}
	r.mu.Unlock()
	if status != 0 {
		http.Error(w, "it is told so", status)
		return
	}
	remote.NewWriteHandler(r, r.versions).ServeHTTP(w, req)
}

func (r *receiver) serve(t *testing.T) *prometheus.Writer {
	t.Helper()
	server := httptest.NewServer(r)
	t.Cleanup(server.Close)
	return &prometheus.Writer{URL: server.URL + "/api/v1/write", Labels: map[string]string{"cluster": "demo"}}
}

func both() remote.MessageTypes {
	return remote.MessageTypes{remote.WriteV1MessageType, remote.WriteV2MessageType}
}

func some() []timeseries.Series {
	const name = "karpenter_nodes_created_total"
	return []timeseries.Series{
		{Name: name, Family: name, Labels: []timeseries.Label{{Name: "nodepool", Value: "general"}, {Name: "zone", Value: "a"}}, Value: 3},
		{Name: "karpenter_nodepools_usage", Family: "karpenter_nodepools_usage", Labels: []timeseries.Label{{Name: "nodepool", Value: "general"}}, Value: 0.5},
	}
}

func ended() []timeseries.Series {
	return []timeseries.Series{{Name: "karpenter_nodes_allocatable", Family: "karpenter_nodes_allocatable", Labels: []timeseries.Label{{Name: "node_name", Value: "n1"}}}}
}

func wanted() map[string]string {
	return map[string]string{
		"__name__=karpenter_nodepools_usage cluster=demo nodepool=general":            "0.5",
		"__name__=karpenter_nodes_allocatable cluster=demo node_name=n1":              "stale",
		"__name__=karpenter_nodes_created_total cluster=demo nodepool=general zone=a": "3",
	}
}

func TestVersion2(t *testing.T) {
	r := &receiver{versions: both()}
	if err := r.serve(t).WriteSeries(t.Context(), some(), ended(), noon()); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(wanted(), r.got); diff != "" {
		t.Errorf("series (-want +got):\n%s", diff)
	}
	if r.types["METRIC_TYPE_COUNTER"] != "Nodes that registered, by NodePool and zone." || r.types["METRIC_TYPE_GAUGE"] == "" {
		t.Errorf("types and help %v", r.types)
	}
	if v := r.headers[0].Get("X-Prometheus-Remote-Write-Version"); v != "2.0.0" {
		t.Errorf("version %s", v)
	}
}

// TestFallsBackToVersion1 where the endpoint refuses version 2, cannot read it, or takes it for an empty message, as
// endpoints of before it do; and does not try again.
func TestFallsBackToVersion1(t *testing.T) {
	for name, status := range map[string][]int{"unsupported type": nil, "bad request": {http.StatusBadRequest}, "takes it as empty": {http.StatusNoContent}} {
		t.Run(name, func(t *testing.T) {
			r := &receiver{versions: remote.MessageTypes{remote.WriteV1MessageType}, status: status}
			w := r.serve(t)
			for range 2 {
				if err := w.WriteSeries(t.Context(), some(), ended(), noon()); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(wanted(), r.got); diff != "" {
				t.Errorf("series (-want +got):\n%s", diff)
			}
			// one in version 2, and two sends of two requests
			if r.headers[0].Get("X-Prometheus-Remote-Write-Version") != "2.0.0" || r.headers[1].Get("X-Prometheus-Remote-Write-Version") != "0.1.0" || r.requests != 5+len(status)/2 {
				t.Errorf("%d requests: %v", r.requests, r.headers)
			}
		})
	}
}

func TestARefusalSaysWhatToDo(t *testing.T) {
	for status, want := range map[int]string{401: "remoteWriteSecret", 403: "role of lifecycle", 404: "remoteWriteURL", 429: "remoteWriteDetail", 500: "500"} {
		r := &receiver{versions: both(), status: []int{status, status, status}}
		err := r.serve(t).WriteSeries(t.Context(), some(), nil, noon())
		refused, ok := errors.AsType[*prometheus.RefusedError](err)
		if !ok || refused.Status != status || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "it is told so") {
			t.Errorf("%d: %v", status, err)
		}
		if tries := map[int]int{500: 2}[status]; r.requests != max(tries, 1) {
			t.Errorf("%d: %d requests", status, r.requests)
		}
	}
}

func TestAFaultOfAMomentIsTriedAgain(t *testing.T) {
	r := &receiver{versions: both(), status: []int{503}}
	if err := r.serve(t).WriteSeries(t.Context(), some(), ended(), noon()); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(wanted(), r.got); diff != "" {
		t.Errorf("series (-want +got):\n%s", diff)
	}
}

// TestASilentEndpoint is given up within the budget: the server would wait for ever.
func TestASilentEndpoint(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // so that it notices when the client goes
		<-r.Context().Done()
	}))
	t.Cleanup(server.Close)
	patient, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	err := (&prometheus.Writer{URL: server.URL}).WriteSeries(patient, some(), nil, noon())
	if err == nil || !strings.Contains(err.Error(), "no answer within 2s") || patient.Err() != nil {
		t.Errorf("error %v, and of who waits %v", err, patient.Err())
	}
}

func TestAnEndpointThatIsDown(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	server.Close()
	err := (&prometheus.Writer{URL: server.URL + "/secret/path"}).WriteSeries(t.Context(), some(), nil, noon())
	if err == nil || !strings.HasPrefix(err.Error(), "send metrics to "+strings.TrimPrefix(server.URL, "http://")+": ") {
		t.Errorf("error %v", err)
	}
}

// TestARedirectIsNotFollowed: what authenticates us is for the endpoint alone.
func TestARedirectIsNotFollowed(t *testing.T) {
	other := &receiver{versions: both()}
	to := other.serve(t)
	server := httptest.NewServer(http.RedirectHandler(to.URL, http.StatusPermanentRedirect))
	t.Cleanup(server.Close)
	err := (&prometheus.Writer{URL: server.URL}).WriteSeries(t.Context(), some(), nil, noon())
	if err == nil || other.requests != 0 {
		t.Errorf("error %v, %d requests elsewhere", err, other.requests)
	}
}

func TestALongAnswerIsNotReadToItsEnd(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusTeapot)
		_, _ = io.WriteString(w, strings.Repeat("x", 1<<20))
	}))
	t.Cleanup(server.Close)
	err := (&prometheus.Writer{URL: server.URL}).WriteSeries(t.Context(), some(), nil, noon())
	if err == nil || len(err.Error()) > 5000 || len(err.Error()) < 4000 {
		t.Errorf("an error of %d bytes", len(err.Error()))
	}
}

func TestManySeriesGoInSeveralRequests(t *testing.T) {
	var all []timeseries.Series
	want := map[string]string{}
	for i := range 25_000 {
		name := strconv.Itoa(i)
		all = append(all, timeseries.Series{Name: "m", Family: "m", Labels: []timeseries.Label{{Name: "pod", Value: name}}, Value: 1})
		want["__name__=m cluster=demo pod="+name] = "1"
	}
	r := &receiver{versions: both()}
	if err := r.serve(t).WriteSeries(t.Context(), all, nil, noon()); err != nil {
		t.Fatal(err)
	}
	if r.requests != 3 || !maps.Equal(want, r.got) {
		t.Errorf("%d requests with %d series", r.requests, len(r.got))
	}
}
