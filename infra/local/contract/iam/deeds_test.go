package iam

import (
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/arczonalshift"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"joiner.sh/infra/local/awsemulator"
	"joiner.sh/pkg/decisionlog"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/nodeclaim/launch"
	"joiner.sh/pkg/providers/archive"
	"joiner.sh/pkg/providers/discovery"
	"joiner.sh/pkg/providers/invoke"
)

// deed is something that a function does through its adapters. Its error is what the function would see; prepare is
// done before, by others.
type deed struct {
	prepare func(t *testing.T, r *rig)
	do      func(t *testing.T, r *rig) error
}

// deeds are all that the functions do in AWS, by function and name.
func deeds() map[string]map[string]deed {
	return map[string]map[string]deed{
		"provision": {
			"reads whose certificates to believe": readsAuthority("provision"),
			"launches":                            {do: launches},
			"sees what is left":                   seesLevels("provision"),
			"looks for shifted zones":             looksForShifts("provision"),
			"launches reserved":                   {prepare: reserved, do: launchesReserved},
			"starts a stopped instance": {prepare: instanceLaunched, do: func(t *testing.T, r *rig) error {
				return r.fleet("provision").StartInstance(t.Context(), r.DescribedInstances()[0].ID, instancetypes.OfferingKey{})
			}},
			"adopts":               {prepare: lostReply, do: launches},
			"reads the catalog":    {prepare: catalogStored, do: readsCatalog("provision")},
			"learns there is none": {do: learnsThereIsNone("provision")},
			"wakes lifecycle":      wakes("provision", "lifecycle"),
			"wakes refresh":        wakes("provision", "refresh"),
			"stores a pass":        storesPass("provision"),

			"begins with a checkpoint": readsCheckpoint("provision"),
		},
		"disrupt": {
			"reads whose certificates to believe": readsAuthority("disrupt"),
			"sees what is left":                   seesLevels("disrupt"),
			"looks for shifted zones":             looksForShifts("disrupt"),
			"lists instances":                     listsInstances("disrupt"),
			"reads the catalog":                   {prepare: catalogStored, do: readsCatalog("disrupt")},
			"learns there is none":                {do: learnsThereIsNone("disrupt")},
			"wakes provision":                     wakes("disrupt", "provision"),
			"reads alarms": {do: func(t *testing.T, r *rig) error {
				_, err := discovery.Alarms{CloudWatch: cloudwatch.NewFromConfig(r.of("disrupt"))}.ReadAlarms(t.Context(), []string{"errors"})
				return err
			}},
			"finds images": {do: func(t *testing.T, r *rig) error {
				_, err := discovery.ImageFinder{EC2: ec2.NewFromConfig(r.of("disrupt"))}.FindImages(t.Context(), []string{"ami-1"})
				return err
			}},
			"stores a pass": storesPass("disrupt"),

			"begins with a checkpoint": readsCheckpoint("disrupt"),
			"wakes lifecycle":          wakes("disrupt", "lifecycle"),
		},
		"lifecycle": {
			"reads whose certificates to believe": readsAuthority("lifecycle"),
			"lists instances":                     listsInstances("lifecycle"),
			"looks for shifted zones":             looksForShifts("lifecycle"),
			"asks for statuses": {prepare: instanceLaunched, do: func(t *testing.T, r *rig) error {
				_, _, err := r.fleet("lifecycle").ListStatuses(t.Context(), []string{r.DescribedInstances()[0].ID})
				return err
			}},
			"asks for the statuses of a region": {do: func(t *testing.T, r *rig) error {
				_, _, err := r.fleet("lifecycle").ListStatuses(t.Context(), make([]string, 101))
				return err
			}},
			"names an instance": {prepare: instanceLaunched, do: func(t *testing.T, r *rig) error {
				return r.fleet("lifecycle").TagInstance(t.Context(), r.DescribedInstances()[0].ID, "node-1", "default-abcde")
			}},
			"terminates": {prepare: instanceLaunched, do: func(t *testing.T, r *rig) error {
				return r.fleet("lifecycle").TerminateInstances(t.Context(), []string{r.DescribedInstances()[0].ID})
			}},
			"stops": {prepare: onDemandLaunched, do: func(t *testing.T, r *rig) error {
				return r.fleet("lifecycle").StopInstances(t.Context(), []string{r.DescribedInstances()[0].ID})
			}},
			"sweeps templates": {prepare: instanceLaunched, do: func(t *testing.T, r *rig) error {
				n, err := r.fleet("lifecycle").SweepTemplates(t.Context(), -time.Hour)
				if err == nil && n != 1 {
					return errors.New("no template was swept")
				}
				return err
			}},
			"begins with a checkpoint": readsCheckpoint("lifecycle"),
			"writes a checkpoint": {do: func(t *testing.T, r *rig) error {
				return checkpoints(r, r.of("lifecycle")).WriteCheckpoint(t.Context(), []byte("pods"))
			}},
			"wakes provision": wakes("lifecycle", "provision"),
			"wakes refresh":   wakes("lifecycle", "refresh"),
		},
		"refresh": {
			"finds the cluster": findsCluster("refresh"),
			"refreshes the catalog": {do: func(t *testing.T, r *rig) error {
				_, err := discovery.NewMarket(r.of("refresh"), r.store("refresh"), false, time.Now).Refresh(t.Context())
				return err
			}},
			"reads what is committed": {prepare: func(_ *testing.T, r *rig) {
				r.BuyPlan(awsemulator.SavingsPlan{ID: "sp", CommitUSD: 1, RatesUSD: map[string]float64{"m5.large": 0.05}})
			}, do: func(t *testing.T, r *rig) error {
				_, err := discovery.NewMarket(r.of("refresh"), r.store("refresh"), false, time.Now).WithCommitments(r.of("refresh"), "demo", 1).Refresh(t.Context())
				return err
			}},
			"learns there is none": {do: learnsThereIsNone("refresh")},
			"tells whose certificates to believe": {do: func(t *testing.T, r *rig) error {
				return discovery.AuthorityStore{S3: s3.NewFromConfig(r.of("refresh"), pathStyle), Bucket: r.bucket}.PutAuthority(t.Context(), "ca")
			}},
			"looks a class up":              {do: looksUp},
			"moves a class to another role": {prepare: profileHeldBy("Admin"), do: looksUp},
			"rehearses a launch":            {do: rehearses},
			"forgets a class":               {prepare: classLeft, do: func(t *testing.T, r *rig) error { return r.finder("refresh").DeleteArtifacts(t.Context(), class()) }},
		},
		"spotinterruption": {
			"reads whose certificates to believe": readsAuthority("spotinterruption"),
			"wakes provision":                     wakes("spotinterruption", "provision"),
			"wakes lifecycle":                     wakes("spotinterruption", "lifecycle"),
		},
		"reservationinterruption": {
			"reads whose certificates to believe": readsAuthority("reservationinterruption"),
			"wakes provision":                     wakes("reservationinterruption", "provision"),
			"wakes lifecycle":                     wakes("reservationinterruption", "lifecycle"),
		},
		"rebalance": {
			"reads whose certificates to believe": readsAuthority("rebalance"),
			"wakes provision":                     wakes("rebalance", "provision"),
		},
		"scheduledchange": {
			"reads whose certificates to believe": readsAuthority("scheduledchange"),
			"wakes provision":                     wakes("scheduledchange", "provision"),
			"wakes lifecycle":                     wakes("scheduledchange", "lifecycle"),
		},
		"statechange": {
			"reads whose certificates to believe": readsAuthority("statechange"),
			"wakes provision":                     wakes("statechange", "provision"),
			"wakes lifecycle":                     wakes("statechange", "lifecycle"),
		},
		"wake": {
			"wakes provision": wakes("wake", "provision"),
			"wakes lifecycle": wakes("wake", "lifecycle"),
		},
		"setup": {
			"looks how to get in": {do: func(t *testing.T, r *rig) error {
				_, err := discovery.DescribeAccess(t.Context(), eks.NewFromConfig(r.of("setup")), "demo")
				return err
			}},
			"makes the role of spot": {prepare: func(_ *testing.T, r *rig) { r.RemoveRole("AWSServiceRoleForEC2Spot") }, do: func(t *testing.T, r *rig) error {
				return discovery.SpotRole{IAM: iam.NewFromConfig(r.of("setup"))}.EnsureRole(t.Context())
			}},
			"finds the role of spot": {do: func(t *testing.T, r *rig) error {
				return discovery.SpotRole{IAM: iam.NewFromConfig(r.of("setup"))}.EnsureRole(t.Context())
			}},
			"wakes lifecycle": invokes("setup", "joiner-demo-lifecycle"), // without the alias, which goes before the stack does
		},
		"preflight": {
			"looks how to get in": {do: func(t *testing.T, r *rig) error {
				_, err := discovery.DescribeAccess(t.Context(), eks.NewFromConfig(r.of("preflight")), "demo")
				return err
			}},
			"looks what may be reserved": {do: func(t *testing.T, r *rig) error {
				_, err := lambda.NewFromConfig(r.of("preflight")).GetAccountSettings(t.Context(), &lambda.GetAccountSettingsInput{})
				return err
			}},
			"counts nodes": {do: func(t *testing.T, r *rig) error {
				_, err := ec2.NewFromConfig(r.of("preflight")).DescribeInstances(t.Context(), &ec2.DescribeInstancesInput{})
				return err
			}},
			"looks what the functions have": {prepare: func(_ *testing.T, r *rig) {
				r.PutFunction(awsemulator.DescribedFunction{Name: "joiner-demo-provision", MemoryMB: 1024})
			}, do: func(t *testing.T, r *rig) error {
				_, err := lambda.NewFromConfig(r.of("preflight")).GetFunctionConfiguration(t.Context(), &lambda.GetFunctionConfigurationInput{FunctionName: aws.String("joiner-demo-provision")})
				return err
			}},
			"looks for roles that are there": {do: func(t *testing.T, r *rig) error {
				_, err := iam.NewFromConfig(r.of("preflight")).GetRole(t.Context(), &iam.GetRoleInput{RoleName: aws.String(nodeRole)})
				return err
			}},
		},
	}
}

