package embedded

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// port is part of the socket's name. The server does not listen on TCP.
const port = "5432"

const socketName = ".s.PGSQL." + port

func socketPath(dir string) string { return filepath.Join(dir, socketName) }

// The SQLSTATEs of refusals after which the server may still be used.
const (
	cannotConnectNow   = "57P03" // starting up, recovering or shutting down
	tooManyConnections = "53300"
)

// refusal is a server's ErrorResponse to the start of a session.
type refusal struct{ code, message string }

func (r *refusal) Error() string { return fmt.Sprintf("%s (SQLSTATE %s)", r.message, r.code) }

// isPassing reports whether err means that the server may answer later, because it is busy,
// starting or stopping.
func isPassing(err error) bool {
	if r, ok := errors.AsType[*refusal](err); ok {
		return r.code == cannotConnectNow
	}
	timeout, ok := errors.AsType[net.Error](err)
	return ok && timeout.Timeout() || errors.Is(err, syscall.EAGAIN) ||
		errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF)
}

// askServer opens and ends a session with the server at the socket in dir, and returns the
// server's version. The version is empty if all connections of the server are taken. askServer
// needs a session, because the server accepts connections and answers requests for encryption
// long before it can be used.
func askServer(ctx context.Context, dir string) (version string, err error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	var d net.Dialer
	conn, err := d.DialContext(ctx, "unix", socketPath(dir))
	if err != nil {
		return "", err
	}
	defer func() { _ = conn.Close() }() // only the answer matters
	// SetDeadline fails only on a closed connection.
	defer context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })()
	if _, err := conn.Write(startupMessage()); err != nil {
		return "", err
	}
	version, err = readGreeting(bufio.NewReader(conn))
	if err != nil {
		if r, ok := errors.AsType[*refusal](err); ok && r.code == tooManyConnections {
			return "", nil
		}
		return "", err
	}
	// An error of Terminate does not matter, because the server notices the close as well.
	_, _ = conn.Write([]byte{'X', 0, 0, 0, 4})
	return version, nil
}

// startupMessage returns the StartupMessage of protocol 3.0 (PostgreSQL manual, "Message
// Formats").
func startupMessage() []byte {
	m := binary.BigEndian.AppendUint32(make([]byte, 4), 3<<16)
	for _, s := range []string{"user", superuser, "database", "postgres", "application_name", "lightweb", ""} {
		m = append(append(m, s...), 0)
	}
	binary.BigEndian.PutUint32(m, uint32(len(m)))
	return m
}

// readGreeting reads the server's messages until the server is ready for a query, and returns the
// version that the messages name.
func readGreeting(r *bufio.Reader) (version string, err error) {
	for {
		var head [5]byte
		if _, err := io.ReadFull(r, head[:]); err != nil {
			return "", err
		}
		n := binary.BigEndian.Uint32(head[1:])
		if n < 4 || n > 1<<16 {
			return "", fmt.Errorf("message of %d bytes in answer to a start", n)
		}
		body := make([]byte, n-4)
		if _, err := io.ReadFull(r, body); err != nil {
			return "", err
		}
		switch head[0] {
		case 'E':
			return "", parseRefusal(body)
		case 'R':
			if len(body) < 4 || binary.BigEndian.Uint32(body) != 0 {
				return "", errors.New("the server asks for a password")
			}
		case 'S': // ParameterStatus, such as "server_version" "15.19 (Debian 15.19-0+deb12u1)"
			name, value, _ := bytes.Cut(body, []byte{0})
			if string(name) == "server_version" {
				version, _, _ = strings.Cut(string(bytes.TrimRight(value, "\x00")), " ")
			}
		case 'Z':
			return version, nil
		}
	}
}

func parseRefusal(body []byte) *refusal {
	r := &refusal{}
	for field := range bytes.SplitSeq(body, []byte{0}) {
		switch {
		case len(field) == 0:
		case field[0] == 'C':
			r.code = string(field[1:])
		case field[0] == 'M':
			r.message = string(field[1:])
		}
	}
	return r
}
