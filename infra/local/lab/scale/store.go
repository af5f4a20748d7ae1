package main

import (
	"bytes"
	"context"
	"fmt"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/client-go/kubernetes/scheme"
)

// writers put objects into the store side by side.
const writers = 16

// store writes objects past the API server, as it stores them: its admission and its validation of 150,000 pods would
// take minutes, and a pod's status a second request.
type store struct {
	client  *clientv3.Client
	encoder runtime.Serializer
}

func openStore(url string) (*store, error) {
	c, err := clientv3.New(clientv3.Config{Endpoints: []string{url}, DialTimeout: 10 * time.Second})
	if err != nil {
		return nil, fmt.Errorf("reach the store: %w", err)
	}
	return &store{client: c, encoder: protobuf.NewSerializer(scheme.Scheme, scheme.Scheme)}, nil
}

// putObject stores an object of a built-in kind.
func (s *store) putObject(ctx context.Context, key string, kind schema.GroupVersionKind, o runtime.Object) error {
	o.GetObjectKind().SetGroupVersionKind(kind)
	var b bytes.Buffer
	if err := s.encoder.Encode(o, &b); err != nil {
		return fmt.Errorf("encode %s: %w", key, err)
	}
	return s.putRaw(ctx, key, b.Bytes())
}

// putRaw stores what is encoded, such as the JSON of a custom resource.
func (s *store) putRaw(ctx context.Context, key string, value []byte) error {
	if _, err := s.client.Put(ctx, "/registry/"+key, string(value)); err != nil {
		return fmt.Errorf("store %s: %w", key, err)
	}
	return nil
}

// sizeOfFirst is how many bytes the first object under a prefix has.
func (s *store) sizeOfFirst(ctx context.Context, prefix string) (int, error) {
	r, err := s.client.Get(ctx, "/registry/"+prefix, clientv3.WithPrefix(), clientv3.WithLimit(1))
	if err != nil || len(r.Kvs) == 0 {
		return 0, fmt.Errorf("read the first of %s: %d there: %w", prefix, r.Count, err)
	}
	return len(r.Kvs[0].Value), nil
}

// forEach calls do for 0 to n-1, several at a time, until one fails.
func forEach(ctx context.Context, n int, do func(context.Context, int) error) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(writers)
	for i := range n {
		g.Go(func() error { return do(ctx, i) })
	}
	return g.Wait()
}
