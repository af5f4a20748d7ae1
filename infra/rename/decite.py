#!/usr/bin/env python3
"""Removes citations of a specification that is not in the repository."""
import re,subprocess,sys,os
os.chdir(sys.argv[1])
files=[f for f in subprocess.check_output(['git','ls-files'],text=True).split('\n') if f and os.path.isfile(f)]
skip=re.compile(r'\.(gz|png|svg|sum)$|^LICENSE$|node_modules|package-lock')
md=r'(?:spec )?(?:core|aws|iam-and-eks|local-environment|workload-format)\.md'
num=r'§§?\s?[\d.]+(?:(?:,| and| to|;) (?:'+md+r' )?§?\s?[\d.]+\d)*'
P=[(re.compile(r'\s*\((?:see )?'+md+r',? '+num+r'(?:, (?:'+md+r' )?'+num+r')*\)'),''),
   (re.compile(r'\s*\('+num+r'(?:, '+num+r')*\)'),''),
   (re.compile(r'\((?:see )?'+md+r',? '+num+r'[;,:] '),'('),
   (re.compile(r'[;,] '+md+r',? '+num+r'(?=\))'),''),
   (re.compile(r'[;,:] (?:see )?'+md+r',? '+num+r'(?=[.,;]?\s*$)',re.M),''),
   (re.compile(r'; (?:see )?'+md+r',? '+num+r' to '+num),''),
   (re.compile(r'^(# )Beyond §[\d.]+(?:, §[\d.]+)*:? ',re.M),r'\1Beyond Karpenter: '),
   (re.compile(r'^(# )§[\d.]+(?:, §[\d.]+)*, beyond: ',re.M),r'\1Beyond Karpenter: '),
   (re.compile(r'^(# )§[\d.]+(?:, §[\d.]+)*:? ',re.M),r'\1'),
   (re.compile(r' of spec[ /](?:core|aws|iam-and-eks)\.md §[\d.]+(?:(?: to| and|,) (?:(?:core|aws)\.md )?§?[\d.]*\d)*'),''),
   (re.compile(r' \(spec (?:core|aws)\.md §[\d.]+\d (?:says|and §\d\))'),' ('),
   (re.compile(r' \(spec (?:core|aws)\.md §[\d.]*\d and §[\d.]*\d\)'),''),
   (re.compile(r'^(# )(?:core|aws)\.md §[\d.]+(?:, §[\d.]+)*:? ',re.M),r'\1'),
   (re.compile(r' \(§1\.2,\n// aws\.md §3\.6, §8\.2\), and'),' and'),
   (re.compile(r' \(spec/iam-and-eks\.md §1\)'),''),(re.compile(r' of spec/iam-and-eks\.md §1,'),','),
   (re.compile(r',? ?\(?(?:spec )?(?:core|aws)\.md\n(\t*//\s*)§[\d.]+(?:, §[\d.]+)*\)\. ?'),r'.\n\1'),(re.compile(r' \(§4\.6,\n// §4\.9, §5\.2\)'),''),(re.compile(r' \(Compatible, and\n// §9\.3\)'),' (Karpenter calls it Compatible)'),(re.compile(r'\.\n// \nfunc'),'.\nfunc'),
   (re.compile(r' and the deadline of §5\.4'),' and the deadline of the terminationGracePeriod'),
   (re.compile(r'is spec aws\.md §1\.7\.'),'says whether a launch with the class can work: its dependencies are True and EC2 takes a dry run.'),
   (re.compile(r'Conditions follow spec core\.md §1\.2: a transition'),'A transition'),
   (re.compile(r'else it has none, as spec core\.md §6\.3 says'),'else it has none'),
   (re.compile(r'aws\.md §6\.2 asks for, '),'')]
n=0
for f in files:
    if skip.search(f) or f.startswith('infra/bench/results'): continue
    try: s=open(f,encoding='utf-8').read()
    except Exception: continue
    t=s
    for p,b in P: t=p.sub(b,t)
    if t!=s: open(f,'w',encoding='utf-8').write(t); n+=1
print(n,'files')
