package awsemulator

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"path"
	"strings"
	"time"

	"joiner.sh/infra/local/awsemulator/wire"
)

// call is one request on its way through the account.
type call struct {
	service, action string
	protocol        wire.Protocol
	caller          Caller
	region          string // that the request was signed for
	http            *http.Request
	body            []byte
	form            url.Values // query protocols
	dryRun          bool
	curtailed       bool // what was done is not all answered
	id              string
	started         time.Time
}

// operation carries out one action and returns its reply.
type operation func(r *call) (any, error)

type service struct {
	protocol   wire.Protocol
	operations map[string]operation
}

// op makes an operation of a method that wants its parameters as a struct.
func op[In any](do func(*call, *In) (any, error)) operation {
	return func(r *call) (any, error) {
		in := new(In)
		if err := r.decodeInput(in); err != nil {
			return nil, err
		}
		return do(r, in)
	}
}

// look is op for an EC2 call that changes nothing, where a dry run has nothing more to check.
func look[In any](do func(*call, *In) (any, error)) operation {
	return op(func(r *call, in *In) (any, error) {
		if err := r.endDryRun(); err != nil {
			return nil, err
		}
		return do(r, in)
	})
}

// endDryRun ends a dry run that found nothing wrong.
func (r *call) endDryRun() error {
	if r.dryRun {
		return wire.Fail(412, "DryRunOperation", "Request would have succeeded, but DryRun flag is set.")
	}
	return nil
}

func (r *call) decodeInput(into any) error {
	switch r.protocol {
	case wire.EC2Query, wire.Query:
		return wire.DecodeForm(r.form, into)
	case wire.CBOR:
		return wire.DecodeCBOR(r.body, into)
	}
	if len(r.body) == 0 {
		return nil
	}
	d := json.NewDecoder(bytes.NewReader(r.body))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return wire.Fail(400, "SerializationException", "%v (the emulator may not model it)", err)
	}
	return nil
}

// listOperations names every operation there is.
func (c *account) listOperations() map[string]service {
	return map[string]service{
		"ec2":     {wire.EC2Query, c.ec2Operations()},
		"sts":     {wire.Query, c.stsOperations()},
		"iam":     {wire.Query, c.iamOperations()},
		"ssm":     {wire.JSON, c.ssmOperations()},
		"pricing": {wire.JSON, c.pricingOperations()},
		"sqs":     {wire.JSON, c.sqsOperations()},
		"events":  {wire.JSON, c.eventsOperations()},
		"eks":     {wire.RestJSON, c.eksOperations()},
		"lambda":  {wire.RestJSON, c.lambdaOperations()},
		"s3":      {wire.RestXML, nil},

		"cloudformation":  {wire.Query, c.stackOperations()},
		"servicequotas":   {wire.JSON, c.quotaOperations()},
		"savingsplans":    {wire.RestJSON, c.plansOperations()},
		"arc-zonal-shift": {wire.RestJSON, c.shiftOperations()},
		"monitoring":      {wire.CBOR, c.alarmOperations()},
	}
}

// ServeHTTP answers one request of any service.
func (c *Cloud) ServeHTTP(w http.ResponseWriter, h *http.Request) {
	authorization := h.Header.Get("Authorization")
	switch {
	case strings.HasPrefix(h.URL.Path, "/_local/"):
		c.serveLocal(w, h)
		return
	case h.URL.Path == "/authenticate" && authorization == "":
		c.sts.serveTokenReview(w, h)
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, h.Body, 64<<20))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	r := &call{http: h, body: body, id: newRequestID(), started: time.Now()}
	s, signed := parseAuthorization(authorization)
	service, known := c.table[s.service]
	if signed && !known {
		http.Error(w, "the emulator has no service "+s.service, http.StatusNotFound)
		return
	}
	r.service, r.protocol, r.region = s.service, service.protocol, s.region
	if !signed {
		r.service, r.protocol = "sts", wire.Query
	}
	r.nameAction()
	v := unsigned
	if signed {
		r.caller, v = c.sts.verifySignature(h, s, body)
	}
	out := &outcome{ResponseWriter: w, keep: c.opt.Exchanges != nil}
	if c.opt.Reach != nil && v == authentic && !c.opt.Reach(r.caller, r.service) {
		out.hangUp()
		return
	}
	switch {
	case v != authentic:
		c.writeReply(out, r, nil, signatureFailure(v, r.protocol))
	case !c.replayCall(out, r):
		c.performCall(out, r, service)
	}
	c.calls.addCall(r, out)
	c.observe(r, out)
}

// nameAction finds the action that the request asks for.
func (r *call) nameAction() {
	switch r.protocol {
	case wire.EC2Query, wire.Query:
		r.form, _ = url.ParseQuery(string(r.body)) // a broken form has no action, and is refused for that
		r.action = r.form.Get("Action")
		r.dryRun = r.form.Get("DryRun") == "true"
	case wire.JSON:
		target := r.http.Header.Get("X-Amz-Target")
		r.action = target[strings.LastIndex(target, ".")+1:]
	case wire.RestJSON:
		r.action = restAction(r.service, r.http)
	case wire.RestXML:
		r.action = s3Action(r.http)
	case wire.CBOR:
		r.action = path.Base(r.http.URL.Path) // /service/SERVICE/operation/ACTION
	}
}

