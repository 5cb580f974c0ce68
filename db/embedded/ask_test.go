package embedded

import (
	"bufio"
	"encoding/binary"
	"strings"
	"testing"
)

func TestGreeting(t *testing.T) {
	var (
		letIn   = message('R', "\x00\x00\x00\x00")
		zone    = message('S', "TimeZone\x00UTC\x00")
		version = message('S', "server_version\x0015.19 (Debian 15.19-0)\x00")
		ready   = message('Z', "I")
	)
	tests := []struct {
		name, said    string
		version, fail string
		passing       bool
	}{
		{"a server that lets us in", letIn + zone + version + ready, "15.19", "", false},
		{"a server on its way up", message('E', "SFATAL\x00C57P03\x00Mthe database system is starting up\x00\x00"), "", "the database system is starting up (SQLSTATE 57P03)", true},
		{"a server that refuses us", message('E', "SFATAL\x00C28000\x00Mno entry\x00\x00"), "", "no entry (SQLSTATE 28000)", false},
		{"a server that asks for a password", message('R', "\x00\x00\x00\x03"), "", "the server asks for a password", false},
		{"a server that stops half-way", letIn + version[:9], "", "unexpected EOF", true},
		{"something that is no server", "HTTP/1.1 400 Bad Request\r\n", "", "message of 1414811695 bytes in answer to a start", false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := readGreeting(bufio.NewReader(strings.NewReader(tt.said)))
			if got != tt.version || (err == nil) != (tt.fail == "") || err != nil && err.Error() != tt.fail {
				t.Fatalf("greeting = %q, %v; want %q, %q", got, err, tt.version, tt.fail)
			}
			if isPassing(err) != tt.passing {
				t.Errorf("passing = %t, want %t", !tt.passing, tt.passing)
			}
		})
	}
}

// message returns one message of the PostgreSQL protocol.
func message(kind byte, body string) string {
	return string(binary.BigEndian.AppendUint32([]byte{kind}, uint32(len(body)+4))) + body
}
