// Package awsemulator is an AWS account on loopback: it speaks the real wire protocols of EC2, SSM, Pricing, STS, EKS,
// IAM, S3, SQS, EventBridge, Service Quotas and Lambda to unmodified SDK clients, keeps all state in memory, checks
// signatures, and can be told to fail. It knows the real instance types and prices. It starts no machines and runs no
// functions: instance states, events and invocations are handed to the callbacks of Options.
//
// Start with Cloud. Each service of AWS is a part with its own state; account is what they share: one lock, one clock,
// and the way from one part to another.
package awsemulator
