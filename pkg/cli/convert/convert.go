package convert

import (
	"cmp"
	"errors"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	awsv1 "joiner.sh/pkg/api/aws/v1"
	api "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/model/lists"
	"joiner.sh/pkg/workload/manifest"
)

// Kinds and versions that are converted.
const (
	provisionerVersion = "karpenter.sh/v1alpha5"
	templateVersion    = "karpenter.k8s.aws/v1alpha1"
	poolBeta           = "karpenter.sh/v1beta1"
	classBeta          = "karpenter.k8s.aws/v1beta1"
	poolToday          = "karpenter.sh/v1"
	classToday         = "karpenter.k8s.aws/v1"
	classKind          = "EC2NodeClass"
)

// Options say what manifests cannot know.
type Options struct {
	Cluster string // name of the cluster; empty to take it from what the manifests hint at
	Role    string // of the nodes, for what names no instance profile; empty for KarpenterNodeRole-<cluster>
	KeepAL2 bool   // leave classes on Amazon Linux 2, which has no images from Kubernetes 1.33 on
}

// Result holds what came out.
type Result struct {
	Objects  []Object // converted ones, and others as they were
	Warnings []string // file, line, object and field each
}

// Object is one object of the result, in the order of the input; a class stands before the pool that it was made for.
type Object struct {
	Class *awsv1.EC2NodeClass // made here; else nil
	Pool  *api.NodePool       // made here; else nil
	Other manifest.Document   // neither of these: as it was

	from manifest.Document // what it was made of
}

// Converted reports whether the object was made here.
func (o Object) Converted() bool { return o.Class != nil || o.Pool != nil }

// ConvertAll converts every object of old versions. The error joins what cannot be converted, each with file, line,
// object and field.
func ConvertAll(docs []manifest.Document, o Options) (Result, error) {
	c := converter{options: o}
	c.findHints(docs)
	problems := lists.Of(docs, c.addObject)
	if err := errors.Join(problems...); err != nil {
		return Result{}, err
	}
	problems = append(problems, c.moveKubelets(), c.requireUnique())
	return Result{Objects: c.objects, Warnings: c.warnings}, errors.Join(problems...)
}

// converter is a result while it is made.
type converter struct {
	options  Options
	profile  string // default instance profile of old global settings
	objects  []Object
	warnings []string
	kubelet  []poolKubelet

	annotated bool // some pool has a kubelet block in its annotations
}

// poolKubelet is a kubelet block that stood in a pool and belongs into its class now.
type poolKubelet struct {
	from manifest.Document
	at   string // its field
	pool *api.NodePool
	with *awsv1.KubeletConfiguration
}

func (c *converter) addWarning(d manifest.Document, field, format string, args ...any) {
	c.warnings = append(c.warnings, d.Errorf(field, format, args...).Error())
}

// findHints looks for the cluster's name and the default instance profile, which older versions kept apart from these
// objects.
func (c *converter) findHints(docs []manifest.Document) {
	for _, d := range docs {
		c.annotated = c.annotated || kubeletText(d) != ""
		if d.Kind == "ConfigMap" && d.Name == "karpenter-global-settings" {
			var settings struct {
				Data map[string]string `json:"data"`
			}
			if _, err := d.Decode(&settings); err == nil {
				c.options.Cluster = cmp.Or(c.options.Cluster, settings.Data["aws.clusterName"])
				c.profile = settings.Data["aws.defaultInstanceProfile"]
			}
		}
	}
}

