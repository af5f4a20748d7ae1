// Package lambdahost runs the functions of a synthesized CDK cloud assembly on this machine, as Lambda and EventBridge
// would.
//
// Each function is its built binary, a real process behind a Lambda Runtime API of its own, with exactly the template's
// environment and what Lambda adds. Schedules, rules, permissions, retries, dead-letter queues, concurrency and
// time-outs are the template's. One scheduled minute may be made shorter, so that a test need not wait; a function's
// time-out may not. It makes no AWS resource: the caller creates those of the assembly in the emulator. It measures,
// but does not imitate, Lambda's start times, and memory is a soft limit (GOMEMLIMIT), not a hard one.
package lambdahost
