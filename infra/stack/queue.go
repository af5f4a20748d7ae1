package stack

import (
	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awskms"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"
	"github.com/aws/aws-cdk-go/awscdk/v2/awssqs"
	"github.com/aws/jsii-runtime-go"
)

// How the events of a queued function come to it. A batch waits a second for more, so that 500 events a second are five
// invocations. What failed comes again after a minute, and what nobody handled within the hour lifecycle has seen.
const (
	queueBatch       = 100
	queueWindowSec   = 1
	queueConcurrency = 4
	queueAgainSec    = 60
	queueTries       = 5
	queueKeepsHours  = 1
)

// addQueue makes the queue between the rules of a function and the function; nil for one that its rules invoke.
func (s *joiner) addQueue(f madeFunction) awssqs.Queue {
	if !f.queued {
		return nil
	}
	props := queueProps(s.key)
	props.RetentionPeriod = awscdk.Duration_Hours(jsii.Number(queueKeepsHours))
	props.VisibilityTimeout = awscdk.Duration_Seconds(jsii.Number(queueAgainSec))
	props.DeadLetterQueue = &awssqs.DeadLetterQueue{Queue: f.deadLetters, MaxReceiveCount: jsii.Number(queueTries)}
	return awssqs.NewQueue(s.Stack, jsii.String(f.id+"Events"), props)
}

// queueProps returns the properties of every queue: messages are encrypted, with the user's key where there is one.
func queueProps(key awskms.IKey) *awssqs.QueueProps {
	props := &awssqs.QueueProps{Encryption: awssqs.QueueEncryption_SQS_MANAGED, EnforceSSL: jsii.Bool(true)}
	if key != nil {
		props.Encryption, props.EncryptionMasterKey = awssqs.QueueEncryption_KMS, key
	}
	return props
}

// mapQueue has Lambda hand the queue's messages to the function.
func (s *joiner) mapQueue(f madeFunction) {
	if f.queue == nil {
		return
	}
	mapping := awslambda.NewEventSourceMapping(s.Stack, jsii.String(f.id+"Mapping"),
		&awslambda.EventSourceMappingProps{
			Target:                  f.entrance,
			EventSourceArn:          f.queue.QueueArn(),
			BatchSize:               jsii.Number(queueBatch),
			MaxBatchingWindow:       awscdk.Duration_Seconds(jsii.Number(queueWindowSec)),
			MaxConcurrency:          jsii.Number(queueConcurrency),
			ReportBatchItemFailures: jsii.Bool(true),
		})
	s.tagMapping(resourceOf(mapping))
	s.rules = append(s.rules, resourceOf(mapping)) // nothing is handled before setup has prepared the cluster
}
