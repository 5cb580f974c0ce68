package fault

import (
	"errors"
	"fmt"
	"testing"
)

func TestKindAndPublicWordsSurviveWrapping(t *testing.T) {
	cause := errors.New(`relation "users" does not exist`)
	tests := []struct {
		name   string
		err    error
		kind   Kind
		public string
	}{
		{"a plain error is internal and keeps its words", cause, Internal, "internal error"},
		{"an understood error", New(NotFound, "no such object"), NotFound, "no such object"},
		{"wrapped by others", fmt.Errorf("read feed: %w", New(Gone, "deleted")), Gone, "deleted"},
		{"the cause is not shown", Wrap(Unavailable, "try later", cause), Unavailable, "try later"},
		{"internal words are never shown", New(Internal, "secret"), Internal, "internal error"},
		{"the outermost kind wins", Wrap(Busy, "busy", New(NotFound, "none")), Busy, "busy"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if k := KindOf(tt.err); k != tt.kind {
				t.Errorf("KindOf = %d, want %d", k, tt.kind)
			}
			if p := Public(tt.err); p != tt.public {
				t.Errorf("Public = %q, want %q", p, tt.public)
			}
		})
	}
}

func TestIsOurs(t *testing.T) {
	for _, tt := range []struct {
		err  error
		want bool
	}{
		{nil, false},
		{errors.New("a bug"), true},
		{New(Config, "no such folder"), true},
		{New(Busy, "time ran out"), true},
		{fmt.Errorf("read: %w", New(Unavailable, "down").WithCode("database_unavailable")), true},
		{New(Unavailable, "too many wait").WithCode("too_many_waiting"), true},
		{New(Unavailable, "the peer did not answer in time"), false},
		{New(Unavailable, "the host does not answer").WithCode("host_unreachable"), false},
		{New(NotFound, "not shown").WithCode("peer_refused"), false},
		{New(RateLimited, "too often").WithCode("key_fetch_rate"), false},
	} {
		if got := IsOurs(tt.err); got != tt.want {
			t.Errorf("IsOurs(%v) = %t, want %t", tt.err, got, tt.want)
		}
	}
}

func TestWrappedCauseStaysReachable(t *testing.T) {
	cause := errors.New("cause")
	if err := Wrap(Unavailable, "later", cause).WithHint("wait").WithCode("down"); !errors.Is(err, cause) || Hint(err) != "wait" || err.Code != "down" {
		t.Errorf("got %+v, want cause, hint and code kept", err)
	}
}

func TestEveryKindHasACode(t *testing.T) {
	for _, k := range Kinds() {
		if got := Code(New(k, "words")); got == "" {
			t.Errorf("kind %d has no code", k)
		}
		if got, want := Code(fmt.Errorf("read: %w", New(k, "words").WithCode("own"))), "own"; got != want && k != Internal {
			t.Errorf("kind %d with a code of its own: %q, want %q", k, got, want)
		}
	}
	if got := Code(New(Internal, "words").WithCode("own")); got != "internal_error" || Code(errors.New("bug")) != got {
		t.Errorf("a bug is named %q, want internal_error", got)
	}
}
