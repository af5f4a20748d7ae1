#!/usr/bin/env python3
"""All annotation keys of joiner.sh in one file, pkg/api/v1/annotations.go."""
import re,subprocess,sys,os
os.chdir(sys.argv[1])
M=[('pkg/controllers','AnnotationAttempt','AnnotationLaunchAttempt'),('pkg/disruption','AnnotationSettled','AnnotationDoNotConsolidateBefore'),
('pkg/model/budgets','AnnotationTimeZone','AnnotationTimeZone'),('pkg/model/cluster','AnnotationBatch','AnnotationLaunchBatch'),
('pkg/model/cluster','AnnotationReplaces','AnnotationReplaces'),('pkg/model/cluster','AnnotationHeldFor','AnnotationNominatedOwners'),
('pkg/model/cluster','AnnotationDisruption','AnnotationDisruptionCommand'),('pkg/nodeclaim/interruption','AnnotationReplaceFirst','AnnotationDrainAfterReplacement'),
('pkg/nodeclaim/interruption','AnnotationLeave','AnnotationReplaceRequested'),('pkg/nodeclaim/interruption','AnnotationRebalance','AnnotationRebalance'),
('pkg/nodeclass','annotationReportOnly','AnnotationDisruption'),('pkg/nodeclass','annotationSavesUSD','AnnotationMinSavingsUSD'),
('pkg/nodeclass','annotationSavesPercent','AnnotationMinSavingsPercent'),('pkg/nodeclass','annotationExpire','AnnotationExpire'),
('pkg/nodeclass','AnnotationRegistrations','AnnotationRegistrationHistory'),('pkg/nodeclass','AnnotationMemory','AnnotationObservedMemory'),
('pkg/nodeclass','AnnotationRehearsed','AnnotationDryRunResult'),('pkg/nodeclass','AnnotationSleep','AnnotationSleep'),('pkg/nodeclass','AnnotationSleepFor','AnnotationSleepFor'),
('pkg/providers/kube','AnnotationLimitUSD','AnnotationLimitUSD'),('pkg/scheduling/binpack','AnnotationNominated','AnnotationNominatedPods')]
files=[f for f in subprocess.check_output(['git','ls-files','-co','--exclude-standard'],text=True).split('\n') if f.endswith('.go') and os.path.isfile(f)]
API='joiner/pkg/api/v1'
for f in files:
    s=open(f).read(); t=s; d=os.path.dirname(f)
    if d=='pkg/api/v1': continue
    m=re.search(r'^\s*(?:import )?(\w+ )?"'+API+'"',t,re.M)
    alias=((m.group(1) or 'v1').strip() if m else 'api')
    used=False
    pk=re.search(r'^package (\w+)',t,re.M).group(1)
    for dd,old,new in M:
        base=os.path.basename(dd)
        q=re.compile(r'\b'+base+r'\.'+old+r'\b')
        t2=q.sub(alias+'.'+new,t)
        if d==dd and pk==base:
            # definition
            t2=re.sub(r'(?:^//[^\n]*\n)*^const '+old+r' = [^\n]*\n',' \n' if False else '',t2,flags=re.M)
            t2=re.sub(r'(?:^\t//[^\n]*\n)*^\t'+old+r'\s+= "joiner[^\n]*\n','',t2,flags=re.M)
            out=[]
            for line in t2.split('\n'):
                i=line.find('//')
                head,c=(line[:i],line[i:]) if i>=0 else (line,'')
                head=re.sub(r'(?<![\w.])'+old+r'\b',alias+'.'+new,head)
                out.append(head+c)
            t2='\n'.join(out)
        if t2!=t:
            t=t2; used=True
    t=re.sub(r'^const \(\s*\)\n+','',t,flags=re.M)
    if t!=s:
        if not m and re.search(r'\b'+alias+r'\.Annotation',t):
            if re.search(r'^import \(',t,re.M): t=re.sub(r'^import \(\n','import (\n\tapi "'+API+'"\n',t,count=1,flags=re.M)
            else: t=re.sub(r'^(package \w+\n)',r'\1\nimport api "'+API+'"\n',t,count=1,flags=re.M)
        open(f,'w').write(t)
