package kube

import (
	"cmp"
	"context"
	"errors"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
)

// maxListAge is the age of a list, since its first page, up to which it may go on. The store forgets a moment after
// five minutes.
const maxListAge = 4 * time.Minute

// pageStep is the factor by which a page too large in bytes gets smaller, and a small one larger again.
const pageStep = 10

// listQuery says what to list.
type listQuery struct {
	place     apiPath
	namespace string // empty for all
	fields    string // field selector
	labels    string // label selector
	page      int    // objects in a page at most; 0 for as many as usual
	// enough, if set, is asked after each page whether others need not be read.
	enough func() bool
}

type listObject interface {
	runtime.Object
	metav1.ListInterface
}

// listAll reads a list page by page and keeps only what translate makes of each part of a page, so that neither a large
// cluster nor large objects ever stand in memory as a whole. translate may see an object again when a page is retried.
// All pages are of one moment, the version returned: the API server serves them from a snapshot in its cache.
// (resourceVersion=0 would be older data and, worse, one page however long.)
func listAll[O any, L interface {
	*O
	listObject
}, T any](ctx context.Context, c *connection, q listQuery, translate func(L) []T) ([]T, string, error) {
	fresh := func() L { return new(O) }
	return (&pagedList[L, T]{connection: c, query: q, fresh: fresh, translate: translate}).readAll(ctx)
}

// pagedList is a list that goes on where it was cut short, if it is read again soon enough: one that takes longer than
// an invocation has is read by several.
type pagedList[L listObject, T any] struct {
	*connection
	query     listQuery
	fresh     func() L
	translate func(L) []T

	found []T       // on the pages that were read
	token string    // of the next page; empty for the first
	began time.Time // when the first page was asked for, by the wall clock

	objects int // to ask for in a page
}

// goesOn returns when a list that was cut short began. It reports false if the next one begins anew.
func (l *pagedList[L, T]) goesOn() (began time.Time, ok bool) {
	age := time.Now().Round(0).Sub(l.began)
	return l.began, l.token != "" && age >= 0 && age < maxListAge
}

// forget has the next list begin anew.
func (l *pagedList[L, T]) forget() { l.found, l.token = nil, "" }

// readAll reads the pages that are not read yet, and returns what is on all of them. After an error the next call goes
// on, unless the API server knows their moment no more: then the list begins anew.
func (l *pagedList[L, T]) readAll(ctx context.Context) ([]T, string, error) {
	if _, ok := l.goesOn(); !ok {
		l.forget()
	}
	for restart := 0; ; restart++ {
		version, err := l.readPages(ctx)
		if err == nil {
			found := l.found
			l.forget()
			return found, version, nil
		}
		expired := apierrors.IsResourceExpired(err)
		if expired {
			l.forget()
		}
		if !expired || restart == maxRestarts {
			return nil, "", wrapError(apiCall{verb: "list", place: l.query.place, namespace: l.query.namespace}, err)
		}
	}
}

func (l *pagedList[L, T]) readPages(ctx context.Context) (version string, err error) {
	if l.token == "" {
		l.began, l.objects = time.Now().Round(0), cmp.Or(l.query.page, pageSize)
	}
	for {
		page, err := l.readPage(ctx)
		if _, large := errors.AsType[*pageTooLargeError](err); large && l.objects > 1 {
			l.objects = max(1, l.objects/pageStep)
			continue
		}
		if err != nil {
			return "", err
		}
		l.found = append(l.found, page.found...)
		l.token = page.token
		if l.token == "" || l.query.enough != nil && l.query.enough() {
			return page.version, nil
		}
		if page.size < mostJSONBytes/(2*pageStep) {
			l.objects = min(cmp.Or(l.query.page, pageSize), l.objects*pageStep)
		}
	}
}

// listPage is one page of a list.
type listPage[T any] struct {
	found          []T
	version, token string // of the list, and of the next page
	size           int64  // bytes
}

// readPage reads the next page. The error wraps a *pageTooLargeError if fewer objects must be asked for.
func (l *pagedList[L, T]) readPage(ctx context.Context) (page listPage[T], err error) {
	q := l.query
	err = retryRequest(ctx, apiCall{verb: "read a page of", place: q.place, namespace: q.namespace}, func() error {
		r := l.restClient(q.place).Get().AbsPath(q.place.pathTo(q.namespace, "", "")...).Param("limit",
			strconv.Itoa(l.objects))
		r = addParam(addParam(addParam(r, "fieldSelector", q.fields), "labelSelector", q.labels), "continue", l.token)
		page, err = l.readPageOnce(ctx, r)
		return err
	})
	return page, err
}

func (l *pagedList[L, T]) readPageOnce(ctx context.Context, r *rest.Request) (page listPage[T], err error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	body, err := r.MaxRetries(0).Stream(ctx)
	if err != nil {
		return page, err
	}
	defer body.Close()
	take := func(some L) { page.found = append(page.found, l.translate(some)...) }
	meta, size, err := listDecoder[L]{l.json, l.fresh, take}.decode(body)
	if err != nil {
		return page, err
	}
	page.version, page.token, page.size = meta.GetResourceVersion(), meta.GetContinue(), size
	return page, nil
}
