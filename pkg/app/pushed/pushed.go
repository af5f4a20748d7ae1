// Package pushed makes the function behind the webhook out of settings and the client of Lambda. It is apart from app
// so that this function, which the API server waits for, starts without the clients of Kubernetes and EC2.
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

	"joiner.sh/pkg/controllers/webhook"
	"joiner.sh/pkg/model/controls"
	"joiner.sh/pkg/providers/invoke"
	"joiner.sh/pkg/settings"
)

// FromEnv reads the settings. It fails when one is wrong, or when the secret path is missing.
func FromEnv(ctx context.Context) (*webhook.WebhookHandler, error) {
	set, err := settings.ParseSettings(os.Getenv)
	if err != nil {
		return nil, err
	}
	if set.PushPath == "" {
		return nil, errors.New("settings: PUSH_PATH is required: the stack sets it with push")
	}
	// One attempt: the API server waits a second, and calls again for the next pod.
	cfg, err := config.LoadDefaultConfig(ctx, config.WithAppID("joiner"),
		config.WithRetryer(func() aws.Retryer { return aws.NopRetryer{} }))
	if err != nil {
		return nil, fmt.Errorf("load aws configuration: %w", err)
	}
	client := lambda.NewFromConfig(cfg)
	waker := func(function string) webhook.Waker {
		return invoke.Function{Lambda: client, Name: function, Reason: invoke.Push}
	}
	return &webhook.WebhookHandler{Secret: set.PushPath, Now: time.Now,
		Log: slog.New(slog.NewJSONHandler(controls.JSONLines{To: os.Stdout}, nil)),
		Wakes: map[string]webhook.Waker{webhook.Pods: waker(set.ProvisionFunction),
			webhook.Nodes: waker(set.LifecycleFunction)}}, nil
}
