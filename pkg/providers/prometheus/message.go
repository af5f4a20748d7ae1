package prometheus

import (
	"maps"
	"math"
	"slices"
	"time"

	writev2 "github.com/prometheus/client_golang/exp/api/remote/genproto/v2"
	"google.golang.org/protobuf/encoding/protowire"

	"joiner.sh/pkg/model/timeseries"
)

// staleMarker is the value that ends a series.
func staleMarker() float64 { return math.Float64frombits(0x7ff0000000000002) }

// batch holds the series of one request.
type batch struct{ series, ended []timeseries.Series }

// batches are the requests, at least one where there is anything to send.
func batches(series, ended []timeseries.Series) []batch {
	var out []batch
	for part := range slices.Chunk(series, batchSize) {
		out = append(out, batch{series: part})
	}
	for part := range slices.Chunk(ended, batchSize) {
		out = append(out, batch{ended: part})
	}
	return out
}

// each calls f for every series with its value.
func (b batch) each(f func(s timeseries.Series, value float64)) {
	for _, s := range b.series {
		f(s, s.Value)
	}
	for _, s := range b.ended {
		f(s, staleMarker())
	}
}

// allLabels are name and value of all labels in turn, sorted by name as the protocol wants it. The sender's own do not
// replace those of the series.
func allLabels(s timeseries.Series, own map[string]string) []string {
	all := maps.Clone(own)
	if all == nil {
		all = map[string]string{}
	}
	all["__name__"] = s.Name
	for _, l := range s.Labels {
		all[l.Name] = l.Value
	}
	out := make([]string, 0, 2*len(all))
	for _, name := range slices.Sorted(maps.Keys(all)) {
		out = append(out, name, all[name])
	}
	return out
}

// version2 is the batch in version 2 of the protocol, with types and help.
func (b batch) version2(own map[string]string, at time.Time) *writev2.Request {
	symbols := writev2.NewSymbolTable()
	types := map[string]*writev2.Metadata{}
	out := &writev2.Request{}
	b.each(func(s timeseries.Series, value float64) {
		about := types[s.Family]
		if about == nil {
			about = &writev2.Metadata{}
			if f, known := timeseries.FindFamily(s.Family); known {
				about.Type, about.HelpRef = metricType(f.Kind), symbols.Symbolize(f.Help)
			}
			types[s.Family] = about
		}
		out.Timeseries = append(out.Timeseries, &writev2.TimeSeries{Metadata: about,
			LabelsRefs: symbols.SymbolizeLabels(allLabels(s, own), nil),
			Samples:    []*writev2.Sample{{Value: value, Timestamp: at.UnixMilli()}}})
	})
	out.Symbols = symbols.Symbols()
	return out
}

func metricType(k timeseries.Kind) writev2.Metadata_MetricType {
	switch k {
	case timeseries.Counter:
		return writev2.Metadata_METRIC_TYPE_COUNTER
	case timeseries.Histogram:
		return writev2.Metadata_METRIC_TYPE_HISTOGRAM
	case timeseries.Summary:
		return writev2.Metadata_METRIC_TYPE_SUMMARY
	}
	return writev2.Metadata_METRIC_TYPE_GAUGE
}

// version1Message is an encoded WriteRequest of version 1.
type version1Message []byte

// SizeVT returns the number of bytes that it takes.
func (m version1Message) SizeVT() int { return len(m) }

// MarshalToSizedBufferVT writes it.
func (m version1Message) MarshalToSizedBufferVT(to []byte) (int, error) { return copy(to, m), nil }

// The fields of version 1: WriteRequest has TimeSeries, which have labels of a name and a value, and samples of a value
// and a time.
const (
	fieldTimeseries = 1
	fieldLabels     = 1
	fieldSamples    = 2
	fieldFirst      = 1
	fieldSecond     = 2
)

// version1 is the batch in version 1 of the protocol.
func (b batch) version1(own map[string]string, at time.Time) version1Message {
	var out, one, part []byte
	b.each(func(s timeseries.Series, value float64) {
		one = one[:0]
		labels := allLabels(s, own)
		for i := 0; i < len(labels); i += 2 {
			part = protowire.AppendTag(part[:0], fieldFirst, protowire.BytesType)
			part = protowire.AppendString(part, labels[i])
			part = protowire.AppendTag(part, fieldSecond, protowire.BytesType)
			part = protowire.AppendString(part, labels[i+1])
			one = protowire.AppendTag(one, fieldLabels, protowire.BytesType)
			one = protowire.AppendBytes(one, part)
		}
		part = protowire.AppendTag(part[:0], fieldFirst, protowire.Fixed64Type)
		part = protowire.AppendFixed64(part, math.Float64bits(value))
		part = protowire.AppendTag(part, fieldSecond, protowire.VarintType)
		part = protowire.AppendVarint(part, uint64(at.UnixMilli()))
		one = protowire.AppendTag(one, fieldSamples, protowire.BytesType)
		one = protowire.AppendBytes(one, part)
		out = protowire.AppendTag(out, fieldTimeseries, protowire.BytesType)
		out = protowire.AppendBytes(out, one)
	})
	return out
}
