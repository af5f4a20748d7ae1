package disruption
import ("testing";"fmt";"time";"strings";"joiner/pkg/scheduling/binpack")
func TestZZ(t *testing.T){
 seed:=uint64(721)
 w := grown(t, seed)
 w.schedule = func() { w.emptiestFirst(seed) }
 if seed%2==1 { w.hold() }
 for pass:=0;pass<60;pass++{
   p:=w.next()
   if len(p.Begin)+len(p.Finish)+len(p.Undo)+len(p.Waiting)>0 { fmt.Printf("--- pass %d\n%s\n",pass,strings.Join(p.Lines(),"\n")) }
   if len(p.Undo)>0 || pass==0 {
     for _,n:=range w.Snapshot.Nodes { fmt.Println("node",n.Name,n.Labels["topology.kubernetes.io/zone"],n.Labels["node.kubernetes.io/instance-type"],n.Labels["karpenter.sh/nodepool"],n.Taints,n.Allocatable.CPU,n.Allocatable.Memory>>20) 
      for _,q:=range w.Snapshot.Pods { if q.NodeName==n.Name { fmt.Print("   ",q.Name," ",q.Need.CPU,"/",q.Need.Memory>>20) } }; fmt.Println() }
     for _,c:=range w.Snapshot.Claims { fmt.Println("claim",c.Name,c.NodeName,c.Pool,c.Annotations) }
     if len(p.Undo)>0 { pr:=newState(w.Snapshot, w.memory, w.Market, nil); _ = pr; q:=binpack.PodsFrom(w.Snapshot,w.Market); fmt.Println(q.String()); for _,x:=range q.Unplaced {fmt.Println(x.Pod,x.Why)}; break}
   }
   w.act(p); w.initialize(); w.provision(); w.open()
   w.Snapshot.Now=w.Snapshot.Now.Add(20*time.Second)
 }
}
