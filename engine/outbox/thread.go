package outbox

import (
	"github.com/lightweb/lightweb/engine/actor"
	"github.com/lightweb/lightweb/engine/vocab"
)

// setThread writes into a note of the user's which parent it answers, where the collection of
// its replies is, and to which thread it belongs (FEP-7888). Only public notes have a collection
// of replies and begin a thread, because only public objects are listed. A reply has the thread
// that its parent names.
func setThread(local actor.Addresses, d vocab.Doc, parent *vocab.Object, isPublic bool) {
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
