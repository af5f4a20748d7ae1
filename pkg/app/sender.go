package app

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"os"
	"slices"
	"strings"

	"github.com/aws/aws-lambda-go/cfn"
	"github.com/aws/aws-lambda-go/lambdacontext"

	"joiner.sh/pkg/settings"
)

// answerHosts begins the name of every bucket through which CloudFormation is answered.
const answerHosts = "cloudformation-custom-resource-response-"

// awsDomains end the names of AWS' hosts, a partition each: the usual one and GovCloud, China, the European Sovereign
// Cloud, and the isolated ones. They are the dnsSuffix of the SDKs' list of partitions.
func awsDomains() []string {
	return []string{".amazonaws.com", ".amazonaws.com.cn", ".amazonaws.eu", ".c2s.ic.gov", ".sc2s.sgov.gov",
		".cloud.adc-e.uk", ".csp.hci.ic.gov"}
}

// AnswerCloudFormation answers the requests of the function's own stack, and no other: those of anybody else who may
// invoke the function end with an error, and nothing is sent to the address that they name. What asks for nothing is
// the schedule that keeps the function awake.
func AnswerCloudFormation(ctx context.Context, e cfn.Event) (string, error) {
	if e.RequestType == "" {
		return "", nil
	}
	set, err := settings.ParseSettings(os.Getenv)
	if err == nil {
		own := ""
		if c, ok := lambdacontext.FromContext(ctx); ok {
			own = c.InvokedFunctionArn
		}
		err = checkSender(e, set.StackID, own)
	}
	if err != nil {
		return "", err
	}
	return cfn.LambdaWrap(Setup)(ctx, e)
}

// checkSender finds requests that CloudFormation did not make for the stack: of another stack, for another function, or
// with an answer that goes elsewhere. The loopback address is the function's own machine, where nobody else listens.
func checkSender(e cfn.Event, stackID, functionARN string) error {
	const refused = "refuse a request that says it comes from CloudFormation: "
	if stackID == "" || e.StackID != stackID {
		return fmt.Errorf(refused+"its StackId is %q, and this function belongs to %q", e.StackID, stackID)
	}
	if token := textProperty(e, "ServiceToken"); functionARN != "" && token != functionARN {
		return fmt.Errorf(refused+"its ServiceToken is %q, and this function is %s", token, functionARN)
	}
	to, err := url.Parse(e.ResponseURL)
	if err != nil {
		return fmt.Errorf(refused+"its ResponseURL is none: %w", err)
	}
	host := to.Hostname()
	aws := slices.ContainsFunc(awsDomains(), func(domain string) bool { return strings.HasSuffix(host, domain) })
	if ip := net.ParseIP(host); ip.IsLoopback() || to.Scheme == "https" && aws && strings.HasPrefix(host, answerHosts) {
		return nil
	}
	return fmt.Errorf(refused+"the answer would go to %q, which is no bucket of CloudFormation's", host)
}
