package notices

import (
	"context"

	"joiner.sh/events"
	"joiner.sh/pkg/controllers"
	"joiner.sh/pkg/nodeclaim/interruption"
)

// NewSharedWaker is a Waker that many calls share.
func NewSharedWaker(w controllers.Waker) controllers.Waker { return newSharedWaker(w) }

// HandleTogether handles what the events of a batch say.
func (i *Controller) HandleTogether(ctx context.Context, all ...interruption.Notice) []error {
	return i.handleTogether(ctx, all)
}

// DecodeNotices reads what an event says.
func (p Location) DecodeNotices(kind events.Kind, data []byte) ([]interruption.Notice, error) {
	list, _, err := p.decodeNotices(kind, data)
	return list, err
}
