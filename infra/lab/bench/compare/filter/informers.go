package filter

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/cache"

	"joiner.sh/infra/lab/bench/manifests"
)

// standing is an informer that holds what it was given and hears of nothing else, so that nobody waits for it.
type standing struct {
	cache.SharedIndexInformer // nil: a call that is not below must be loud

	indexer cache.Indexer
}

// handed is how far a handler of a standing informer has been told: at once, of everything.
type handed struct {
	cache.ResourceEventHandlerRegistration
}

func (handed) HasSynced() bool { return true }

func (s standing) GetIndexer() cache.Indexer { return s.indexer }

func (s standing) GetStore() cache.Store { return s.indexer }

func (s standing) HasSynced() bool { return true }

func (s standing) AddEventHandler(h cache.ResourceEventHandler) (cache.ResourceEventHandlerRegistration, error) {
	for _, o := range s.indexer.List() {
		h.OnAdd(o, true)
	}
	return handed{}, nil
}

func (s standing) AddEventHandlerWithOptions(h cache.ResourceEventHandler,
	_ cache.HandlerOptions) (cache.ResourceEventHandlerRegistration, error) {
	return s.AddEventHandler(h)
}

func (s standing) AddIndexers(more cache.Indexers) error {
	if err := s.indexer.AddIndexers(more); err != nil {
		return fmt.Errorf("index: %w", err)
	}
	return nil
}

// holdObjects makes the factory hold the objects of a type.
func holdObjects[T any, P interface {
	*T
	runtime.Object
}](factory informers.SharedInformerFactory, list []T) {
	factory.InformerFor(P(new(T)), func(kubernetes.Interface, time.Duration) cache.SharedIndexInformer {
		s := standing{indexer: cache.NewIndexer(cache.MetaNamespaceKeyFunc,
			cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})}
		for i := range list {
			if err := s.indexer.Add(P(&list[i])); err != nil {
				panic(err) // the key function knows every object
			}
		}
		return s
	})
}

// informersOf are the informers that plugins ask, over what the cluster has. Of pods and nodes they ask the snapshot.
func informersOf(c *manifests.Cluster) (informers.SharedInformerFactory, kubernetes.Interface) {
	client := fake.NewClientset()
	factory := informers.NewSharedInformerFactory(client, 0)
	holdObjects(factory, c.Namespaces)
	holdObjects(factory, c.Volumes)
	holdObjects(factory, c.VolumeClaims)
	holdObjects(factory, c.StorageClasses)
	holdObjects(factory, c.CSINodes)
	holdObjects(factory, c.Nodes)
	holdObjects(factory, c.Pods)
	return factory, client
}
