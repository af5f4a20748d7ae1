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
func (c *Controller) HandleTogether(ctx context.Context, all ...interruption.Notice) []error {
	return c.handleTogether(ctx, all)
}

// DecodeNotices reads what an event says.
func (l Location) DecodeNotices(kind events.Kind, data []byte) ([]interruption.Notice, error) {
	list, _, err := l.decodeNotices(kind, data)
	return list, err
}
