package fleet

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"

	"joiner.sh/pkg/model/lists"
	"joiner.sh/pkg/nodeclaim/awserrors"
)

const (
	// splitCalls bounds the calls that one shared call is split into.
	splitCalls = 64
	// refusedApart is the time for which an instance that EC2 refused alone shares no call.
	refusedApart = 5 * time.Minute
)

// RefusedError says that EC2 refuses a call about one instance, made about it alone.
type RefusedError struct {
	ID  string
	err error
}

// Error names the instance and EC2's answer.
func (e *RefusedError) Error() string { return fmt.Sprintf("instance %s: %s", e.ID, e.err) }

// Unwrap is the error of EC2.
func (e *RefusedError) Unwrap() error { return e.err }

// Refusal is the reason in one word, and what to do about it. It lets callers who may not know this package ask
// errors.As for an interface with this method.
func (e *RefusedError) Refusal() (reason, message string) {
	return awserrors.RefusalReason(e.ID, awserrors.CodeOf(e.err), awserrors.MessageOf(e.err))
}

// refusesSome reports whether EC2 answered no, so that a call about something else, or about less, may be answered
// otherwise. After a throttle, a failure of EC2 or no answer it would not.
func refusesSome(err error) bool {
	code := awserrors.CodeOf(err)
	return code != "" && !awserrors.IsThrottled(code) && !awserrors.IsServerFault(code) &&
		httpStatus(err) < http.StatusInternalServerError
}

// splitRefusals makes one call about all ids. One that may not be named refuses the whole call, or that for all of its
// zone: the call is halved until each that is refused is asked for alone, in so many calls at most. The result is the
// error of every id that has one, a *RefusedError when it was refused alone. The call returns which ids the answer
// names; those that it leaves out are asked for alone, where an answer counts that is no error.
func splitRefusals(ids []string, call func(ids []string) (named []string, err error)) map[string]error {
	errs := map[string]error{}
	queue := [][]string{ids}
	for made := 1; len(queue) > 0; made++ {
		part := queue[0]
		queue = queue[1:]
		named, err := call(part)
		switch {
		case err != nil && len(part) > 1 && refusesSome(err) && made+len(queue)+1 < splitCalls:
			queue = append(queue, part[:len(part)/2], part[len(part)/2:])
		case err != nil && len(part) == 1 && refusesSome(err):
			errs[part[0]] = &RefusedError{ID: part[0], err: err}
		case err != nil:
			for _, id := range part {
				errs[id] = fmt.Errorf("instances %v: %w", part, err)
			}
		case len(part) > 1:
			for _, id := range part {
				switch {
				case slices.Contains(named, id):
				case made+len(queue) < splitCalls:
					queue = append(queue, []string{id})
				default:
					errs[id] = fmt.Errorf("instance %s: EC2's answer does not name it", id)
				}
			}
		}
	}
	return errs
}

// refusedLately are instances that EC2 refused a call of their own lately. They share no call, so that they hold up no
// others. The zero value is ready; it may be used by several goroutines.
type refusedLately struct {
	mu    sync.Mutex
	until map[string]time.Time
}

// split is splitRefusals, with a call of its own for each that was refused lately.
func (r *refusedLately) split(ids []string, call func(ids []string) ([]string, error)) map[string]error {
	errs := map[string]error{}
	var together []string
	for _, id := range ids {
		if !r.has(id) {
			together = append(together, id)
			continue
		}
		r.note(errs, splitRefusals([]string{id}, call))
	}
	for part := range slices.Chunk(together, terminateAt) {
		r.note(errs, splitRefusals(part, call))
	}
	return errs
}

// note adds the errors to those that there are, and remembers who was refused alone.
func (r *refusedLately) note(errs, more map[string]error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.until == nil {
		r.until = map[string]time.Time{}
	}
	for id, err := range more {
		errs[id] = err
		if _, alone := errors.AsType[*RefusedError](err); alone {
			r.until[id] = time.Now().Add(refusedApart)
		}
	}
}

// has reports whether the instance is among them, and forgets those of which it is long ago.
func (r *refusedLately) has(id string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	maps.DeleteFunc(r.until, func(_ string, until time.Time) bool { return !now.Before(until) })
	_, ok := r.until[id]
	return ok
}

// joinByID joins the errors in the order of their ids.
func joinByID(ids []string, errs map[string]error) error {
	out := lists.Of(ids, func(id string) error { return errs[id] })
	return errors.Join(out...)
}
