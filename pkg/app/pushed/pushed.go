// Package pushed makes the function behind the webhook out of settings and the client of Lambda. It is apart from app so that this
// function, which the API server waits for, starts without the clients of Kubernetes and EC2.
package pushed

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/lambda"

	"joiner/pkg/push"
	"joiner/pkg/setting"
	"joiner/pkg/wake"
)

// FromEnv reads the settings. It fails when one is wrong, or when the secret path is missing.
func FromEnv(ctx context.Context) (*push.Desk, error) {
	set, err := setting.Parse(os.Getenv)
	if err != nil {
		return nil, err
	}
	if set.PushPath == "" {
		return nil, errors.New("settings: PUSH_PATH is required: the stack sets it with push")
	}
	// One attempt: the API server waits a second, and calls again for the next pod.
	cfg, err := config.LoadDefaultConfig(ctx, config.WithAppID("joiner"), config.WithRetryer(func() aws.Retryer { return aws.NopRetryer{} }))
	if err != nil {
		return nil, fmt.Errorf("load aws configuration: %w", err)
	}
	client := lambda.NewFromConfig(cfg)
	waker := func(function string) push.Waker {
		return wake.Function{Lambda: client, Name: function, Reason: wake.Push}
	}
	return &push.Desk{Secret: set.PushPath, Now: time.Now, Log: slog.New(slog.NewJSONHandler(os.Stdout, nil)),
		Wakes: map[string]push.Waker{push.Pods: waker(set.ProvisionFunction), push.Nodes: waker(set.LifecycleFunction)}}, nil
}
