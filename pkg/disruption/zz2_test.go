package disruption
import ("testing";"fmt";"joiner/pkg/testing/scenario")
func TestYY(t *testing.T){ for _,l:=range scenario.RandomText(721) { fmt.Println(l); fmt.Println() } }
