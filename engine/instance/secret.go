package instance

import (
	"fmt"
	"io"
	"log/slog"
)

// Secret is a string that is never shown in a log or message.
type Secret string

const redacted = "REDACTED"

// Reveal returns the secret itself.
func (s Secret) Reveal() string { return string(s) }

// String returns REDACTED, or the empty string if the secret is empty.
func (s Secret) String() string {
	if s == "" {
		return ""
	}
	return redacted
}

// Format writes REDACTED for every verb. Without it fmt would show the bytes of the secret for a
// verb that does not suit a string.
func (s Secret) Format(f fmt.State, _ rune) {
	io.WriteString(f, s.String()) //nolint:errcheck // fmt.Formatter cannot report it
}

// LogValue keeps the secret out of logs.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }

// MarshalText keeps the secret out of JSON.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }
