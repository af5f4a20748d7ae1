// Package paging bounds lists that are read page by page, so that none goes on for ever or ends before its end without
// a word. It knows the form of the SDK's paginators, and no SDK.
package paging

import (
	"fmt"
	"iter"
)

// Pages is a paginator. C is the context that its calls take, and O the options of their client.
type Pages[C, P, O any] interface {
	HasMorePages() bool
	NextPage(ctx C, options ...func(*O)) (P, error)
}

// BoundError says that a list has more pages than were read.
type BoundError struct{ Most int }

// Error says how many were read.
func (e *BoundError) Error() string { return fmt.Sprintf("more than %d pages", e.Most) }

// Bounded are the pages of the list, and the error that ends it, if one does: where there are more than most pages, a
// *BoundError.
func Bounded[C, P, O any](ctx C, most int, pages Pages[C, P, O], options ...func(*O)) iter.Seq2[P, error] {
	return func(yield func(P, error) bool) {
		for n := 0; pages.HasMorePages(); n++ {
			var page P
			err := error(&BoundError{most})
			if n < most {
				page, err = pages.NextPage(ctx, options...)
			}
			if !yield(page, err) || err != nil {
				return
			}
		}
	}
}
