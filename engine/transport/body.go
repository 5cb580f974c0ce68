package transport

import (
	"compress/flate"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/lightweb/lightweb/engine/fault"
)

// maxDrain is how much is read of a body that nobody wants: after an honest answer enough to use
// the connection again.
const maxDrain = 4 << 10

// discardBody reads a little of a body that nobody wants, and returns how much.
func discardBody(body io.Reader) int64 {
	n, _ := io.Copy(io.Discard, io.LimitReader(body, maxDrain)) // if this fails the connection is not used again
	return n
}

// readBody returns the body of answer, unpacked. It holds at most limit bytes both packed and
// unpacked.
func readBody(ctx context.Context, answer *http.Response, limit int64) ([]byte, error) {
	if answer.ContentLength > limit {
		return nil, tooLarge(limit)
	}
	wire := &io.LimitedReader{R: answer.Body, N: limit + 1}
	var body io.Reader = wire
	switch encoding := strings.ToLower(strings.Join(answer.Header.Values("Content-Encoding"), ",")); encoding {
	case "", "identity":
	case "gzip", "x-gzip": // RFC 9110 §8.4.1.3
		z, err := gzip.NewReader(wire)
		if err != nil {
			return nil, classifyReadError(ctx, err)
		}
		body = io.LimitReader(z, limit+1)
	default:
		return nil, fault.Wrap(fault.Protocol, "the peer's answer has an encoding that was not asked for", fmt.Errorf("content-encoding %.40q", encoding))
	}
	b, err := io.ReadAll(body)
	switch {
	case wire.N == 0, int64(len(b)) > limit:
		return nil, tooLarge(limit)
	case err != nil:
		return nil, classifyReadError(ctx, err)
	}
	return b, nil
}

func tooLarge(limit int64) error {
	return fault.Wrap(fault.Protocol, "the peer's answer is too large", fmt.Errorf("body over %d bytes", limit))
}

// classifyReadError gives its kind to an error in reading a body: the body is wrong, or it did not
// come.
func classifyReadError(ctx context.Context, err error) error {
	var corrupt flate.CorruptInputError
	if errors.Is(err, gzip.ErrHeader) || errors.Is(err, gzip.ErrChecksum) || errors.As(err, &corrupt) || errors.Is(err, io.EOF) {
		return fault.Wrap(fault.Protocol, "the peer's answer cannot be unpacked", err)
	}
	return classifyError(ctx, err)
}
