package bootstrap

import (
	"mime"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	awsv1 "joiner.sh/pkg/api/aws/v1"
)

// MisreadUserData tells what images of the family make of spec.userData that was written for others, in words for its
// user. It is empty where they take it as it is meant, and where UserData has an error for it.
func MisreadUserData(family, text string) string {
	switch {
	case strings.TrimSpace(text) == "":
		return ""
	case strings.HasPrefix(family, "Windows"):
		return misreadByWindows(family, text)
	case family != awsv1.AMIFamilyAL2 && family != awsv1.AMIFamilyAL2023:
		return ""
	}
	parts, err := userParts(text, func(string) string { return "" })
	if err != nil {
		return ""
	}
	for _, p := range parts {
		media, _, err := mime.ParseMediaType(strings.Join(p.header[contentType], ""))
		if err != nil {
			media = "" // of a text that does not say what it is
		}
		why := misreadByAL2023(media, p.body)
		if family == awsv1.AMIFamilyAL2 {
			why = misreadByAL2(media, p.body)
		}
		if why != "" {
			return "spec.userData: " + why
		}
	}
	return ""
}

func misreadByAL2(media, body string) string {
	doc := yamlMapping(body)
	switch {
	case media == typeNodeadm:
		return "images of AL2 do not read the part of type " + typeNodeadm +
			": write spec.kubelet instead, or take amiFamily AL2023"
	case media != "" && media != "text/x-shellscript":
	case isNodeConfig(doc):
		return "it is a NodeConfig, and AL2 runs it as a shell script, which fails: write spec.kubelet instead, or take amiFamily AL2023"
	case isCloudConfig(doc):
		return "it is a cloud-config without its first line, and runs as a shell script, which fails: begin it with #cloud-config"
	}
	return ""
}

func misreadByAL2023(media, body string) string {
	doc := yamlMapping(body)
	switch {
	case media == "" && isCloudConfig(doc):
		return "it is a cloud-config without its first line, so that nodeadm reads it, which refuses it, and no node joins: begin it with #cloud-config"
	case media == "" && len(doc) > 0 && !isNodeConfig(doc):
		return "it is YAML that is no NodeConfig: nodeadm refuses it, and no node joins; begin a script with #!"
	case (media == "" || media == "text/x-shellscript") && strings.Contains(body, "/etc/eks/bootstrap.sh"):
		return "it runs /etc/eks/bootstrap.sh, which images of AL2023 do not have: write spec.kubelet instead, or a NodeConfig"
	}
	return ""
}

func misreadByWindows(family, text string) string {
	if isMIME(text) || cloudInitType(text) != "" || isNodeConfig(yamlMapping(text)) {
		return "spec.userData: it is for cloud-init or nodeadm, and " + family + " runs it as PowerShell, which fails"
	}
	return ""
}

// yamlMapping is the first document of the text, nil where that is no mapping.
func yamlMapping(text string) map[string]any {
	var m map[string]any
	if yaml.Unmarshal([]byte(text), &m) != nil {
		return nil
	}
	return m
}

// isNodeConfig reports whether the document is for nodeadm.
func isNodeConfig(doc map[string]any) bool {
	version, _ := doc["apiVersion"].(string)
	return strings.HasPrefix(version, "node.eks.aws/") || doc["kind"] == "NodeConfig"
}

// isCloudConfig reports whether a key of the document is one of those that most cloud-configs have.
func isCloudConfig(doc map[string]any) bool {
	return slices.ContainsFunc([]string{"runcmd", "bootcmd", "packages", "write_files", "users", "mounts", "yum_repos"},
		func(key string) bool { _, has := doc[key]; return has })
}
