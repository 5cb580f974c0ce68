package inbox

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"testing"

	"github.com/lightweb/lightweb/engine/handler"
	"github.com/lightweb/lightweb/engine/vocab"
)

// decrypted runs the step decryptContent for an activity about an object. It reports whether the
// step took the object for ciphertext. The step must refuse nothing and change nothing.
func decrypted(t *testing.T, object vocab.Ref) bool {
	t.Helper()
	var log bytes.Buffer
	p := &applier{Deps: Deps{Log: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))}}
	x := &applying{Received: handler.Received{Activity: &vocab.Activity{ID: "https://p.example/acts/1", Type: "Create", Object: object}}}
	before, err := json.Marshal(object.Doc)
	if err == nil {
		err = p.decryptContent(t.Context(), x)
	}
	if err != nil {
		t.Errorf("%v: %v", object, err)
	}
	if after, err := json.Marshal(x.Activity.Object.Doc); err != nil || !bytes.Equal(after, before) || x.outcome != "" {
		t.Errorf("%s became %s (%q), %v", before, after, x.outcome, err)
	}
	if bytes.Contains(log.Bytes(), []byte("AAEAAg")) {
		t.Errorf("the log has the content: %s", &log)
	}
	return bytes.Contains(log.Bytes(), []byte("ciphertext kept"))
}

// An object of a type that must be encrypted is kept as it came, however its type is written. An
// object of any other type is no ciphertext.
func TestDecryptContentTakesSealedTypesForCiphertext(t *testing.T) {
	t.Parallel()
	sealed := func(kind any) bool { return decrypted(t, vocab.Ref{Doc: vocab.Doc{"type": kind, "content": "AAEAAg"}}) }
	for _, kind := range vocab.SealedSpellings {
		if !sealed(kind) || !sealed([]any{"Object", kind}) || !sealed([]any{kind, "Failure"}) {
			t.Errorf("%s is not taken for ciphertext", kind)
		}
	}
	for _, kind := range []any{"Note", "Article", "Message", "lw:Unknown", []any{"Object", "Note"}, []any{}, 7} {
		if sealed(kind) {
			t.Errorf("%v is taken for ciphertext", kind)
		}
	}
	if decrypted(t, vocab.Ref{ID: "https://p.example/notes/1"}) {
		t.Error("an id is taken for ciphertext")
	}
}