open('pkg/api/v1/annotations.go','w').write('''package v1

// The annotation keys of Joiner's own. The ones for people stand on NodePools, in their metadata; the others are how one function tells
// another what it has decided, and are Joiner's to write. pkg/README.md says who reads and removes each, and what happens if the writer dies.
const (
	// On NodePools, written by people.

	// AnnotationDisruption set to "report" has disruption decide about the nodes of the pool and tell, and change nothing.
	AnnotationDisruption = "joiner.sh/disruption"
	// AnnotationMinSavingsUSD is the least that a consolidation of the pool's nodes must save, in USD per hour.
	AnnotationMinSavingsUSD = "joiner.sh/min-savings-usd"
	// AnnotationMinSavingsPercent is the least that a consolidation must save, in percent of what its nodes cost.
	AnnotationMinSavingsPercent = "joiner.sh/min-savings-percent"
	// AnnotationExpire set to "within-budgets" has nodes that expire replaced as drifted ones are; "force" deletes them, as Karpenter does.
	AnnotationExpire = "joiner.sh/expire"
	// AnnotationRebalance says what a rebalance recommendation does to nodes of the pool.
	AnnotationRebalance = "joiner.sh/rebalance"
	// AnnotationSleep is a cron schedule at which the pool falls asleep, or "never" for a pool that stays awake whatever the stack does.
	AnnotationSleep = "joiner.sh/sleep"
	// AnnotationSleepFor is how long the pool sleeps from each start on, as a duration.
	AnnotationSleepFor = "joiner.sh/sleep-for"
	// AnnotationTimeZone is the IANA name of the time zone in which schedules of the pool are read; UTC without it.
	AnnotationTimeZone = "joiner.sh/time-zone"
	// AnnotationLimitUSD is the most that the pool's nodes may cost together, in USD per hour.
	AnnotationLimitUSD = "joiner.sh/limit-usd-per-hour"

	// On NodeClaims, written by Joiner.

	// AnnotationNominatedPods names, comma separated, the pods (namespace/name) that are planned for the claim's node.
	AnnotationNominatedPods = "joiner.sh/nominated-pods"
	// AnnotationNominatedOwners counts, by controller, the pods that a replacement is kept for until they are evicted.
	AnnotationNominatedOwners = "joiner.sh/nominated-owners"
	// AnnotationLaunchAttempt counts the CreateFleet requests for the claim; it is part of their token.
	AnnotationLaunchAttempt = "joiner.sh/launch-attempt"
	// AnnotationLaunchBatch names the CreateFleet request that the claim shares with others, and how many they are.
	AnnotationLaunchBatch = "joiner.sh/launch-batch"
	// AnnotationReplaces says of a replacement that it stands in for claims that are disrupted.
	AnnotationReplaces = "joiner.sh/replaces"
	// AnnotationDisruptionCommand is the command that a claim takes part in, as JSON.
	AnnotationDisruptionCommand = "joiner.sh/disruption-command"
	// AnnotationDoNotConsolidateBefore is until when consolidation leaves a replacement alone, since it has not paid for itself yet.
	AnnotationDoNotConsolidateBefore = "joiner.sh/do-not-consolidate-before"
	// AnnotationReplaceRequested asks for a replacement of the claim's node before it is drained, and says why and by when.
	AnnotationReplaceRequested = "joiner.sh/replace-requested"
	// AnnotationDrainAfterReplacement is until when the pods of an interrupted node stay for their replacement.
	AnnotationDrainAfterReplacement = "joiner.sh/drain-after-replacement-until"

	// On EC2NodeClasses and NodePools, written by refresh and lifecycle.

	// AnnotationDryRunResult is what EC2 said when a launch with the class was tried without launching.
	AnnotationDryRunResult = "joiner.sh/dry-run-result"
	// AnnotationObservedMemory is the memory that nodes of the class reported, by instance type.
	AnnotationObservedMemory = "joiner.sh/observed-memory"
	// AnnotationRegistrationHistory is how the last registrations of the pool's nodes ended.
	AnnotationRegistrationHistory = "joiner.sh/registration-history"
)
''')
