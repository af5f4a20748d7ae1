package fleet

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// mostGrown is how much room is made at once for an answer: more than EC2 says of a thousand instances.
const mostGrown = 16 << 20

// instanceList reads what instanceFrom looks at out of answers of DescribeInstances, in place of the SDK, which takes
// ten times as long for all that EC2 says: of a large cluster that is most of an idle pass. An answer that it does not
// understand is left to the SDK.
type instanceList struct {
	texts map[string]string // each value that many instances share, once
	found []types.Instance  // by the last call
}

// decode has a call read its answer this way.
func (l *instanceList) decode(o *ec2.Options) {
	o.APIOptions = append(o.APIOptions, func(s *middleware.Stack) error {
		return s.Deserialize.Insert(middleware.DeserializeMiddlewareFunc("InstanceList", l.handle),
			"OperationDeserializer", middleware.After)
	})
}

// take returns what the last call found: what this read, or else what the SDK did.
func (l *instanceList) take(page *ec2.DescribeInstancesOutput) []types.Instance {
	out := l.found
	l.found = nil
	for _, r := range page.Reservations {
		out = append(out, r.Instances...)
	}
	return out
}

// handle stands between the connection and the SDK, which gets to see the answer without the instances.
func (l *instanceList) handle(ctx context.Context, in middleware.DeserializeInput,
	next middleware.DeserializeHandler) (out middleware.DeserializeOutput, m middleware.Metadata, err error) {
	l.found = nil // of an attempt that failed
	out, m, err = next.HandleDeserialize(ctx, in)
	r, ok := out.RawResponse.(*smithyhttp.Response)
	if err != nil || !ok || r.StatusCode < 200 || r.StatusCode >= 300 {
		return out, m, err
	}
	var b bytes.Buffer
	b.Grow(int(min(max(0, r.ContentLength), mostGrown)) + bytes.MinRead)
	_, err = b.ReadFrom(r.Body)
	if closed := r.Body.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return out, m, fmt.Errorf("read the answer of DescribeInstances: %w", err)
	}
	text := b.Bytes()
	if found, rest, ok := l.read(text); ok {
		l.found, text = found, rest
	}
	r.Body = io.NopCloser(bytes.NewReader(text))
	return out, m, nil
}

// read returns the instances of an answer, and the answer without them. It reports false for what it does not
// understand.
func (l *instanceList) read(answer []byte) (found []types.Instance, rest []byte, ok bool) {
	x := &xmlReader{text: answer}
	root, begin, end := x.root(), 0, 0
	x.each(func(name []byte) {
		if string(name) != "reservationSet" || end > 0 {
			x.skip()
			return
		}
		begin = x.at
		x.each(func([]byte) {
			x.each(func(name []byte) {
				if string(name) != "instancesSet" {
					x.skip()
					return
				}
				x.each(func([]byte) { found = append(found, l.readInstance(x)) })
			})
		})
		end = x.at - len("</reservationSet>")
	})
	if !root || x.broken {
		return nil, nil, false
	}
	if end <= begin {
		return nil, answer, true
	}
	return found, append(bytes.Clone(answer[:begin]), answer[end:]...), true
}

func (l *instanceList) readInstance(x *xmlReader) (i types.Instance) {
	x.each(func(name []byte) {
		switch string(name) {
		case "instanceId":
			i.InstanceId = aws.String(x.value())
		case "instanceType":
			i.InstanceType = types.InstanceType(l.shared(x))
		case "imageId":
			i.ImageId = aws.String(l.shared(x))
		case "launchTime":
			at, err := time.Parse(time.RFC3339Nano, x.value())
			x.broken = x.broken || err != nil
			i.LaunchTime = &at
		case "privateDnsName":
			i.PrivateDnsName = aws.String(x.value())
		case "subnetId":
			i.SubnetId = aws.String(l.shared(x))
		case "instanceLifecycle":
			i.InstanceLifecycle = types.InstanceLifecycleType(l.shared(x))
		case "spotInstanceRequestId":
			i.SpotInstanceRequestId = aws.String(x.value())
		case "capacityReservationId":
			i.CapacityReservationId = aws.String(l.shared(x))
		default:
			l.readParts(x, name, &i)
		}
	})
	return i
}

// readParts reads what has parts of its own.
func (l *instanceList) readParts(x *xmlReader, name []byte, i *types.Instance) {
	part := func(read func(name []byte) bool) {
		x.each(func(name []byte) {
			if !read(name) {
				x.skip()
			}
		})
	}
	text := func(into **string, want string, name []byte) bool {
		if string(name) != want {
			return false
		}
		*into = aws.String(l.shared(x))
		return true
	}
	switch string(name) {
	case "instanceState":
		var state *string
		part(func(name []byte) bool { return text(&state, "name", name) })
		i.State = &types.InstanceState{Name: types.InstanceStateName(aws.ToString(state))}
	case "stateReason":
		r := &types.StateReason{}
		part(func(name []byte) bool { return text(&r.Code, "code", name) || text(&r.Message, "message", name) })
		i.StateReason = r
	case "placement":
		p := &types.Placement{}
		part(func(name []byte) bool {
			if string(name) == "partitionNumber" {
				p.PartitionNumber = x.number()
				return true
			}
			return text(&p.AvailabilityZone, "availabilityZone", name)
		})
		i.Placement = p
	case "capacityReservationSpecification":
		var preference *string
		part(func(name []byte) bool { return text(&preference, "capacityReservationPreference", name) })
		i.CapacityReservationSpecification = &types.CapacityReservationSpecificationResponse{
			CapacityReservationPreference: types.CapacityReservationPreference(aws.ToString(preference))}
	case "groupSet":
		x.each(func([]byte) {
			var g types.GroupIdentifier
			part(func(name []byte) bool { return text(&g.GroupId, "groupId", name) })
			i.SecurityGroups = append(i.SecurityGroups, g)
		})
	case "tagSet":
		x.each(func([]byte) {
			var t types.Tag
			part(func(name []byte) bool {
				if string(name) == "value" {
					t.Value = aws.String(x.value())
					return true
				}
				return text(&t.Key, "key", name)
			})
			i.Tags = append(i.Tags, t)
		})
	default:
		x.skip()
	}
}

// shared is a text that is kept once for all that have it.
func (l *instanceList) shared(x *xmlReader) string {
	text := x.value()
	if known, ok := l.texts[text]; ok {
		return known
	}
	if l.texts == nil {
		l.texts = map[string]string{}
	}
	l.texts[text] = text
	return text
}
