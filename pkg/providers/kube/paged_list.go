package kube

import (
	"cmp"
	"context"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
)

// maxListAge is how long after its first page a list may go on. The store forgets a moment after five minutes.
const maxListAge = 4 * time.Minute

// listQuery is what to list.
type listQuery struct {
	place     apiPath
	namespace string // empty for all
	fields    string // field selector
	labels    string // label selector
	page      int    // objects in a page; 0 for as many as usual
	// enough, if set, is asked after each page whether others need not be read.
	enough func() bool
}

type listObject interface {
	runtime.Object
	metav1.ListInterface
}

// listAll reads a list page by page and keeps only what translate makes of each page, so that a large cluster never
// stands in memory as whole objects. All pages are of one moment, the version returned: the API server serves them from
// a snapshot in its cache. (resourceVersion=0 would be older data and, worse, one page however long.)
func listAll[L listObject, T any](ctx context.Context, c *connection, q listQuery, fresh func() L,
	translate func(L) []T) ([]T, string, error) {
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
	q := l.query
	what := apiCall{verb: "read a page of", place: q.place, namespace: q.namespace}
	if l.token == "" {
		l.began = time.Now().Round(0)
	}
	for {
		page := l.fresh()
		err := l.sendWithRetries(ctx, what, func() *rest.Request {
			r := l.restClient(q.place).Get().AbsPath(q.place.pathTo(q.namespace, "", "")...).Param("limit",
				strconv.Itoa(cmp.Or(q.page, pageSize)))
			return addParam(addParam(addParam(r, "fieldSelector", q.fields), "labelSelector", q.labels), "continue",
				l.token)
		}, page)
		if err != nil {
			return "", err
		}
		l.found = append(l.found, l.translate(page)...)
		l.token = page.GetContinue()
		if l.token == "" || q.enough != nil && q.enough() {
			return page.GetResourceVersion(), nil
		}
	}
}
