package conformance

import (
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/savingsplans"
	plantypes "github.com/aws/aws-sdk-go-v2/service/savingsplans/types"
)

// commitmentQuestions are about what an account that bought nothing says.
func commitmentQuestions() []question {
	return []question{
		{"ec2 DescribeReservedInstances: the active ones", func(a *account) string {
			out, err := a.ec2.DescribeReservedInstances(a.t.Context(), &ec2.DescribeReservedInstancesInput{Filters: []types.Filter{filter("state", "active")}})
			if err != nil {
				return a.say(nil, err)
			}
			return a.say(len(out.ReservedInstances), nil)
		}},
		{"savingsplans DescribeSavingsPlans: the active ones", func(a *account) string {
			out, err := a.plans.DescribeSavingsPlans(a.t.Context(), &savingsplans.DescribeSavingsPlansInput{States: []plantypes.SavingsPlanState{plantypes.SavingsPlanStateActive}})
			if err != nil {
				return a.say(nil, err)
			}
			return a.say(len(out.SavingsPlans), nil)
		}},
		{"savingsplans DescribeSavingsPlanRates: unknown id", func(a *account) string {
			_, err := a.plans.DescribeSavingsPlanRates(a.t.Context(), &savingsplans.DescribeSavingsPlanRatesInput{SavingsPlanId: aws.String("12345678-1234-1234-1234-123456789012")})
			return a.say("done", err)
		}},
	}
}

// entryQuestions are about access entries, through which functions and nodes get into the cluster.
func entryQuestions() []question {
	demo, principal := aws.String("demo"), aws.String("arn:aws:iam::123456789012:role/"+role)
	describe := func(a *account) string {
		out, err := a.eks.DescribeAccessEntry(a.t.Context(), &eks.DescribeAccessEntryInput{ClusterName: demo, PrincipalArn: principal})
		if err != nil {
			return a.say(nil, err)
		}
		e := out.AccessEntry
		return a.say([]any{aws.ToString(e.Type), aws.ToString(e.Username), e.KubernetesGroups, aws.ToString(e.PrincipalArn) == *principal}, nil)
	}
	create := func(a *account) string {
		_, err := a.eks.CreateAccessEntry(a.t.Context(), &eks.CreateAccessEntryInput{ClusterName: demo, PrincipalArn: principal, Type: aws.String("EC2_LINUX")})
		return a.say("done", err)
	}
	remove := func(a *account) string {
		_, err := a.eks.DeleteAccessEntry(a.t.Context(), &eks.DeleteAccessEntryInput{ClusterName: demo, PrincipalArn: principal})
		return a.say("done", err)
	}
	return []question{
		{"eks ListAccessEntries: unknown cluster", func(a *account) string {
			_, err := a.eks.ListAccessEntries(a.t.Context(), &eks.ListAccessEntriesInput{ClusterName: aws.String("none")})
			return a.say("done", err)
		}},
		{"eks DescribeAccessEntry: unknown", describe},
		{"eks DeleteAccessEntry: unknown", remove},
		{"eks UpdateAccessEntry: unknown", func(a *account) string {
			_, err := a.eks.UpdateAccessEntry(a.t.Context(), &eks.UpdateAccessEntryInput{ClusterName: demo, PrincipalArn: principal, KubernetesGroups: []string{"joiner"}})
			return a.say("done", err)
		}},
		{"eks CreateAccessEntry: a node role", create},
		{"eks CreateAccessEntry: the same again", create},
		{"eks DescribeAccessEntry: a node role", describe},
		{"eks DeleteAccessEntry: a node role", remove},
		{"eks CreateAccessEntry: a function", func(a *account) string {
			_, err := a.eks.CreateAccessEntry(a.t.Context(), &eks.CreateAccessEntryInput{ClusterName: demo, PrincipalArn: principal, KubernetesGroups: []string{"joiner"}})
			return a.say("done", err)
		}},
		{"eks UpdateAccessEntry: other groups", func(a *account) string {
			_, err := a.eks.UpdateAccessEntry(a.t.Context(), &eks.UpdateAccessEntryInput{ClusterName: demo, PrincipalArn: principal, KubernetesGroups: []string{"joiner", "more"}})
			return a.say("done", err)
		}},
		{"eks DescribeAccessEntry: a function", describe},
		{"eks ListAccessEntries: one", func(a *account) string {
			out, err := a.eks.ListAccessEntries(a.t.Context(), &eks.ListAccessEntriesInput{ClusterName: demo})
			if err != nil {
				return a.say(nil, err)
			}
			return a.say(out.AccessEntries, nil)
		}},
		{"eks CreateAccessEntry: unknown cluster", func(a *account) string {
			_, err := a.eks.CreateAccessEntry(a.t.Context(), &eks.CreateAccessEntryInput{ClusterName: aws.String("none"), PrincipalArn: principal})
			return a.say("done", err)
		}},
	}
}