func looksForShifts(function string) deed {
	return deed{do: func(t *testing.T, r *rig) error {
		_, err := arczonalshift.NewFromConfig(r.of(function)).GetManagedResource(t.Context(),
			&arczonalshift.GetManagedResourceInput{ResourceIdentifier: aws.String("arn:aws:eks:" + region + ":" + account + ":cluster/demo")})
		return err
	}}
}

func findsCluster(function string) deed {
	return deed{do: func(t *testing.T, r *rig) error {
		_, err := discovery.DescribeCluster(t.Context(), eks.NewFromConfig(r.of(function)), "demo")
		return err
	}}
}

// readsAuthority reads the object as the adapter does, which takes a refusal for an object that is not there.
func readsAuthority(function string) deed {
	return deed{prepare: func(t *testing.T, r *rig) {
		if err := (discovery.AuthorityStore{S3: s3.NewFromConfig(r.as("admin", region), pathStyle), Bucket: r.bucket}).PutAuthority(t.Context(), "ca"); err != nil {
			t.Fatal(err)
		}
	}, do: func(t *testing.T, r *rig) error {
		own := s3.NewFromConfig(r.of(function), pathStyle)
		if got, err := (discovery.AuthorityStore{S3: own, Bucket: r.bucket}).ReadAuthority(t.Context()); got == "ca" || err != nil {
			return err
		}
		_, err := own.GetObject(t.Context(), &s3.GetObjectInput{Bucket: &r.bucket, Key: aws.String("cluster-ca")})
		return err
	}}
}

