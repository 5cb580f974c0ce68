package signature

import (
	"bufio"
	"bytes"
	"io"
	"net/http"
	"regexp"

	"github.com/lightweb/lightweb/engine/fault"
)

// The bounds of a captured request, in bytes.
const (
	maxCaptureHead = 64 << 10
	maxCaptureBody = 1 << 20
)

// ReadCapture returns a captured request and its body. The capture is raw HTTP, with CRLF or LF
// line ends, or the output of `curl -v` with the body after it. A body longer than its
// Content-Length is cut to that length, because editors and terminals add a line break. The
// fault is TooLarge if the headers have more than 64 KiB or the body has more than 1 MiB, and
// Invalid if the capture is not one well-formed request.
func ReadCapture(in io.Reader) (*http.Request, []byte, error) {
	text, err := io.ReadAll(io.LimitReader(in, maxCaptureHead+maxCaptureBody+1))
	if err != nil {
		return nil, nil, err
	}
	if len(text) > maxCaptureHead+maxCaptureBody {
		return nil, nil, errCaptureTooLarge
	}
	text = bytes.TrimLeft(text, "\r\n")
	if len(text) > 0 && bytes.IndexByte([]byte("*<>{}"), text[0]) >= 0 {
		text = readCurl(text)
	}
	head, rest := splitHead(text)
	if len(head) > maxCaptureHead || len(rest) > maxCaptureBody {
		return nil, nil, errCaptureTooLarge
	}
	// http.ReadRequest would take the first host header, but a server answers such a request with
	// 400.
	if len(hosts.FindAllIndex(head, 2)) > 1 {
		return nil, nil, fault.New(fault.Invalid, "the captured request has more than one host header")
	}
	b := bufio.NewReader(io.MultiReader(bytes.NewReader(head), bytes.NewReader(rest)))
	r, err := http.ReadRequest(b)
	if err != nil {
		return nil, nil, fault.Wrap(fault.Invalid, "the capture does not begin with the request line and the headers of an HTTP request", err)
	}
	if len(r.TransferEncoding) == 0 {
		return r, cutBody(r, rest), nil
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, nil, fault.Wrap(fault.Invalid, "the body of the captured request is cut off, or not chunked as its headers say", err)
	}
	return r, body, nil
}

var errCaptureTooLarge = fault.New(fault.TooLarge, "a captured request is at most 64 KiB of headers and 1 MiB of body")

// cutBody returns the body of r. The parameter rest is all text after the headers.
func cutBody(r *http.Request, rest []byte) []byte {
	if r.Header.Get("Content-Length") != "" {
		return rest[:min(int64(len(rest)), r.ContentLength)]
	}
	if len(bytes.TrimSpace(rest)) == 0 {
		return nil
	}
	return rest
}

var (
	headEnd = regexp.MustCompile(`\r?\n\r?\n`)
	hosts   = regexp.MustCompile(`(?mi)^host[ \t]*:`)
	// multiplexed matches the request line in the form in which programs show a request over
	// HTTP/2 or HTTP/3.
	multiplexed = regexp.MustCompile(`^([^\r\n]* )HTTP/[23](?:\.0)?(\r?\n)`)
)

// splitHead splits text into its headers and the rest. If no empty line ends the headers, it
// adds one.
func splitHead(text []byte) (head, rest []byte) {
	if at := headEnd.FindIndex(text); at != nil {
		head, rest = text[:at[1]], text[at[1]:]
	} else {
		head = append(bytes.TrimRight(text, "\r\n"), "\r\n\r\n"...)
	}
	return multiplexed.ReplaceAll(head, []byte("${1}HTTP/1.1$2")), rest
}

// notSent matches lines of curl -v that are not part of the request: curl's own messages, the
// answer, and counts of bytes.
var notSent = regexp.MustCompile(`^(?:[*<](?: |\r?\n)|[{}] \[\d+ bytes data\])`)

// readCurl returns the first request in the output of curl -v. The lines that begin with > are
// its head. All other lines are its body, except those that notSent matches.
func readCurl(text []byte) []byte {
	var head, body bytes.Buffer
	ended := false
	for line := range bytes.Lines(text) {
		sent, is := bytes.CutPrefix(line, []byte(">"))
		switch {
		case notSent.Match(line), is && ended:
		case is:
			sent = bytes.TrimPrefix(sent, []byte(" "))
			ended = len(bytes.TrimSpace(sent)) == 0
			head.Write(sent)
		default:
			body.Write(line)
		}
	}
	if !ended {
		head.WriteString("\r\n")
	}
	return append(head.Bytes(), body.Bytes()...)
}
