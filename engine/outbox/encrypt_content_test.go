package outbox

import (
	"encoding/base64"
	"testing"

	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/mls/mlstest"
	"github.com/lightweb/lightweb/engine/vocab"
)

// encrypt runs the step encryptContent for an activity about an object.
func encrypt(t *testing.T, object vocab.Ref) error {
	t.Helper()
	return (&Outbox{}).encryptContent(t.Context(), &exchange{activity: &vocab.Activity{Type: "Create", Object: object}})
}

// Row 25: plaintext of a type that must be encrypted is refused, in whatever way the type is
// written. It is never sent as something else.
func TestEncryptContentRefusesPlaintextOfSealedTypes(t *testing.T) {
	t.Parallel()
	refused := func(kind any) {
		t.Helper()
		object := vocab.Doc{"type": kind, "content": "psst"}
		if of := fault.Of(encrypt(t, vocab.Ref{Doc: object})); of == nil || of.Kind != fault.Unprocessable || of.Code != "encryption_required" {
			t.Errorf("%v: %v, want it refused", kind, of)
		}
		if object["content"] != "psst" || len(object) != 2 {
			t.Errorf("%v: the object became %v", kind, object)
		}
	}
	for _, kind := range vocab.SealedSpellings {
		refused(kind)
		refused([]any{"Object", kind})
		refused([]any{"Note", kind})
	}
}

func TestEncryptContentLetsEverythingElsePass(t *testing.T) {
	t.Parallel()
	for _, kind := range []any{"Note", "Article", "Audio", "Video", "Product", "Question", "Person", "lw:Unknown", "Message", []any{"Note"}, []any{"Object", "Note"}} {
		if err := encrypt(t, vocab.Ref{Doc: vocab.Doc{"type": kind, "content": "hello"}}); err != nil {
			t.Errorf("%v: %v", kind, err)
		}
	}
	for name, object := range map[string]vocab.Ref{"an id": {ID: bob + "/notes/1"}, "nothing": {}, "an object without a type": {Doc: vocab.Doc{"content": "hello"}}} {
		if err := encrypt(t, object); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Ciphertext must be of the conversation's own group and epoch, by its header. A refused message
// is never sent, neither as ciphertext nor as a Note.
func TestCiphertextIsOfItsGroupAndEpoch(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	device := mlstest.NewDevice(string(me), d.Now())
	group := mlstest.NewGroup(device)
	v, err := d.Conversations.Create(t.Context(), d.alice, group.Info(device))
	if err != nil {
		t.Fatal(err)
	}
	commit, next := group.Commit(device, mlstest.Change{})
	late := next
	for range 2 {
		_, late = late.Commit(device, mlstest.Change{})
	}
	said := d.sent()
	send := func(content []byte) map[string]any {
		return map[string]any{"conversationId": v.ID.String(), "content": base64.StdEncoding.EncodeToString(content)}
	}
	for name, c := range map[string]struct {
		params map[string]any
		kind   fault.Kind
		code   string
	}{
		"words":                           {map[string]any{"conversationId": v.ID.String(), "content": "psst"}, fault.Unprocessable, "mls_ciphertext_required"},
		"words in base64":                 {send([]byte("psst")), fault.Unprocessable, "mls_ciphertext_required"},
		"a commit":                        {send(commit), fault.Unprocessable, "mls_ciphertext_required"},
		"a message of another group":      {send(mlstest.NewGroup(device).Message()), fault.Invalid, "wrong_group"},
		"a message of an epoch to come":   {send(late.Message()), fault.Conflict, "future_epoch"},
		"a message with bytes at its end": {send(append(group.Message(), 0)), fault.Unprocessable, "mls_ciphertext_required"},
	} {
		t.Run(name, func(t *testing.T) { d.refused("SendMessage", c.params, c.kind, c.code) })
	}
	if n := d.sent(); n != said {
		t.Errorf("%d activities were stored", n-said)
	}
	if r, err := d.dispatch("SendMessage", send(group.Message())); err != nil || r.Accepted == nil || r.Accepted.Seq != 1 {
		t.Errorf("a message of the group and its epoch: %+v, %v", r, err)
	}
}
