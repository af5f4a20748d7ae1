#!/usr/bin/env python3
"""Takes the tables of rules out of pkg/README.md into pkg/testing/rules.tsv."""
import re,sys,os
os.chdir(sys.argv[1])
s=open('pkg/README.md').read()
rows=[]; out=[]; inside=False
for line in s.split('\n'):
    c=[x.strip() for x in line.strip().strip('|').split('|')] if line.startswith('|') else None
    if c==['section','rule','proven by']: inside=True; continue
    if inside and c is None: inside=False
    if inside:
        if set(line)<=set('|- '): continue
        rule=c[1]; proofs=re.findall(r'`([^`]+)`',c[2])
        rows.append((rule,proofs)); continue
    out.append(line)
open('pkg/README.md','w').write('\n'.join(out))
with open('pkg/testing/rules.tsv','w') as f:
    f.write('# Rules of Kubernetes, Karpenter and AWS that Joiner keeps, and what would fail without each: the rule, then scenarios below pkg or tests in them, tab between.\n')
    for r,p in rows: f.write('\t'.join([r]+p)+'\n')
print(len(rows),'rules')