// performCall plays the faults that are set for the call around its effect.
func (c *Cloud) performCall(w *outcome, r *call, s service) {
	if err := c.authorizeCall(r); err != nil {
		c.writeReply(w, r, nil, err)
		return
	}
	if c.opt.Selecting != nil && c.opt.Selecting(r.caller) {
		if err := refuseUnselective(r); err != nil {
			c.writeReply(w, r, nil, err)
			return
		}
	}
	f := c.takeFault(r)
	w.fault, r.curtailed = f.Kind, f.Kind == Curtail
	if f.Kind != "" && c.opt.Log != nil {
		c.opt.Log.Printf("fault %s played on %s:%s", f.Kind, r.service, r.action)
	}
	done := f.Kind == FailAfter || f.Kind == LoseReply
	if done {
		c.answerCall(&outcome{ResponseWriter: &nowhere{header: http.Header{}}}, r, s)
	}
	if f.Kind == Swallow {
		<-r.http.Context().Done() // the caller gives up
		return
	}
	if f.Delay > 0 {
		select {
		case <-time.After(time.Duration(f.Delay)):
		case <-r.http.Context().Done():
		}
	}
	switch {
	case f.Kind == Throttle || f.Kind == FailBefore:
		c.writeReply(w, r, nil, f.failureOf(r))
		return
	case done:
		if f.Kind == LoseReply {
			w.hangUp()
			return
		}
		c.writeReply(w, r, nil, f.failureOf(r))
		return
	}
	c.answerCall(w, r, s)
}

// takeFault returns what goes wrong with the call. Instances boot: faults are for who watches them, and the bucket that
// EC2 has for calls of theirs, which name themselves, is another one.
func (c *Cloud) takeFault(r *call) Fault {
	if r.caller.IsInstance() {
		return Fault{}
	}
	if f := c.limits.takeFault(r.service, r.action, r.form); f.Kind != "" {
		return f
	}
	return c.faults.takeFault(r.service, r.action, r.form)
}

// answerCall performs the call and answers it.
func (c *Cloud) answerCall(w *outcome, r *call, s service) {
	if r.protocol == wire.RestXML {
		c.objects.s3.serveCall(w, r)
		return
	}
	operation, ok := s.operations[r.action]
	if !ok {
		code := map[wire.Protocol]string{wire.JSON: "UnknownOperationException",
			wire.RestJSON: "UnknownOperationException"}[r.protocol]
		if code == "" {
			code = "InvalidAction"
		}
		c.writeReply(w, r, nil, wire.Fail(400, code, "The action %s is not valid for this web service (the emulator does not have it)", r.action))
		return
	}
	body, err := operation(r)
	c.writeReply(w, r, body, err)
}

func (c *Cloud) writeReply(w *outcome, r *call, body any, err error) {
	if err != nil {
		f, ok := errors.AsType[*wire.Failure](err)
		if !ok {
			f = wire.Fail(500, "InternalFailure", "%v", err)
		}
		w.code = f.Code
		wire.WriteFailure(w, r.protocol, f, r.id)
		return
	}
	if verbatim, ok := body.(func(http.ResponseWriter)); ok {
		verbatim(w)
		return
	}
	wire.WriteReply(w, r.protocol, r.action, body, r.id)
}

// breath is how long an answer that is ready waits. smithy-go closes the body of a request as soon as the answer
// comes; where that is before net/http has read the body's end, a moment after it sent the last byte, net/http takes
// it for a failed write and drops the connection with the rest of the answer in it. AWS is never that fast.
const breath = 4 * time.Millisecond

// outcome remembers what was answered, for the call log.
type outcome struct {
	http.ResponseWriter
	status int
	code   string
	fault  FaultKind
	keep   bool // what is answered
	kept   []byte
}

func (o *outcome) WriteHeader(status int) {
	if o.status == 0 {
		o.status = status
		time.Sleep(breath)
	}
	o.ResponseWriter.WriteHeader(status)
}

func (o *outcome) Write(p []byte) (int, error) {
	if o.status == 0 {
		o.WriteHeader(http.StatusOK)
	}
	n, err := o.ResponseWriter.Write(p)
	if o.keep { // what went out: an answer with 304 has no body
		o.kept = append(o.kept, p[:n]...)
	}
	return n, err
}

// hangUp closes the connection without an answer.
func (o *outcome) hangUp() {
	if h, ok := o.ResponseWriter.(http.Hijacker); ok {
		if conn, _, err := h.Hijack(); err == nil {
			_ = conn.Close() // closing is all that is wanted
		}
	}
}

// nowhere swallows an answer that is to be lost.
type nowhere struct{ header http.Header }

func (n *nowhere) Header() http.Header         { return n.header }
func (n *nowhere) Write(p []byte) (int, error) { return len(p), nil }
func (n *nowhere) WriteHeader(int)             {}
