package plancheck

import (
	"encoding/json"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/install/crdcheck"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/nodeclass/translate"
)

// apiServer judges NodeClaims by the CRD. It is read once for all plans.
var apiServer = sync.OnceValues(crdcheck.NewJudge) //nolint:gochecknoglobals // reading the CRDs takes 0.3 s

// checkAccepted wants the API server to take the NodeClaim of a launch.
func (t *planCheck) checkAccepted(m *possibleNode, pool cluster.Pool) {
	l := m.launch
	claim := api.NodeClaim{
		TypeMeta:   metav1.TypeMeta{APIVersion: api.GroupVersion().String(), Kind: api.NodeClaimKind},
		ObjectMeta: metav1.ObjectMeta{Name: pool.Name + "-0", Labels: l.Labels, Annotations: l.Annotations},
		Spec: api.NodeClaimSpec{
			Taints:        translate.CoreTaints(l.Taints),
			StartupTaints: translate.CoreTaints(l.Startup),
			Requirements:  translate.ClaimRequirements(l.Requirements),
			Resources:     api.ResourceRequirements{Requests: corev1.ResourceList(translate.Quantities(l.Requests))},
			NodeClassRef:  &api.NodeClassReference{Group: "karpenter.k8s.aws", Kind: "EC2NodeClass", Name: l.Class},
			ExpireAfter:   api.NeverAfter(),
		},
	}
	body, err := json.Marshal(claim)
	if err != nil {
		t.addViolation("%s: %v", m.name, err)
		return
	}
	judge, err := apiServer()
	if err != nil {
		t.addViolation("the CRDs: %v", err)
		return
	}
	v, _, err := judge.Judge(claim.APIVersion, claim.Kind, body)
	if err != nil {
		t.addViolation("%s: %v", m.name, err)
	}
	for _, e := range v.Refused {
		t.addViolation("%s: the API server refuses it: %s", m.name, e)
	}
}
