package fleet

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"golang.org/x/time/rate"

	awsv1 "joiner.sh/pkg/api/aws/v1"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/lists"
	"joiner.sh/pkg/nodeclaim/awserrors"
	"joiner.sh/pkg/nodeclaim/launch"
)

// Limits of lists and waits.
const (
	pageSize    = 1000
	maxPages    = 200
	adoptTries  = 4
	adoptPause  = 500 * time.Millisecond
	terminateAt = 500 // ids in one call

	tagsPerSecond, tagsAtOnce = 9, 50

	listHolds = time.Minute

	createTakes = 50 * time.Second // CreateFleet, for up to 250 instances
)

const instanceNotFound = "InvalidInstanceID.NotFound"

// tooFewInstances is our code for an answer with fewer instances than were asked for, and no error.
const tooFewInstances = "TooFewInstances"

// Fleet is EC2 for one cluster.
type Fleet struct {
	EC2     *ec2.Client
	Cluster string
	Now     func() time.Time

	patient sync.Once
	creator *ec2.Client // as EC2, with more time for an answer

	mu        sync.Mutex      // held while templates are made, so that parallel launches make each once
	templates map[string]bool // names known to exist

	refused refusedLately
	ending  callBatcher[map[string]error]    // the errors, by instance
	naming  callBatcher[map[string][]string] // keys of tags, by instance
	looked  sync.Mutex
	listed  map[string]listedTags // the same, as lists had them lately
	tagged  sync.Once
	tagger  *rate.Limiter
}

// paceCreateTags keeps CreateTags to what EC2 takes of it in an account, 100 calls at once and 10 a second ("Request
// throttling for the Amazon EC2 API"), less what others may need of it: so no call is made only to be refused.
func (f *Fleet) paceCreateTags(ctx context.Context) error {
	f.tagged.Do(func() { f.tagger = rate.NewLimiter(tagsPerSecond, tagsAtOnce) })
	return f.tagger.Wait(ctx)
}

// LaunchError says that EC2 answered a launch with no instance, for another reason than lack of capacity.
type LaunchError struct {
	Code, Message string
}

// Error is the code and the message of EC2.
func (e *LaunchError) Error() string { return e.Code + ": " + e.Message }

// TokenSpent reports true: EC2 would answer the same token with the same error for ever, so the next request needs
// another one. It lets callers who may not know this package ask errors.As for an interface with this method.
func (e *LaunchError) TokenSpent() bool { return true }

// ErrorCode is the code of EC2.
func (e *LaunchError) ErrorCode() string { return e.Code }

// ErrorMessage is the message of EC2.
func (e *LaunchError) ErrorMessage() string { return e.Message }

// Refused reports whether EC2 said no to what was asked, and may say yes to other offerings. It is no answer about
// offerings that EC2 was asked too often, failed, or started too few.
func (e *LaunchError) Refused() bool { return e.Code != tooFewInstances && refusesSome(e) }

// callError is an error of a whole CreateFleet call.
type callError struct{ err error }

func (e *callError) Error() string { return "create fleet: " + e.err.Error() }

// Unwrap is the error of EC2.
func (e *callError) Unwrap() error { return e.err }

// Refused says the same as of a LaunchError.
func (e *callError) Refused() bool { return refusesSome(e.err) }

// LaunchInstances starts one instance for the order. The same token never starts a second one: when EC2 knows the token
// from a request of another content, the instance is found by its tag, else the error is a *launch.TokenUsedError. When
// EC2 has no capacity the error is a *instancetypes.NoCapacityError. It returns the offerings refused although an
// instance was started.
func (f *Fleet) LaunchInstances(ctx context.Context, o launch.Order, token string) (cluster.Instance,
	[]instancetypes.UnavailableOffering, error) {
	got, unavailable, err := f.requestFleet(ctx, o, token)
	if len(got) == 0 {
		return cluster.Instance{}, unavailable, err
	}
	return got[0], unavailable, nil
}

// LaunchBatch starts an instance for each claim of the order's batch, or fewer: then the error says why, in the words
// of Launch. The same token never starts more: it brings the instances that it brought before, some of which may have
// ended.
func (f *Fleet) LaunchBatch(ctx context.Context, o launch.Order, token string) ([]cluster.Instance,
	[]instancetypes.UnavailableOffering, error) {
	return f.requestFleet(ctx, o, token)
}