func checkpoints(r *rig, as aws.Config) archive.CheckpointStore {
	return archive.CheckpointStore{S3: s3.NewFromConfig(as, pathStyle), Bucket: r.bucket}
}

// readsCheckpoint reads the object as the adapter does, which takes a refusal for an object that is not there.
func readsCheckpoint(function string) deed {
	return deed{prepare: func(t *testing.T, r *rig) {
		if err := checkpoints(r, r.as("admin", region)).WriteCheckpoint(t.Context(), []byte("pods")); err != nil {
			t.Fatal(err)
		}
	}, do: func(t *testing.T, r *rig) error {
		if b, err := checkpoints(r, r.of(function)).ReadCheckpoint(t.Context(), 1<<10); string(b) == "pods" || err != nil {
			return err
		}
		_, err := s3.NewFromConfig(r.of(function), pathStyle).GetObject(t.Context(), &s3.GetObjectInput{Bucket: &r.bucket, Key: aws.String(archive.CheckpointKey)})
		return err
	}}
}

func listsInstances(function string) deed {
	return deed{do: func(t *testing.T, r *rig) error {
		_, err := r.fleet(function).ListInstances(t.Context(), cluster.InstanceFilter{})
		return err
	}}
}

func wakes(function, other string) deed { return invokes(function, "joiner-demo-"+other+":live") }

func invokes(function, name string) deed {
	return deed{do: func(t *testing.T, r *rig) error {
		return invoke.Function{Lambda: lambda.NewFromConfig(r.of(function)), Name: name, Reason: function}.Wake(t.Context())
	}}
}

func launches(t *testing.T, r *rig) error {
	_, _, err := r.fleet("provision").LaunchInstances(t.Context(), r.order(t), token)
	return err
}

// onDemandOrder is the order of a launch on demand.
func (r *rig) onDemandOrder(t *testing.T) launch.Order {
	o := r.order(t)
	o.CapacityType, o.Strategy, o.Templates[0].SpotTags = instancetypes.OnDemand, "lowest-price", nil
	for i := range o.Templates[0].Overrides {
		o.Templates[0].Overrides[i].CapacityType = instancetypes.OnDemand
	}
	return o
}

// rehearses has EC2 asked whether a launch on demand would do.
func rehearses(t *testing.T, r *rig) error {
	return r.fleet("refresh").DryRun(t.Context(), r.onDemandOrder(t))
}

