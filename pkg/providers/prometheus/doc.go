// Package prometheus sends time series to an endpoint of Prometheus remote write: version 2 of the protocol, or version
// 1 where the endpoint does not take that.
//
// It knows how requests are signed, or which secret they carry. It refuses to know what the series are about. Limits: a
// budget of 2 seconds for everything, 10,000 series in a request, four requests at a time, one further try.
package prometheus
