package preflight

import (
	"fmt"

	"joiner.sh/pkg/model/findings"
)

// leastUnreserved is the number of invocations that Lambda has every account keep for functions that reserve nothing,
// or all where the account may run fewer.
const leastUnreserved = 100

// ConcurrencyRoom holds what an account has left of the Lambda invocations that it may run at once. The zero value asks
// for nothing.
type ConcurrencyRoom struct {
	Limit, Unreserved int // of the account: all, and those that no function has reserved
	Wanted            int // that the functions of the stack are to reserve
	ForNotices        int // of these, for the two functions whose events leave two minutes
	ForReservations   int // of those, for interruptible capacity reservations
	Had               int // that they have reserved until now
}

// CheckRoom says what has to be changed before the functions can reserve what they are to; nil when nothing. Lambda
// refuses it too, in the middle of a deployment, and says neither who wants how much nor what to do.
func (r ConcurrencyRoom) CheckRoom() error {
	short := min(leastUnreserved, r.Limit) - (r.Unreserved + r.Had - r.Wanted)
	if r.Wanted <= r.Had || short <= 0 {
		return nil
	}
	less := ""
	if spot := r.ForNotices - r.ForReservations - short; spot >= 0 {
		less = fmt.Sprintf(", or set interruptionConcurrency in cdk.json to %d", spot)
	}
	return fmt.Errorf("the account may run %d Lambda invocations at once, %d of them are not reserved, and %d must stay so: the functions are to reserve %d "+
		"(interruptionConcurrency, and 1 for each that runs alone), which is %d too many. Ask for more: "+
		"aws service-quotas request-service-quota-increase --service-code lambda --quota-code L-B99A9384 --desired-value %d%s, and deploy again",
		r.Limit, r.Unreserved+r.Had, min(leastUnreserved, r.Limit), r.Wanted, short, max(1000, r.Limit+short), less)
}

// codeOfRelease is the size of the functions of one deployment together, in bytes.
const codeOfRelease = 100 << 20

// checkCode finds an account that soon has no room for the code of functions: their versions stay, to go back to.
func (c *checker) checkCode() {
	left := c.facts.CodeLimit - c.facts.CodeUsed
	if c.facts.CodeLimit > 0 && left < 10*codeOfRelease {
		c.Add(findings.Warning, TopicLambda, fmt.Sprintf("the account has %d MiB left for the code of functions, of which a deployment takes up to %d",
			max(0, left>>20), codeOfRelease>>20),
			"delete versions that no alias names: aws lambda delete-function --function-name NAME --qualifier VERSION")
	}
}