const reservation = "cr-0123456789abcdef0"

func reserved(t *testing.T, r *rig) {
	v := r.order(t).Templates[0].Overrides[0]
	r.ReserveCapacity(awsemulator.Reservation{ID: reservation, Type: v.Type, Zone: v.Zone, Count: 1})
	r.PutPlacementGroup(awsemulator.PlacementGroup{ID: "pg-0123456789abcdef0", Name: "ours", Strategy: "cluster"})
}

func launchesReserved(t *testing.T, r *rig) error {
	o := r.order(t)
	o.CapacityType, o.Strategy = instancetypes.Reserved, "lowest-price"
	o.Templates[0].Group = "pg-0123456789abcdef0"
	o.Templates[0].Reservation = launch.ReservationSelection{Preference: "capacity-reservations-only", ID: reservation}
	o.Templates[0].SpotTags = nil
	_, _, err := r.fleet("provision").LaunchInstances(t.Context(), o, token)
	return err
}

func seesLevels(function string) deed {
	return deed{prepare: reserved, do: func(t *testing.T, r *rig) error {
		l := discovery.RemainingCapacity{EC2: ec2.NewFromConfig(r.of(function))}
		_, err := l.RemainingReservations(t.Context(), []string{reservation})
		_, more := l.RemainingAddresses(t.Context(), []string{r.order(t).Templates[0].Overrides[0].SubnetID})
		_, group := l.FindGroup(t.Context(), instancetypes.Placement{Name: "ours"})
		return errors.Join(err, more, group)
	}}
}

func instanceLaunched(t *testing.T, r *rig) {
	f := r.fleet("provision")
	f.EC2 = r.admin
	if _, _, err := f.LaunchInstances(t.Context(), r.order(t), token); err != nil {
		t.Fatal(err)
	}
}

// onDemandLaunched launches an instance that can be stopped.
func onDemandLaunched(t *testing.T, r *rig) {
	f := r.fleet("provision")
	f.EC2 = r.admin
	if _, _, err := f.LaunchInstances(t.Context(), r.onDemandOrder(t), token); err != nil {
		t.Fatal(err)
	}
}

// lostReply: the token was used for another order, so that its instance has to be found by its tag.
func lostReply(t *testing.T, r *rig) {
	f, o := r.fleet("provision"), r.order(t)
	f.EC2 = r.admin
	o.Context = "another"
	if _, _, err := f.LaunchInstances(t.Context(), o, token); err != nil {
		t.Fatal(err)
	}
}

func (r *rig) store(function string) *discovery.CatalogStore {
	return discovery.NewStore(s3.NewFromConfig(r.of(function), pathStyle), r.bucket, 24*time.Hour, time.Now)
}

func catalogStored(t *testing.T, r *rig) {
	own := discovery.NewStore(s3.NewFromConfig(r.as("admin", region), pathStyle), r.bucket, 24*time.Hour, time.Now)
	c, err := own.BuiltInCatalog()
	if err != nil {
		t.Fatal(err)
	}
	c.Time = time.Now()
	if err := own.PutCatalog(t.Context(), c); err != nil {
		t.Fatal(err)
	}
}

// storesPass stores a pass about a part of which the function has failed, as it does whatever the setting decisionLog
// says.
func storesPass(function string) deed {
	return deed{do: func(t *testing.T, r *rig) error {
		d := archive.PassWriter{Log: slog.New(slog.DiscardHandler), S3: s3.NewFromConfig(r.of(function), pathStyle), Bucket: r.bucket, Of: archive.Whole}
		return d.WritePass(t.Context(), decisionlog.Pass{Record: decisionlog.Record{Time: time.Now(), PassStamp: decisionlog.PassStamp{Cluster: "demo", Function: function}}})
	}}
}

func readsCatalog(function string) func(t *testing.T, r *rig) error {
	return func(t *testing.T, r *rig) error {
		c, err := r.store(function).ReadStored(t.Context())
		if err == nil && len(c.Types) == 0 {
			return errors.New("the stored catalog was not found")
		}
		return err
	}
}

// learnsThereIsNone: without the right to list, S3 hides that the object is missing.
func learnsThereIsNone(function string) func(t *testing.T, r *rig) error {
	return func(t *testing.T, r *rig) error {
		_, err := r.store(function).ReadStored(t.Context())
		return err
	}
}

// run prepares and does a deed in a fresh account.
func (d deed) run(t *testing.T, r *rig) error {
	t.Helper()
	if d.prepare != nil {
		d.prepare(t, r)
	}
	r.mu.Lock()
	r.allowed = nil // what was prepared is not the deed
	r.mu.Unlock()
	return d.do(t, r)
}
