package fake_test

import (
	"slices"
	"testing"
	"time"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/resources"
	"joiner.sh/pkg/testing/fake"
)

// TestAppsStayInTheirNamespace: pods and budgets of an app are in the namespace that its pattern says, which the snapshot
// knows; a budget says nothing of an app of another namespace.
func TestAppsStayInTheirNamespace(t *testing.T) {
	w := fake.New(instancetypes.Catalog{}, time.Unix(0, 0))
	one := cluster.Pod{Need: resources.List{CPU: 100}}
	w.RunApp("web", 1, one)
	one.Namespace = "shop"
	w.RunApp("cart", 1, one)
	w.ProtectApp("cart", 1)
	s, err := w.Ports(fake.Fault{}).ReadSnapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var pods, spaces []string
	for _, p := range s.Pods {
		pods = append(pods, p.Namespace+"/"+p.Labels["app"])
	}
	for _, n := range s.Namespaces {
		spaces = append(spaces, n.Name)
	}
	slices.Sort(pods)
	if !slices.Equal(pods, []string{"default/web", "shop/cart"}) || !slices.Equal(spaces, []string{"default", "shop"}) ||
		len(s.Budgets) != 1 || s.Budgets[0].Namespace != "shop" {
		t.Errorf("pods %v, namespaces %v, budgets %+v", pods, spaces, s.Budgets)
	}
}
