package embedded

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"time"
)

// askServer sends one command to the server at a socket, and returns the answer, which has one
// line.
func askServer(ctx context.Context, socket string, words ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	var d net.Dialer
	conn, err := d.DialContext(ctx, "unix", socket)
	if err != nil {
		return "", err
	}
	defer func() { _ = conn.Close() }()                                              // the answer is what counts
	defer context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })() // fails only on a closed connection
	var command strings.Builder
	fmt.Fprintf(&command, "*%d\r\n", len(words))
	for _, w := range words {
		fmt.Fprintf(&command, "$%d\r\n%s\r\n", len(w), w)
	}
	if _, err := io.WriteString(conn, command.String()); err != nil {
		return "", err
	}
	line, err := bufio.NewReader(io.LimitReader(conn, 4096)).ReadString('\n')
	if err != nil {
		return "", err
	}
	answer, ok := strings.CutPrefix(strings.TrimSpace(line), "+")
	if !ok {
		return "", errors.New("Redis answered " + strings.TrimSpace(line))
	}
	return answer, nil
}
