package outbox

import (
	"github.com/lightweb/lightweb/engine/actor"
	"github.com/lightweb/lightweb/engine/vocab"
)

// setThread says what a note of the user's answers, where its answers are listed, and in which
// thread it is (FEP-7888). Nothing is listed but what everybody may see, so that a private note has
// no lists. An answer is in the thread that its parent says it is in.
func setThread(local *actor.Local, d vocab.Doc, parent *vocab.Object, isPublic bool) {
	id := vocab.ID(d.Text("id"))
	if isPublic {
		d["replies"] = string(local.Replies(id))
	}
	if parent == nil {
		if isPublic {
			d["context"] = string(local.Thread(id))
		}
		return
	}
	d["inReplyTo"] = string(parent.ID)
	if thread, err := parent.Doc.Ref("context"); err == nil && thread.ID != "" {
		d["context"] = string(thread.ID)
	}
}
