package lambdahost

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"
)

// maxResponse is the size of a synchronous result that Lambda takes.
const maxResponse = 6 << 20

// runtimeAPI is the Lambda Runtime API of one process.
func (s *sandbox) runtimeAPI() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /2018-06-01/runtime/invocation/next", s.serveNext)
	mux.HandleFunc("POST /2018-06-01/runtime/invocation/{id}/response", s.serveResponse)
	mux.HandleFunc("POST /2018-06-01/runtime/invocation/{id}/error", s.serveFailure)
	mux.HandleFunc("POST /2018-06-01/runtime/init/error", s.initFailure)
	return mux
}

// serveNext blocks until there is a call for the process.
func (s *sandbox) serveNext(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	if s.initTook == 0 {
		s.initTook = time.Since(s.started)
		close(s.ready)
	}
	s.mu.Unlock()
	select {
	case c := <-s.calls:
		s.mu.Lock()
		s.current = c
		s.mu.Unlock()
		c.deadline = time.Now().Add(s.fn.Timeout)
		header := w.Header()
		header.Set("Content-Type", "application/json")
		header.Set("Lambda-Runtime-Aws-Request-Id", c.id)
		header.Set("Lambda-Runtime-Deadline-Ms", strconv.FormatInt(c.deadline.UnixMilli(), 10))
		header.Set("Lambda-Runtime-Invoked-Function-Arn", s.fn.ARN)
		header.Set("Lambda-Runtime-Trace-Id", fmt.Sprintf("Root=1-%08x-%s;Sampled=0;%s", time.Now().Unix(),
			rand.Text()[:24], c.chain.headerPart()))
		_, _ = w.Write(c.payload) // a process that went away in between is seen by reapProcess
	case <-r.Context().Done():
	case <-s.exited:
	}
}

func (s *sandbox) serveResponse(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(io.LimitReader(r.Body, maxResponse+1))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	o := outcome{payload: body}
	if len(body) > maxResponse {
		message := fmt.Sprintf("Response payload size exceeded maximum allowed payload size (%d bytes).", maxResponse)
		o = outcome{fault: "Unhandled", status: "error",
			payload: runtimeError(r.PathValue("id"), "Function.ResponseSizeTooLarge", message)}
	}
	s.finishCall(w, r.PathValue("id"), o)
}

func (s *sandbox) serveFailure(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(io.LimitReader(r.Body, maxResponse))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	s.finishCall(w, r.PathValue("id"), outcome{fault: "Unhandled", status: "error", payload: body})
}

// finishCall gives the answer to whoever waits for the call. A second answer, or one for another call, is refused.
func (s *sandbox) finishCall(w http.ResponseWriter, id string, o outcome) {
	s.mu.Lock()
	c := s.current
	ours := c != nil && c.id == id
	if ours {
		s.current = nil
		c.answer <- o
	}
	s.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	if !ours {
		w.WriteHeader(http.StatusBadRequest)
		_, _ = io.WriteString(w, `{"errorType":"InvalidRequestID","errorMessage":"Invalid request ID"}`)
		return
	}
	w.WriteHeader(http.StatusAccepted)
	_, _ = io.WriteString(w, `{"status":"OK"}`)
}

func (s *sandbox) initFailure(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(io.LimitReader(r.Body, maxResponse))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	s.mu.Lock()
	s.initErr = body
	s.mu.Unlock()
	w.WriteHeader(http.StatusAccepted)
	_, _ = io.WriteString(w, `{"status":"OK"}`)
}

// runtimeError is the payload with which Lambda itself reports a failed invocation.
func runtimeError(id, kind, message string) []byte {
	text, err := json.Marshal(map[string]string{"errorType": kind, "errorMessage": "RequestId: " + id + " Error: " +
		message})
	if err != nil {
		panic(err) // two strings always encode
	}
	return text
}

// newID makes a request id of the form that AWS uses, a random UUID.
func newID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // documented never to fail
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}