func (f *Fleet) requestFleet(ctx context.Context, o launch.Order, token string) ([]cluster.Instance,
	[]instancetypes.UnavailableOffering, error) {
	for try := 0; ; try++ {
		if err := f.ensureTemplates(ctx, o); err != nil {
			return nil, nil, err
		}
		out, err := f.createsFleets().CreateFleet(ctx, fleetInput(o, token))
		switch {
		case awserrors.CodeOf(err) == awserrors.TokenReused:
			got, err := f.adoptInstances(ctx, o, token)
			return got, nil, err
		case noTemplate(awserrors.CodeOf(err)):
			if f.forgetTemplates(o); try > 0 {
				return nil, nil, refusedError(o, err)
			}
			continue
		case err != nil:
			return nil, nil, refusedError(o, err)
		}
		if slices.ContainsFunc(out.Errors, func(e types.CreateFleetError) bool {
			return noTemplate(aws.ToString(e.ErrorCode))
		}) {
			f.forgetTemplates(o) // the answer spent the token: the next request makes the templates
		}
		if len(out.Instances) == 0 && len(out.Errors) == 0 { // the answer may be that of a repeated request
			got, err := f.adoptInstances(ctx, o, token)
			if _, none := errors.AsType[*launch.TokenUsedError](err); !none {
				return got, nil, err
			}
		}
		return f.readOutcome(o, out)
	}
}

// createsFleets is the client for CreateFleet. Its calls may take longer than others: one that is repeated while the
// first still runs would learn nothing of it.
func (f *Fleet) createsFleets() *ec2.Client {
	f.patient.Do(func() {
		options := f.EC2.Options()
		if c, ok := options.HTTPClient.(*awshttp.BuildableClient); ok {
			options.HTTPClient = c.WithTimeout(createTakes)
		}
		f.creator = ec2.New(options)
	})
	return f.creator
}

// refusedError is the error of a request that EC2 refused as a whole. Quotas and a missing service-linked role may come
// this way too, and mean the same as in an answer.
func refusedError(o launch.Order, err error) error {
	one := types.CreateFleetError{ErrorCode: aws.String(awserrors.CodeOf(err)),
		ErrorMessage: aws.String(awserrors.MessageOf(err))}
	if unavailable, _ := splitErrors(o, []types.CreateFleetError{one}); len(unavailable) > 0 {
		return &instancetypes.NoCapacityError{Unavailable: unavailable}
	}
	return &callError{err}
}

// readOutcome reads the answer: errors teach what is unavailable even when instances were started.
func (f *Fleet) readOutcome(o launch.Order, out *ec2.CreateFleetOutput) ([]cluster.Instance,
	[]instancetypes.UnavailableOffering, error) {
	unavailable, other := splitErrors(o, out.Errors)
	var started []cluster.Instance
	for _, i := range out.Instances {
		zone := aws.ToString(i.AvailabilityZone)
		if v := i.LaunchTemplateAndOverrides; zone == "" && v != nil && v.Overrides != nil {
			zone = aws.ToString(v.Overrides.AvailabilityZone) // why every override names its zone
		}
		for _, id := range i.InstanceIds {
			in := cluster.Instance{ID: id, State: "pending", Type: string(i.InstanceType), Zone: zone,
				CapacityType: o.CapacityType,
				Launched:     f.Now(), Claim: o.ClaimName, ClaimUID: o.ClaimUID, Batch: o.Batch.ID}
			in.ImageID, in.SubnetID = imageOf(o, in)
			in.Reservation = o.Reservation(in.Type, in.Zone)
			started = append(started, in)
		}
	}
	switch {
	case len(started) >= o.Count():
		return started, unavailable, nil
	case len(other) > 0 && !leavesOfferings(o, unavailable, other):
		return started, unavailable, &LaunchError{Code: aws.ToString(other[0].ErrorCode),
			Message: aws.ToString(other[0].ErrorMessage)}
	case len(unavailable) > 0:
		return started, nil, &instancetypes.NoCapacityError{Unavailable: unavailable}
	}
	return started, unavailable, &LaunchError{Code: tooFewInstances,
		Message: fmt.Sprintf("EC2 started %d instances of %d and gave no error", len(started), o.Count())}
}

