package daemon

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestItIsSeenWhenAProgramInTheBackgroundEnds(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	b, err := Account{}.Start(t.Context(), dir, "sh", "-c", "mkfifo pipe; cat pipe &")
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	}()
	if b.HasEnded() {
		t.Error("the program has ended, want that it waits for its input")
	}
	input, err := os.OpenFile(filepath.Join(dir, "pipe"), os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := input.Close(); err != nil {
		t.Fatal(err)
	}
	for limit := time.Now().Add(20 * time.Second); !b.HasEnded(); {
		if time.Now().After(limit) {
			t.Fatal("the program goes on, want that it ends with its input")
		}
	}
}

func TestAProgramThatFailsAtOnceIsNotInTheBackground(t *testing.T) {
	t.Parallel()
	if b, err := (Account{}).Start(t.Context(), t.TempDir(), "sh", "-c", "exit 3"); err == nil || b != nil {
		t.Errorf("Start = %v, %v; want an error", b, err)
	}
}
