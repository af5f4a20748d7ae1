package migrate

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// AddArguments adds flags as Go's package flag reads them: one dash or two, with = or, unless the next is a flag itself,
// with the next word as value; a flag alone is true. They override what is there.
func (o *Options) AddArguments(words []string) {
	for i := 0; i < len(words); i++ {
		flag := strings.TrimLeft(words[i], "-")
		if flag == words[i] || flag == "" {
			continue
		}
		name, value, given := strings.Cut(flag, "=")
		if !given {
			value = "true"
			if i+1 < len(words) && !strings.HasPrefix(words[i+1], "-") {
				i++
				value = words[i]
			}
		}
		o.Values[strings.ToUpper(strings.ReplaceAll(name, "-", "_"))] = value
	}
}

// AddValues adds what values of Karpenter's Helm chart say, which overrides what is there. It fails when data are no such
// values.
func (o *Options) AddValues(data []byte) error {
	var values struct {
		Settings   map[string]any `json:"settings"`
		LogLevel   string         `json:"logLevel"`
		Controller struct {
			Env []map[string]any `json:"env"`
		} `json:"controller"`
	}
	if err := yaml.Unmarshal(data, &values); err != nil {
		return fmt.Errorf("these are no values of Karpenter's chart: %w", err)
	}
	if values.Settings == nil && values.LogLevel == "" && values.Controller.Env == nil {
		return errors.New("it has none of settings, logLevel and controller.env, which values of Karpenter's chart have")
	}
	if o.Values == nil {
		o.Values = map[string]string{}
	}
	o.Known = true
	if values.LogLevel != "" {
		o.Values["LOG_LEVEL"] = values.LogLevel
	}
	for _, key := range slices.Sorted(maps.Keys(values.Settings)) {
		switch value := values.Settings[key].(type) {
		case nil:
		case map[string]any:
			switch key {
			case "featureGates":
				o.Values["FEATURE_GATES"] = joinGates(value)
			case "awsFeatureGates":
				o.Values["AWS_FEATURE_GATES"] = joinGates(value)
			default:
				o.Unread = append(o.Unread, fmt.Sprintf("settings.%s of the Helm values has parts that are not known", key))
			}
		case []any:
			o.Unread = append(o.Unread, fmt.Sprintf("settings.%s of the Helm values is a list", key))
		default:
			o.addValue(VariableName(key), fmt.Sprint(value))
		}
	}
	for _, v := range values.Controller.Env {
		if value, written := v["value"].(string); written {
			o.addValue(fmt.Sprint(v["name"]), value)
		}
	}
	return nil
}

// addValue adds the value of a chart, unless it is a template, which only Helm knows how to fill.
func (o *Options) addValue(name, value string) {
	if strings.Contains(value, "{{") {
		o.Unread = append(o.Unread, name+" is a template in the Helm values: "+value)
		return
	}
	o.Values[name] = value
}

// joinGates writes the gates of a chart, such as nodeRepair, as the variable has them.
func joinGates(gates map[string]any) string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(gates)) {
		if name != "" {
			out = append(out, fmt.Sprintf("%s%s=%v", strings.ToUpper(name[:1]), name[1:], gates[name]))
		}
	}
	return strings.Join(out, ",")
}

var (
	wordEnd    = regexp.MustCompile(`([a-z0-9])([A-Z])`)
	acronymEnd = regexp.MustCompile(`([A-Z])([A-Z][a-z]{2})`) // of CABundle, not of ENIs
)

// VariableName is the variable that a chart makes of a setting: clusterCABundle becomes CLUSTER_CA_BUNDLE, and
// reservedENIs RESERVED_ENIS.
func VariableName(setting string) string {
	return strings.ToUpper(acronymEnd.ReplaceAllString(wordEnd.ReplaceAllString(setting, "${1}_$2"), "${1}_$2"))
}