// adoptInstances finds the instances that an earlier request with this token started. EC2 may not show a new instance
// at once, so it looks several times, for seven seconds in all.
func (f *Fleet) adoptInstances(ctx context.Context, o launch.Order, token string) ([]cluster.Instance, error) {
	tag, value := launch.TagClaimUID, o.ClaimUID
	if o.Batch.ID != "" {
		tag, value = launch.TagBatch, o.Batch.ID
	}
	var found []cluster.Instance
	for try := range adoptTries {
		if try > 0 {
			if err := waitFor(ctx, adoptPause<<try); err != nil {
				return nil, err
			}
		}
		all, err := f.listInstances(ctx, types.Filter{Name: aws.String("tag:" + tag), Values: []string{value}})
		if err != nil {
			return nil, err
		}
		if found = slices.DeleteFunc(all, cluster.Instance.Gone); len(found) >= o.Count() {
			return found, nil
		}
	}
	if len(found) > 0 {
		return found, nil
	}
	return nil, &launch.TokenUsedError{Token: token}
}

// TerminateInstances ends the instances. Ids that EC2 does not know are no error. Those that EC2 refuses, for
// termination protection or by a policy, keep no others running: the error is a *RefusedError for each. Single
// instances that are ended side by side share a call.
func (f *Fleet) TerminateInstances(ctx context.Context, ids []string) error {
	if len(ids) != 1 || f.refused.has(ids[0]) {
		return joinByID(ids, f.terminateTogether(ctx, ids))
	}
	errs, err := f.ending.askTogether(ctx, ids[0], terminateAt,
		func(ctx context.Context, ids []string) (map[string]error, error) {
			return f.terminateTogether(ctx, ids), nil
		})
	return cmp.Or(errs[ids[0]], err)
}

func (f *Fleet) terminateTogether(ctx context.Context, ids []string) map[string]error {
	return f.refused.split(ids, func(ids []string) (named []string, err error) {
		out, err := f.EC2.TerminateInstances(ctx, &ec2.TerminateInstancesInput{InstanceIds: ids})
		switch {
		case awserrors.CodeOf(err) == instanceNotFound && len(ids) == 1:
			return nil, nil
		case err != nil:
			return nil, fmt.Errorf("terminate: %w", err)
		}
		return namedIn(out.TerminatingInstances), nil
	})
}

// namedIn are the instances that an answer names.
func namedIn(changes []types.InstanceStateChange) []string {
	return lists.Of(changes, func(c types.InstanceStateChange) string { return aws.ToString(c.InstanceId) })
}

// TagInstance tags an instance with its node's name, its claim's and the cluster's, those of the three that it lacks:
// the user's tags may have named it, and of an instance that Joiner launched only the first is missing, or the first
// two. An instance that EC2 does not know is no error. What a list told less than a minute ago is not asked for again;
// others that are named side by side are looked at with one call.
func (f *Fleet) TagInstance(ctx context.Context, id, node, claim string) error {
	have, found, err := f.tagKeys(ctx, id)
	if err != nil {
		return err
	}
	missing := []launch.Tag{{Key: awsv1.TagName, Value: node}, {Key: launch.TagClaim, Value: claim},
		{Key: launch.TagClusterName, Value: f.Cluster}}
	missing = slices.DeleteFunc(missing, func(want launch.Tag) bool { return slices.Contains(have, want.Key) })
	if !found || len(missing) == 0 {
		return nil
	}
	if err := f.paceCreateTags(ctx); err != nil {
		return fmt.Errorf("tag instance %s: %w", id, err)
	}
	_, err = f.EC2.CreateTags(ctx, &ec2.CreateTagsInput{Resources: []string{id}, Tags: ec2Tags(missing)})
	if err != nil && awserrors.CodeOf(err) != instanceNotFound {
		return fmt.Errorf("tag instance %s: %w", id, err)
	}
	return nil
}

// readTagKeys are the keys of the tags of instances, by id. One that EC2 does not know is left out.
func (f *Fleet) readTagKeys(ctx context.Context, ids []string) (map[string][]string, error) {
	out := map[string][]string{}
	// not by parameter: one id that EC2 does not know would refuse the whole call
	got, err := f.EC2.DescribeInstances(ctx, &ec2.DescribeInstancesInput{
		Filters: []types.Filter{{Name: aws.String("instance-id"), Values: ids}}})
	if err != nil {
		return nil, fmt.Errorf("describe instances %v: %w", ids, err)
	}
	for _, r := range got.Reservations {
		for _, i := range r.Instances {
			out[aws.ToString(i.InstanceId)] = lists.Of(i.Tags, func(t types.Tag) string { return aws.ToString(t.Key) })
		}
	}
	return out, nil
}

func waitFor(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}
