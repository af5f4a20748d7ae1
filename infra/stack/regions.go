package stack

import (
	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/jsii-runtime-go"
)

// Conditions of the template: what not every region has is asked for only where it is to be had. Often the region is
// not known before the deployment.
const (
	loopDetection = "LoopDetection" // Lambda looks for functions that wake each other without an end
	mappingTags   = "MappingTags"   // event source mappings have tags
)

// addRegionConditions says in the template what its region has, as far as something is asked for.
//
//   - Lambda guide, "Supported Regions for Lambda recursive loop detection": "all commercial Regions except Mexico
//     (Central) and Asia Pacific (New Zealand)".
//   - GovCloud guide, "How AWS Lambda differs": "Event source mapping (ESM) tags for AWS Lambda is not available".
func (s scope) addRegionConditions() {
	isIn := func(place *string, name string) awscdk.ICfnConditionExpression {
		return awscdk.Fn_ConditionEquals(place, name)
	}
	s.addCondition(loopDetection, awscdk.Fn_ConditionAnd(isIn(awscdk.Aws_PARTITION(), "aws"),
		awscdk.Fn_ConditionNot(isIn(awscdk.Aws_REGION(), "mx-central-1")),
		awscdk.Fn_ConditionNot(isIn(awscdk.Aws_REGION(), "ap-southeast-6"))))
	if len(s.props.Stack.Tags) > 0 {
		s.addCondition(mappingTags, awscdk.Fn_ConditionNot(isIn(awscdk.Aws_PARTITION(), "aws-us-gov")))
	}
}

func (s scope) addCondition(id string, holds awscdk.ICfnConditionExpression) {
	awscdk.NewCfnCondition(s.Stack, &id, &awscdk.CfnConditionProps{Expression: holds})
}

// setWhere gives a resource a property where the condition holds. Elsewhere it is as if nobody had written it.
func setWhere(condition string, r awscdk.CfnResource, property string, value any) {
	r.AddPropertyOverride(&property, awscdk.Fn_ConditionIf(jsii.String(condition), value, awscdk.Aws_NO_VALUE()))
}