func (c *converter) addObject(d manifest.Document) error {
	switch d.APIVersion + " " + d.Kind {
	case provisionerVersion + " Provisioner":
		return c.convertProvisioner(d)
	case templateVersion + " AWSNodeTemplate":
		return c.convertTemplate(d)
	case poolBeta + " NodePool":
		return c.convertPool(d)
	case classBeta + " " + classKind:
		return c.convertClass(d)
	case poolToday + " NodePool":
		if isHalfMigratedPool(d) {
			c.addWarning(d, "apiVersion", halfMigrated)
			return c.convertPool(d)
		}
		if kubeletText(d) != "" {
			c.addWarning(d, "metadata.annotations", annotatedKubelet)
			return c.convertPool(d)
		}
	case classToday + " " + classKind:
		if isHalfMigratedClass(d) {
			c.addWarning(d, "apiVersion", halfMigrated)
			return c.convertClass(d)
		}
		if c.annotated {
			return c.takeClass(d)
		}
	}
	group, version, _ := strings.Cut(d.APIVersion, "/")
	ours := group == api.Group || group == awsv1.Group
	switch {
	case d.Kind == "" || d.APIVersion == "":
		return d.Errorf("", "apiVersion or kind is missing; a manifest has both")
	case slices.Contains([]string{"Machine", "NodeClaim"}, d.Kind) && ours && version != "v1":
		c.addWarning(d, "kind", "left out: a %s is made for a node by Karpenter and not converted; its node is adopted, or replaced", d.Kind)
		return nil
	case ours && version != "v1" && !(group == api.Group && d.Kind == "NodeOverlay"):
		return d.Errorf("apiVersion", "%s %s is not known; known are Provisioner (%s), AWSNodeTemplate (%s), NodePool (%s) and %s (%s)",
			d.APIVersion, d.Kind, provisionerVersion, templateVersion, poolBeta, classKind, classBeta)
	}
	c.oldNames(d)
	c.objects = append(c.objects, Object{Other: d})
	return nil
}

// oldNames warns of names in other objects that mean nothing any more.
func (c *converter) oldNames(d manifest.Document) {
	for _, name := range []struct{ was, is string }{
		{"karpenter.sh/provisioner-name", api.LabelNodePool},
		{"karpenter.sh/do-not-evict", api.AnnotationDoNotDisrupt},
		{"karpenter.sh/do-not-consolidate", api.AnnotationDoNotDisrupt},
	} {
		if strings.Contains(string(d.Body), `"`+name.was+`"`) {
			c.addWarning(d, "", "it speaks of %s, which nobody looks at any more: write %s", name.was, name.is)
		}
	}
}

// keepMetadata keeps the name and what users wrote.
func keepMetadata(old metav1.ObjectMeta) metav1.ObjectMeta {
	out := metav1.ObjectMeta{Name: old.Name, Labels: old.Labels}
	for k, v := range old.Annotations {
		switch {
		case strings.HasPrefix(k, "kubectl.kubernetes.io/"), strings.HasSuffix(k, "-hash"),
			strings.HasSuffix(k, "-hash-version"), strings.HasPrefix(k, "compatibility.karpenter.sh/"):
			continue // written by programs about the old object
		}
		if out.Annotations == nil {
			out.Annotations = map[string]string{}
		}
		out.Annotations[k] = v
	}
	return out
}

// decodeOld decodes an old object and warns of fields that its version never had.
func (c *converter) decodeOld(d manifest.Document, into any) error {
	unknown, err := d.Decode(into)
	if err != nil {
		return err
	}
	if d.Name == "" {
		return d.Errorf("metadata.name", "it is missing")
	}
	for _, field := range unknown {
		c.addWarning(d, field, "left out: %s %s has no such field", d.APIVersion, d.Kind)
	}
	return nil
}

// requireUnique refuses two objects of one kind and name of which one was made here.
func (c *converter) requireUnique() error {
	seen := map[string]Object{}
	var problems []error
	for _, o := range c.objects {
		id := o.id()
		if first, twice := seen[id]; twice && (o.Converted() || first.Converted()) {
			problems = append(problems, o.Source().Errorf("metadata.name",
				"there would be two of %s, the other from %s:%d; rename one in the input",
				id, first.Source().File, first.Source().Line("metadata.name")))
		} else {
			seen[id] = o
		}
	}
	return errors.Join(problems...)
}

// id is the kind and name that the object has now.
func (o Object) id() string {
	switch {
	case o.Class != nil:
		return classKind + " " + o.Class.Name
	case o.Pool != nil:
		return "NodePool " + o.Pool.Name
	}
	return strings.TrimSpace(o.Other.Object() + " " + o.Other.Namespace)
}

// Source returns the document that the object was made of.
func (o Object) Source() manifest.Document {
	if o.Converted() {
		return o.from
	}
	return o.Other
}

// findClass is the converted class of the name.
func (c *converter) findClass(name string) *awsv1.EC2NodeClass {
	for _, o := range c.objects {
		if o.Class != nil && o.Class.Name == name {
			return o.Class
		}
	}
	return nil
}
