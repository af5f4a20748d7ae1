#!/usr/bin/env python3
"""After the move: rewrites package paths and qualified names in texts (comments, pages, Makefile, lint settings, test strings)."""
import re,subprocess,sys,os
root,here=sys.argv[1],os.path.dirname(os.path.abspath(__file__))
os.chdir(root)
moves=[l.split()[:2] for l in open(here+'/moves.tsv') if l.strip() and not l.startswith('#')]
moves.sort(key=lambda m:-len(m[0]))
syms=[l.split() for l in open(here+'/symbols.tsv') if l.strip() and not l.startswith('#')]
files=[f for f in subprocess.check_output(['git','ls-files'],text=True).split('\n') if f and os.path.isfile(f)]
skip=re.compile(r'\.(gz|png|svg|sum)$|^LICENSE$|node_modules|package-lock|^infra/bench/(results|disruption)\.md$')
new={a:b for a,b in moves}
# full paths
full=[(re.compile(r'(?<![\w/.-])(\.{1,2}/|joiner/|)'+re.escape(a)+r'(?![\w-])'),b) for a,b in moves if a!=b]
base=lambda p:p.split('/')[-1]
# qualified exported names: old pkg . Old -> new pkg . New  (in comments and pages)
sy={}
for r in syms:
    p,n,nn=r[0],r[1],r[2]
    if '.' not in n: sy[(base(p),n)]=(base(new.get(p,p)),nn)
    else:
        t,m=n.split('.')
        sy[(base(p),n)]=(base(new.get(p,p)),nn)
pk={base(a):base(b) for a,b in moves if a.startswith('pkg/')}
qual=re.compile(r'\b('+'|'.join(sorted((re.escape(x) for x in pk),key=len,reverse=True))+r')\.([A-Z]\w*)\b')
def q(m):
    p,n=m.group(1),m.group(2)
    np,nn=sy.get((p,n),(pk[p],n))
    return np+'.'+nn
pkgword=re.compile(r'\bpackage ('+'|'.join(re.escape(x) for x in pk if pk[x]!=x)+r')\b(?!_test)')
Pkgword=re.compile(r'^// Package (\w+)\b',re.M)
tick=re.compile(r'`('+'|'.join(sorted((re.escape(x) for x in pk),key=len,reverse=True))+r')((?:/[\w./*-]+| Test\w+)?)`')
rel={a[4:]:b[4:] for a,b in moves if a.startswith('pkg/')}
relpath=re.compile(r'`('+'|'.join(sorted((re.escape(x) for x in rel),key=len,reverse=True))+r')(/[\w./*-]+)')
frows=[l.split() for l in open(here+'/files.tsv') if l.strip()]
fmap=[]
for a,b in frows:
    d=os.path.dirname(a); nd=new.get(d,d); o,nn=nd+'/'+os.path.basename(a),nd+'/'+b
    fmap+=[(o,nn),(o[4:],nn[4:])]
frx=[(re.compile(r'(?<![\w/])'+re.escape(o)+r'(?![\w])'),nn) for o,nn in fmap]
n=0
for f in files:
    if skip.search(f): continue
    try: s=open(f,encoding='utf-8').read()
    except Exception: continue
    t=s
    for p,b in full: t=p.sub(lambda m:m.group(1)+b,t)
    if f.endswith('.go'):
        out=[]
        for line in t.split('\n'):
            i=line.find('//')
            if i>=0 and (line.strip().startswith('//') or ' // ' in line):
                head,c=line[:i],line[i:]
                c=qual.sub(q,c)
                c=pkgword.sub(lambda m:'package '+pk[m.group(1)],c)
                line=head+c
            out.append(line)
        t='\n'.join(out)
        m=re.search(r'^package (\w+)$',t,re.M)
        if m:
            name=m.group(1)
            t=re.sub(r'^// Package \w+\b','// Package '+name,t,count=1,flags=re.M) if re.search(r'^// Package \w+',t.split('package '+name)[0],re.M) else t
    if f.endswith('.md'):
        t=qual.sub(q,t)
        if f=='pkg/README.md':
            t=relpath.sub(lambda m:'`'+rel[m.group(1)]+m.group(2),t)
            for p_,b_ in frx: t=p_.sub(b_,t)
            t=tick.sub(lambda m:'`'+pk[m.group(1)]+(m.group(2) or '')+'`' if not m.group(2) else m.group(0),t)
    if t!=s:
        open(f,'w',encoding='utf-8').write(t); n+=1
print(n,'files')
