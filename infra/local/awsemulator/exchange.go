package awsemulator

import "net/http"

// Exchange is a request as it came over the wire, and its answer.
type Exchange struct {
	Service, Action string
	Method, URI     string
	Header          http.Header // without what proves who asks
	Body            []byte
	Status          int // 0: none was given
	Code            string
	AnswerHeader    http.Header
	Answer          []byte
	Fault           FaultKind // one that was played
	UserAgent       string
}

// observe tells of an exchange if somebody wants to hear of it.
func (c *Cloud) observe(r *call, w *outcome) {
	if c.opt.Exchanges == nil {
		return
	}
	asked := r.http.Header.Clone()
	for _, name := range []string{"Authorization", "X-Amz-Security-Token"} {
		asked.Del(name)
	}
	c.opt.Exchanges(Exchange{Service: r.service, Action: r.action, Method: r.http.Method,
		URI: r.http.URL.RequestURI(), Header: asked, Body: r.body, Status: w.status, Code: w.code,
		AnswerHeader: w.ResponseWriter.Header().Clone(), Answer: w.kept, Fault: w.fault, UserAgent: r.http.UserAgent()})
}
