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

// maxDrain limits the bytes of an unneeded body that are read and discarded. A body of usual size
// is then read to its end, so the connection can be used again.
const maxDrain = 4 << 10

// discardBody reads up to maxDrain bytes of an unneeded body, and returns how many it read.
func discardBody(body io.Reader) int64 {
	n, _ := io.Copy(io.Discard, io.LimitReader(body, maxDrain)) // after an error the connection is not used again
	return n
}

// readBody returns the decompressed body of answer. The body may have at most limit bytes, both
// as sent and decompressed.
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

// classifyReadError wraps an error in reading a body in a fault. The kind of the fault says
// whether the body is malformed or did not arrive.
func classifyReadError(ctx context.Context, err error) error {
	var corrupt flate.CorruptInputError
	if errors.Is(err, gzip.ErrHeader) || errors.Is(err, gzip.ErrChecksum) || errors.As(err, &corrupt) || errors.Is(err, io.EOF) {
		return fault.Wrap(fault.Protocol, "the peer's answer cannot be unpacked", err)
	}
	return classifyError(ctx, err)
}
