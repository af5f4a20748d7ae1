#!/usr/bin/env python3
"""Renames words that users see, over all tracked text files: settings, environment names, annotations, reasons, log words."""
import re,subprocess,sys,os
root=sys.argv[1]
os.chdir(root)
files=[f for f in subprocess.check_output(['git','ls-files'],text=True).split('\n') if f and os.path.isfile(f)]
def istext(f):
    try: open(f,encoding='utf-8').read(); return True
    except Exception: return False
skip=re.compile(r'\.(gz|png|svg|sum)$|^LICENSE$|node_modules|package-lock')
texts=[f for f in files if not skip.search(f) and istext(f)]
words={ # camelCase and environment names of settings
'soldOutFor':'unavailableOfferingTTL','SOLD_OUT_FOR':'UNAVAILABLE_OFFERING_TTL',
'holdNodes':'nominatedPodsOnly','HOLD_NODES':'NOMINATED_PODS_ONLY',
'maxClaimsPerTick':'maxNodeClaimsPerPass','MAX_CLAIMS_PER_TICK':'MAX_NODE_CLAIMS_PER_PASS',
'searchSteps':'packingIterations','SEARCH_STEPS':'PACKING_ITERATIONS',
'nodeCostUSD':'perNodeOverheadUSD','NODE_COST_USD':'PER_NODE_OVERHEAD_USD',
'priceMargin':'instanceTypePriceFactor','PRICE_MARGIN':'INSTANCE_TYPE_PRICE_FACTOR',
'spotTypes':'minSpotInstanceTypes','SPOT_TYPES':'MIN_SPOT_INSTANCE_TYPES',
'spotPoolShare':'maxSpotPoolFraction','SPOT_POOL_SHARE':'MAX_SPOT_POOL_FRACTION',
'rehearseLaunches':'dryRunValidation','REHEARSE_LAUNCHES':'DRY_RUN_VALIDATION',
'rebalanceQuarantine':'rebalanceOfferingCooldown','REBALANCE_QUARANTINE':'REBALANCE_OFFERING_COOLDOWN',
'minLeakAge':'garbageCollectionMinAge','MIN_LEAK_AGE':'GARBAGE_COLLECTION_MIN_AGE',
'noticeConcurrency':'interruptionConcurrency','NOTICE_CONCURRENCY':'INTERRUPTION_CONCURRENCY',
'unplacedAlarm':'unschedulablePodsAlarm','catalogAlarm':'staleCatalogAlarm',
'paybackTime':'consolidationPayback','PAYBACK_TIME':'CONSOLIDATION_PAYBACK',
'podMoveUSD':'podEvictionCostUSD','POD_MOVE_USD':'POD_EVICTION_COST_USD',
'disruptionSteps':'consolidationMaxEvaluations','DISRUPTION_STEPS':'CONSOLIDATION_MAX_EVALUATIONS',
'sleepFor':'hibernationDuration','sleepTimeZone':'hibernationTimeZone',
'joiner_disruption_spared_nodes':'joiner_disruption_ineligible_nodes',
}
patterns=[(re.compile(r'\b'+re.escape(a)+r'\b'),b) for a,b in words.items()]
annotations={'joiner.sh/leave':'joiner.sh/replace-requested','joiner.sh/replace-first':'joiner.sh/drain-after-replacement-until',
'joiner.sh/settled-until':'joiner.sh/do-not-consolidate-before','joiner.sh/hold':'joiner.sh/nominated-pods-only','joiner.sh/held-for':'joiner.sh/nominated-owners',
'joiner.sh/rehearsed':'joiner.sh/dry-run-result','joiner.sh/learned-memory':'joiner.sh/observed-memory','joiner.sh/registrations':'joiner.sh/registration-history'}
patterns+=[(re.compile(re.escape(a)+r'(?![a-z0-9-])'),b) for a,b in annotations.items()]
# settings whose names are words: only where they stand as settings
patterns+=[(re.compile(r'Name: "stay"'),'Name: "watchDuration"'),(re.compile(r'Env: "STAY"'),'Env: "WATCH_DURATION"'),
 (re.compile(r'Name: "sleep"'),'Name: "hibernationSchedule"'),(re.compile(r'`stay`'),'`watchDuration`'),(re.compile(r'`sleep`(?! \(cron)'),'`hibernationSchedule`'),
 (re.compile(r'"STAY"'),'"WATCH_DURATION"'),(re.compile(r'\bSTAY='),'WATCH_DURATION='),(re.compile(r'\bSTAY:'),'WATCH_DURATION:'),
 (re.compile(r'-c stay='),'-c watchDuration='),(re.compile(r'-c sleep='),'-c hibernationSchedule=')]
gofiles=[(re.compile(r'refuse\{"%s"'%a),'refuse{"%s"'%b) for a,b in []]
n=0
for f in texts:
    s=open(f,encoding='utf-8').read(); t=s
    for p,b in patterns: t=p.sub(b,t)
    if t!=s:
        open(f,'w',encoding='utf-8').write(t); n+=1
print(n,'files')
