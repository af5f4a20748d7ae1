// Command probe is a Lambda function that does what its event says, so that the host can be seen at work.
package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-lambda-go/lambdacontext"
)

// order is the event.
type order struct {
	Do     string `json:"do"`
	Milli  int    `json:"milli"`  // or MiB to take
	Signal string `json:"signal"` // file that is made when the handler has begun
	Until  string `json:"until"`  // file to wait for
	Source string `json:"source"`

	Records []struct{ MessageID, Body string } `json:"Records"` // of a queue

	RawPath         string `json:"rawPath"` // of a call by URL
	Body            string `json:"body"`
	IsBase64Encoded bool   `json:"isBase64Encoded"`
}

// answer is the result.
type answer struct {
	PID       int      `json:"pid"`
	Calls     int      `json:"calls"`
	Env       []string `json:"env,omitempty"`
	Request   string   `json:"request"`
	ARN       string   `json:"arn"`
	LeftMilli int64    `json:"leftMilli"`
	Source    string   `json:"source,omitempty"`

	BatchItemFailures []failure `json:"batchItemFailures,omitempty"`

	StatusCode int               `json:"statusCode,omitempty"`
	Headers    map[string]string `json:"headers,omitempty"`
	Body       string            `json:"body,omitempty"`
}

// failure names a message of a batch.
type failure struct {
	ItemIdentifier string `json:"itemIdentifier"`
}

type probe struct{ calls int }

func (p *probe) handle(ctx context.Context, o order) (answer, error) {
	p.calls++
	lc, _ := lambdacontext.FromContext(ctx)
	deadline, _ := ctx.Deadline()
	a := answer{
		PID: os.Getpid(), Calls: p.calls, Request: lc.AwsRequestID, ARN: lc.InvokedFunctionArn,
		LeftMilli: time.Until(deadline).Milliseconds(), Source: o.Source,
	}
	if o.Signal != "" {
		if err := os.WriteFile(o.Signal, fmt.Append(nil, os.Getpid()), 0o600); err != nil {
			return a, err
		}
	}
	for _, r := range o.Records {
		fmt.Println("handled", r.Body)
		if strings.Contains(r.Body, "fail") {
			a.BatchItemFailures = append(a.BatchItemFailures, failure{r.MessageID})
		}
	}
	if len(o.Records) > 0 {
		time.Sleep(20 * time.Millisecond) // so that batches overlap
	}
	switch o.RawPath {
	case "", "/plain":
	case "/fail":
		return a, errors.New("told to fail")
	default:
		a.StatusCode, a.Headers = 418, map[string]string{"X-Probe": o.RawPath}
		a.Body = fmt.Sprintf("%s %t", o.Body, o.IsBase64Encoded)
	}
	switch o.Do {
	case "env":
		a.Env = os.Environ()
		slices.Sort(a.Env)
	case "say":
		fmt.Println("first line")
		log.Print("second line")
		fmt.Print("no newline at the end")
	case "fail":
		return a, errors.New("told to fail")
	case "panic":
		panic("told to panic")
	case "exit":
		os.Exit(3)
	case "hang":
		select {}
	case "spin":
		for end := time.Now().Add(time.Duration(o.Milli) * time.Millisecond); time.Now().Before(end); {
		}
	case "grow":
		var held [][]byte
		for {
			held = append(held, bytes.Repeat([]byte{1}, 1<<20)) // written to, so that it is resident
			if len(held) > o.Milli {
				return a, nil
			}
		}
	case "wait":
		for {
			if _, err := os.Stat(o.Until); err == nil {
				return a, nil
			}
			time.Sleep(5 * time.Millisecond)
		}
	}
	return a, nil
}

func main() {
	if os.Getenv("PROBE_INIT") == "exit" {
		log.Fatal("cannot start: told so")
	}
	lambda.Start((&probe{}).handle)
}
