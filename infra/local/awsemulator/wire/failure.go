package wire

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
)

// Failure is an error as AWS states it: a status, a code that clients act on, a message for people.
type Failure struct {
	Status  int
	Code    string
	Message string
	// QueryCode is the old code that SQS still sends beside the new one; empty elsewhere.
	QueryCode string
}

func (f *Failure) Error() string { return fmt.Sprintf("%s (%d): %s", f.Code, f.Status, f.Message) }

// Fail makes a Failure.
func Fail(status int, code, format string, args ...any) *Failure {
	return &Failure{Status: status, Code: code, Message: fmt.Sprintf(format, args...)}
}

// Protocol is one of the wire forms.
type Protocol int

// The protocols, by the services that speak them here.
const (
	EC2Query Protocol = iota // ec2
	Query                    // sts, iam
	JSON                     // ssm, pricing, events (1.1), sqs (1.0)
	RestJSON                 // eks, lambda
	RestXML                  // s3
	CBOR                     // monitoring
)

// WriteFailure answers with f in the form of protocol p.
func WriteFailure(w http.ResponseWriter, p Protocol, f *Failure, requestID string) {
	w.Header().Set("X-Amzn-Requestid", requestID)
	fault := "Sender"
	if f.Status >= 500 {
		fault = "Receiver"
	}
	switch p {
	case CBOR:
		writeCBOR(w, f.Status, map[string]string{"__type": f.Code, "message": f.Message})
	case EC2Query:
		writeXML(w, f.Status, "Response", "", ec2Failure{
			Errors:    []xmlFailure{{Code: f.Code, Message: f.Message}},
			RequestID: requestID,
		})
	case Query:
		writeXML(w, f.Status, "ErrorResponse", "", queryFailure{
			Error:     xmlFailure{Type: fault, Code: f.Code, Message: f.Message},
			RequestID: requestID,
		})
	case RestXML:
		writeXML(w, f.Status, "Error", "", s3Failure{Code: f.Code, Message: f.Message, RequestID: requestID})
	case JSON, RestJSON:
		w.Header().Set("X-Amzn-Errortype", f.Code)
		if f.QueryCode != "" {
			w.Header().Set("X-Amzn-Query-Error", f.QueryCode+";"+fault)
		}
		writeJSON(w, f.Status, p, map[string]string{"__type": f.Code, "message": f.Message})
	}
}

// WriteReply answers with body, the result of action, in the form of protocol p. A nil body is an empty result.
func WriteReply(w http.ResponseWriter, p Protocol, action string, body any, requestID string) {
	w.Header().Set("X-Amzn-Requestid", requestID)
	switch p {
	case EC2Query:
		inner := "<requestId>" + requestID + "</requestId>" + innerXML(body)
		writeXML(w, http.StatusOK, action+"Response", "http://ec2.amazonaws.com/doc/2016-11-15/", raw{inner})
	case Query:
		result := strings.Join([]string{
			"<", action, "Result>", innerXML(body), "</", action, "Result>",
			"<ResponseMetadata><RequestId>", requestID, "</RequestId></ResponseMetadata>",
		}, "")
		writeXML(w, http.StatusOK, action+"Response", "https://amazonaws.com/doc/", raw{result})
	case CBOR:
		writeCBOR(w, http.StatusOK, body)
	case JSON, RestJSON, RestXML:
		if body == nil {
			body = struct{}{}
		}
		writeJSON(w, http.StatusOK, p, body)
	}
}

func writeJSON(w http.ResponseWriter, status int, p Protocol, body any) {
	kind := "application/x-amz-json-1.1"
	if p == RestJSON {
		kind = "application/json"
	}
	text, err := json.Marshal(body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", kind)
	w.WriteHeader(status)
	_, _ = w.Write(text) // a client that went away is its own loss
}
