package sim

import (
	"fmt"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	awsv1 "joiner.sh/pkg/api/aws/v1"
)

// addClass makes an EC2NodeClass that nobody has looked at.
func (s *apiServer) addClass(name string) {
	s.made++
	c := &awsv1.EC2NodeClass{ObjectMeta: metav1.ObjectMeta{Name: name, Generation: 1, ResourceVersion: "1"}}
	c.UID = types.UID(fmt.Sprintf("uid-class-%d", s.made))
	c.Spec.AMISelectorTerms = []awsv1.AMISelectorTerm{{Alias: "al2023@latest"}}
	c.Spec.Role = "demo"
	s.classes[name] = c
	s.version++
}

func (s *apiServer) writeClass(c *awsv1.EC2NodeClass) {
	s.version++
	c.ResourceVersion = strconv.Itoa(s.version)
}

func (s *apiServer) collectClass(c *awsv1.EC2NodeClass) {
	if c.DeletionTimestamp != nil && len(c.Finalizers) == 0 {
		delete(s.classes, c.Name)
		s.addTrace("class %s is gone", c.Name)
	}
}
