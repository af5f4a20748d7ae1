// Package install holds what a cluster must have before Joiner's functions can work in it: the CRDs, a namespace and
// RBAC; and the webhook of push.
//
// It knows these objects as text, in the order in which they go into a cluster. It refuses to know how: applying them
// is somebody else's, and so is mapping an IAM role to one of the groups.
package install

import (
	"bytes"
	"embed"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
)

// Namespace is the namespace of Joiner's own objects: its leases and small records.
const Namespace = "joiner-system"

// Groups that the access entry of each function's IAM role must name.
const (
	GroupProvision               = "joiner-provision"
	GroupLifecycle               = "joiner-lifecycle"
	GroupDisrupt                 = "joiner-disrupt"
	GroupRefresh                 = "joiner-refresh"
	GroupSpotInterruption        = "joiner-spotinterruption"
	GroupReservationInterruption = "joiner-reservationinterruption"
	GroupRebalance               = "joiner-rebalance"
	GroupScheduledChange         = "joiner-scheduledchange"
	GroupStateChange             = "joiner-statechange"
)

//go:embed crds/*.yaml borrowed/*.yaml rbac/*.yaml priority/*.yaml push/*.yaml external/*.yaml
var files embed.FS

//go:embed amazon-roots.pem
var amazonRoots []byte

// AmazonRoots are the certificate authorities, PEM, one of which signs what answers at function URLs.
func AmazonRoots() []byte { return slices.Clone(amazonRoots) }

// CRDs are NodePool, NodeClaim, NodeOverlay, NodeRollout and EC2NodeClass. The files are part of the program, so an
// error is a mistake in them.
func CRDs() ([]*unstructured.Unstructured, error) {
	return objects("crds")
}

// Borrowed are CRDs of other projects whose objects Joiner reads when they are there: CapacityBuffer. Whoever wants
// them in a cluster without them creates them; one that exists, of whatever version, is to be left as it is. Joiner
// works without.
func Borrowed() ([]*unstructured.Unstructured, error) {
	return objects("borrowed")
}

// RBAC is the namespace, then the rights of every group in it and in the cluster, then what cluster admins get.
func RBAC() ([]*unstructured.Unstructured, error) {
	return objects("rbac")
}

// Priority returns the objects by which the API server orders the requests of every group when it has too many. There
// is a level for what is urgent, one for lists, and which requests are of which. It belongs to a stack, as Push does.
func Priority() ([]*unstructured.Unstructured, error) {
	return objects("priority")
}

// Address names the URL that the API server calls, and its authorities. An empty CA stands for the authorities that the
// API server itself trusts.
type Address struct {
	URL string // with the secret path, without a slash at the end
	CA  []byte // PEM
}

// Push is the webhook that announces pods without a node and deletions: the API server calls the last parts /pods and
// /nodes of the address. It belongs to a stack: whoever removes what answers there removes it too.
func Push(to Address) (*unstructured.Unstructured, error) {
	all, err := objects("push")
	if err != nil {
		return nil, err
	}
	webhooks, _, err := unstructured.NestedSlice(all[0].Object, "webhooks")
	if err != nil {
		return nil, fmt.Errorf("read webhooks of push: %w", err)
	}
	for _, w := range webhooks {
		w := w.(map[string]any)
		what, _, _ := strings.Cut(w["name"].(string), ".")
		call := map[string]any{"url": to.URL + "/" + what}
		if len(to.CA) > 0 {
			call["caBundle"] = base64.StdEncoding.EncodeToString(to.CA)
		}
		w["clientConfig"] = call
	}
	if err := unstructured.SetNestedSlice(all[0].Object, webhooks, "webhooks"); err != nil {
		return nil, fmt.Errorf("address webhooks of push: %w", err)
	}
	return all[0], nil
}

// Objects is everything but push, in the order in which it must be applied. CRDs need a moment until they are
// Established.
func Objects() ([]*unstructured.Unstructured, error) {
	crds, err := CRDs()
	if err != nil {
		return nil, err
	}
	rbac, err := RBAC()
	if err != nil {
		return nil, err
	}
	priority, err := Priority()
	return slices.Concat(crds, rbac, priority), err
}

// objects reads every document of every file of a directory, by file name.
func objects(dir string) ([]*unstructured.Unstructured, error) {
	entries, err := fs.ReadDir(files, dir)
	if err != nil {
		return nil, err
	}
	var all []*unstructured.Unstructured
	for _, e := range entries {
		text, err := files.ReadFile(path.Join(dir, e.Name()))
		if err != nil {
			return nil, err
		}
		found, err := decode(text)
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", e.Name(), err)
		}
		all = append(all, found...)
	}
	return all, nil
}

func decode(text []byte) ([]*unstructured.Unstructured, error) {
	const lookAhead = 4096 // bytes in which the decoder looks for JSON
	documents := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), lookAhead)
	var all []*unstructured.Unstructured
	for {
		var object map[string]any
		err := documents.Decode(&object)
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return nil, err
		}
		if len(object) > 0 {
			all = append(all, &unstructured.Unstructured{Object: object})
		}
	}
}
